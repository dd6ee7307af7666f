/*
 * An import is a loop over chunks of records. A chunk is one transaction with its checkpoint: on
 * disk are always whole chunks and the position after them, from which the same command resumes.
 * The order in a transaction makes that true.
 *
 * 1. The changes are written, and have outcomes.
 * 2. The checkpoint is compared with what this process saved last, and replaced. If another process
 *    has gone on with the same import, the transaction fails.
 * 3. A file is remembered by its contents, once one of its records gets a generated id.
 * 4. The transaction is committed: with `--atomic`, one for all chunks.
 * 5. The chunk is reported, and its rejected records, which the checkpoint has, are appended to
 *    their file.
 *
 * A service has no transactions. Its changes are sent before those of the journal, and each create
 * has a key made of the import and the record: a chunk that is sent again creates nothing twice.
 *
 * While a server works on a chunk, the next one is read and mapped.
 *
 * docs/design/import-and-resume.md says why.
 */
import { assertDefined, PlantsError, usageError } from '../errors.js'
import { type Chunk, type Header, skipRecords } from '../formats/chunk.js'
import { isRejectsName } from '../formats/columns.js'
import { PlainChunk } from '../formats/plain-chunk.js'
import { haveEqualFields } from '../plant/plant.js'
import type { Io } from '../platform/io.js'
import { checkSignal } from '../platform/runtime.js'
import { createRejectedOutcome, type Outcome, type Problem, toError } from '../stores/change.js'
import {
  type CheckpointChange,
  type DirectStore,
  RowsRejectedError,
  type Store,
  type Transaction,
} from '../stores/store.js'
import { type ImportPlan, type OpenInput, openInput } from './inputs.js'
import { Mapper, type MapperState, type PlantNames } from './map-record.js'
import { isGenerated, type MappedChange } from './mapped-change.js'
import type { Checkpoint, Counts, Position } from './parse-checkpoint.js'
import { ReadAhead } from './read-ahead.js'
import {
  appendRows,
  disownFile,
  formatRejectedRows,
  formatRejectsHeader,
  type RejectedRecord,
} from './rejects-file.js'
import type { SavedImport } from './resume.js'

export interface ImportTarget {
  /** Sends changes to a service; undefined for a direct store. */
  send?: Store['write']
  /** The direct store, or the journal of a service. */
  direct: Pick<DirectStore, 'transaction'> & Partial<Pick<DirectStore, 'findCheckpoint' | 'close'>>
  /** Undefined if there is none yet, and for a dry run at a service. */
  store?: Pick<Store, 'read' | 'close'>
}

export interface ImportStart {
  plan: ImportPlan
  target: ImportTarget
  saved: SavedImport
  checkpoint: Checkpoint
  names: PlantNames | undefined
}

type OnChunk = (
  outcomes: readonly Outcome[],
  rejections: readonly RejectedRecord[],
  importer: Importer,
) => Promise<void>

/** It may be made before the one before it is stored, so it depends on nothing that is saved. */
interface MappedChunk {
  chunk: Chunk
  /** For each record, its change, or why it is rejected. */
  mapped: readonly (MappedChange | Problem)[]
  changes: readonly MappedChange[]
  /** Of the record after the chunk. */
  nextId: bigint | undefined
}

/** Rows that are created without mapping them; if that is not possible, they are mapped. */
interface RowsAttempt {
  rows: PlainChunk
  areCreated: boolean
}

/** A chunk that is being stored. */
interface OpenChunk extends MappedChunk {
  /** What is saved about the file if one of its records got a generated id. */
  remembered: readonly CheckpointChange[]
  /** Is called while a server works on the chunk. */
  onWait: () => void
}

interface CommittedChunk {
  outcomes: readonly Outcome[]
  rejections: readonly RejectedRecord[]
  position: Position
  /** What was saved with the changes. */
  saved: readonly CheckpointChange[]
}

export class Importer {
  readonly #start: ImportStart
  readonly #onChunk: OnChunk
  readonly #io: Io
  readonly #mapperState: MapperState
  /** Undefined for an import that cannot be resumed. */
  readonly #checkpointId: string | undefined
  /** Whether an interrupted import may have sent the next chunk to a service before. */
  #mayBeSentAgain: boolean
  /** What is saved in each row that this import replaces, by the id of the row. */
  readonly #savedStates = new Map<string, string | undefined>()
  #direct: Pick<DirectStore, 'transaction'>
  #reader: OpenInput | undefined
  position: Position
  rejections = 0
  emptyRows = 0
  surplusRows = 0
  /** The sheets that have the columns, too, and are not read, with their files. */
  readonly otherSheets: { file: string; sheet: string }[] = []
  /** The headers that were not found by their names, with their files. */
  readonly guessedHeaders: { file: string; header: Header }[] = []
  /** The first row of each tab-separated file with a cell that has line ends. */
  readonly multilineRows: { file: string; line: number }[] = []
  isComplete = false
  readonly otherFields = new Set<string>()

