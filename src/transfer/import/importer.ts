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
import { type MappedChange, Mapper, type Numbering, type PlantNames } from './map.js'
import { headerOf, type RejectedRecord, type Rejects, rejectedRows } from './rejects.js'

/*
 * An import is a loop over chunks of records. A chunk is one transaction, and has its checkpoint in it: what is on disk
 * is always whole chunks and the position after them, from which the same command goes on. The order in a transaction is
 * what makes that true.
 *
 * 1. The changes are written, and have outcomes.
 * 2. The checkpoint is compared with what this process saved last, and replaced. Another process that runs the same
 *    import has then gone on: the transaction fails, and nothing of it is stored.
 * 3. The rejected records are written at the position that the checkpoint has for them. They are in the file before the
 *    commit. If that does not come, the next run writes the same bytes at the same place.
 * 4. The commit.
 *
 * A service has no transactions. Its changes are sent before that of the journal, which has only the checkpoint, and each
 * create carries a key made of the import and the record: to send a chunk again creates nothing twice.
 */

export interface ImportTarget {
  send?: Store['write'] | undefined
  /** Of the store, or of the journal of a service. */
  transaction: OwnStore['transaction']
}

/** An import as this run begins it, or finds it. */
export interface ImportStart {
  plan: ImportPlan
  target: ImportTarget
  /** Undefined for an import that is not resumed. */
  checkpointId: string | undefined
  /** The checkpoint as it was found. */
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
  readonly #numbering: Numbering
  #transaction: OwnStore['transaction']
  /** The checkpoint as this process has found it, or saved it last. */
  #saved: string | undefined
  #reader: OpenInput | undefined
  position: Position
  /** Of this run. */
  rejected = 0
  emptyRows = 0
  isComplete = false
  readonly otherFields = new Set<string>()

  constructor(start: ImportStart, onChunk: OnChunk, io: Io) {
    this.#start = start
    this.#onChunk = onChunk
    this.#io = io
    this.#transaction = start.target.transaction
    this.#saved = start.saved
    const { firstId, position } = start.checkpoint
    this.position = position
    this.#numbering = {
      firstId: start.plan.idFrom === 'next' ? BigInt(must(firstId)) : undefined,
      nextId: position.nextId === undefined ? undefined : BigInt(position.nextId),
      names: start.names,
      otherFields: this.otherFields,
    }
  }

  /** What is read of the inputs, from 0 to 1. */
  get progress(): number | undefined {
    const part = this.#reader?.progress()
    const { length } = this.#start.plan.inputs
    return part === undefined ? undefined : (this.position.input + part) / length
  }

  /** @param transaction for all; by default, each chunk has its own */
  async run(first: OpenInput, transaction?: Transaction): Promise<void> {
    const { plan, target, checkpoint, rejects } = this.#start
    if (transaction) this.#transaction = (work) => work(transaction)
    // What a killed run has left, plants at a service and a rejects file, is known by the checkpoint.
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
    const { plan } = this.#start
    const mapper = new Mapper(plan, reader.header, this.#numbering)
    for await (const chunk of skipRecords(reader.chunks, this.position.records)) {
      this.emptyRows += chunk.emptyRows
      for (let from = 0; from < chunk.records.length; from += plan.maxRecords) {
        if (this.rejected >= plan.maxErrors) return false
        await this.#importChunk(chunk.slice(from, from + plan.maxRecords), mapper, reader)
        await checkSignal(this.#io.handleSignals())
      }
    }
    return true
  }

  async #importChunk(chunk: Chunk, mapper: Mapper, reader: OpenInput): Promise<void> {
    const { target, checkpointId: id, checkpoint, rejects } = this.#start
    const before = this.position
    const numbering = this.#numbering
    const options = { signal: this.#io.handleSignals() }
    const mapped = chunk.records.map((raw, index) => {
      const { nextId } = numbering
      const one = mapper.map(raw)
      // What is matched may be what a run that was killed has created with this number.
      const isNew = !('error' in one) && (!one.isMatched || numbering.nextId !== nextId)
      if (target.send && isNew)
        one.key = `${checkpoint.importId}-${before.input}-${before.records + index}`
      return one
    })
    const changes = mapped.filter((one): one is MappedChange => !('error' in one))
    const sent = await target.send?.(changes, options)

    const work = async ({ write, saveCheckpoint }: Transaction) => {
      const written = (sent ?? (await write(changes, options))).values()
      const outcomes = mapped.map((one) =>
        'error' in one ? rejected(one) : answered(must(written.next().value)),
      )
      const rejections = rejectedRecords(chunk, outcomes)
      const length = before.rejects?.length ?? 0
      const rows = rejectedRows(rejections, reader, length === 0)
      const position: Position = {
        input: before.input,
        records: before.records + mapped.length,
        counts: withOutcomes(before.counts, outcomes),
        nextId: numbering.nextId?.toString(),
        rejects: rejects && { ...rejects.start, length: length + rows.length },
      }
      const saved = JSON.stringify({ ...checkpoint, position })
      if (id !== undefined) await saveCheckpoint({ id, from: this.#saved, to: saved })
      rejects?.write(length, rows)
      return { outcomes, rejections, position, saved }
    }

    const done = await this.#transaction(work, { isRepeatable: true })
    this.#saved = done.saved
    this.position = done.position
    this.rejected += done.rejections.length
    await this.#onChunk(done.outcomes, done.rejections, this)
  }

  /** Call it after the summary: until then, the same command prints it again. */
  finish(time: Date): Promise<void> {
    const { checkpoint, complete } = this.#start
    const hasNumbered = complete && this.position.nextId !== checkpoint.firstId
    return this.#save(undefined, hasNumbered && { ...complete, to: doneState(time) })
  }

  async #save(to: string | undefined, complete?: CheckpointChange | false): Promise<void> {
    const { target, checkpointId: id } = this.#start
    const from = this.#saved
    const change = id !== undefined && from !== to && { id, from, to }
    if (!change && !complete) return
    await target.transaction(async ({ saveCheckpoint }) => {
      if (change) await saveCheckpoint(change)
      if (complete) await saveCheckpoint(complete)
    })
    this.#saved = to
  }
}

/** Throws why a service was not asked, or if what answered is no Plant Store. */
function answered(outcome: Outcome): Outcome {
  const isUnusable = outcome.type === 'unknown' && outcome.error.kind === 'unusable'
  if (outcome.type === 'unsent' || isUnusable) throw toError(outcome.error)
  return outcome
}

function rejectedRecords(chunk: Chunk, outcomes: readonly Outcome[]): RejectedRecord[] {
  return outcomes.flatMap((outcome, index): RejectedRecord[] => {
    if (!('error' in outcome)) return []
    const { error, message } = outcome.error
    return [{ line: must(chunk.lines[index]), raw: must(chunk.records[index]), error, message }]
  })
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
