/*
 * Runs an import, which is a loop over chunks of records.
 *
 * A chunk and the checkpoint after it are one transaction. So at any moment, whole chunks are on
 * disk, together with the position from which the same command resumes. The order of the steps
 * guarantees that:
 *
 * 1. The records are mapped to changes (`map-chunks.ts`), and the changes are written.
 * 2. The checkpoint is replaced, if it is still the one that this process has saved last. If
 *    another process has resumed the same import, the transaction fails.
 * 3. If a record of a file gets a generated id, the file is remembered by its contents.
 * 4. The transaction is committed. With `--atomic`, one transaction is around all chunks.
 * 5. The chunk is reported, and its rejected records are appended to the rejects file. Until then,
 *    the checkpoint has these records.
 *
 * A service has no transactions. The changes are sent to the service first, and then the checkpoint
 * in the journal is replaced. If a chunk is sent again, it creates nothing twice, because each
 * create has an idempotency key of the import and the record.
 *
 * While a PostgreSQL server stores a chunk, the next one is read and mapped (`ReadAhead`).
 *
 * docs/design/import-and-resume.md says why it is built like this.
 */
import type { Io } from '../platform/io.js'
import { checkSignal } from '../platform/runtime.js'
import type { Outcome } from '../stores/change.js'
import type { DirectStore, ImportEntryChange, Transaction } from '../stores/store.js'
import { assertSameHeader, formatRejectsHeader, type RejectedRecord } from './format-rejects.js'
import { ImportEntries, saveEntries } from './import-entries.js'
import type { ImportStart, ImportTarget } from './import-start.js'
import { assertUnchanged, type ImportInput } from './input-file.js'
import { InputNotes } from './input-notes.js'
import { type InputReader, openInput } from './inputs.js'
import { type MappedChunk, mapChunks } from './map-chunks.js'
import type { MapperState } from './map-record.js'
import { isGenerated } from './mapped-change.js'
import { moveRejectsToFile } from './move-rejects.js'
import { type ChunkResult, computeChunkResult } from './outcomes.js'
import type { Position } from './parse-checkpoint.js'
import { ReadAhead } from './read-ahead.js'

/** A listener is told what the importer has done. */
interface ImportListener {
  /** Reports a chunk that is committed. */
  reportChunk(
    outcomes: readonly Outcome[],
    rejections: readonly RejectedRecord[],
    importer: Importer,
  ): Promise<void>
  /** Reports that an input is read to its end. Of all runs of an import, only one reaches it. */
  reportInputEnd(reader: InputReader, file: string): Promise<void>
}

/** The input that is being imported. */
interface CurrentInput {
  reader: InputReader
  /** The name of the file, for notes. */
  file: string
  /** Begins to read the next chunk. It is called while a server works on the one before it. */
  prepareNext(): void
}

/** The result of a chunk, with the entries of the import that its transaction has saved. */
interface CommittedChunk extends ChunkResult {
  savedChanges: readonly ImportEntryChange[]
}

export class Importer {
  readonly #start: ImportStart
  readonly #listener: ImportListener
  readonly #io: Io
  readonly #mapperState: MapperState
  readonly #entries: ImportEntries
  /** Whether an interrupted run may already have sent the next chunk to a service. */
  #mayHaveBeenSent: boolean
  /** Whether a service may have stored a plant of this import. */
  #serviceMayHavePlants: boolean
  /** It runs each chunk in a transaction; with `--atomic`, in the one transaction of all chunks. */
  #checkpointStore: Pick<DirectStore, 'transaction'>
  #reader: InputReader | undefined
  position: Position
  /** How many records this run has rejected, without the records of an interrupted run. */
  #rejectedCount = 0
  /** Whether all records have outcomes. */
  isComplete = false
  readonly notes = new InputNotes()

