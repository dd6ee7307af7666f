import { must, PlantsError, usageError } from '../errors.js'
import { type Chunk, skipRecords } from '../formats/chunk.js'
import { equalFields } from '../plant/plant.js'
import type { Io } from '../platform/io.js'
import { checkSignal } from '../platform/runtime.js'
import { type Outcome, rejected, toError } from '../stores/change.js'
import type { CheckpointChange, OwnStore, Store, Transaction } from '../stores/store.js'
import type { Checkpoint, Counts, Position } from './checkpoint.js'
import { type ImportPlan, type OpenInput, openInput } from './inputs.js'
import { type MappedChange, Mapper, type MapperState, type PlantNames } from './map-record.js'
import {
  appendRows,
  disownFile,
  headerOf,
  type RejectedRecord,
  rejectedRows,
} from './rejects-file.js'

/*
 * An import is a loop over chunks of records. A chunk is one transaction with its checkpoint: on disk are always whole
 * chunks and the position after them, from which the same command goes on. The order in a transaction makes that true.
 *
 * 1. The changes are written, and have outcomes.
 * 2. The checkpoint is compared with what this process saved last, and replaced. If another process with the same import
 *    has gone on, the transaction fails.
 * 3. A file whose first plant is numbered is remembered by its contents.
 * 4. The commit: with `--atomic`, one at the end of all.
 * 5. The chunk is reported, and its rejected records, which the checkpoint has, are appended to their file.
 *
 * A service has no transactions. Its changes are sent before that of the journal, and each create has a key made of the
 * import and the record: a chunk that is sent again creates nothing twice.
 */

export interface ImportTarget {
  send?: Store['write']
  /** The store, or the journal of a service. */
  own: Pick<OwnStore, 'transaction'> & Partial<Pick<OwnStore, 'checkpoint' | 'close'>>
  /** Undefined if there is none yet, and for a dry run at a service. */
  store?: Pick<Store, 'read' | 'close'>
}

export interface ImportStart {
  plan: ImportPlan
  target: ImportTarget
  /** Undefined for an import that is not resumed. */
  checkpointId: string | undefined
  saved: string | undefined
  checkpoint: Checkpoint
  names: PlantNames | undefined
  /** For each file, what is saved once a plant of it is numbered: the id of the checkpoint. */
  numbered: CheckpointChange[]
}

type OnChunk = (
  outcomes: readonly Outcome[],
  rejected: readonly RejectedRecord[],
  importer: Importer,
) => Promise<void>

export class Importer {
  readonly #start: ImportStart
  readonly #onChunk: OnChunk
  readonly #io: Io
  readonly #mapperState: MapperState
  #own: Pick<OwnStore, 'transaction'>
  #saved: string | undefined
  #reader: OpenInput | undefined
  position: Position
  rejections = 0
  emptyRows = 0
  isComplete = false
  readonly isResumable: boolean
  readonly otherFields = new Set<string>()

