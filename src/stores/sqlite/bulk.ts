import { plantColumns, plantParameters, textFields } from '../../plant/fields.js'
import { type PlantPatch, patchedPlant, valuesOf } from '../../plant/plant.js'
import { isText, missingText, type PlantRows } from '../../plant/rows.js'
import { type Clock, checkSignal } from '../../platform/clock.js'
import { comparesPlants, incompletePlant, type OnConflict, Outcome, type Resolution, resolveRecord } from '../common/conflict.js'
import type { Batch, CreateManyOptions } from '../common/store.js'
import type { Connection } from './connection.js'
import { columnsOf, toPlant, updatePlant } from './schema.js'
import { findPlant } from './select.js'

type Policy = Pick<CreateManyOptions, 'ifExists' | 'stopsAtReject'>

/** Creates rows inside a transaction that the caller begins and commits. */
export class ChangesetWriter {
  readonly #connection: Connection
  readonly #clock: Pick<Clock, 'now'>
  #buffer = Buffer.alloc(0)

  constructor(connection: Connection, clock: Pick<Clock, 'now'>) {
    this.#connection = connection
    this.#clock = clock
  }

  /**
   * Creates rows in the order of the batch, as many as fit in a transaction, and sets their outcomes.
   *
   * @returns the rank of the next row; the number of rows when there is none, or when a rejected row ends the batch
   */
  run(batch: Batch, from: number, policy: Policy): number {
    const end = this.#clock.now() + maxTurn
    let rank = from
    while (rank < batch.rows.length && this.#clock.now() < end) {
      const range = { from: rank, to: Math.min(rank + rowsAtOnce, batch.rows.length) }
      if (!this.#createAll(batch, range) && this.#createEach(batch, range, policy)) return batch.rows.length
      rank = range.to
    }
    return rank
  }

  /**
   * Creates all rows of a range, or none: an id that exists is a conflict, and so is a text that is NULL but required.
   */
  #createAll({ rows, order, outcomes }: Batch, range: Range): boolean {
    for (let rank = range.from; rank < range.to; rank += 1) if (outcomes[rowAt(order, rank)] !== Outcome.pending) return false
    const before = this.#changes()
    if (!this.#connection.db.applyChangeset(this.#changesetOf(rows, order, range), { onConflict: () => SQLITE_CHANGESET_ABORT }))
      return false
    if (this.#changes() - before !== BigInt(range.to - range.from)) throw new Error('SQLite applied a changeset only in part')
    for (let rank = range.from; rank < range.to; rank += 1) outcomes[rowAt(order, rank)] = Outcome.created
    return true
  }

  /** Creates a range of rows one by one. Returns true when a rejected row ends the batch. */
  #createEach({ rows, order, outcomes, rejections }: Batch, { from, to }: Range, { ifExists, stopsAtReject }: Policy): boolean {
    const find = this.#connection.prepare(`SELECT ${comparesPlants(ifExists) ? plantColumns : '1'} FROM plants WHERE id = ?`)
    const read = comparesPlants(ifExists) ? toPlant : () => true as const
    for (let rank = from; rank < to; rank += 1) {
      const row = rowAt(order, rank)
      if (outcomes[row] !== Outcome.pending) continue
      const patch = rows.at(row)
      const existing = find.get(patch.id)
      const resolution = resolveRecord(ifExists, patch, existing && read(existing))
      outcomes[row] = resolution.outcome
      if (resolution.outcome === Outcome.rejected) rejections.set(row, incompletePlant(patch))
      this.#write(resolution)
      if (stopsAtReject && resolution.outcome >= Outcome.exists) return true
    }
    return false
  }

  #write({ outcome, plant }: Resolution): void {
    if (plant && outcome === Outcome.created) this.#connection.prepare(insertPlant).run(...valuesOf(plant))
    if (plant && outcome === Outcome.updated) this.#connection.prepare(updatePlant).run(...valuesOf(plant))
  }