  constructor(start: ImportStart, listener: ImportListener, io: Io) {
    const { target, savedImport, checkpoint, names } = start
    const { firstId } = checkpoint
    const position = { ...checkpoint.position, isNothingStored: undefined }
    this.#start = start
    this.#listener = listener
    this.#io = io
    this.#checkpointStore = target.checkpointStore
    this.#entries = new ImportEntries(start)
    this.#serviceMayHavePlants = mayHaveStored(savedImport)
    this.#mayHaveBeenSent = this.#serviceMayHavePlants
    this.position = position
    this.#mapperState = {
      firstId: firstId === undefined ? undefined : BigInt(firstId),
      nextId: position.nextId === undefined ? undefined : BigInt(position.nextId),
      names,
      otherFields: this.notes.otherFields,
      otherColumns: this.notes.otherColumns,
    }
  }

  get isResumable(): boolean {
    return this.#entries.isResumable
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
   * @param firstReader the first input, which is open already
   * @param transaction the transaction for all chunks; by default, each chunk has its own
   */
  async run(firstReader: InputReader, transaction?: Transaction): Promise<void> {
    const { plan, target } = this.#start
    if (transaction) this.#checkpointStore = { transaction: (work) => work(transaction) }
    // - Before the first request to a service, the id of the import must be on disk, because the
    //   idempotency keys begin with it.
    // - A saved checkpoint may be that of an old import (with `--restart`), may say that nothing is
    //   stored, or may have records that `prepareRejectsFile` has appended to the rejects file. And
    //   another process with the same import must notice that this one has resumed it.
    const mustSave = target.send !== undefined || this.#entries.hasCheckpoint
    if (mustSave) await this.#entries.saveCheckpoint(this.position)
    for (const [index, input] of plan.inputs.entries()) {
      if (index < this.position.input) continue
      const reader = index === 0 ? firstReader : await openInput(input, plan, this.#io)
      this.#reader = reader
      try {
        if (this.position.rejects) assertSameHeader(reader, firstReader, input.name)
        this.notes.noteChoices(reader, input.name, plan)
        if (index > this.position.input)
          this.position = { ...this.position, input: index, records: 0 }
        if (!(await this.#importInput(reader, input))) return
        await this.#listener.reportInputEnd(reader, input.name)
      } finally {
        reader.close()
      }
    }
    this.isComplete = true
  }

  /** @returns false if too many records were rejected, so that the import must end */
  async #importInput(reader: InputReader, input: ImportInput): Promise<boolean> {
    const chunks = new ReadAhead(this.#mapChunks(reader, input.name))
    const currentInput = { reader, file: input.name, prepareNext: () => chunks.prepare() }
    try {
      for (let chunk = await chunks.read(); chunk; chunk = await chunks.read()) {
        assertUnchanged(input)
        if (!(await this.#importMappedChunk(chunk, currentInput))) return false
      }
      return true
    } finally {
      await chunks.end()
    }
  }

  /** @returns false if too many records were rejected before the chunk */
  async #importMappedChunk(mappedChunk: MappedChunk, input: CurrentInput): Promise<boolean> {
    // If all rows of a chunk were left out, it has no records, and is only noted.
    const isEmpty = mappedChunk.chunk.records.length === 0
    if (!isEmpty && this.#hasTooManyRejections) return false
    this.notes.noteRows(mappedChunk.chunk, input.reader, input.file)
    if (isEmpty) return true
    await this.#storeChunk(mappedChunk, input)
    await checkSignal(this.#io.getStopSignal())
    return true
  }

  get #hasTooManyRejections(): boolean {
    return this.#rejectedCount >= this.#start.plan.maxErrors
  }

  #mapChunks(reader: InputReader, name: string) {
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

  /** Stores the changes of a chunk with the checkpoint after them, and appends its rejects. */
  async #storeChunk(
    mappedChunk: MappedChunk,
    { reader, prepareNext }: CurrentInput,
  ): Promise<void> {
    // A service is sent the changes now, and a direct store writes them in the transaction below.
    const { send } = this.#start.target
    const sentOutcomes = send && (await this.#sendToService(send, mappedChunk))
    await this.#commit(async (transaction) => {
      const options = { signal: this.#io.getStopSignal(), onWait: prepareNext }
      const outcomes = sentOutcomes ?? (await transaction.write(mappedChunk.changes, options))
      const chunkResult = computeChunkResult(mappedChunk, outcomes, {
        reader,
        position: this.position,
      })
      const savedChanges = this.#entries.buildCheckpointChange(chunkResult.position)
      // For a service, the file was remembered before anything was sent.
      if (!sentOutcomes && hasStoredGeneratedId(mappedChunk, outcomes))
        savedChanges.push(...this.#entries.buildFileChange(this.position.input))
      await saveEntries(savedChanges, transaction)
      return { ...chunkResult, savedChanges }
    })
    if (!this.position.rejects?.rows) return
    const header = formatRejectsHeader(reader)
    this.position = await moveRejectsToFile(this.#entries, this.position, header)
  }

  async #sendToService(
    send: NonNullable<ImportTarget['send']>,
    { changes }: MappedChunk,
  ): Promise<Outcome[]> {
    // A request may be stored even if this process ends before the response, so the file is
    // remembered before anything is sent.
    if (changes.some(({ idSource }) => isGenerated(idSource)))
      for (const change of this.#entries.buildFileChange(this.position.input))
        await this.#entries.save(change)
    const mayHaveBeenSent = this.#mayHaveBeenSent
    this.#mayHaveBeenSent = false
    let mayHavePlants = this.#serviceMayHavePlants
    this.#serviceMayHavePlants = true
    // A try without a response may have stored the plant of a change that was rejected, skipped or
    // not sent at last.
    const onUnknownOutcome = () => {
      mayHavePlants = true
    }
    const signal = this.#io.getStopSignal()
    const outcomes = await send(changes, { signal, mayHaveBeenSent, onUnknownOutcome })
    this.#serviceMayHavePlants = mayHavePlants || outcomes.some(mayBeStored)
    return outcomes
  }

  /**
   * Runs `writeChunk` in a transaction, which may be repeated. Only after the commit, the importer
   * moves its position past the chunk, and reports the chunk.
   */
  async #commit(writeChunk: (transaction: Transaction) => Promise<CommittedChunk>): Promise<void> {
    const chunk = await this.#checkpointStore.transaction(writeChunk, { isRepeatable: true })
    this.position = chunk.position
    this.#rejectedCount += chunk.rejections.length
    for (const change of chunk.savedChanges) this.#entries.noteSavedChange(change)
    await this.#listener.reportChunk(chunk.outcomes, chunk.rejections, this)
  }

  /**
   * Saves that a service has stored nothing of the import, if that is sure, so that an import with
   * other options or files may begin. The same command still resumes this import.
   */
  async saveThatNothingIsStored(): Promise<void> {
    if (!this.#start.target.send || this.#serviceMayHavePlants || !this.#entries.hasCheckpoint)
      return
    await this.#entries.saveThatNothingIsStored(this.position)
  }

  /** Deletes the checkpoint. If that fails, the same command resumes the import at its end. */
  async deleteCheckpoint(): Promise<void> {
    await this.#entries.saveCheckpoint(undefined)
  }
}

/** Whether a service may have stored a plant in an earlier run of the import. */
function mayHaveStored({ checkpoint }: ImportStart['savedImport']): boolean {
  const isReadable = typeof checkpoint === 'object'
  return isReadable ? !checkpoint.position.isNothingStored : checkpoint !== undefined
}

function mayBeStored({ type }: Outcome): boolean {
  return type !== 'rejected' && type !== 'skipped' && type !== 'notSent'
}

/** @param outcomes the outcomes of the changes of the chunk */
function hasStoredGeneratedId({ changes }: MappedChunk, outcomes: readonly Outcome[]): boolean {
  return changes.some(
    ({ idSource }, index) => isGenerated(idSource) && outcomes[index]?.type !== 'rejected',
  )
}
