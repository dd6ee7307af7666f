import { equalFields } from '../../plant/plant.js'
import { checkSignal } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { must } from '../../platform/values.js'
import { idOf, isConstraintProblem, type Outcome, type Problem, rejected } from '../../stores/common/change.js'
import type { Store } from '../../stores/common/store.js'
import { type Chunk, skipRecords } from '../formats/chunk.js'
import type { FormatReader } from '../formats/format.js'
import { type Counts, type Position, settledIn } from './checkpoint.js'
import { type ImportPlan, type OpenInput, openInput, otherLayout } from './inputs.js'
import { type MappedChange, Mapper } from './map.js'
import { type RejectedRecord, type Rejects, rejectsLayout } from './rejects.js'

export interface ImportContext {
  write: Store['write']
  /** written in the transaction of a part */
  checkpoint?: { id: string; stateOf(position: Position): string } | undefined
  /** Throws when another process has taken over the import. */
  assertHeld?: (() => void) | undefined
  /** keeps the position after a part, where the store cannot */
  keep?: ((position: Position) => void) | undefined
  /** of the idempotency key of a record */
  keyOf?: ((input: number, record: number) => string) | undefined
  rejects: Rejects | undefined
  /** `signal` stops the import */
  io: Io
  onOpened(reader: FormatReader, input: string): Promise<void>
  onRejected(rejected: readonly RejectedRecord[], input: string): Promise<void>
  onProgress(): void
}

/** What is written at once. */
interface Part {
  chunk: Chunk
  mapper: Mapper
  mapped: Mapped[]
}

type PartStart = Pick<Position, 'records' | 'nextId' | 'otherFields'>

/** What is known of a part after its write. */
interface Settled {
  /** after the records that are settled */
  position: Position
  rejected: RejectedRecord[]
  /** rejected records whose id another record of the part has */
  repeated: number
  /** why the records after them are not settled */
  failure: Problem | undefined
}

/**
 * Reads, maps, and writes. A part, which is a chunk or the next records of a large one, is one transaction with its
 * checkpoint.
 */
export class Importer {
  readonly #plan: ImportPlan
  readonly #context: ImportContext
  /** of `--id-from next` */
  readonly firstId: bigint | undefined
  /** up to where all is settled */
  position: Position
  isDone = false
  /** records that earlier runs have settled */
  readonly settledBefore: number
  /** whether a record may be stored */
  isBegun: boolean
  isEmpty = true
  /** of this run, including those whose outcome is unknown */
  rejected = 0
  /** of this run: those whose id another record of the input has */
  repeated = 0
  /** of this run; see `Mapper` */
  withoutIds = 0

  constructor(
    plan: ImportPlan,
    { position, firstId }: { position: Position; firstId?: bigint | string | undefined },
    context: ImportContext,
  ) {
    this.#plan = plan
    this.#context = context
    this.position = position
    this.firstId = firstId === undefined ? undefined : BigInt(firstId)
    this.settledBefore = settledIn(position.counts)
    this.isBegun = this.settledBefore > 0
  }