  constructor(start: ImportStart, onChunk: OnChunk, io: Io) {
    const { plan, target, saved, checkpoint, names } = start
    const { firstId, position } = checkpoint
    this.#start = start
    this.#onChunk = onChunk
    this.#io = io
    this.#direct = target.direct
    this.#checkpointId = plan.atomic ? undefined : saved.id
    this.#mayBeSentAgain = saved.checkpoint !== undefined
    for (const { id, checkpointId } of saved.rememberedFiles)
      this.#savedStates.set(id, checkpointId)
    if (saved.id !== undefined) this.#savedStates.set(saved.id, saved.state)
    this.position = position
    this.#mapperState = {
      firstId: firstId === undefined ? undefined : BigInt(firstId),
      nextId: position.nextId === undefined ? undefined : BigInt(position.nextId),
      names,
      otherFields: this.otherFields,
    }
  }

  get isResumable(): boolean {
    return this.#checkpointId !== undefined
  }

  /** From 0 to 1; undefined if that is not known. */
  get progress(): number | undefined {
    const progressOfInput = this.#reader?.progress()
    if (progressOfInput === undefined) return undefined
    return (this.position.input + progressOfInput) / this.#start.plan.inputs.length
  }

  get isRolledBack(): boolean {
    return this.#start.plan.atomic === true && (this.rejections > 0 || !this.isComplete)
  }

  get #hasCheckpoint(): boolean {
    const id = this.#checkpointId
    return id !== undefined && this.#savedStates.get(id) !== undefined
  }

  /** @param transaction for all chunks; by default, each one has its own */
  async run(first: OpenInput, transaction?: Transaction): Promise<void> {
    const { plan, target } = this.#start
    if (transaction) this.#direct = { transaction: (work) => work(transaction) }
    // A checkpoint has the keys that are sent to a service, and what was just appended to the file.
    if (target.send || this.#hasCheckpoint) await this.#saveCheckpoint(this.position)
    for (const [index, input] of plan.inputs.entries()) {
      if (index < this.position.input) continue
      const reader = index === 0 ? first : await openInput(input, plan, this.#io)
      this.#reader = reader
      try {
        this.#assertHeader(reader, first, input.name)
        this.#recordChoices(reader, input.name)
        if (index > this.position.input)
          this.position = { ...this.position, input: index, records: 0 }
        if (!(await this.#importInput(reader, input.name))) return
      } finally {
        reader.close()
      }
    }
    this.isComplete = true
  }

  /** A rejects file has one header. */
  #assertHeader(reader: OpenInput, first: OpenInput, name: string): void {
    if (!this.position.rejects) return
    if (formatRejectsHeader(reader) === formatRejectsHeader(first)) return
    throw usageError(
      `${name} has another header, so its rejected records need a file of their own`,
      'Import it with its own command and its own --rejects file',
    )
  }

  /** Records what the reader has chosen in a file, and a person should know. */
  #recordChoices({ otherSheet, header }: OpenInput, file: string): void {
    if (header?.guessedLine !== undefined) this.guessedHeaders.push({ file, header })
    if (otherSheet !== undefined) this.otherSheets.push({ file, sheet: otherSheet })
  }

  /** Many programs write tab-separated values without quotes. A rejects file always has them. */
  #recordMultilineRow({ multilineRow }: Chunk, { delimiter, header }: OpenInput, file: string) {
    if (multilineRow === undefined || delimiter !== '\t') return
    if (this.multilineRows.at(-1)?.file === file || header?.names.some(isRejectsName)) return
    this.multilineRows.push({ file, line: multilineRow })
  }

  /** Returns false if too many records were rejected. */
  async #importInput(reader: OpenInput, file: string): Promise<boolean> {
    const { plan } = this.#start
    const chunks = new ReadAhead(this.#mapChunks(reader))
    try {
      for (;;) {
        const mapped = await chunks.read()
        if (mapped === undefined) return true
        if (this.rejections >= plan.maxErrors) return false
        if ('rows' in mapped) {
          mapped.areCreated = await this.#createRows(mapped.rows)
          await checkSignal(this.#io.handleSignals())
          continue
        }
        const { chunk } = mapped
        this.emptyRows += chunk.emptyRows
        this.surplusRows += chunk.surplusRows
        this.#recordMultilineRow(chunk, reader, file)
        if (chunk.records.length === 0) continue
        if (this.rejections >= plan.maxErrors) return false
        await this.#importChunk(mapped, chunks, reader)
        await checkSignal(this.#io.handleSignals())
      }
    } finally {
      await chunks.end()
    }
  }

  async #importChunk(
    mapped: MappedChunk,
    chunks: ReadAhead<MappedChunk | RowsAttempt>,
    reader: OpenInput,
  ): Promise<void> {
    const remembered = mapped.changes.some(({ idSource }) => isGenerated(idSource))
      ? this.#rememberFile(this.position.input)
      : []
    const open = { ...mapped, remembered, onWait: () => chunks.prepare() }
    const sent = await this.#sendToService(open)
    const committed = await this.#commitChunk(open, sent, reader)
    this.#advanceTo(committed)
    await this.#onChunk(committed.outcomes, committed.rejections, this)
    await this.#appendRejects(formatRejectsHeader(reader))
  }

  async *#mapChunks(reader: OpenInput): AsyncGenerator<MappedChunk | RowsAttempt> {
    const { plan, target, checkpoint } = this.#start
    const { records, input } = this.position
    const maxRecords = target.send ? maxRequests : maxRecordsAtOnce
    const mapper = new Mapper(plan, reader.header, this.#mapperState)
    const keyPrefix = target.send && `${checkpoint.importId}-${input}-`
    let before = records
    for await (const chunk of skipRecords(reader.chunks, records)) {
      if (chunk instanceof PlainChunk) {
        const attempt = { rows: chunk, areCreated: false }
        yield attempt
        if (attempt.areCreated) {
          before += chunk.length
          continue
        }
      }
      for (const part of chunk.split(maxRecords)) {
        const first = before
        const mapped = part.records.map((raw, index) =>
          mapper.map(raw, keyPrefix && `${keyPrefix}${first + index}`),
        )
        const changes = mapped.filter((change): change is MappedChange => !('error' in change))
        before += part.records.length
        yield { chunk: part, mapped, changes, nextId: this.#mapperState.nextId }
      }
    }
  }

  /**
   * Creates the plants of all rows, with the checkpoint behind them.
   *
   * @returns false if one of them is not created. Then nothing is stored, and `write` has to decide
   * what becomes of each.
   */
  async #createRows(rows: PlainChunk): Promise<boolean> {
    const create = async ({ createRows, saveCheckpoint }: Transaction): Promise<CommittedChunk> => {
      if (!createRows) throw new RowsRejectedError()
      await createRows(rows)
      const position = this.#movePosition(rows.length, '')
      position.counts = { ...position.counts, created: position.counts.created + rows.length }
      const saved = this.#replaceCheckpoint(position)
      for (const change of saved) await saveCheckpoint(change)
      return { outcomes: [], rejections: [], position, saved }
    }
    try {
      this.#advanceTo(await this.#direct.transaction(create, { isRepeatable: true }))
    } catch (error) {
      if (error instanceof RowsRejectedError) return false
      throw error
    }
    await this.#onChunk([], [], this)
    return true
  }

  /** The change that says which import generated ids for the records of a file. */
  #rememberFile(input: number): CheckpointChange[] {
    const { id, rememberedFiles } = this.#start.saved
    const file = rememberedFiles[input]
    return file ? this.#replaceRow(file.id, id) : []
  }

  /** Returns undefined for a direct store, which writes the changes with the checkpoint. */
  async #sendToService({ changes, remembered }: OpenChunk): Promise<Outcome[] | undefined> {
    const { send } = this.#start.target
    if (!send) return undefined
    // What is sent may be stored, even if this process ends before the answer.
    for (const change of remembered) await this.#saveRow(change)
    const isRepetition = this.#mayBeSentAgain
    this.#mayBeSentAgain = false
    return send(changes, { signal: this.#io.handleSignals(), isRepetition })
  }

  /** @param sent the outcomes at a service */
  #commitChunk(
    { chunk, mapped, changes, remembered, nextId, onWait }: OpenChunk,
    sent: Outcome[] | undefined,
    reader: OpenInput,
  ): Promise<CommittedChunk> {
    const commit = async ({ write, saveCheckpoint }: Transaction): Promise<CommittedChunk> => {
      const signal = this.#io.handleSignals()
      const outcomes = mergeOutcomes(mapped, sent ?? (await write(changes, { signal, onWait })))
      const rejections = findRejections(chunk, outcomes)
      const rejectedRows = formatRejectedRows(rejections, reader)
      const position = this.#findPositionAfter(outcomes, rejectedRows, nextId)
      const saved = [...this.#replaceCheckpoint(position), ...(sent ? [] : remembered)]
      for (const change of saved) await saveCheckpoint(change)
      return { outcomes, rejections, position, saved }
    }
    return this.#direct.transaction(commit, { isRepeatable: true })
  }

  #findPositionAfter(
    outcomes: readonly Outcome[],
    rejectedRows: string,
    nextId: bigint | undefined,
  ): Position {
    const counts = addOutcomes(this.position.counts, outcomes)
    const moved = this.#movePosition(outcomes.length, rejectedRows)
    return { ...moved, counts, nextId: nextId?.toString() }
  }

  #movePosition(records: number, rejectedRows: string): Position {
    const { position } = this
    const rejects = position.rejects && { ...position.rejects, rows: rejectedRows }
    return { ...position, records: position.records + records, rejects }
  }

  #advanceTo({ position, rejections, saved }: CommittedChunk): void {
    this.position = position
    this.rejections += rejections.length
    for (const { id, to } of saved) this.#savedStates.set(id, to)
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
        await this.#saveCheckpoint({ ...this.position, rejects: disownFile(rejects) })
      throw error
    }
    await this.#saveCheckpoint(this.position)
  }

  /** Forgets where the import is. If that fails, the same command resumes it at its end. */
  async finish(): Promise<void> {
    await this.#saveCheckpoint(undefined)
  }

  /** @param position undefined to delete the checkpoint */
  async #saveCheckpoint(position: Position | undefined): Promise<void> {
    for (const change of this.#replaceCheckpoint(position)) await this.#saveRow(change)
  }

  async #saveRow(change: CheckpointChange): Promise<void> {
    const { direct } = this.#start.target
    await direct.transaction(({ saveCheckpoint }) => saveCheckpoint(change))
    this.#savedStates.set(change.id, change.to)
  }

  #replaceCheckpoint(position: Position | undefined): CheckpointChange[] {
    const state = position && JSON.stringify({ ...this.#start.checkpoint, position })
    return this.#replaceRow(this.#checkpointId, state)
  }

  /** Returns no change of a row that has the state, or of an import that is not saved. */
  #replaceRow(id: string | undefined, to: string | undefined): CheckpointChange[] {
    if (id === undefined) return []
    const from = this.#savedStates.get(id)
    return from === to ? [] : [{ id, from, to }]
  }
}