  /**
   * Encodes rows as a changeset of inserts (https://sqlite.org/session/sqlite3changeset_apply.html; the format is described in SQLite's
   * ext/session/sqlite3session.c). SQLite applies it in one call, which is faster than any statement with values.
   *
   * @returns bytes that are valid until the next call
   */
  #changesetOf(rows: PlantRows, order: Uint32Array | undefined, { from, to }: Range): Uint8Array {
    let size = header.length
    for (let rank = from; rank < to; rank += 1) size += maxRowOverhead + rows.sizeAt(rowAt(order, rank))
    if (size > this.#buffer.length) this.#buffer = Buffer.allocUnsafeSlow(2 * size)
    let at = header.copy(this.#buffer)
    for (let rank = from; rank < to; rank += 1) at = writeRow(this.#buffer, at, rows, rowAt(order, rank))
    return this.#buffer.subarray(0, at)
  }

  #changes(): bigint {
    return BigInt(this.#connection.prepare('SELECT total_changes() AS changes').get()?.['changes'] as bigint) // a number in SQL
  }
}

/**
 * Creates and changes plants inside a transaction that the caller begins, and rolls back on any error. Yields to the
 * event loop every few milliseconds, and throws the reason of the signal.
 */
export async function createAll(
  connection: Connection,
  { now, signal }: Pick<Clock, 'now' | 'signal'>,
  pages: Iterable<PlantPatch[]>,
  onConflict: OnConflict,
): Promise<void> {
  let end = now() + maxStep
  for (const page of pages) {
    for (const patch of page) {
      writePatch(connection, patch, onConflict)
      if (now() < end) continue
      await checkSignal(signal)
      end = now() + maxStep
    }
  }
  await checkSignal(signal)
}

function writePatch(connection: Connection, patch: PlantPatch, onConflict: OnConflict): void {
  const plant = patchedPlant(patch)
  if (plant && Number(connection.prepare(`${insertPlant} ON CONFLICT DO NOTHING`).run(...valuesOf(plant)).changes) === 1) return
  const existing = findPlant(connection, 'id', patch.id)
  const changed = onConflict(patch, existing) ? patchedPlant(patch, existing) : undefined
  if (changed) connection.prepare(updatePlant).run(...valuesOf(changed))
}

const insertPlant = `INSERT INTO plants (${plantColumns}) VALUES (${plantParameters})`

type Range = Record<'from' | 'to', number>

function rowAt(order: Uint32Array | undefined, rank: number): number {
  return order ? (order[rank] ?? 0) : rank
}

/** milliseconds of `createAll` between two turns of the event loop */
const maxStep = 10

/** milliseconds for the inserts of a transaction; with its commit, it takes at most 50 */
const maxTurn = 40

/** rows per changeset; if one of them cannot be created, all of them are inserted one by one */
const rowsAtOnce = 4096

const SQLITE_CHANGESET_ABORT = 2

/** Each of these returns where the next bytes go. */
function writeRow(bytes: Uint8Array, start: number, rows: PlantRows, row: number): number {
  const high = rows.idHigh[row] ?? 0
  const low = rows.idLow[row] ?? 0
  bytes[start] = insert
  bytes[start + 1] = 0
  bytes[start + 2] = integer
  // The methods of Buffer take several times as long.
  bytes[start + 3] = high >>> 24
  bytes[start + 4] = high >>> 16
  bytes[start + 5] = high >>> 8
  bytes[start + 6] = high
  bytes[start + 7] = low >>> 24
  bytes[start + 8] = low >>> 16
  bytes[start + 9] = low >>> 8
  bytes[start + 10] = low
  let at = start + 11
  for (const index of textIndexes) {
    const column = rows.texts[index]
    const from = column?.start[row] ?? missingText
    if (!isText(from)) bytes[at++] = nothing
    else at = writeText(bytes, at, rows, from, column?.end[row] ?? 0)
  }
  return at
}

function writeText(bytes: Uint8Array, start: number, rows: PlantRows, from: number, to: number): number {
  const base = from >= rows.bytes.length ? rows.bytes.length : 0
  const source = from >= rows.bytes.length ? rows.decoded : rows.bytes
  bytes[start] = text
  let at = writeLength(bytes, start + 1, to - from)
  if (to - from > 64) {
    bytes.set(source.subarray(from - base, to - base), at)
    return at + to - from
  }
  for (let index = from - base; index < to - base; index += 1) bytes[at++] = source[index] ?? 0
  return at
}

/** SQLite's varint: big-endian, seven bits per byte. */
function writeLength(bytes: Uint8Array, start: number, length: number): number {
  let at = start
  for (let shift = length < 128 ? 0 : 28; shift > 0; shift -= 7) {
    if (length >= 2 ** shift) bytes[at++] = ((length >>> shift) & 0x7f) | 0x80
  }
  bytes[at] = length & 0x7f
  return at + 1
}

const columns = columnsOf('plants')

/** The index in `textFields` of each column after the id, in the order of the table; -1 for the idempotency key, which no row has. */
const textIndexes = columns.slice(1).map((column) => textFields.findIndex(({ name }) => name === column))

/** "T", the number of columns, a primary key flag for each, and the name of the table. */
const header = Buffer.from(`T${String.fromCharCode(columns.length)}\x01${'\0'.repeat(columns.length - 1)}plants\0`, 'latin1')

const insert = 18
const integer = 1
const text = 3
const nothing = 5

/** the maximum bytes of a row in addition to its texts */
const maxRowOverhead = 20 + 6 * textFields.length
