/*
 * Runs an import, which is a loop over chunks of records: read a chunk, map it, write it in one
 * transaction, and yield what became of it.
 *
 * An import remembers nothing, and may be repeated at any time. A record that equals the stored
 * plant is skipped, so the same command stores only what is missing. This holds for records without
 * ids, too: the plants for which they stand depend only on the inputs and the store (`match.ts`).
 * At a service, the key of a create is made of the plant, so it is the same each time.
 *
 * With `--sync`, the plants for which no record stands are deleted at the end. If a record was
 * rejected, nothing is deleted: the record may stand for one of them.
 *
 * docs/design/imports.md says why it is built like this.
 */
import { assertDefined, PlantsError } from '../errors.js'
import type { Chunk } from '../fields/chunk.js'
import type { Io } from '../platform/io.js'
import { checkSignal } from '../platform/runtime.js'
import { type Change, type Outcome, toError } from '../stores/change.js'
import type { Store } from '../stores/store.js'
import {
  addDeletion,
  addOutcomes,
  type Counts,
  countRejectedRecords,
  createCounts,
} from './counts.js'
import { assertUnchanged, type ImportPlan, type InputReader, openInput } from './inputs.js'
import { mapRecords } from './map.js'
import type { Matches } from './match.js'
import { InputNotes } from './notes.js'
import {
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
  /** Which plants the records stand for; undefined without `--by-name` and `--sync`. */
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
 * Yields a step for each chunk, also for one whose rows are all left out. The steps of deletions
 * have the first input.
 *
 * @throws {PlantsError} the error that ends the import, after the step of its chunk
 */
export async function* importRecords(parts: ImportParts): AsyncGenerator<ImportStep> {
  const { plan, firstReader, io } = parts
  const counts = createCounts(parts.matches?.missingCount)
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
  const file = assertDefined(plan.inputs[0]).name
  const step = { file, reader: firstReader, rejections: [], counts, notes, progress: 1 }
  for await (const outcomes of deleteMissing(counts, parts)) yield { ...step, outcomes }
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
  const { byName, ifExists, sync } = plan
  // A list without any tag says nothing about tags, and neither does a table without their column.
  const hasTags = reader.type === 'json' || reader.header?.columns.has('tag') === true
  const removesMissingTags = sync === true && hasTags && matches?.hasTags === true
  const options = { byName, ifExists, matches, removesMissingTags }
  for await (const chunk of reader.readChunks(maxRecords))
    yield { chunk, mappings: mapRecords(chunk, options) }
}

interface WriteResult {
  outcomes: readonly Outcome[]
  /** Why the import ends here. */
  failure?: unknown
}

type ChunkResult = WriteResult & Pick<ImportStep, 'outcomes' | 'rejections' | 'unansweredLine'>

/** Writes a chunk, and adds its outcomes to the counts. */
async function importChunk(
  { chunk, mappings }: MappedChunk,
  counts: Counts,
  parts: ImportParts,
): Promise<ChunkResult> {
  const result = await writeChanges(mappings.filter(isChange), counts, parts)
  if ('failure' in result) return { ...result, outcomes: [], rejections: [] }
  const outcomes = mergeOutcomes(chunk, mappings, result.outcomes)
  addOutcomes(counts, outcomes)
  const rejections = findRejections(chunk, outcomes)
  const unanswered = outcomes.findIndex((outcome) => !isAnswered(outcome))
  if (unanswered === -1) return { outcomes, rejections }
  const unansweredLine = chunk.lines[unanswered]
  return { outcomes, rejections, unansweredLine, failure: findFailure(outcomes) }
}

async function writeChanges(
  changes: readonly Change[],
  counts: Counts,
  { write, io }: ImportParts,
): Promise<WriteResult> {
  const signal = io.getStopSignal()
  try {
    await checkSignal(signal)
    return { outcomes: changes.length > 0 ? await write(changes, { signal }) : [] }
  } catch (failure) {
    const isUnknown = failure instanceof PlantsError && failure.isOutcomeUnknown
    if (isUnknown) counts.unknown += changes.length
    return { outcomes: [], failure }
  }
}

/** A change that may be stored decides the exit code, wherever it is in the chunk. */
function findFailure(outcomes: readonly RecordOutcome[]): unknown {
  const outcome =
    outcomes.find(({ type }) => type === 'unknown') ??
    outcomes.find((candidate) => !isAnswered(candidate))
  return outcome && 'problem' in outcome ? toError(outcome.problem) : undefined
}

/**
 * Deletes the plants for which no record stands, and yields the outcomes. A plant that was changed
 * since it was read stays.
 */
async function* deleteMissing(
  counts: Counts,
  parts: ImportParts,
): AsyncGenerator<readonly Outcome[]> {
  const plants = parts.matches?.missingPlants ?? []
  const size = parts.maxRecords ?? maxDeletions
  if (countRejectedRecords(counts) > 0) return
  for (let start = 0; start < plants.length; start += size) {
    const changes = plants
      .slice(start, start + size)
      .map((plant): Change => ({ type: 'delete', id: plant.id, expectedPlant: plant }))
    const result = await writeChanges(changes, counts, parts)
    for (const outcome of result.outcomes) addDeletion(counts, outcome)
    yield result.outcomes
    const { failure = findFailure(result.outcomes) } = result
    if (failure !== undefined) throw failure
  }
}

/** The greatest number of plants that one transaction deletes. */
const maxDeletions = 4000

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