  constructor(start: ImportStart, onChunk: OnChunk, io: Io) {
    this.#start = start
    this.#onChunk = onChunk
    this.#io = io
    this.#own = start.target.own
    this.#saved = start.saved
    this.isResumable = start.checkpointId !== undefined
    const { firstId, position } = start.checkpoint
    this.position = position
    this.#mapperState = {
      firstId: firstId === undefined ? undefined : BigInt(firstId),
      nextId: position.nextId === undefined ? undefined : BigInt(position.nextId),
      names: start.names,
      otherFields: this.otherFields,
    }
  }

  get progress(): number | undefined {
    const part = this.#reader?.progress()
    const { length } = this.#start.plan.inputs
    return part === undefined ? undefined : (this.position.input + part) / length
  }

  get isRolledBack(): boolean {
    return this.#start.plan.atomic === true && (this.rejections > 0 || !this.isComplete)
  }

  /** @param transaction for all; by default, each chunk has its own */
  async run(first: OpenInput, transaction?: Transaction): Promise<void> {
    const { plan, target } = this.#start
    const { rejects } = this.position
    if (transaction) this.#own = { transaction: (work) => work(transaction) }
    // It has the keys that are sent to a service, and the rows that were just appended.
    if (target.send || this.#saved !== undefined) await this.#save(this.position)
    for (const [index, input] of plan.inputs.entries()) {
      if (index < this.position.input) continue
      const reader = index === 0 ? first : await openInput(input, plan, this.#io)
      this.#reader = reader
      try {
        if (rejects && headerOf(reader) !== headerOf(first))
          throw usageError(
            `${input.name} has another header, so its rejected records need another file`,
            'Import it alone, with another --rejects',
          )
        if (index > this.position.input)
          this.position = { ...this.position, input: index, records: 0 }
        if (!(await this.#importInput(reader))) return
      } finally {
        reader.close()
      }
    }
    this.isComplete = true
  }

  /** Returns false if too many were rejected. */
  async #importInput(reader: OpenInput): Promise<boolean> {
    const { plan, target } = this.#start
    const maxRecords = target.send ? maxRequests : maxRecordsAtOnce
    const mapper = new Mapper(plan, reader.header, this.#mapperState)
    for await (const chunk of skipRecords(reader.chunks, this.position.records)) {
      this.emptyRows += chunk.emptyRows
      for (let from = 0; from < chunk.records.length; from += maxRecords) {
        if (this.rejections >= plan.maxErrors) return false
        await this.#importChunk(chunk.slice(from, from + maxRecords), mapper, reader)
        await checkSignal(this.#io.handleSignals())
      }
    }
    return true
  }

  async #importChunk(chunk: Chunk, mapper: Mapper, reader: OpenInput): Promise<void> {
    const { target, checkpointId: id, checkpoint, numbered } = this.#start
    const before = this.position
    const options = { signal: this.#io.handleSignals() }
    const mapped = chunk.records.map((raw, index) => {
      const one = mapper.map(raw)
      if ('error' in one) return one
      if (target.send && (!one.isMatched || one.isNumbered))
        one.key = `${checkpoint.importId}-${before.input}-${before.records + index}`
      // An equal plant that has the number is another one.
      else if (one.type === 'create' && one.isNumbered && !one.isMatched) one.ifExists = undefined
      return one
    })
    const changes = mapped.filter((one): one is MappedChange => !('error' in one))
    const isNumbered = changes.some((change) => change.isNumbered)
    const file = numbered.find(({ id }) => isNumbered && id === numbered[before.input]?.id)
    const remembered = file?.from === file?.to ? undefined : file
    if (target.send && remembered) await this.#replace(remembered)
    const sent = await target.send?.(changes, options)
    const nextId = this.#mapperState.nextId?.toString()

    const work = async ({ write, saveCheckpoint }: Transaction) => {
      const answers = (sent ?? (await write(changes, options))).values()
      const outcomes = mapped.map((one) =>
        'error' in one ? rejected(one) : answered(must(answers.next().value)),
      )
      const rejections = outcomes.flatMap((outcome, index) => {
        if (!('error' in outcome)) return []
        const { kind, error, message } = outcome.error
        const raw = must(chunk.records[index])
        return [{ line: must(chunk.lines[index]), raw, kind, error, message }]
      })
      const position: Position = {
        ...before,
        records: before.records + mapped.length,
        counts: withOutcomes(before.counts, outcomes),
        nextId,
        rejects: before.rejects && { ...before.rejects, rows: rejectedRows(rejections, reader) },
      }
      const saved = this.#stateAt(position)
      if (id !== undefined) await saveCheckpoint({ id, from: this.#saved, to: saved })
      if (remembered) await saveCheckpoint(remembered)
      return { outcomes, rejections, position, saved }
    }

    const done = await this.#own.transaction(work, { isRepeatable: true })
    if (remembered) remembered.from = remembered.to
    this.#saved = done.saved
    this.position = done.position
    this.rejections += done.rejections.length
    await this.#onChunk(done.outcomes, done.rejections, this)
    await this.#appendRejects(headerOf(reader))
  }

  async #appendRejects(header: string): Promise<void> {
    const { rejects } = this.position
    if (!rejects?.rows) return
    try {
      const appended = appendRows(rejects, header, { isResumed: false })
      this.position = { ...this.position, rejects: appended }
    } catch (error) {
      // If the file is that of a process that has resumed this import, then saving says so.
      if (error instanceof PlantsError && error.kind === 'usage')
        await this.#save({ ...this.position, rejects: disownFile(rejects) })
      throw error
    }
    await this.#save(this.position)
  }

  /** Call it after the summary: until then, the same command prints it again. */
  finish(): Promise<void> {
    return this.#save()
  }

  #stateAt(position: Position): string {
    return JSON.stringify({ ...this.#start.checkpoint, position })
  }

  async #save(position?: Position): Promise<void> {
    const { checkpointId: id } = this.#start
    const from = this.#saved
    const to = position && this.#stateAt(position)
    if (id === undefined || from === to) return
    await this.#replace({ id, from, to })
    this.#saved = to
  }

  async #replace(change: CheckpointChange): Promise<void> {
    await this.#start.target.own.transaction(({ saveCheckpoint }) => saveCheckpoint(change))
    change.from = change.to
  }
}

/** Less than a second of requests. */
const maxRequests = 500
/** An invalid record of one byte takes hundreds. */
const maxRecordsAtOnce = 24_000

/** Throws why a service was not asked, or if what answered is no Plant Store. */
function answered(outcome: Outcome): Outcome {
  const isUnusable = outcome.type === 'unknown' && outcome.error.kind === 'unusable'
  if (outcome.type === 'unsent' || isUnusable) throw toError(outcome.error)
  return outcome
}

function withOutcomes(before: Counts, outcomes: readonly Outcome[]): Counts {
  const counts = { ...before, rejected: { ...before.rejected } }
  for (const outcome of outcomes) {
    const { type } = outcome
    if (type === 'rejected') {
      const { error } = outcome.error
      counts.rejected[error] = (counts.rejected[error] ?? 0) + 1
    } else if (type === 'updated' && outcome.before) {
      counts[equalFields(outcome.plant, outcome.before) ? 'skipped' : 'updated'] += 1
    } else if (type !== 'unsent' && type !== 'deleted') counts[type] += 1
  }
  return counts
}
