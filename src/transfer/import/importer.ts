import { equalFields } from '../../plant/plant.js'
import { checkSignal } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { must } from '../../platform/values.js'
import { idOf, isConstraintProblem, type Outcome, type Problem, rejected } from '../../stores/common/change.js'
import type { Store } from '../../stores/common/store.js'
import { type Chunk, type FormatReader, skipRecords } from '../formats/chunk.js'
import { type Counts, type ImportLock, type Position, type SavedImport, settledIn, writeJournal } from './checkpoint.js'
import { type ImportPlan, type OpenInput, openInput } from './input.js'
import { type MappedChange, Mapper } from './map.js'
import { assertSameLayout, type RejectedRecord, type Rejects } from './rejects.js'

export interface ImportContext {
  /** undefined if the import cannot be resumed */
  lock: ImportLock | undefined
  /** plants are sent with idempotency keys, and the checkpoint is in a journal */
  isService: boolean
  rejects: Rejects | undefined
  io: Io
  onOpened(reader: FormatReader, input: string): Promise<void>
  onRejected(rejected: readonly RejectedRecord[], input: string): Promise<void>
  onProgress(importing: Importer): void
}

interface Settled {
  /** after the records that are settled */
  position: Position
  rejected: RejectedRecord[]
  /** why the records after them are not settled */
  failure: Problem | undefined
}

type Mapped = MappedChange | Problem

/** What is written at once. */
interface Part {
  chunk: Chunk
  mapped: Mapped[]
  /** of `--id-from`, after each record: another one than before it if the record is numbered */
  nextIds: (string | undefined)[]
}

type PartStart = Pick<Position, 'records' | 'nextId'>

/** records, about 0.3 ms, after which a store that writes meanwhile goes on */
const mappedAtOnce = 250

/** Reads, maps, and writes. A part of a chunk is one transaction with its checkpoint. */
export class Importer {
  readonly #plan: ImportPlan
  readonly #saved: SavedImport
  readonly #context: ImportContext
  /** of `--id-from next` */
  readonly firstId: bigint | undefined
  /** up to where all is settled */
  position: Position
  isDone = false
  /** whether a record may be stored */
  isBegun: boolean
  /** of this run, including those whose outcome is unknown */
  rejected = 0
  /** of this run: numbers of records by unknown field */
  readonly otherFields = new Map<string, number>()

  constructor(plan: ImportPlan, saved: SavedImport, context: ImportContext) {
    this.#plan = plan
    this.#saved = saved
    this.#context = context
    this.firstId = saved.firstId === undefined ? undefined : BigInt(saved.firstId)
    const { idFrom } = plan.rules
    const firstId = idFrom === 'next' ? saved.firstId : idFrom?.toString()
    this.position = { nextId: firstId, ...saved.position }
    this.isBegun = this.settledBefore > 0
  }

