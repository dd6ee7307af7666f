/*
 * Runs an import, which is a loop over chunks of records: read a chunk, map it, write it in one
 * transaction, and yield what became of it.
 *
 * An import remembers nothing, and may be repeated at any time. A record that equals the stored
 * plant is skipped, so the same command stores only what is missing. This holds for records without
 * ids, too: the plants for which they stand depend only on the inputs and the store (`match.ts`). At a service,
 * the key of a create is made of the plant, so it is the same each time.
 *
 * docs/design/imports.md says why it is built like this.
 */
import { assertDefined, PlantsError } from '../errors.js'
import type { Chunk } from '../fields/chunk.js'
import type { Io } from '../platform/io.js'
import { checkSignal } from '../platform/runtime.js'
import { type Outcome, toError } from '../stores/change.js'
import type { Store } from '../stores/store.js'
import { assertUnchanged, type ImportPlan, type InputReader, openInput } from './inputs.js'
import { mapRecords } from './map.js'
import type { Matches } from './match.js'
import { InputNotes } from './notes.js'
import {
  addOutcomes,
  type Counts,
  createCounts,
  findRejections,
  isAnswered,
  isChange,
  type MappedRecord,
  mergeOutcomes,
  type RecordOutcome,
  type RejectedRecord,
} from './outcomes.js'
import { assertSameHeader } from './rejects.js'

interface ImportParts {
  plan: ImportPlan
  /** The first input, which the caller has opened, and closes. */
  firstReader: InputReader
  /** Which plants the records without ids stand for; undefined without `--by-name`. */
  matches: Matches | undefined
  /** At most this many records are written at once. */
  maxRecords: number | undefined
  write: Store['write']
  io: Io
}

/** What an import has done when a chunk has its outcomes. */
export interface ImportStep {
  /** The name of the input that has the chunk. */
  file: string
  reader: InputReader
  outcomes: readonly RecordOutcome[]
  rejections: readonly RejectedRecord[]
  /** How many records of the import have each outcome so far. */
  counts: Readonly<Counts>
  notes: InputNotes
  /** How much of the inputs is read, from 0 to 1; undefined if that is not known. */
  progress: number | undefined
  /** The line of the first record without an answer, at which the import ends. */
  unansweredLine?: number | undefined
}

/**
 * Yields a step for each chunk, also for one whose rows are all left out.
 *
 * @throws {PlantsError} the error that ends the import, after the step of its chunk
 */
export async function* importRecords(parts: ImportParts): AsyncGenerator<ImportStep> {
  const { plan, firstReader, io } = parts
  const counts = createCounts()
  const notes = new InputNotes(parts.matches?.repeatedCount)
  for (const [index, input] of plan.inputs.entries()) {
    const file = input.name
    const reader = index === 0 ? firstReader : await openInput(input, plan, io)
    try {
      if (plan.rejects !== undefined) assertSameHeader(reader, firstReader, file)
      notes.noteChoices(reader, file)
      for await (const mappedChunk of readAhead(mapChunks(reader, parts))) {
        assertUnchanged(input)
        notes.noteRows(mappedChunk.chunk, reader, file)
        const progress = addProgress(reader.progress(), index, plan.inputs.length)
        const { failure, ...result } = await importChunk(mappedChunk, counts, parts)
        yield { ...result, file, reader, counts, notes, progress }
        if (failure !== undefined) throw failure
      }
      notes.noteEnd(reader, file)
    } finally {
      if (reader !== firstReader) reader.close()
    }
  }
}

function addProgress(
  progressOfInput: number | undefined,
  inputsBefore: number,
  inputs: number,
): number | undefined {
  return progressOfInput === undefined ? undefined : (inputsBefore + progressOfInput) / inputs
}

/** A chunk whose records are mapped to changes, perhaps before the previous chunk is stored. */
interface MappedChunk {
  chunk: Chunk
  /** What each record leads to. */
  mappings: readonly MappedRecord[]
}

async function* mapChunks(
  reader: InputReader,
  { plan, matches, maxRecords }: ImportParts,
): AsyncGenerator<MappedChunk> {
  for await (const chunk of reader.readChunks(maxRecords))
    yield { chunk, mappings: mapRecords(chunk, plan, matches) }
}

interface ChunkResult extends Pick<ImportStep, 'outcomes' | 'rejections' | 'unansweredLine'> {
  /** Why the import ends with this chunk. */
  failure?: unknown
}

/** Writes a chunk, and adds its outcomes to the counts. */
async function importChunk(
  { chunk, mappings }: MappedChunk,
  counts: Counts,
  { write, io }: ImportParts,
): Promise<ChunkResult> {
  const changes = mappings.filter(isChange)
  const signal = io.getStopSignal()
  let changeOutcomes: readonly Outcome[] = []
  try {
    await checkSignal(signal)
    if (changes.length > 0) changeOutcomes = await write(changes, { signal })
  } catch (failure) {
    const isUnknown = failure instanceof PlantsError && failure.isOutcomeUnknown
    if (isUnknown) counts.unknown += changes.length
    return { outcomes: [], rejections: [], failure }
  }
  const outcomes = mergeOutcomes(chunk, mappings, changeOutcomes)
  addOutcomes(counts, outcomes)
  const rejections = findRejections(chunk, outcomes)
  const unanswered = outcomes.findIndex((outcome) => !isAnswered(outcome))
  if (unanswered === -1) return { outcomes, rejections }
  // A change that may be stored decides the exit code, wherever it is in the chunk.
  const unknown = outcomes.find(({ type }) => type === 'unknown')
  const outcome = unknown ?? assertDefined(outcomes[unanswered])
  const failure = 'problem' in outcome ? toError(outcome.problem) : undefined
  return { outcomes, rejections, unansweredLine: chunk.lines[unanswered], failure }
}

/**
 * Yields the items, and begins to read each of them while the one before it is used: a PostgreSQL
 * server stores one chunk while this process reads and maps the next one.
 */
async function* readAhead<T>(items: AsyncGenerator<T, void>): AsyncGenerator<T, void> {
  let next = items.next()
  for (;;) {
    const result = await next
    if (result.done) return
    next = items.next()
    // An error of the next item is thrown when this item has been used.
    next.catch(() => undefined)
    yield result.value
  }
}
