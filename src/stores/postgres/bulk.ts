import { textFields } from '../../plant/fields.js'
import { equalFields, type Plant } from '../../plant/plant.js'
import { noText, type PlantRows } from '../../plant/rows.js'
import type { PlantsError } from '../../platform/errors.js'
import { comparesPlants, Outcome, resolveConflict } from '../conflict.js'
import type { Batch, CreateManyOptions } from '../store.js'
import type { Connection, Rows } from './connection.js'
import { divisionByZero, explainDatabase, isRefusal, LeftOutError, lostCommit, mayPass, mostInVain, sqlState } from './failure.js'
import { pause } from './retry.js'
import { checkServer } from './server-state.js'
import type { Use } from './session.js'
import {
  barrierStatement,
  copyStatement,
  durabilityCheck,
  getManyStatement,
  insertStatement,
  keepStatement,
  newAttempt,
  toPlant,
  updateStatement,
} from './sql.js'

/** Creates the rows of a batch that are pending, some thousands in a transaction. */
export async function createRows(use: Use, batch: Batch, options: CreateManyOptions): Promise<void> {
  const work: Work = { use, batch, options, meetsOthers: false }
  for (let rank = 0; rank < batch.rows.length && !options.stop.aborted; ) {
    const { rows, next } = nextRows(batch, rank)
    rank = next
    if (rows.length === 0) continue
    const isEnd = await createSome(work, rows)
    options.onProgress()
    if (isEnd) return
  }
}

/** bytes of texts, and rows, of a transaction: about a tenth of a second */
const bytesAtOnce = 4_194_304
const rowsAtOnce = 65_536

function nextRows({ rows: plants, order, outcomes }: Batch, from: number) {
  const rows: number[] = []
  let bytes = 0
  let rank = from
  for (; rank < plants.length && rows.length < rowsAtOnce && bytes < bytesAtOnce; rank += 1) {
    const row = order?.[rank] ?? rank
    if (outcomes[row] !== Outcome.pending) continue
    rows.push(row)
    bytes += plants.sizeAt(row)
  }
  return { rows, next: rank }
}

/** Creates rows, again for as long as what fails may pass. True when one was refused that ends it, or when it was told to stop. */
async function createSome(work: Work, rows: number[]): Promise<boolean> {
  const { account, pool, options } = work.use
  const { stop } = work.options
  const attempts: bigint[] = []
  const turn = { deadline: options.clock.now() + options.timeout, signal: stop }
  for (let tries = 0; ; tries += 1) {
    try {
      return await pool.own(turn, (connection) => new Transaction(work, rows, { connection, attempts }).run())
    } catch (error) {
      for (const row of rows) work.batch.outcomes[row] = Outcome.pending
      if (stop.aborted && attempts.length === 0) return true
      const isOver = stop.aborted || options.clock.now() >= turn.deadline
      if (isOver || !mayPass(error)) throw failureOf(error, attempts, account)
    }
    await pause(tries, options.clock)
  }
}

/** What is told: rows that were sent under an attempt may be stored. */
function failureOf(error: unknown, attempts: bigint[], account: Use['account']): PlantsError {
  return attempts.length > 0 ? lostCommit(account.address, error) : explainDatabase(error, account)
}

/** Rows that are to be created, and what is known of the place that they go to. */
export interface Work {
  use: Use
  batch: Batch
  options: CreateManyOptions
  /** whether ids were taken the last time, so that it is worth to look first */
  meetsOthers: boolean
}

export interface Place {
  connection: Connection
  /** the marks under which rows were sent, and may have been stored */
  attempts: bigint[]
}

/**
 * Creates rows together with the position of their import. They are copied, which is by far the fastest, and which takes all of them or none;
 * where ids are taken, those are looked up first, and the rest is copied.
 */
export class Transaction {
  readonly #work: Work
  #rows: number[]
  readonly #place: Place
  /** rows that replace plants with the next commit */
  #updated: number[] = []
  /** whether the last of the rows was refused, and that ends it */
  #isEnd = false

  constructor(work: Work, rows: number[], place: Place) {
    this.#work = work
    this.#rows = rows
    this.#place = place
  }

