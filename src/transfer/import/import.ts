import { createHash } from 'node:crypto'
import type { FormatName } from '../../plant/records.js'
import { orderById } from '../../plant/sort.js'
import { malformed, type PlantsError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { Outcome } from '../../stores/common/conflict.js'
import type { BulkStore, CreateManyOptions } from '../../stores/common/store.js'
import { Chunk } from '../formats/chunk.js'
import { formatOf, formats, type InputOptions } from '../formats/formats.js'
import { RecordMapper } from '../formats/record-mapper.js'
import { type Checkpoints, type Counters, countFields, type Position, packBatch, settledIn, unpackBatch } from './position.js'
import { Reader } from './reader.js'
import { type Conflict, type RejectedRecord, type Rejects, rejectedRecords } from './rejects.js'
import { type ImportInput, openSource } from './source.js'

export interface ImportOptions {
  plan: ImportPlan
  /** absolute */
  rejects: string | undefined
  /** absolute; false for none, undefined for the default path */
  journal: string | false | undefined
  isRestart: boolean
  /** `atomic`: all plants or none */
  staging: 'dryRun' | 'atomic' | undefined
  /** maximum number of requests in flight */
  concurrency: number | undefined
  /** how long refused connections are retried, in milliseconds */
  retry: number | undefined
}

export interface ImportPlan extends InputOptions {
  inputs: ImportInput[]
  ifExists: CreateManyOptions['ifExists']
  /** the number of rejected records after which the import stops */
  maxErrors: number
}

export interface ImportContext {
  store: BulkStore
  checkpoints: Checkpoints
  key: string
  rejects: Rejects | undefined
  /** `signal` stops the import */
  io: Io
  onRejected(rejected: RejectedRecord[], input: string): Promise<void>
  /** called before the import continues at the position of an earlier run, when the input is unchanged up to there */
  onResume(start: Position): Promise<void>
  onProgress(): void
}

export class Import {
  readonly #plan: ImportPlan
  readonly #context: ImportContext
  readonly #start: Position | undefined
  readonly #checkpoints: Checkpoints
  readonly mapper: RecordMapper
  readonly counters: Counters
  /** in this run, and those of them whose id exists */
  rejected = 0
  readonly conflicts: Record<Conflict, number> = { repeated: 0, assigned: 0, existing: 0 }
  isDone = false
  isBeforeRecord = false
  format: FormatName = 'ndjson'
  /** the size of the input, if it is the only one and not compressed, and the offset of the chunk, in bytes */
  #size: number | undefined
  #offset = 0
  #input = 0
  #hasSent = false
  /** whether the import can stop at any record, so that chunks are small */
  readonly #canStop: boolean
  #chunkBytes: number
  #startedAt: number
  #chunk: Chunk | undefined

  constructor(plan: ImportPlan, context: ImportContext, start: Position | undefined) {
    this.#plan = plan
    this.#context = context
    this.#start = start
    this.#checkpoints = context.checkpoints
    this.mapper = new RecordMapper(plan.rules)
    this.#canStop = plan.maxErrors < Infinity
    const first = this.#checkpoints.areInStore ? chunkBytes.first : chunkBytes.firstForService
    this.#chunkBytes = this.#canStop ? chunkBytes.smallest : first
    this.#startedAt = context.io.now()
    this.counters = start?.counters ?? { created: 0, updated: 0, skipped: 0, rejected: {}, unknown: 0, otherFields: {} }
  }

  async run(): Promise<void> {
    let hash = createHash('sha256')
    const { inputs, encoding } = this.#plan
    for (const [index, input] of inputs.entries()) {
      this.#input = index
      const source = await openSource(input, this.#context.io)
      try {
        const reader = new Reader(source, hash, encoding)
        if (!(await this.#readInput(reader))) return
        hash = reader.hash
      } finally {
        source.close()
      }
    }
    this.isDone = true
  }

  /** The progress, with the settled rows of the chunk in progress. `part` is from 0 to 1, if the size of the input is known. */
  get snapshot() {
    const { rows, bytes } = this.#chunk ?? { rows: { length: 0 }, bytes: { length: 0 } }
    const offset = this.#offset + (rows.length > 0 ? (this.#settled / rows.length) * bytes.length : 0)
    const part = this.#size === undefined ? undefined : Math.min(1, offset / this.#size)
    return { done: this.done, rejected: this.rejected, part }
  }

  get done(): number {
    return settledIn(this.counters) + this.#settled
  }

  get isBegun(): boolean {
    return this.#hasSent || this.done > 0 || this.#start !== undefined
  }

  get #settled(): number {
    return this.#chunk?.outcomes.reduce((sum, outcome) => sum + (outcome === Outcome.pending ? 0 : 1), 0) ?? 0
  }

  async #readInput(reader: Reader): Promise<boolean> {
    const start = this.#start
    const { bytes, isLast } = await reader.head(readTimeout)
    if (start && this.#input < start.input) return !(await reader.skipTo(Infinity))
    const resumed = start?.input === this.#input ? start : undefined
    this.format = resumed?.format ?? formatOf(bytes, isLast, reader.name, this.#plan)
    if (this.#plan.inputs.length === 1) this.#size = reader.size
    reader.use(formats[this.format], this.mapper)
    if (resumed && !(await this.#resume(reader, resumed))) return false
    while (!this.#context.io.signal.aborted) {
      const chunk = await reader.next(this.#chunkBytes, readTimeout)
      if (!chunk) return !this.#context.io.signal.aborted
      this.#checkpoints.begin(0)
      if (!(await this.#process(chunk, reader))) return false
    }
    return false
  }

  async #resume(reader: Reader, start: Position): Promise<boolean> {
    const wasReached = await reader.skipTo(start.offset)
    this.#offset = reader.offset
    if (start.reading) reader.restore(start.reading)
    const chunk = wasReached && start.chunk.length > 0 ? await reader.next(start.chunk) : undefined
    if (this.#context.io.signal.aborted) return false
    if (reader.hash.digest('base64url') !== start.hash) throw changedInput(reader.name)
    await this.#context.onResume(start)
    if (!chunk) return true
    this.#checkpoints.begin(start.sent)
    return this.#process(chunk, reader, start)
  }

  async #process(read: Chunk, reader: Reader, resumed?: Position): Promise<boolean> {
    const { maxErrors, inputs } = this.#plan
    const chunk = await this.#create(read, reader, maxErrors - this.rejected, resumed)
    if (chunk.outcomes.includes(Outcome.pending)) return this.#interrupt(chunk, reader)
    const { syntaxError } = chunk
    if (syntaxError) return this.#stopBefore({ ...syntaxError, index: chunk.length }, chunk, reader)
    await this.#report(chunk, reader)
    if (!this.#canStop) this.#adaptChunkBytes(chunk.order !== undefined)
    if (this.rejected < maxErrors) return true
    await this.#keepNext(reader)
    return reader.isDone && this.#input === inputs.length - 1
  }

  #rejectedIn(chunk: Chunk): RejectedRecord[] {
    return Array.from(rejectedRecords(chunk, this.#checkpoints.sentBefore, this.#plan.ifExists)).filter(({ why }) => why)
  }

  /**
   * Large chunks make sorting effective. If most ids exist already, they only take memory. A chunk for a service should take about a second, so
   * that progress is visible.
   */
  #adaptChunkBytes(wasUnsorted: boolean): void {
    const [startedAt, now] = [this.#startedAt, this.#context.io.now()]
    this.#startedAt = now
    const isWorthSorting = wasUnsorted && this.counters.created * 2 >= settledIn(this.counters)
    if (this.#checkpoints.areInStore) this.#chunkBytes = isWorthSorting ? chunkBytes.unsorted : chunkBytes.sorted
    else if (now - startedAt > 2000) this.#chunkBytes = Math.max(chunkBytes.smallest, this.#chunkBytes / 2)
    else if (now - startedAt < 1000) this.#chunkBytes = Math.min(chunkBytes.largestForService, this.#chunkBytes * 2)
  }

  async #stopBefore(rejected: RejectedRecord, chunk: Chunk, reader: Reader): Promise<false> {
    this.isBeforeRecord = true
    await this.#report(firstOf(rejected.index, chunk, reader), reader)
    await this.#keepNext(reader)
    await this.#reject([rejected], chunk.bytes, reader)
    return false
  }

  /** A store with checkpoints has kept the position already. */
  async #interrupt(chunk: Chunk, reader: Reader): Promise<false> {
    this.#checkpoints.sent = 0
    if (!this.#checkpoints.areInStore && this.isBegun) await this.#checkpoints.keep(this.#position(chunk, reader))
    return false
  }

  /**
   * Creates the plants of a chunk. If the import may stop in it, creates them in input order, up to one rejected record after another.
   *
   * @param left the number of rejected records after which the import stops
   * @returns the chunk, up to the last of them
   */
  async #create(read: Chunk, reader: Reader, left: number, resumed: Position | undefined): Promise<Chunk> {
    let chunk = read
    const mayEnd = chunk.length >= left
    if (this.#checkpoints.areInStore && (resumed ? resumed.isSorted : !mayEnd)) chunk.order = orderById(chunk.rows)
    chunk.outcomes = new Uint8Array(chunk.rows.length)
    if (resumed && !unpackBatch(chunk, resumed)) throw changedInput(reader.name)
    if (mayEnd) chunk.order = undefined
    for (;;) {
      const last = mayEnd ? this.#rejectedIn(chunk)[left - 1] : undefined
      if (last) chunk = firstOf(last.index + 1, chunk, reader)
      if (!chunk.outcomes.includes(Outcome.pending) || this.#context.io.signal.aborted) return chunk
      await this.#createMany(chunk, reader, mayEnd)
    }
  }

  async #createMany(chunk: Chunk, reader: Reader, stopsAtReject: boolean): Promise<void> {
    this.#chunk = chunk
    const { store, key, io } = this.#context
    const checkpoints = this.#checkpoints.optionsFor(() => this.#position(chunk, reader))
    const created = store.createMany(chunk, {
      ifExists: this.#plan.ifExists,
      stopsAtReject,
      stop: io.signal,
      ...checkpoints,
      keyOf: (row) => {
        this.#hasSent = true
        return `${key}-${this.#input}-${reader.offset + (chunk.recordStart[row] ?? 0)}`
      },
      onProgress: () => {
        this.#context.onProgress()
        checkpoints.onProgress()
      },
    })
    await created.catch(async (error: unknown) => {
      await this.#interrupt(chunk, reader)
      throw error
    })
  }

  #position(chunk: Chunk, reader: Reader): Position {
    return {
      input: this.#input,
      format: this.format,
      reading: reader.state,
      offset: reader.offset,
      chunk: reader.extent,
      hash: reader.hash.digest('base64url'),
      counters: this.counters,
      rejects: this.#context.rejects?.lengths,
      isSorted: chunk.order !== undefined,
      ...packBatch(chunk),
      sent: this.#checkpoints.sent,
    }
  }

  #keepNext(reader: Reader): Promise<void> {
    return this.#checkpoints.keep({
      ...this.#position(new Chunk(Buffer.alloc(0)), reader),
      offset: reader.offset + reader.extent.length,
      chunk: { length: 0, isLast: false },
      reading: reader.save(),
    })
  }

  async #report(chunk: Chunk, reader: Reader): Promise<void> {
    this.#chunk = undefined
    for (const outcome of chunk.outcomes) {
      if (outcome === Outcome.created) this.counters.created += 1
      else if (outcome === Outcome.updated) this.counters.updated += 1
      else if (outcome === Outcome.skipped) this.counters.skipped += 1
    }
    countFields(this.counters, chunk.otherFields)
    this.#offset = reader.offset + reader.extent.length
    await this.#reject(rejectedRecords(chunk, this.#checkpoints.sentBefore, this.#plan.ifExists), chunk.bytes, reader)
  }

  /** a thousand at a time, to limit memory; they are on disk before a message about them is printed */
  async #reject(all: Iterable<RejectedRecord>, bytes: Buffer, reader: Reader): Promise<void> {
    const { rejects, onRejected } = this.#context
    let some: RejectedRecord[] = []
    const report = async () => {
      rejects?.add(some, bytes, reader)
      rejects?.flush()
      await onRejected(some, reader.name)
      some = []
    }
    for (const record of all) {
      if (some.length === 1000) await report()
      some.push(record)
      if (record.why) {
        const { error } = record.why
        this.rejected += 1
        if (record.conflict) this.conflicts[record.conflict] += 1
        if (record.isUnknown) this.counters.unknown += 1
        else this.counters.rejected[error] = (this.counters.rejected[error] ?? 0) + 1
      }
    }
    if (some.length > 0) await report()
  }
}

/** Reads the first records of a chunk again, with their outcomes so far. */
function firstOf(count: number, { outcomes, rejections }: Chunk, reader: Reader): Chunk {
  const chunk = reader.first(count)
  chunk.outcomes = outcomes.slice(0, chunk.rows.length)
  for (const [row, rejection] of rejections) chunk.rejections.set(row, rejection)
  return chunk
}

/** in bytes: the first one, and later ones of an input sorted by id or not */
const chunkBytes = {
  smallest: 8192,
  firstForService: 65_536,
  largestForService: 1_048_576,
  first: 262_144,
  sorted: 2_097_152,
  unsorted: 16_777_216,
} as const

const readTimeout = 100

function changedInput(name: string): PlantsError {
  const hint = 'To import all of it, add --restart. Plants that exist are then rejected, or skipped with --if-exists skip'
  return malformed(`${name} was changed since its import was interrupted`, hint)
}
