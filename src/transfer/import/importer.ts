import { equalFields } from '../../plant/plant.js'
import { must, PlantsError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { checkSignal } from '../../platform/runtime.js'
import { idOf, type Outcome, type Problem, rejected } from '../../stores/common/change.js'
import { donePrefix } from '../../stores/common/checkpoint-state.js'
import type { OwnStore, Transaction } from '../../stores/common/store.js'
import { type Chunk, type FormatReader, skipRecords } from '../formats/chunk.js'
import { type Counts, type Position, type SavedImport, settledIn } from './checkpoint.js'
import { type ImportPlan, type OpenInput, openInput } from './input.js'
import { type MappedChange, Mapper, twin } from './map.js'
import type { PlantNames } from './names.js'
import { assertSameLayout, type RejectedRecord } from './rejected-records.js'
import type { Rejects } from './rejects.js'

export interface ImportTarget {
  /** Plants are sent with idempotency keys, and are not rolled back. */
  isService: boolean
  /** The id of the checkpoint. Undefined if the import cannot be resumed. */
  id: string | undefined
  /** The transaction of the store; for a service, that of the journal, which keeps the checkpoint. */
  transaction: OwnStore['transaction']
}

export interface ImportObserver {
  onOpened(reader: FormatReader, input: string): Promise<void>
  onRejected(rejected: readonly RejectedRecord[], input: string): Promise<void>
  onProgress(importing: Importer): void
}

type Mapped = MappedChange | Problem

/** What is written at once. */
interface Part {
  chunk: Chunk
  mapped: Mapped[]
  /** The next number after each record; that of the record before it unless it is numbered. */
  nextIds: (string | undefined)[]
}

type PartStart = Pick<Position, 'records' | 'nextId'>

/** A store that writes meanwhile goes on after so many records, about 0.3 ms. */
const mappedAtOnce = 250

/** Reads, maps, and writes. A part of a chunk is one transaction with its checkpoint. */
export class Importer {
  readonly #plan: ImportPlan
  /** The import as this run finds or begins it. */
  readonly #saved: SavedImport
  readonly #target: ImportTarget
  readonly #rejects: Rejects | undefined
  readonly #observer: ImportObserver
  readonly #io: Io
  /** If records are matched by their names. */
  readonly #names: PlantNames | undefined
  readonly #checkpointBefore: string | undefined
  /** As this process has saved it last, or found it. */
  #checkpoint: string | undefined
  /** The first number, if that is above all ids. */
  readonly firstId: bigint | undefined
  /** The end of what is settled. */
  position: Position
  isDone = false
  mayHaveStored: boolean
  /** Records of this run, including those whose outcome is unknown. */
  rejected = 0
  /** Those of them whose id or name is in the input twice. */
  twins = 0
  /** Numbers of records of this run by unknown field. */
  readonly otherFields = new Map<string, number>()

  constructor(
    plan: ImportPlan,
    {
      saved,
      checkpoint,
      names,
    }: { saved: SavedImport; checkpoint: string | undefined; names: PlantNames | undefined },
    target: ImportTarget,
    rejects: Rejects | undefined,
    observer: ImportObserver,
    io: Io,
  ) {
    this.#plan = plan
    this.#saved = saved
    this.#checkpointBefore = checkpoint
    this.#checkpoint = checkpoint
    this.#target = target
    this.#rejects = rejects
    this.#observer = observer
    this.#io = io
    this.#names = names
    this.firstId = saved.firstId === undefined ? undefined : BigInt(saved.firstId)
    const { idFrom } = plan.rules
    const nextId = idFrom === 'next' ? saved.firstId : idFrom?.toString()
    this.position = { nextId, ...saved.position }
    this.mayHaveStored = this.settledBefore > 0
  }

  get settledBefore(): number {
    return settledIn(this.#saved.position.counts)
  }

  /** Whether this run has rejected a record because no plant has its name. */
  get hasUnknownNames(): boolean {
    return this.#names?.hasUnknown ?? false
  }

  /** Saves the checkpoint before a service or a rejects file has what a killed run would leave there. */
  async begin(): Promise<void> {
    if (!this.#rejects && !this.#target.isService) return
    await this.#save(JSON.stringify(this.#saved), () => this.#rejects?.removeReplaced())
  }

  async run(first: OpenInput, transaction = this.#target.transaction): Promise<void> {
    const { inputs, maxErrors, readsAhead } = this.#plan
    for (const [index, input] of inputs.entries()) {
      if (index < this.position.input) continue
      const reader = index === 0 ? first : await openInput(input, this.#plan, this.#io)
      try {
        if (this.#rejects) assertSameLayout(reader, first, input.name)
        await this.#observer.onOpened(reader, input.name)
        if (index > this.position.input)
          this.position = { ...this.position, input: index, records: 0 }
        const parts = this.#parts(reader)
        for await (const part of readsAhead && maxErrors === Infinity ? ahead(parts) : parts) {
          if (this.rejected >= maxErrors) return
          await this.#importPart(part, reader, transaction)
        }
        this.position = { ...this.position, files: this.#filesUntil(reader) } // also of one without records
      } finally {
        if (index > 0) reader.close()
      }
    }
    this.isDone = true
  }

  /** Marks an import that has chosen ids as complete: the same command would create its plants again. */
  async remember(now: Date): Promise<void> {
    const done = now.toISOString()
    if (this.#choseIds)
      await this.#save(JSON.stringify({ done, ...this.#saved, position: this.position }))
  }

  /**
   * Removes the checkpoint of any other. Call it after the summary: until then, the same command prints it again. That of
   * a complete import before it stays, if this one has matched by name.
   */
  async forget(): Promise<void> {
    if (this.#choseIds) return
    await this.#save(this.#names && this.#isDoneBefore ? this.#checkpointBefore : undefined)
  }

  /** Whether it has numbered records, and the same command would number them again. */
  get #choseIds(): boolean {
    return this.firstId !== undefined && this.position.numbered !== undefined && !this.#names
  }

  get #isDoneBefore(): boolean {
    return this.#checkpointBefore?.startsWith(donePrefix) ?? false
  }

  /** Closes the rejects file. A new import that has done nothing leaves the checkpoint as it was before. */
  async end(): Promise<void> {
    this.#rejects?.close(this.position.rejects ?? 0)
    const isNew = this.#checkpointBefore === undefined || this.#isDoneBefore
    const hasDoneNothing = !this.isDone && !this.mayHaveStored && !this.#rejects?.hasFile
    if (!isNew || !hasDoneNothing) return
    await this.#save(this.#checkpointBefore).catch((error: unknown) => {
      if (!(error instanceof PlantsError)) throw error // one that stays is resumed
    })
  }

  /** @param onSaved is called before it is committed */
  async #save(to: string | undefined, onSaved?: () => void): Promise<void> {
    const { id, transaction } = this.#target
    const from = this.#checkpoint
    if (id === undefined || from === to) return
    const work = async ({ saveCheckpoint }: Transaction) => {
      await saveCheckpoint({ id, from, to })
      onSaved?.()
    }
    await transaction(work, { isRepeatable: true })
    this.#checkpoint = to
  }

  /** The records of an input, mapped. With a limit of errors, a part begins where the one before it is settled. */
  async *#parts(reader: OpenInput): AsyncGenerator<Part> {
    const { maxErrors, maxRecords } = this.#plan
    let start: PartStart = this.position
    for await (const chunk of skipRecords(reader.chunks, start.records)) {
      const first = start.records
      for (let from = 0; from < chunk.records.length; from = start.records - first) {
        const part = await this.#map(chunk.slice(from, from + maxRecords), reader, start)
        const next = {
          records: start.records + part.mapped.length,
          nextId: part.nextIds.at(-1) ?? start.nextId,
        }
        yield part
        start = maxErrors < Infinity ? this.position : next
      }
    }
  }

  async #importPart(
    part: Part,
    reader: OpenInput,
    transaction: OwnStore['transaction'],
  ): Promise<void> {
    const { id, isService } = this.#target
    const options = {
      signal: this.#io.handleSignals(),
      maxRejected: this.#plan.maxErrors - this.rejected,
    }
    const changes = part.mapped.filter((one): one is MappedChange => !('error' in one))

    const work = async ({ write, saveCheckpoint }: Transaction) => {
      const outcomes = await write(changes, options)
      // What a service was sent may be stored even if the rest of this fails.
      if (isService && outcomes.some(({ type }) => type !== 'unsent')) this.mayHaveStored = true
      const settled = this.#settle(part, outcomes, reader)
      const checkpoint = JSON.stringify({ ...this.#saved, position: settled.position })
      if (id !== undefined) await saveCheckpoint({ id, from: this.#checkpoint, to: checkpoint })
      // The file belongs to the process that has won the checkpoint.
      if (settled.bytes) this.#rejects?.append(this.position.rejects ?? 0, settled.bytes)
      return { ...settled, checkpoint }
    }

    const { position, rejected, failure, checkpoint } = await transaction(work, {
      isRepeatable: true,
    })
    this.#checkpoint = checkpoint
    const settled = position.records - this.position.records
    if (settled > 0) this.mayHaveStored = true
    if (settled === part.mapped.length) empty(part)
    this.position = position
    this.rejected += rejected.length
    this.twins += rejected.filter(({ isTwin }) => isTwin).length
    this.#observer.onProgress(this)
    await this.#observer.onRejected(rejected, must(this.#plan.inputs[position.input]).name)
    if (failure) throw new PlantsError(failure.kind, failure.message, { ...failure })
  }

  /** The inputs up to the one that is being read. */
  #filesUntil(reader: OpenInput): Position['files'] {
    const { files, input } = this.position
    return [...files.slice(0, input), reader.fingerprint()]
  }

  /** If the limit may be reached in this part, up to its first invalid record. */
  async #map(
    chunk: Chunk,
    { header }: OpenInput,
    { records: done, nextId }: PartStart,
  ): Promise<Part> {
    const { records, problems } = chunk
    const { isService } = this.#target
    const { input } = this.position
    const limit = this.#plan.maxErrors - this.rejected
    const next = nextId === undefined ? undefined : BigInt(nextId)
    const ids = { firstId: this.firstId, nextId: next, names: this.#names }
    const mapper = new Mapper(this.#plan, header, ids, this.otherFields)
    const mapped: Mapped[] = []
    const nextIds: (string | undefined)[] = []
    for (const raw of records) {
      const index = mapped.length
      const { nextId: number } = mapper
      const one = problems.get(index) ?? mapper.map(raw)
      // A run that was killed may have created what has the number of a record, and is matched to it.
      const mayCreate = !('error' in one) && (one.type === 'create' || mapper.nextId !== number)
      if (isService && mayCreate) one.key = `${this.#saved.id}-${input}-${done + index}`
      mapped.push(one)
      nextIds.push(mapper.nextId?.toString())
      if ('error' in one && records.length >= limit) break
      if (this.#plan.readsAhead && mapped.length % mappedAtOnce === 0)
        await checkSignal(this.#io.handleSignals())
    }
    await checkSignal(this.#io.handleSignals())
    return { chunk: chunk.slice(0, mapped.length), mapped, nextIds }
  }

  /**
   * Counts outcomes up to the first record that is not settled, with the `failure` that is why. Changes nothing: it is
   * called again when a transaction is repeated.
   */
  #settle({ chunk, mapped, nextIds }: Part, outcomes: readonly Outcome[], reader: OpenInput) {
    const { input, records, counts: old } = this.position
    const limit = this.#plan.maxErrors - this.rejected
    const failure = failureIn(outcomes, limit)
    const counts: Counts = { ...old, rejected: { ...old.rejected } }
    const rejections: RejectedRecord[] = []
    const createdLines = outcomes.some(isConflict) ? new Map<bigint, number>() : undefined
    let { nextId, numbered } = this.position
    let settled = 0
    let written = 0
    for (const one of mapped) {
      const index = settled
      const outcome = 'error' in one ? rejected(one) : must(outcomes[written])
      const isOpen = outcome.type === 'unsent' || (failure && outcome.type === 'unknown')
      if (isOpen || rejections.length === limit) break
      settled += 1
      written += Number(!('error' in one))
      countOutcome(counts, outcome)
      const line = must(chunk.lines[index])
      const isNumbered = nextIds[index] !== nextId
      nextId = nextIds[index]
      if (outcome.type === 'created') {
        createdLines?.set(outcome.plant.id, line)
        if (isNumbered) numbered = withId(numbered, outcome.plant.id)
      }
      if (!('error' in outcome)) continue
      const change = !('error' in one) && isConflict(outcome) ? one : undefined
      const createdLine = change && createdLines?.get(idOf(change))
      rejections.push({
        line,
        element: reader.format === 'json' ? records + index : undefined,
        raw: must(chunk.records[index]),
        error: outcome.error.error,
        message: createdLine
          ? `${twin(change)} is in the input twice, also in line ${createdLine}`
          : outcome.error.message,
        isTwin: createdLine !== undefined || outcome.error.isTwin === true,
      })
    }
    const files = this.#filesUntil(reader)
    const prepared = this.#rejects?.prepare(this.position, rejections, reader)
    const position = {
      input,
      records: records + settled,
      counts,
      nextId,
      numbered,
      files,
      ...prepared?.end,
    }
    return { position, rejected: rejections, bytes: prepared?.bytes, failure }
  }
}

/** The generators that it came through hold it until they have the next one: the garbage collector would copy both. */
function empty({ chunk, mapped }: Part): void {
  chunk.clear()
  mapped.length = 0
}

function withId(range: Position['numbered'], id: bigint): Position['numbered'] {
  return { first: range?.first ?? String(id), last: String(id), count: (range?.count ?? 0) + 1 }
}

/** Why a service settled no more: it was not asked, or what answered is no Plant Store. */
function failureIn(outcomes: readonly Outcome[], limit: number): Problem | undefined {
  const isEnough = outcomes.filter(({ type }) => type === 'rejected').length >= limit
  for (const outcome of outcomes)
    if (
      outcome.type === 'unsent'
        ? !isEnough
        : outcome.type === 'unknown' && outcome.error.kind === 'unusable'
    )
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
  return outcome.type === 'rejected' && outcome.error.kind === 'conflict'
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