  /**
   * Notes what became of each row.
   *
   * @returns true when one was refused that ends it
   * @throws when nothing was stored because the server refused it; or when the connection was lost: then `attempts` holds the mark of it
   */
  async run(): Promise<boolean> {
    if (!this.#work.meetsOthers && this.#place.attempts.length === 0 && (await this.#tryCopy(this.#rows))) return false
    const first = await this.#settleSome()
    if (first.length === 0 || (await this.#tryCopy(first))) return this.#isEnd
    for (let before = Infinity, inVain = 0; ; ) {
      const left = await this.#settleSome()
      inVain += Number(left.length === before)
      if (inVain === mostInVain) throw new LeftOutError(this.#work.use.account.address)
      before = left.length
      if (before === 0 || (await this.#insert(left))) return this.#isEnd
    }
  }

  /** Creates all rows, or none because an id is taken: then false. */
  async #tryCopy(rows: number[]): Promise<boolean> {
    const { connection } = this.#place
    const { use } = this.#work
    return this.#attempt(rows, async (attempt) => {
      await connection.copy(copyStatement, copyData(this.#work.batch.rows, rows, attempt))
      await connection.query(durabilityCheck(use.options.allowAsyncCommit)) // after which it is known what became of the copy
      if (connection.copied !== rows.length) throw new LeftOutError(use.account.address)
      await this.#commit(rows)
      return true
    })
  }

  /** Creates those rows whose id is free; where that are not all, false. It says why when rows cannot be created for another reason. */
  async #insert(rows: number[]): Promise<boolean> {
    const { connection } = this.#place
    const entries = rows.map((row) => ({ plant: this.#work.batch.rows.at(row), key: undefined, row }))
    entries.sort((a, b) => (a.plant.id < b.plant.id ? -1 : 1))
    return this.#attempt(rows, async (attempt) => {
      await connection.query('BEGIN')
      const created = new Set((await connection.query(insertStatement(entries, attempt, true))).map(([id]) => id))
      const areAll = created.size === rows.length
      const mayBeSome = !this.#work.options.stopsAtReject && this.#updated.length === 0 // which are for those that are created
      if (areAll || (created.size > 0 && mayBeSome))
        await this.#commit(entries.filter(({ plant }) => created.has(String(plant.id))).map(({ row }) => row))
      else await this.#undo(attempt)
      return areAll
    })
  }

  async #attempt(rows: number[], create: (attempt: bigint) => Promise<boolean>): Promise<boolean> {
    const { connection, attempts } = this.#place
    const attempt = newAttempt()
    attempts.push(attempt)
    try {
      return await create(attempt)
    } catch (error) {
      for (const row of rows) this.#work.batch.outcomes[row] = Outcome.pending
      if (!isRefusal(error) && !(error instanceof LeftOutError)) throw error
      await this.#undo(attempt)
      if (sqlState(error) === divisionByZero) await checkServer(connection, this.#work.use.account.address, this.#work.use.options)
      if (conflicts.has(sqlState(error) ?? '')) return false
      throw error
    }
  }

  /** Rolls back, so that nothing is stored under a mark. */
  async #undo(attempt: bigint): Promise<void> {
    const { connection, attempts } = this.#place
    const index = attempts.indexOf(attempt)
    if (index >= 0) attempts.splice(index, 1)
    await connection.rollBack()
  }

  /** Commits rows and the position that holds them. In a transaction that the server has given up, this fails. */
  async #commit(rows: number[]): Promise<void> {
    const { batch, options, use } = this.#work
    for (const row of rows) batch.outcomes[row] = Outcome.created
    const last = new Map(this.#updated.map((row) => [batch.rows.idAt(row), batch.rows.at(row)])) // of those with the same id
    const checkpoint = options.checkpoint?.()
    const statements = [
      durabilityCheck(use.options.allowAsyncCommit),
      last.size > 0 ? updateStatement([...last.values()]) : [],
      checkpoint ? keepStatement(checkpoint) : [],
      'COMMIT',
    ]
    await this.#place.connection.query(statements.flat().join('; '))
    this.#updated = []
  }

  /** Commits what there is besides rows that are created. */
  async #keep(): Promise<void> {
    const { connection } = this.#place
    if (this.#updated.length > 0) {
      await this.#attempt([], async () => {
        await connection.query('BEGIN')
        await this.#commit([])
        return true
      })
      return
    }
    const checkpoint = this.#work.options.checkpoint?.()
    if (checkpoint) await connection.query(keepStatement(checkpoint))
  }

  /** As `#settle`, and commits the rest when nothing is left to be created. */
  async #settleSome(): Promise<number[]> {
    const left = await this.#settle()
    this.#work.meetsOthers = left.length < this.#rows.length
    if (left.length === 0) await this.#keep()
    return left
  }

  /** Looks up which ids are taken, and notes what that means for their rows. Gives what is left to be created. */
  async #settle(): Promise<number[]> {
    const { batch, options } = this.#work
    for (const row of this.#updated.splice(0)) batch.outcomes[row] = Outcome.pending // which was not committed
    const pending = this.#rows.filter((row) => batch.outcomes[row] === Outcome.pending)
    const there = await this.#lookUp(pending)
    const left: number[] = []
    for (const row of pending) {
      const id = String(batch.rows.idAt(row))
      const old = there.get(id)
      const plant = comparesPlants(options.ifExists) ? batch.rows.at(row) : undefined
      const outcome = outcomeOf(plant, old, options.ifExists)
      there.set(id, { isOurs: false, plant: outcome === Outcome.skipped || outcome === Outcome.taken ? old?.plant : plant })
      if (!old) left.push(row)
      batch.outcomes[row] = outcome
      if (outcome === Outcome.updated) this.#updated.push(row)
      if (options.stopsAtReject && outcome === Outcome.taken) {
        this.#endWith(row)
        break
      }
    }
    return left
  }

