/*
 * Runs an import, which is a loop over chunks of records.
 *
 * A chunk is one transaction with its checkpoint. So at any moment, there are whole chunks on disk,
 * and the position after them, from which the same command resumes. That holds because of the order
 * of the steps:
 *
 * 1. The records are mapped to changes (`map-chunks.ts`), and the changes are written.
 * 2. The checkpoint is compared with what this process saved last, and replaced. If another process
 *    has resumed the same import, the transaction fails.
 * 3. A file is remembered by its contents, once one of its records gets a generated id.
 * 4. The transaction is committed. With `--atomic`, one transaction is around all chunks.
 * 5. The chunk is reported, and its rejected records, which the checkpoint has, are appended to
 *    their file.
 *
 * A service has no transactions. Its changes are sent before the checkpoint is replaced, which is
 * in the journal. Each create has a key made of the import and the record, so a chunk that is sent
 * again creates nothing twice.
 *
 * There are two shortcuts. While a PostgreSQL server stores a chunk, the next one is read and
 * mapped (`ReadAhead`). And a chunk of plain rows is created in a direct store without mapping its
 * records (`#createRows`); if the store cannot do that, the same rows come again, mapped.
 *
 * docs/design/import-and-resume.md says why it is built like this.
 */
import type { PlainChunk } from '../formats/plain-chunk.js'
import type { Io } from '../platform/io.js'
import { checkSignal } from '../platform/runtime.js'
import type { Outcome } from '../stores/change.js'
import {
  type CheckpointChange,
  type DirectStore,
  RowsRejectedError,
  type Transaction,
} from '../stores/store.js'
import { appendRejects } from './append-rejects.js'
import { movePosition } from './checkpoint.js'
import { CheckpointRows } from './checkpoint-rows.js'
import type { ImportStart } from './import-start.js'
import { InputNotes } from './input-notes.js'
import { type OpenInput, openInput } from './inputs.js'
import { type MappedChunk, mapChunks } from './map-chunks.js'
import type { MapperState } from './map-record.js'
import { isGenerated } from './mapped-change.js'
import { addOutcomes, findRejections, mergeOutcomes } from './outcomes.js'
import type { Position } from './parse-checkpoint.js'
import { ReadAhead } from './read-ahead.js'
import {
  assertSameHeader,
  formatRejectedRows,
  formatRejectsHeader,
  type RejectedRecord,
} from './rejects-file.js'

type OnChunk = (
  outcomes: readonly Outcome[],
  rejections: readonly RejectedRecord[],
  importer: Importer,
) => Promise<void>

/** A chunk that is being stored. */
interface OpenChunk extends MappedChunk {
  /** Remembers the file, if one of the records got a generated id. */
  fileChanges: readonly CheckpointChange[]
  /** This is called while a server works on the chunk. */
  onWait: () => void
}

interface CommittedChunk {
  outcomes: readonly Outcome[]
  rejections: readonly RejectedRecord[]
  /** The position after the chunk. */
  position: Position
  /** What the transaction saved about the import. */
  savedChanges: readonly CheckpointChange[]
}

export class Importer {
  readonly #start: ImportStart
  readonly #onChunk: OnChunk
  readonly #io: Io
  readonly #mapperState: MapperState
  readonly #checkpointRows: CheckpointRows
  /** Whether a run that was interrupted may have sent the next chunk to a service. */
  #mayBeSentAgain: boolean
  /** Where transactions begin; with `--atomic`, the one transaction around all chunks. */
  #checkpointStore: Pick<DirectStore, 'transaction'>
  #reader: OpenInput | undefined
  position: Position
  /** How many records this run has rejected, without those of an interrupted one. */
  #rejectedCount = 0
  /** Whether all records have outcomes. */
  isComplete = false
  readonly notes = new InputNotes()

