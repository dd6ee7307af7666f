import { createHash, type Hash } from 'node:crypto'
import { statSync } from 'node:fs'
import { smallestId } from '../../plant/plant.js'
import { type FormatName, recordFormatOf } from '../../plant/records.js'
import { checkSignal } from '../../platform/clock.js'
import { malformed, type PlantsError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { Outcome } from '../../stores/common/conflict.js'
import type { BulkStore, CreateManyOptions } from '../../stores/common/store.js'
import type { Chunk } from '../formats/chunk.js'
import { sheet } from '../formats/csv.js'
import type { EncodingName } from '../formats/format.js'
import { formatOf, formats, type InputOptions } from '../formats/formats.js'
import { RecordMapper } from '../formats/record-mapper.js'
import {
  addCounts,
  type Checkpoints,
  type Counters,
  noCounters,
  type Position,
  rejectedIn,
  type SavedImport,
  settledIn,
} from './checkpoint.js'
import { Reader } from './reader.js'
import { type RejectedRecord, type Rejects, rejectedRecords } from './rejects.js'
import { type ImportInput, openSource } from './source.js'

export interface ImportOptions {
  plan: ImportPlan
  /** absolute */
  rejects: string | undefined
  isRestart: boolean
  /** `atomic`: all plants or none */
  staging: 'dryRun' | 'atomic' | undefined
  /** of a dry run: every change is printed, as a JSON object on a line */
  showsAll: boolean
  /** requests in flight at most */
  concurrency: number | undefined
  /** how long refused connections are retried, in milliseconds */
  retry: number | undefined
}

export interface ImportPlan extends InputOptions {
  inputs: ImportInput[]
  ifExists: CreateManyOptions['ifExists']
  /** rejected records after which the import stops */
  maxErrors: number
  chunkBytes: number
}

export interface ImportContext {
  store: BulkStore
  /** a chunk is one transaction of the store, which also keeps the checkpoint */
  keepsCheckpoints: boolean
  /** undefined if the import cannot be resumed */
  checkpoints: Checkpoints | undefined
  saved: SavedImport
  rejects: Rejects | undefined
  /** `signal` stops the import */
  io: Io
  onRejected(rejected: RejectedRecord[], input: string): Promise<void>
  /** called when the input is unchanged up to the position of an earlier run */
  onResume(): Promise<void>
  onAssumedEncoding(input: string, encoding: EncodingName): Promise<void>
  onProgress(): void
  onPlanned: CreateManyOptions['onPlanned']
}

export interface OpenInput {
  reader: Reader
  format: FormatName
  /** of a table whose encoding is neither given nor marked, and not UTF-8 */
  assumed: EncodingName | undefined
  chunk: Chunk | undefined
  close(): void
}

/**
 * Reads the first chunk, so that an unreadable input is found out before anything is created.
 *
 * @param hash of the inputs before it
 * @throws {PlantsError} `malformed` for an unreadable input, an unknown format and an unusable header
 */
export async function openInput(
  input: ImportInput,
  plan: ImportPlan,
  mapper: RecordMapper,
  io: Pick<Io, 'stdin' | 'signal'>,
  hash: Hash = createHash('sha256'),
): Promise<OpenInput> {
  const source = await openSource(input, plan, io)
  try {
    const reader = new Reader(source, hash, plan.encoding)
    const { bytes, isLast } = await reader.head(readTimeout)
    io.signal.throwIfAborted() // the head may be cut
    const format = reader.isSheet ? 'csv' : formatOf(bytes, isLast, reader.name, plan)
    reader.use(reader.isSheet ? sheet : formats[format], mapper)
    const isTable = recordFormatOf(format) !== 'json'
    const assumed = isTable && plan.encoding === undefined ? reader.assumeEncoding() : undefined
    const chunk = await reader.next(plan.chunkBytes, readTimeout)
    io.signal.throwIfAborted()
    return { reader, format, assumed, chunk, close: source.close }
  } catch (error) {
    source.close()
    throw error
  }
}

/** Of the records that have an id; undefined if an input cannot be read twice. */
export async function greatestIdIn(plan: ImportPlan, io: Pick<Io, 'stdin' | 'signal'>): Promise<bigint | undefined> {
  let greatest: bigint | undefined
  if (!plan.inputs.every(({ path }) => path !== '-' && statSync(path).isFile())) return undefined
  for (const input of plan.inputs) {
    const mapper = new RecordMapper(plan.rules)
    mapper.nextId = smallestId // what it assigns meanwhile is not greater
    const { reader, chunk: first, close } = await openInput(input, plan, mapper, io)
    try {
      for (let chunk = first; chunk; chunk = await reader.next(plan.chunkBytes, readTimeout)) {
        for (let row = 0; row < chunk.rows.length; row += 1) {
          const id = chunk.rows.idAt(row)
          if (greatest === undefined || id > greatest) greatest = id
        }
        await checkSignal(io.signal)
      }
    } finally {
      close()
    }
  }
  return greatest
}

/** A chunk up to the first row that is pending, and the position after it. */
interface Settled {
  rejected: RejectedRecord[]
  position: Position
  syntaxError: RejectedRecord | undefined
}

/**
 * A chunk is one transaction, which also writes the checkpoint; for a service, the checkpoint is written after the
 * chunk. A chunk that was interrupted is repeated.
 */
export class Import {
  readonly #plan: ImportPlan
  readonly #context: ImportContext
  readonly #start: Position | undefined
  /** after the last chunk */
  #position: Position | undefined
  readonly mapper: RecordMapper
  isDone = false
  isBeforeRecord = false
  /** no input has a byte, except a byte order mark */
  isEmpty = true
  /** records that this run rejected because of an id that is in the input twice */
  repeated = 0
  format: FormatName = 'ndjson'
  isSheet = false
  #input = 0
  /** in bytes, of the only input if it is not compressed */
  #size: number | undefined
  #chunk: Chunk | undefined
  #hasSent = false

  constructor(plan: ImportPlan, mapper: RecordMapper, context: ImportContext) {
    this.#plan = plan
    this.mapper = mapper
    this.#context = context
    this.#start = context.saved.position
    this.#position = this.#start
  }

  /**
   * @param first closed by the caller
   * @throws {PlantsError} the errors of the store and of its context; the reason of the signal
   */
  async run(first: OpenInput): Promise<void> {
    this.mapper.firstId = this.firstId
    if (this.firstId !== undefined && !this.#start) {
      this.mapper.nextId = this.firstId
      if (first.chunk) first.chunk = first.reader.numberFrom(this.firstId)
    }
    this.isDone = await this.#readAll(first)
    if (!this.isDone) this.#context.io.signal.throwIfAborted()
    this.#context.rejects?.finish()
  }

  async #readAll(first: OpenInput): Promise<boolean> {
    let opened = first
    const { form } = first.reader
    for (const [index, input] of this.#plan.inputs.entries()) {
      this.#input = index
      if (index > 0) opened = await openInput(input, this.#plan, this.mapper, this.#context.io, opened.reader.hash)
      try {
        const { assumed, reader } = opened
        if (this.#context.rejects) assertSameForm(form, reader)
        if (assumed) await this.#context.onAssumedEncoding(reader.name, assumed)
        if (!(await this.#readInput(opened))) return false
      } finally {
        if (index > 0) opened.close()
      }
    }
    return true
  }

  get counters(): Counters {
    return this.#position?.counters ?? noCounters
  }

  /** of this run, including those whose outcome is unknown */
  get rejected(): number {
    const countIn = (counters: Counters) => rejectedIn(counters) + counters.unknown
    return countIn(this.counters) - countIn(this.#start?.counters ?? noCounters)
  }

  /** of `--id-from next` */
  get firstId(): bigint | undefined {
    const { firstId } = this.#context.saved
    return firstId === undefined ? undefined : BigInt(firstId)
  }

  get hasAssignedIds(): boolean {
    return this.mapper.nextId !== (this.firstId ?? this.#plan.rules.idFrom)
  }

  get isBegun(): boolean {
    return this.#hasSent || this.#start !== undefined || settledIn(this.counters) > 0
  }

  /** Includes the settled rows of the chunk in progress. `part` is from 0 to 1, if the size is known. */
  get snapshot() {
    const { outcomes, bytes } = this.#chunk ?? { outcomes: new Uint8Array(), bytes: [] }
    const settled = outcomes.reduce((sum, outcome) => sum + (outcome === Outcome.pending ? 0 : 1), 0)
    const offset = (this.#position?.offset ?? 0) + (settled / Math.max(1, outcomes.length)) * bytes.length
    const part = this.#size === undefined ? undefined : Math.min(1, offset / this.#size)
    return { done: settledIn(this.counters) + settled, rejected: this.rejected, part }
  }

  async #readInput({ reader, format, chunk: first }: OpenInput): Promise<boolean> {
    const start = this.#start
    const { signal } = this.#context.io
    if (reader.end > 0) this.isEmpty = false
    if (start && this.#input < start.input) return !(await reader.skipTo(Infinity))
    this.format = format
    this.isSheet = reader.isSheet
    if (this.#plan.inputs.length === 1) this.#size = reader.size
    const next = () => reader.next(this.#plan.chunkBytes, readTimeout)
    let chunk = first
    if (start?.input === this.#input) {
      await reader.skipTo(start.offset)
      if (signal.aborted) return false
      if (reader.hash.digest('base64url') !== start.hash) throw changedInput(reader.name)
      await this.#context.onResume()
      reader.restore(start.reader)
      chunk = await next()
    }
    for (; chunk && !signal.aborted; chunk = await next()) {
      const goesOn = await this.#process(chunk, reader)
      if (!goesOn || signal.aborted) return goesOn && reader.isDone
    }
    return !signal.aborted
  }

  /** Returns false if the import ends with the chunk. */
  async #process(read: Chunk, reader: Reader): Promise<boolean> {
    const { maxErrors, inputs } = this.#plan
    const { keepsCheckpoints, onRejected } = this.#context
    const stopsAtReject = read.length >= maxErrors - this.rejected
    const [invalid] = read.invalid
    const chunk = stopsAtReject && invalid ? reader.first(invalid.row + 1) : read
    if (keepsCheckpoints && !stopsAtReject) chunk.order = chunk.rows.orderById()
    chunk.outcomes = new Uint8Array(chunk.rows.length)
    this.#chunk = chunk
    const { settled, failure } = await this.#create(chunk, reader, stopsAtReject)
    if (!settled) return false
    const { rejected, position, syntaxError } = settled
    this.#chunk = undefined
    this.#position = position
    this.repeated += rejected.filter(({ isRepeated }) => isRepeated).length
    await onRejected(rejected, reader.name)
    if (failure) throw failure.error
    if (this.rejected >= maxErrors) return reader.isDone && this.#input === inputs.length - 1
    if (!syntaxError) return true
    this.isBeforeRecord = true // as the checkpoint is, so that the record can be fixed
    const { bytes } = chunk
    const end = { bytes, outcomes: new Uint8Array(), otherFields: new Map() }
    this.#position = this.#positionAfter(end, [syntaxError], reader)
    await onRejected([syntaxError], reader.name)
    return false
  }

  /** Nothing is settled if the import was stopped, and its transaction rolled back. */
  async #create(
    chunk: Chunk,
    reader: Reader,
    stopsAtReject: boolean,
  ): Promise<{ settled?: Settled; failure?: { error: unknown } | undefined }> {
    const { store, keepsCheckpoints, checkpoints, saved, io, onProgress, onPlanned } = this.#context
    let settled: Settled | undefined
    let failure: { error: unknown } | undefined
    const settle = () => {
      settled = this.#settle(chunk, reader, stopsAtReject)
      return settled.position
    }
    try {
      await store.createMany(chunk, {
        ...{ ifExists: this.#plan.ifExists, assignedFrom: this.firstId, stopsAtReject },
        ...{ stop: io.signal, onProgress, onPlanned },
        checkpoint:
          keepsCheckpoints && checkpoints
            ? () => checkpoints.checkpointOf({ ...saved, position: settle() })
            : undefined,
        keyOf: (row) => {
          checkpoints?.assertHeld()
          this.#hasSent = true
          return `${saved.id}-${this.#input}-${reader.offset + chunk.rangeOf(row).start}`
        },
      })
    } catch (error) {
      if (keepsCheckpoints) throw error
      failure = { error } // what the service has created before is kept
    }
    if (keepsCheckpoints && io.signal.aborted && isRolledBack(chunk)) return {}
    if (!settled) {
      settled = this.#settle(chunk, reader, stopsAtReject)
      await checkpoints?.keep({ ...saved, position: settled.position })
    }
    return { settled, failure }
  }

  /** A store may call it again, when it repeats a transaction. */
  #settle(all: Chunk, reader: Reader, stopsAtReject: boolean): Settled {
    let chunk = all
    const pending = all.outcomes.indexOf(Outcome.pending)
    const done = pending >= 0 ? pending : all.outcomes.length
    const isEnded = stopsAtReject && (all.outcomes.at(done - 1) ?? Outcome.pending) >= Outcome.exists
    if (pending >= 0 || isEnded) {
      const before = all.invalid.filter(({ row }) => row < done || (row === done && !isEnded))
      chunk = reader.first(done + before.length)
      chunk.outcomes = all.outcomes.slice(0, done)
      for (const [row, rejection] of all.rejections) chunk.rejections.set(row, rejection)
    }
    const rejected = rejectedRecords(chunk, this.#plan.ifExists)
    return { rejected, position: this.#positionAfter(chunk, rejected, reader), syntaxError: chunk.syntaxError }
  }

  /** Also writes the rejects file, because the position counts its records. */
  #positionAfter(
    { bytes, outcomes, otherFields }: Pick<Chunk, 'bytes' | 'outcomes' | 'otherFields'>,
    rejected: RejectedRecord[],
    reader: Reader,
  ): Position {
    return {
      ...{ input: this.#input, format: this.format, reader: reader.state, offset: reader.end },
      hash: reader.hash.digest('base64url'),
      counters: addCounts(this.counters, outcomes, rejected, otherFields),
      rejects: this.#context.rejects?.write(this.#position?.rejects, rejected, bytes, reader),
    }
  }
}

/** A chunk may have only invalid records. */
function isRolledBack({ outcomes }: Chunk): boolean {
  return outcomes.length > 0 && outcomes.every((outcome) => outcome === Outcome.pending)
}

const readTimeout = 100

/** A rejects file must be importable, so its records have one format, header and encoding. */
function assertSameForm(first: string, reader: Reader): void {
  if (reader.form === first) return
  const what = `The format, header or encoding of ${reader.name} differs, so its rejected records cannot be in the same file`
  throw malformed(what, 'Convert it, or import it alone, with another --rejects')
}

function changedInput(name: string): PlantsError {
  const hint =
    'To import all of it, add --restart. Plants that exist are then rejected, or skipped with --if-exists skip'
  return malformed(`${name} was changed since its import was interrupted`, hint)
}