  /** Leaves out what comes behind a row, also the next time that it is looked which ids are taken. */
  #endWith(row: number): void {
    const end = this.#rows.indexOf(row) + 1
    for (const later of this.#rows.slice(end)) this.#work.batch.outcomes[later] = Outcome.pending
    this.#rows = this.#rows.slice(0, end)
    this.#isEnd = true
  }

  /** By their ids. What a commit has stored whose answer was lost may not be on the standbys yet: what is written behind it waits for both. */
  async #lookUp(rows: number[]): Promise<Map<string, Found>> {
    const { connection, attempts } = this.#place
    const ids = rows.map((row) => this.#work.batch.rows.idAt(row))
    const found = await connection.query(getManyStatement(ids, comparesPlants(this.#work.options.ifExists)))
    const there = new Map(found.map((row) => [row[0] ?? '', foundIn(row, attempts)]))
    if ([...there.values()].some(({ isOurs }) => isOurs)) await connection.query(barrierStatement())
    return there
  }
}

/** A plant whose id is taken: by one of the table, or by a row before it. */
interface Found {
  /** it is the very row, stored by a commit whose answer was lost */
  isOurs: boolean
  /** where it counts what it is */
  plant: Plant | undefined
}

function foundIn(row: Rows[number], attempts: bigint[]): Found {
  const attempt = row.at(-1)
  const plant = row[1] == null ? undefined : toPlant(row)
  return { isOurs: attempts.some((each) => String(each) === attempt), plant }
}

/** What a row counts as, whose id is free or was given to another plant. */
function outcomeOf(plant: Found['plant'], old: Found | undefined, policy: CreateManyOptions['ifExists']): number {
  if (!old) return Outcome.pending
  if (old.isOurs) return Outcome.created
  return resolveConflict(policy, () => plant !== undefined && old.plant !== undefined && equalFields(plant, old.plant))
}

/** An id is taken; and what is said of a transaction that was given up, when the driver has not told why. */
const conflicts = new Set(['23505', '25P02'])

/**
 * Writes rows as the statement COPY takes them in its binary format, with the columns id, attempt, and the texts
 * (https://www.postgresql.org/docs/current/sql-copy.html#id-1.9.3.55.9.4), in pieces: the server takes in the first while the next is written.
 */
export function* copyData(rows: PlantRows, which: number[], attempt: bigint): Generator<Uint8Array> {
  yield header
  for (let from = 0; from < which.length; from += rowsInPiece) yield pieceOf(rows, which.slice(from, from + rowsInPiece), attempt)
  yield trailer
}

/** of about 50 bytes each */
const rowsInPiece = 1024

function pieceOf(rows: PlantRows, which: number[], attempt: bigint): Uint8Array {
  const bytes = Buffer.allocUnsafeSlow(sizeOf(rows, which))
  let at = 0
  for (const row of which) {
    bytes.writeUInt16BE(2 + textFields.length, at)
    bytes.writeUInt32BE(8, at + 2)
    bytes.writeInt32BE(rows.idHigh[row] ?? 0, at + 6)
    bytes.writeUInt32BE(rows.idLow[row] ?? 0, at + 10)
    bytes.writeUInt32BE(8, at + 14)
    bytes.writeBigInt64BE(attempt, at + 18)
    at += 26
    for (const { start, end } of rows.texts) {
      const from = start[row] ?? noText
      at = from === noText ? bytes.writeInt32BE(-1, at) : writeText(bytes, at, rows, from, end[row] ?? 0)
    }
  }
  return bytes.subarray(0, at)
}

/** How many bytes rows take, at most. */
function sizeOf(rows: PlantRows, which: number[]): number {
  let size = 0
  for (const row of which) size += 26 + 4 * textFields.length + rows.sizeAt(row)
  return size
}

function writeText(bytes: Buffer, start: number, rows: PlantRows, from: number, to: number): number {
  const base = from >= rows.bytes.length ? rows.bytes.length : 0
  const source = from >= rows.bytes.length ? rows.decoded : rows.bytes
  const at = bytes.writeUInt32BE(to - from, start)
  if (to - from > 64) bytes.set(source.subarray(from - base, to - base), at)
  else for (let index = 0; index < to - from; index += 1) bytes[at + index] = source[from - base + index] ?? 0
  return at + to - from
}

const header = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1')
const trailer = Buffer.from([0xff, 0xff])