  /** @param onChunk is called with each chunk when it is committed */
  constructor(start: ImportStart, onChunk: OnChunk, io: Io) {
    const { target, saved, checkpoint, names } = start
    const { firstId, position } = checkpoint
    this.#start = start
    this.#onChunk = onChunk
    this.#io = io
    this.#checkpointStore = target.checkpointStore
    this.#checkpointRows = new CheckpointRows(start)
    this.#mayBeSentAgain = saved.checkpoint !== undefined
    this.position = position
    this.#mapperState = {
      firstId: firstId === undefined ? undefined : BigInt(firstId),
      nextId: position.nextId === undefined ? undefined : BigInt(position.nextId),
      names,
      otherFields: this.notes.otherFields,
    }
  }

  get isResumable(): boolean {
    return this.#checkpointRows.isResumable
  }

  /** How much of the inputs is read, from 0 to 1; undefined if that is not known. */
  get progress(): number | undefined {
    const progressOfInput = this.#reader?.progress()
    if (progressOfInput === undefined) return undefined
    return (this.position.input + progressOfInput) / this.#start.plan.inputs.length
  }

  /** Whether nothing of an import with `--atomic` is stored. */
  get isRolledBack(): boolean {
    return this.#start.plan.atomic === true && (this.#rejectedCount > 0 || !this.isComplete)
  }

  /**
   * Imports all inputs, or those up to the chunk in which too many records were rejected.
   *
   * @param first the first input, which is open already
   * @param transaction the transaction for all chunks; by default, each chunk has its own
   */
  async run(first: OpenInput, transaction?: Transaction): Promise<void> {
    const { plan, target } = this.#start
    if (transaction) this.#checkpointStore = { transaction: (work) => work(transaction) }
    // The id of the import, of which the keys are made, is saved before a service gets a request.
    // And rows that were just appended to the rejects file must leave the checkpoint.
    const mustSave = target.send !== undefined || this.#checkpointRows.hasCheckpoint
    if (mustSave) await this.#checkpointRows.saveCheckpoint(this.position)
    for (const [index, input] of plan.inputs.entries()) {
      if (index < this.position.input) continue
      const reader = index === 0 ? first : await openInput(input, plan, this.#io)
      this.#reader = reader
      try {
        if (this.position.rejects) assertSameHeader(reader, first, input.name)
        this.notes.noteChoices(reader, input.name)
        if (index > this.position.input)
          this.position = { ...this.position, input: index, records: 0 }
        if (!(await this.#importInput(reader, input.name))) return
      } finally {
        reader.close()
      }
    }
    this.isComplete = true
  }

  /** @returns false if too many records were rejected */
  async #importInput(reader: OpenInput, file: string): Promise<boolean> {
    const chunks = new ReadAhead(this.#mapChunks(reader, file))
    // Both kinds of chunks call this while the server works, so that the next chunk is read then.
    const prepareNext = () => chunks.prepare()
    try {
      for (;;) {
        const next = await chunks.read()
        if (next === undefined) return true
        // A chunk of rows that were all left out has no records, and is only noted.
        const isEmpty = 'chunk' in next && next.chunk.records.length === 0
        if (!isEmpty && this.#rejectedCount >= this.#start.plan.maxErrors) return false
        if ('rows' in next) {
          next.areCreated = this.#createRows(next.rows, prepareNext)
          await next.areCreated
        } else {
          this.notes.noteRows(next.chunk, reader, file)
          if (isEmpty) continue
          await this.#importChunk(next, prepareNext, reader)
        }
        await checkSignal(this.#io.handleSignals())
      }
    } finally {
      await chunks.end()
    }
  }

  #mapChunks(reader: OpenInput, name: string) {
    const { plan, target, checkpoint } = this.#start
    const { records, input } = this.position
    return mapChunks(reader, {
      plan,
      name,
      state: this.#mapperState,
      skippedRecords: records,
      keyPrefix: target.send && `${checkpoint.importId}-${input}-`,
    })
  }

  /**
   * Creates the plants of all rows, and saves the checkpoint after them.
   *
   * @returns false, with nothing stored, if one of them cannot be created
   */
  async #createRows(rows: PlainChunk, onWait: () => void): Promise<boolean> {
    const create = async ({ createRows, saveCheckpoint }: Transaction): Promise<CommittedChunk> => {
      if (!createRows) throw new RowsRejectedError()
      await createRows(rows, { onWait })
      const position = movePosition(this.position, rows.length, '')
      position.counts = { ...position.counts, created: position.counts.created + rows.length }
      const savedChanges = this.#checkpointRows.buildCheckpointChange(position)
      for (const change of savedChanges) await saveCheckpoint(change)
      return { outcomes: [], rejections: [], position, savedChanges }
    }
    try {
      this.#advanceTo(await this.#checkpointStore.transaction(create, { isRepeatable: true }))
    } catch (error) {
      if (error instanceof RowsRejectedError) return false
      throw error
    }
    await this.#onChunk([], [], this)
    return true
  }

  async #importChunk(chunk: MappedChunk, onWait: () => void, reader: OpenInput): Promise<void> {
    const fileChanges = chunk.changes.some(({ idSource }) => isGenerated(idSource))
      ? this.#checkpointRows.buildFileChange(this.position.input)
      : []
    const open = { ...chunk, fileChanges, onWait }
    const sentOutcomes = await this.#sendToService(open)
    const committed = await this.#commitChunk(open, sentOutcomes, reader)
    this.#advanceTo(committed)
    await this.#onChunk(committed.outcomes, committed.rejections, this)
    this.position = await appendRejects(
      this.#checkpointRows,
      this.position,
      formatRejectsHeader(reader),
    )
  }

  /** @returns undefined for a direct store, which writes the changes with the checkpoint */
  async #sendToService({ changes, fileChanges }: OpenChunk): Promise<Outcome[] | undefined> {
    const { send } = this.#start.target
    if (!send) return undefined
    // A request may be stored even if this process ends before the response, so the file is
    // remembered before anything is sent.
    for (const change of fileChanges) await this.#checkpointRows.save(change)
    const isRepetition = this.#mayBeSentAgain
    this.#mayBeSentAgain = false
    return send(changes, { signal: this.#io.handleSignals(), isRepetition })
  }

  /** @param sentOutcomes the outcomes at a service; undefined to write the changes here */
  #commitChunk(
    { chunk, results, changes, fileChanges, nextId, onWait }: OpenChunk,
    sentOutcomes: Outcome[] | undefined,
    reader: OpenInput,
  ): Promise<CommittedChunk> {
    const commit = async ({ write, saveCheckpoint }: Transaction): Promise<CommittedChunk> => {
      const signal = this.#io.handleSignals()
      const written = sentOutcomes ?? (await write(changes, { signal, onWait }))
      const outcomes = mergeOutcomes(results, written)
      const rejections = findRejections(chunk, outcomes)
      const rejectedRows = formatRejectedRows(rejections, reader)
      const position = {
        ...movePosition(this.position, outcomes.length, rejectedRows),
        counts: addOutcomes(this.position.counts, outcomes),
        nextId: nextId?.toString(),
      }
      const savedChanges = this.#checkpointRows.buildCheckpointChange(position)
      // For a service, the file was remembered before anything was sent.
      if (!sentOutcomes) savedChanges.push(...fileChanges)
      for (const change of savedChanges) await saveCheckpoint(change)
      return { outcomes, rejections, position, savedChanges }
    }
    return this.#checkpointStore.transaction(commit, { isRepeatable: true })
  }

  /** Changes the state of the importer, only when the chunk is committed. */
  #advanceTo({ position, rejections, savedChanges }: CommittedChunk): void {
    this.position = position
    this.#rejectedCount += rejections.length
    for (const change of savedChanges) this.#checkpointRows.noteSaved(change)
  }

  /** Deletes the checkpoint. If that fails, the same command resumes the import at its end. */
  async finish(): Promise<void> {
    await this.#checkpointRows.saveCheckpoint(undefined)
  }
}