/** Sending so many takes less than a second. */
const maxRequests = 500
/** An invalid record of one byte takes hundreds of bytes. */
const maxRecordsAtOnce = 24_000

/** Returns an outcome for each record. */
function mergeOutcomes(
  mapped: readonly (MappedChange | Problem)[],
  outcomes: readonly Outcome[],
): Outcome[] {
  const remaining = outcomes.values()
  return mapped.map((change) => {
    if ('error' in change) return createRejectedOutcome(change)
    const outcome = assertDefined(remaining.next().value)
    assertAnswered(outcome)
    return outcome
  })
}

/** Throws why a service was not asked, or if what is at the address is no Plant Store. */
function assertAnswered(outcome: Outcome): void {
  if (outcome.type === 'notSent' || isOfAnyRecord(outcome)) throw toError(outcome.error)
}

/** Whether each other record would fare the same: a hint says what must change first. */
function isOfAnyRecord(outcome: Outcome): outcome is Extract<Outcome, { error: Problem }> {
  if (outcome.type !== 'unknown') return false
  return outcome.error.kind === 'badResponse' || outcome.error.hint !== undefined
}

function findRejections({ records, lines }: Chunk, outcomes: readonly Outcome[]): RejectedRecord[] {
  const rejections: RejectedRecord[] = []
  for (const [index, outcome] of outcomes.entries()) {
    if (!('error' in outcome)) continue
    const { kind, error, message } = outcome.error
    rejections.push({
      line: assertDefined(lines[index]),
      raw: assertDefined(records[index]),
      kind,
      error,
      message,
    })
  }
  return rejections
}

function addOutcomes(before: Counts, outcomes: readonly Outcome[]): Counts {
  const counts = { ...before, rejected: { ...before.rejected } }
  for (const outcome of outcomes) {
    const { type } = outcome
    if (type === 'rejected') {
      const { error } = outcome.error
      counts.rejected[error] = (counts.rejected[error] ?? 0) + 1
    } else if (type === 'updated' && outcome.before) {
      counts[haveEqualFields(outcome.plant, outcome.before) ? 'skipped' : 'updated'] += 1
    } else if (type !== 'notSent' && type !== 'deleted') counts[type] += 1
  }
  return counts
}
