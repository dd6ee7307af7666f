import { equalFields } from '../../plant/plant.js'
import { must, usageError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { checkSignal } from '../../platform/runtime.js'
import { type Outcome, rejected, toError } from '../../stores/common/change.js'
import {
  type CheckpointChange,
  doneState,
  type OwnStore,
  type Store,
  type Transaction,
} from '../../stores/common/store.js'
import { type Chunk, skipRecords } from '../formats/chunk.js'
import type { Checkpoint, Counts, Position } from './checkpoint.js'
import { type ImportPlan, type OpenInput, openInput } from './input.js'
import { type MappedChange, Mapper, type MapperState, type PlantNames } from './map.js'
import { headerOf, type RejectedRecord, type Rejects, rejectedRows } from './rejects.js'

/*
 * An import is a loop over chunks of records. A chunk is one transaction with its checkpoint: on disk are always whole
 * chunks and the position after them, from which the same command goes on. The order in a transaction makes that true.
 *
 * 1. The changes are written, and have outcomes.
 * 2. The checkpoint is compared with what this process saved last, and replaced. If another process with the same import
 *    has gone on, the transaction fails.
 * 3. The rejected records are written at the position that the checkpoint has for them: if the commit does not come, the
 *    next run writes the same bytes at the same place.
 * 4. The commit.
 *
 * A service has no transactions. Its changes are sent before that of the journal, which has the checkpoint alone, and each
 * create has a key made of the import and the record: a chunk that is sent again creates nothing twice.
 */

export interface ImportTarget {
  send?: Store['write']
  /** The store, or the journal of a service. */
  own: Pick<OwnStore, 'transaction'>
}

export interface ImportStart {
  plan: ImportPlan
  target: ImportTarget
  /** Undefined for an import that is not resumed. */
  checkpointId: string | undefined
  /** The checkpoint that was found. */
  saved: string | undefined
  checkpoint: Checkpoint
  names: PlantNames | undefined
  rejects: Rejects | undefined
  /** The checkpoint to remember it by if it numbers plants, and what is there. */
  complete: Pick<CheckpointChange, 'id' | 'from'> | undefined
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
  #own: ImportTarget['own']
  /** The checkpoint as this process has found it, or saved it last. */
  #saved: string | undefined
  #reader: OpenInput | undefined
  position: Position
  /** In this run. */
  rejected = 0
  emptyRows = 0
  isComplete = false
  readonly otherFields = new Set<string>()

  constructor(start: ImportStart, onChunk: OnChunk, io: Io) {
    this.#start = start
    this.#onChunk = onChunk
    this.#io = io
    this.#own = start.target.own
    this.#saved = start.saved
    const { firstId, position } = start.checkpoint
    this.position = position
    this.#mapperState = {
      firstId: start.plan.idFrom === 'next' ? BigInt(must(firstId)) : undefined,
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

  /** @param transaction for all; by default, each chunk has its own */
  async run(first: OpenInput, transaction?: Transaction): Promise<void> {
    const { plan, target, checkpoint, rejects } = this.#start
    if (transaction) this.#own = { transaction: (work) => work(transaction) }
    // It has what a killed run has left: plants at a service, and a rejects file.
    if (target.send || rejects) await this.#save(JSON.stringify(checkpoint))
    rejects?.publish()
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

  /** Returns false if it has stopped because too many records were rejected. */
  async #importInput(reader: OpenInput): Promise<boolean> {
    const { plan, target } = this.#start
    const maxRecords = target.send ? maxRequests : maxRecordsAtOnce
    const mapper = new Mapper(plan, reader.header, this.#mapperState)
    for await (const chunk of skipRecords(reader.chunks, this.position.records)) {
      this.emptyRows += chunk.emptyRows
      for (let from = 0; from < chunk.records.length; from += maxRecords) {
        if (this.rejected >= plan.maxErrors) return false
        await this.#importChunk(chunk.slice(from, from + maxRecords), mapper, reader)
        await checkSignal(this.#io.handleSignals())
      }
    }
    return true
  }

  async #importChunk(chunk: Chunk, mapper: Mapper, reader: OpenInput): Promise<void> {
    const { target, checkpointId: id, checkpoint, rejects } = this.#start
    const before = this.position
    const options = { signal: this.#io.handleSignals() }
    const mapped = chunk.records.map((raw, index) => {
      const one = mapper.map(raw)
      if (target.send && !('error' in one) && (!one.isMatched || one.isNumbered))
        one.key = `${checkpoint.importId}-${before.input}-${before.records + index}`
      return one
    })
    const changes = mapped.filter((one): one is MappedChange => !('error' in one))
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
      const length = before.rejects?.length ?? 0
      const rows = rejectedRows(rejections, reader, length === 0)
      const position: Position = {
        input: before.input,
        records: before.records + mapped.length,
        counts: withOutcomes(before.counts, outcomes),
        nextId,
        rejects: rejects && { ...rejects.start, length: length + rows.length },
      }
      const saved = JSON.stringify({ ...checkpoint, position })
      if (id !== undefined) await saveCheckpoint({ id, from: this.#saved, to: saved })
      rejects?.write(length, rows)
      return { outcomes, rejections, position, saved }
    }

    const done = await this.#own.transaction(work, { isRepeatable: true })
    this.#saved = done.saved
    this.position = done.position
    this.rejected += done.rejections.length
    await this.#onChunk(done.outcomes, done.rejections, this)
  }

  /** Call it after the summary: until then, the same command prints it again. */
  finish(time: Date): Promise<void> {
    const { checkpoint, complete } = this.#start
    const hasNumbered = complete && this.position.nextId !== checkpoint.firstId
    return this.#save(undefined, hasNumbered ? [{ ...complete, to: doneState(time) }] : [])
  }

  async #save(to: string | undefined, complete: CheckpointChange[] = []): Promise<void> {
    const { target, checkpointId: id } = this.#start
    const from = this.#saved
    const changes = id === undefined || from === to ? complete : [{ id, from, to }, ...complete]
    if (changes.length === 0) return
    await target.own.transaction(async ({ saveCheckpoint }) => {
      for (const change of changes) await saveCheckpoint(change)
    })
    this.#saved = to
  }
}

/** Less than a second of requests. */
const maxRequests = 500
/** Limits the memory of a chunk: an invalid record of one byte takes hundreds. */
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
