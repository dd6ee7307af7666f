import { plantColumns, plantParameters, textNames } from '../../plant/fields.js'
import { largestId, type PlantPatch, patchedPlant, valuesOf } from '../../plant/plant.js'
import { isText, missingText, type PlantRows } from '../../plant/rows.js'
import { type Clock, checkSignal } from '../../platform/clock.js'
import { must } from '../../platform/values.js'
import {
  comparesPlants,
  incompletePlant,
  type OnConflict,
  Outcome,
  policyFor,
  resolveRecord,
} from '../common/conflict.js'
import type { Batch, CreateManyOptions } from '../common/store.js'
import { findPlant } from './select.js'
import type { Connection } from './sqlite-connection.js'
import { columnsOf, toPlant, updatePlant } from './sqlite-schema.js'

/**
 * Creates the rows in the order of the batch, in a transaction that the caller begins, and rolls back on any error.
 * Throws the reason of `stop`: rows that exist take ten times as long as new ones.
 */
export async function createRows(connection: Connection, batch: Batch, options: CreateManyOptions): Promise<void> {
  const order = batch.order ?? Uint32Array.from({ length: batch.rows.length }, (_, row) => row)
  for (let from = 0; from < order.length; from += rowsAtOnce) {
    const rows = order.subarray(from, from + rowsAtOnce)
    if (createTogether(connection, batch, rows)) continue
    for (let at = 0; at < rows.length; at += rowsAtOneTurn) {
      await checkSignal(options.stop)
      if (createEach(connection, batch, rows.subarray(at, at + rowsAtOneTurn), options)) return
    }
  }
}

/** All or none: an id that exists is a conflict, and so is a NULL in a required column. */
function createTogether(connection: Connection, { rows, outcomes }: Batch, order: Uint32Array): boolean {
  const countChanges = () => Number(connection.prepare('SELECT total_changes() AS changes').get()?.['changes'])
  const before = countChanges()
  if (!connection.db.applyChangeset(changesetOf(rows, order), { onConflict: () => SQLITE_CHANGESET_ABORT }))
    return false
  if (countChanges() - before !== order.length) throw new Error('SQLite applied a changeset only in part')
  for (const row of order) outcomes[row] = Outcome.created
  return true
}

/** Returns true when a rejected row ends the batch. */
function createEach(
  connection: Connection,
  { rows, outcomes, rejections }: Batch,
  order: Uint32Array,
  options: CreateManyOptions,
): boolean {
  const compares = comparesPlants(policyFor(largestId, options))
  const find = connection.prepare(`SELECT ${compares ? plantColumns : '1'} FROM plants WHERE id = ?`)
  const read = compares ? toPlant : () => true as const
  for (const row of order) {
    const patch = rows.at(row)
    const existing = find.get(patch.id)
    const { outcome, plant } = resolveRecord(options, patch, existing && read(existing))
    outcomes[row] = outcome
    if (outcome === Outcome.rejected) rejections.set(row, incompletePlant(patch))
    if (plant && outcome === Outcome.created) connection.prepare(insertPlant).run(...valuesOf(plant))
    if (plant && outcome === Outcome.updated) connection.prepare(updatePlant).run(...valuesOf(plant))
    if (options.stopsAtReject && outcome >= Outcome.exists) return true
  }
  return false
}

/**
 * Encodes rows as a changeset of inserts (https://sqlite.org/session/sqlite3changeset_apply.html; for the format, see
 * SQLite's ext/session/sqlite3session.c). An import takes a third less time than with the fastest statement.
 */
function changesetOf(rows: PlantRows, order: Uint32Array): Uint8Array {
  let size = header.length
  for (const row of order) size += maxRowOverhead + rows.sizeAt(row)
  const bytes = Buffer.allocUnsafeSlow(size)
  let at = header.copy(bytes)
  for (const row of order) at = writeRow(bytes, at, rows, row)
  return bytes.subarray(0, at)
}

/**
 * In a transaction that the caller begins, and rolls back on any error. Yields to the event loop, and throws the reason
 * of the signal.
 */
export async function createAll(
  connection: Connection,
  { now, signal }: Clock,
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
  if (plant && Number(connection.prepare(insertNewPlant).run(...valuesOf(plant)).changes) === 1) return
  const existing = findPlant(connection, 'id', patch.id)
  const changed = onConflict(patch, existing) ? patchedPlant(patch, existing) : undefined
  if (changed) connection.prepare(updatePlant).run(...valuesOf(changed))
}

const insertPlant = `INSERT INTO plants (${plantColumns}) VALUES (${plantParameters})`
const insertNewPlant = `${insertPlant} ON CONFLICT DO NOTHING`

/** milliseconds of `createAll` between two turns of the event loop */
const maxStep = 10

/** rows per changeset; if one cannot be created, they are inserted one by one */
const rowsAtOnce = 4096

/** a few milliseconds of `createEach` */
const rowsAtOneTurn = 256

const SQLITE_CHANGESET_ABORT = 2

/** Each of these returns where the next bytes go. */
function writeRow(bytes: Uint8Array, start: number, rows: PlantRows, row: number): number {
  const [high, low] = [must(rows.idHigh[row]), must(rows.idLow[row])]
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
    const column = rows.texts[index] // none for the idempotency key
    const from = column ? must(column.start[row]) : missingText
    if (!column || !isText(from)) bytes[at++] = nothing
    else at = writeText(bytes, at, rows, from, must(column.end[row]))
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
  for (let index = from - base; index < to - base; index += 1) bytes[at++] = must(source[index])
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

/** The index in `textNames` of each column after the id; -1 for the idempotency key, which no row has. */
const textIndexes = columns.slice(1).map((column) => (textNames as readonly string[]).indexOf(column))

/** "T", the number of columns, a primary key flag for each, and the name of the table. */
const primaryKey = `\x01${'\0'.repeat(columns.length - 1)}`
const header = Buffer.from(`T${String.fromCharCode(columns.length)}${primaryKey}plants\0`, 'latin1')

const insert = 18
const integer = 1
const text = 3
const nothing = 5

/** the maximum bytes of a row in addition to its texts */
const maxRowOverhead = 20 + 6 * textNames.length
