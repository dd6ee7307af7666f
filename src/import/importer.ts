/*
 * Runs an import, which is a loop over chunks of records: read a chunk, map it, write it in one
 * transaction, report it.
 *
 * An import remembers nothing, and may be repeated at any time. A record that equals the stored
 * plant is skipped, so the same command stores only what is missing. This holds for records without
 * ids, too: their ids depend only on the input and the names in the store (`map-record.ts`). At a
 * service, the key of a create is made of the plant, so it is the same each time.
 *
 * docs/design/imports.md says why it is built like this.
 */
import { assertDefined, PlantsError } from '../errors.js'
import type { Chunk } from '../formats/chunk.js'
import type { Io } from '../platform/io.js'
import { checkSignal } from '../platform/runtime.js'
import { type Outcome, toError } from '../stores/change.js'
import type { Store } from '../stores/store.js'
import { countRejectedRecords, createCounts } from './counts.js'
import {
  assertSameHeader,
  formatRejectedRecords,
  formatRejectsHeader,
  type RejectedRecord,
} from './format-rejects.js'
import { assertUnchanged, type ImportInput } from './input-file.js'
import { InputNotes } from './input-notes.js'
import { type ImportPlan, type InputReader, openInput } from './inputs.js'
import { mapRecords } from './map-record.js'
import type { MappedChange } from './mapped-change.js'
import type { PlantNames } from './names.js'
import { addOutcomes, findRejections, isAnswered, mergeOutcomes } from './outcomes.js'
import type { RecordProblem } from './rejection-cause.js'
import type { RejectsFile } from './rejects-file.js'

/** A listener is told what the importer has done. */
interface ImportListener {
  reportChunk(
    outcomes: readonly Outcome[],
    rejections: readonly RejectedRecord[],
    importer: Importer,
    file: string,
  ): Promise<void>
}

interface ImportParts {
  plan: ImportPlan
  /** The plants that are found by their names; undefined without `--by-name`. */
  names: PlantNames | undefined
  rejectsFile: RejectsFile | undefined
  /** At most this many records are written at once. */
  maxRecords: number
  listener: ImportListener
  io: Io
}

/** A record of the inputs. */
interface RecordPosition {
  file: string
  line: number
}

/** A chunk whose records are mapped to changes, perhaps before the previous chunk is stored. */
interface MappedChunk {
  chunk: Chunk
  /** For each record, its change, or the reason why it is rejected. */
  results: readonly (MappedChange | RecordProblem)[]
}

export class Importer {
  readonly #parts: ImportParts
  #input = 0
  #reader: InputReader | undefined
  /** The first record without an answer, if the last chunk has one. */
  position: RecordPosition | undefined
  /** Whether all records have outcomes. */
  isComplete = false
  readonly counts = createCounts()
  readonly notes = new InputNotes()

  constructor(parts: ImportParts) {
    this.#parts = parts
  }

  /** How much of the inputs is read, from 0 to 1; undefined if that is not known. */
  get progress(): number | undefined {
    const progressOfInput = this.#reader?.progress()
    if (progressOfInput === undefined) return undefined
    return (this.#input + progressOfInput) / this.#parts.plan.inputs.length
  }

  /** Whether nothing of an import with `--atomic` is stored. */
  get isRolledBack(): boolean {
    const isRejected = countRejectedRecords(this.counts) > 0
    return this.#parts.plan.atomic === true && (isRejected || !this.isComplete)
  }

  /** @param firstReader the first input, which is open already */
  async run(firstReader: InputReader, write: Store['write']): Promise<void> {
    const { plan, io } = this.#parts
    for (const [index, input] of plan.inputs.entries()) {
      const reader = index === 0 ? firstReader : await openInput(input, plan, io)
      this.#input = index
      this.#reader = reader
      try {
        if (plan.rejects !== undefined) assertSameHeader(reader, firstReader, input.name)
        this.notes.noteChoices(reader, input.name)
        await this.#importInput(input, reader, write)
        this.notes.noteEnd(reader, input.name)
      } finally {
        reader.close()
      }
    }
    this.isComplete = true
  }

  async #importInput(
    input: ImportInput,
    reader: InputReader,
    write: Store['write'],
  ): Promise<void> {
    for await (const mappedChunk of readAhead(this.#mapChunks(reader))) {
      assertUnchanged(input)
      this.notes.noteRows(mappedChunk.chunk, reader, input.name)
      // If all rows of a chunk were left out, it has no records.
      if (mappedChunk.chunk.length > 0)
        await this.#importChunk(mappedChunk, { input, reader, write })
    }
  }

  async *#mapChunks({ chunks }: InputReader): AsyncGenerator<MappedChunk> {
    const { plan, names, maxRecords } = this.#parts
    for await (const wholeChunk of chunks)
      for (const chunk of wholeChunk.split(maxRecords))
        yield { chunk, results: mapRecords(chunk, plan, names) }
  }

  async #importChunk(
    { chunk, results }: MappedChunk,
    { input, reader, write }: ImportSource,
  ): Promise<void> {
    const { rejectsFile, listener } = this.#parts
    const changes = results.filter(isChange)
    const outcomes = mergeOutcomes(chunk, results, await this.#write(changes, write))
    const rejections = findRejections(chunk, outcomes)
    addOutcomes(this.counts, outcomes)
    if (rejectsFile && rejections.length > 0)
      rejectsFile.append(formatRejectsHeader(reader), formatRejectedRecords(rejections, reader))
    await listener.reportChunk(outcomes, rejections, this, input.name)
    const unanswered = outcomes.findIndex((outcome) => !isAnswered(outcome))
    if (unanswered === -1) return
    this.position = { file: input.name, line: assertDefined(chunk.lines[unanswered]) }
    // A change that may be stored decides the exit code, wherever it is in the chunk.
    const unknown = outcomes.find(({ type }) => type === 'unknown')
    const outcome = unknown ?? assertDefined(outcomes[unanswered])
    if ('problem' in outcome) throw toError(outcome.problem)
  }

  async #write(changes: readonly MappedChange[], write: Store['write']): Promise<Outcome[]> {
    const signal = this.#parts.io.getStopSignal()
    await checkSignal(signal)
    try {
      return await write(changes, { signal })
    } catch (error) {
      const isUnknown = error instanceof PlantsError && error.isOutcomeUnknown
      if (isUnknown) this.counts.unknown += changes.length
      throw error
    }
  }
}

/** An input with what imports it. */
interface ImportSource {
  input: ImportInput
  reader: InputReader
  write: Store['write']
}

function isChange(result: MappedChange | RecordProblem): result is MappedChange {
  return !('error' in result)
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