  /** Throws the errors of the inputs and of the store, and the reason of the signal. */
  async run(first: OpenInput): Promise<void> {
    const { inputs, maxErrors, readsAhead } = this.#plan
    const { rejects, io, onOpened } = this.#context
    for (const [index, input] of inputs.entries()) {
      if (index < this.position.input) continue
      const reader = index === 0 ? first : await openInput(input, this.#plan, io)
      try {
        if (rejects && rejectsLayout(reader) !== rejectsLayout(first)) throw otherLayout(input.name)
        await onOpened(reader, input.name)
        if (index > this.position.input) this.position = { ...this.position, input: index, records: 0 }
        this.isEmpty &&= reader.isEmpty
        const parts = this.#parts(reader)
        for await (const part of readsAhead && maxErrors === Infinity ? ahead(parts) : parts) {
          if (this.rejected >= maxErrors) return
          await this.#process(part, reader)
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
        const part = chunk.slice(from, from + maxRecords)
        const mapper = this.#mapperOf(reader, start)
        const limit = maxErrors - this.rejected
        const mapped: Mapped[] = []
        // If the limit may be reached in this part, up to its first invalid record.
        for (let isCut = false; mapped.length < part.records.length && !isCut; ) {
          const one = this.#mapRecord(part, mapped.length, mapper, start.records)
          isCut = 'error' in one && part.records.length >= limit
          if (mapped.push(one) % mappedAtOnce === 0) await checkSignal(this.#context.io.signal)
        }
        await checkSignal(this.#context.io.signal)
        yield { chunk: part, mapper, mapped }
        start = maxErrors < Infinity ? this.position : { ...mapper.position, records: start.records + mapped.length }
      }
    }
  }

  async #process({ chunk, mapper, mapped }: Part, reader: OpenInput): Promise<void> {
    const { write, checkpoint, assertHeld, keep, rejects, io, onProgress, onRejected } = this.#context
    const limit = this.#plan.maxErrors - this.rejected
    const isChange = (one: Mapped): one is MappedChange => !('error' in one)
    let settled: Settled | undefined
    const settle = (outcomes: Outcome[]) => {
      assertHeld?.()
      settled = this.#settle(chunk, mapped, outcomes, mapper, reader)
      // With a checkpoint, in its transaction: what is not committed is cut off by the next append.
      const length = rejects?.append(this.position.rejects ?? 0, settled.rejected, reader)
      if (length !== undefined) settled.position.rejects = length
      return settled
    }
    const outcomes = await write(mapped.every(isChange) ? mapped : mapped.filter(isChange), {
      signal: io.signal,
      ...(limit < Infinity && { maxRejected: limit }),
      ...(checkpoint && {
        checkpoint: { id: checkpoint.id, state: (outcomes) => checkpoint.stateOf(settle(outcomes).position) },
      }),
    })
    if (outcomes.some(({ type }) => type !== 'unsent')) this.isBegun = true
    const { position, rejected, repeated, failure } = settled ?? settle(outcomes)
    keep?.(position)
    this.position = position
    this.rejected += rejected.length
    this.repeated += repeated
    this.withoutIds += mapper.withoutIds
    onProgress()
    await onRejected(rejected, must(this.#plan.inputs[position.input]).name)
    if (failure) throw new PlantsError(failure.type, failure.message, { ...failure })
  }

  /** Of the inputs up to the one that is read. */
  #filesUntil(reader: OpenInput): Position['files'] {
    const { files, input } = this.position
    return [...files.slice(0, input), reader.fingerprint()]
  }

  #mapperOf(reader: OpenInput, start: PartStart = this.position): Mapper {
    return new Mapper(this.#plan.rules, this.#plan.ifExists, reader.header, this.firstId, start)
  }

  #mapRecord({ records, problems }: Chunk, index: number, mapper: Mapper, done: number): Mapped {
    const { keyOf } = this.#context
    const { input } = this.position
    const one = problems.get(index) ?? mapper.map(must(records[index]))
    // Asked for when the plant is sent: another process may have taken over the import since.
    if (keyOf && one.type === 'create')
      Object.defineProperty(one, 'key', { get: () => keyOf(input, done + index), enumerable: true })
    return one
  }

  /** A store may call it again, when it repeats a transaction. */
  #settle(
    part: Chunk,
    mapped: readonly Mapped[],
    outcomes: readonly Outcome[],
    mapper: Mapper,
    reader: OpenInput,
  ): Settled {
    const { input, records, counts: old, rejects } = this.position
    const { settled, failure } = settledOutcomes(mapped, outcomes, this.#plan.maxErrors - this.rejected)
    const counts: Counts = { ...old, rejected: { ...old.rejected } }
    const lines = settled.some(isConflict) ? createdLines(part, mapped, settled) : undefined
    const rejected: RejectedRecord[] = []
    let repeated = 0
    for (const [index, outcome] of settled.entries()) {
      countOutcome(counts, outcome)
      if (!('error' in outcome)) continue
      let { error, message } = outcome.error
      const one = must(mapped[index])
      const line = isConflict(outcome) && !('error' in one) ? lines?.get(idOf(one)) : undefined
      if (line !== undefined && !('error' in one)) {
        message = `The id ${idOf(one)} is in the input twice, also in line ${line}`
        repeated += 1
      }
      const element = reader.format === 'json' ? records + index : undefined
      rejected.push({ line: must(part.lines[index]), element, raw: must(part.records[index]), error, message })
    }
    const isCut = settled.length < part.records.length
    const numbered = isCut ? this.#mapperOf(reader) : mapper
    // The others have used no number.
    if (isCut) for (const index of settled.keys()) this.#mapRecord(part, index, numbered, records)
    const position = {
      ...{ input, records: records + settled.length, counts, ...numbered.position },
      ...(rejects !== undefined && { rejects }),
      files: this.#filesUntil(reader),
    }
    return { position, rejected, repeated, failure }
  }
}

type Mapped = MappedChange | Problem

/** records, about 0.3 ms, after which the answers of a store are read */
const mappedAtOnce = 250

/** Asks for the next one while the caller uses the last. */
async function* ahead<T>(source: AsyncGenerator<T, void>): AsyncGenerator<T> {
  for (let next = source.next(); ; ) {
    const { value, done } = await next
    if (done) return
    next = source.next()
    next.catch(() => undefined) // it is thrown when it is awaited
    yield value
  }
}

/** The outcomes of the records up to the first that is not settled: where a service fails, or enough is rejected. */
function settledOutcomes(mapped: readonly Mapped[], outcomes: readonly Outcome[], limit: number) {
  const failure = failureIn(outcomes, limit)
  const settled: Outcome[] = []
  let [next, rejections] = [0, 0]
  for (const one of mapped) {
    const outcome = 'error' in one ? rejected(one) : must(outcomes[next])
    if (rejections === limit || outcome.type === 'unsent' || (failure && outcome.type === 'unknown')) break
    if (!('error' in one)) next += 1
    if ('error' in outcome) rejections += 1
    settled.push(outcome)
  }
  return { settled, failure }
}

/** Of a service: it was not asked, or what answered is none. */
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

/** Whether its id exists, and not that a constraint somebody added refuses it. */
function isConflict(outcome: Outcome): boolean {
  return outcome.type === 'rejected' && outcome.error.type === 'conflict' && !isConstraintProblem(outcome.error)
}

/** The lines of the plants that this part has created, by their ids. */
function createdLines({ lines }: Chunk, mapped: readonly Mapped[], settled: readonly Outcome[]): Map<bigint, number> {
  const created = new Map<bigint, number>()
  for (const [index, { type }] of settled.entries()) {
    const one = must(mapped[index])
    if (type === 'created' && !('error' in one)) created.set(idOf(one), must(lines[index]))
  }
  return created
}