  get settledBefore(): number {
    return settledIn(this.#saved.position.counts)
  }

  async run(first: OpenInput, write: Store['write']): Promise<void> {
    const { inputs, maxErrors, readsAhead } = this.#plan
    const { rejects, io, onOpened } = this.#context
    for (const [index, input] of inputs.entries()) {
      if (index < this.position.input) continue
      const reader = index === 0 ? first : await openInput(input, this.#plan, io)
      try {
        if (rejects) assertSameLayout(reader, first, input.name)
        await onOpened(reader, input.name)
        if (index > this.position.input) this.position = { ...this.position, input: index, records: 0 }
        const parts = this.#parts(reader)
        for await (const part of readsAhead && maxErrors === Infinity ? ahead(parts) : parts) {
          if (this.rejected >= maxErrors) return
          await this.#importPart(part, reader, write)
        }
        this.position = { ...this.position, files: this.#filesUntil(reader) } // also of one without records
      } finally {
        if (index > 0) reader.close()
      }
    }
    this.isDone = true
  }

  /** The records of an input, mapped. With a limit of errors, a part begins where the one before it is settled. */
  async *#parts(reader: OpenInput): AsyncGenerator<Part> {
    const { maxErrors, maxRecords } = this.#plan
    let start: PartStart = this.position
    for await (const chunk of skipRecords(reader.chunks, start.records)) {
      const first = start.records
      for (let from = 0; from < chunk.records.length; from = start.records - first) {
        const part = await this.#map(chunk.slice(from, from + maxRecords), reader, start)
        yield part
        const records = start.records + part.mapped.length
        start = maxErrors < Infinity ? this.position : { records, nextId: part.nextIds.at(-1) ?? start.nextId }
      }
    }
  }

  async #importPart(part: Part, reader: OpenInput, write: Store['write']): Promise<void> {
    const { lock, isService, rejects, io, onProgress, onRejected } = this.#context
    const limit = this.#plan.maxErrors - this.rejected
    const isChange = (one: Mapped): one is MappedChange => !('error' in one)
    const stateOf = (position: Position) => JSON.stringify({ ...this.#saved, position })
    let settled: Settled | undefined
    const settle = (outcomes: Outcome[]) => {
      lock?.assertHeld()
      settled = this.#settle(part, outcomes, reader)
      // With a checkpoint, in its transaction: what is not committed is cut off by the next append.
      settled.position.rejects = rejects?.append(this.position.rejects ?? 0, settled.rejected, reader)
      return settled
    }
    const state = (outcomes: Outcome[]) => stateOf(settle(outcomes).position)
    const outcomes = await write(part.mapped.filter(isChange), {
      signal: io.signal,
      maxRejected: limit,
      checkpoint: lock && !isService ? { id: lock.name, state } : undefined,
    })
    if (outcomes.some(({ type }) => type !== 'unsent')) this.isBegun = true
    const { position, rejected, failure } = settled ?? settle(outcomes)
    if (lock && isService) writeJournal(lock, stateOf(position))
    this.position = position
    this.rejected += rejected.length
    onProgress(this)
    await onRejected(rejected, must(this.#plan.inputs[position.input]).name)
    if (failure) throw new PlantsError(failure.type, failure.message, { ...failure })
  }

  /** The inputs up to the one that is being read. */
  #filesUntil(reader: OpenInput): Position['files'] {
    const { files, input } = this.position
    return [...files.slice(0, input), reader.fingerprint()]
  }

  /** If the limit may be reached in this part, up to its first invalid record. */
  async #map(chunk: Chunk, { header }: OpenInput, { records: done, nextId }: PartStart): Promise<Part> {
    const { records, problems } = chunk
    const { lock, isService, io } = this.#context
    const { input } = this.position
    const limit = this.#plan.maxErrors - this.rejected
    const ids = { firstId: this.firstId, nextId: nextId === undefined ? undefined : BigInt(nextId) }
    const mapper = new Mapper(this.#plan, header, ids, this.otherFields)
    const keyOf = (record: number) => {
      lock?.assertHeld() // when the plant is sent: another process may have taken over the import since
      return `${this.#saved.id}-${input}-${record}`
    }
    const mapped: Mapped[] = []
    const nextIds: (string | undefined)[] = []
    for (const [index, raw] of records.entries()) {
      const one = problems.get(index) ?? mapper.map(raw)
      mapped.push(one)
      nextIds.push(mapper.nextId?.toString())
      if (isService && one.type === 'create')
        Object.defineProperty(one, 'key', { get: () => keyOf(done + index), enumerable: true })
      if ('error' in one && records.length >= limit) break
      if (this.#plan.readsAhead && mapped.length % mappedAtOnce === 0) await checkSignal(io.signal)
    }
    await checkSignal(io.signal)
    return { chunk, mapped, nextIds }
  }

  /** A store may call it again, when it repeats a transaction. */
  #settle({ chunk, mapped, nextIds }: Part, outcomes: readonly Outcome[], reader: OpenInput): Settled {
    const { input, records, counts: old } = this.position
    const limit = this.#plan.maxErrors - this.rejected
    const failure = failureIn(outcomes, limit)
    const counts: Counts = { ...old, rejected: { ...old.rejected } }
    const rejections: RejectedRecord[] = []
    const createdLines = outcomes.some(isConflict) ? new Map<bigint, number>() : undefined
    const written = outcomes.values()
    let { nextId, numbered } = this.position
    let settled = 0
    for (const [index, one] of mapped.entries()) {
      const outcome = 'error' in one ? rejected(one) : must(written.next().value)
      const isOpen = outcome.type === 'unsent' || (failure && outcome.type === 'unknown')
      if (isOpen || rejections.length === limit) break
      settled += 1
      countOutcome(counts, outcome)
      const line = must(chunk.lines[index])
      const isNumbered = nextIds[index] !== nextId
      nextId = nextIds[index]
      if (outcome.type === 'created') {
        createdLines?.set(outcome.plant.id, line)
        if (isNumbered) numbered = withId(numbered, outcome.plant.id)
      }
      if (!('error' in outcome)) continue
      const id = !('error' in one) && isConflict(outcome) ? idOf(one) : undefined
      const twin = id === undefined ? undefined : createdLines?.get(id)
      rejections.push({
        line,
        element: reader.format === 'json' ? records + index : undefined,
        raw: must(chunk.records[index]),
        error: outcome.error.error,
        message: twin ? `The id ${id} is in the input twice, also in line ${twin}` : outcome.error.message,
      })
    }
    const position = { input, records: records + settled, counts, nextId, numbered, files: this.#filesUntil(reader) }
    return { position, rejected: rejections, failure }
  }
}

function withId(range: Position['numbered'], id: bigint): Position['numbered'] {
  return { first: range?.first ?? String(id), last: String(id), count: (range?.count ?? 0) + 1 }
}

/** Why a service settled no more: it was not asked, or what answered is no Plant Store. */
function failureIn(outcomes: readonly Outcome[], limit: number): Problem | undefined {
  const isEnough = outcomes.filter(({ type }) => type === 'rejected').length >= limit
  for (const outcome of outcomes)
    if (outcome.type === 'unsent' ? !isEnough : outcome.type === 'unknown' && outcome.error.type === 'unusable')
      return 'error' in outcome ? outcome.error : undefined
  return undefined
}

function countOutcome(counts: Counts, outcome: Outcome): void {
  if (outcome.type === 'updated') {
    const isSame = outcome.before !== undefined && equalFields(outcome.plant, outcome.before)
    counts[isSame ? 'skipped' : 'updated'] += 1
  } else if (outcome.type === 'rejected')
    counts.rejected[outcome.error.error] = (counts.rejected[outcome.error.error] ?? 0) + 1
  else if (outcome.type !== 'unsent' && outcome.type !== 'deleted') counts[outcome.type] += 1
}

/** Whether the id exists. A constraint that somebody added is another conflict. */
function isConflict(outcome: Outcome): boolean {
  return outcome.type === 'rejected' && outcome.error.type === 'conflict' && !isConstraintProblem(outcome.error)
}

/** Requests the next item while the caller uses the last one. */
async function* ahead<T>(source: AsyncGenerator<T, void>): AsyncGenerator<T> {
  for (let next = source.next(); ; ) {
    const { value, done } = await next
    if (done) return
    next = source.next()
    next.catch(() => undefined) // it is thrown when it is awaited
    yield value
  }
}
