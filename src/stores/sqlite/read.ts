/**
 * Lists come in steps of at most 1000 rows and 256 KiB of text, or of one plant that is larger, between which the event
 * loop turns. Before each, SQLite adds up the sizes of the rows, whether they match a filter or not: that needs a tenth
 * of the time of reading them. (To iterate over a statement until there is enough takes 1.7 times as long as `all`.)
 *
 * Search and sort compare texts as `foldText` makes them. SQLite does so itself for those in ASCII, because to call
 * JavaScript for each row takes several times as long.
 */
import {
  largestId,
  plantFrom,
  type StoredPlant,
  smallestId,
  textLength,
} from '../../plant/plant.js'
import type { CountQuery, ReadQuery } from '../common/query.js'
import { foldText } from '../common/search.js'
import { type Connection, foldFunction } from './connection.js'
import { StoreDamageError } from './errors.js'

const stepRows = 1000
const stepBytes = 262_144

export function findPlant(
  connection: Connection,
  column: 'id' | 'idempotency_key',
  value: bigint | string,
): StoredPlant | undefined {
  const select = `SELECT id, name, tag FROM plants WHERE ${column} = ?`
  const row = connection.prepare(select).get(value)
  return row && toPlant(row)
}

/** Another program may have written what a STRICT table does not allow. */
function toPlant(row: unknown): StoredPlant {
  const [id, name, tag] = row as unknown[]
  if (
    typeof id !== 'bigint' ||
    typeof name !== 'string' ||
    !(tag === null || typeof tag === 'string')
  )
    throw new StoreDamageError(`plant ${id} has a value of another type`)
  return plantFrom(id, name, tag)
}

/** What is sorted by a text is one statement: a transaction must hold its moment. */
export function readPlants(
  connection: Connection,
  query: ReadQuery,
): AsyncGenerator<StoredPlant[]> {
  const isById = query.sort === undefined || query.sort === 'id'
  return isById ? readById(connection, query) : readByText(connection, query)
}

async function* readById(connection: Connection, query: ReadQuery): AsyncGenerator<StoredPlant[]> {
  const { after, limit = Infinity, desc = false, signal } = query
  const { sql, values } = filterOf(query)
  const select = `SELECT id, name, tag FROM plants WHERE id BETWEEN ? AND ? ${sql}
    ORDER BY id ${orderOf(query)} LIMIT ?`
  let [first, last] = [smallestId, largestId]
  if (after !== undefined && desc) last = after - 1n
  else if (after !== undefined) first = after + 1n
  for (let left = limit; left > 0 && first <= last; ) {
    signal?.throwIfAborted()
    const rows = Math.min(left, stepRows)
    const step = await connection.retry(() => {
      const end = endOfStep(connection, first, last, sql === '' ? rows : stepRows, desc)
      if (end === undefined) return undefined
      const range = desc ? [end, last] : [first, end]
      const found = connection.prepare(select).all(...range, ...values, rows)
      return { end, plants: inOrder(found.map(toPlant), desc) }
    })
    if (!step) return
    if (step.plants.length > 0) yield step.plants
    left -= step.plants.length
    if (desc) last = step.end - 1n
    else first = step.end + 1n
    await new Promise(setImmediate)
  }
}

/** A corrupt tree can lead back to one of its pages. */
function inOrder(plants: StoredPlant[], desc: boolean): StoredPlant[] {
  let before: bigint | undefined
  for (const { id } of plants) {
    if (before !== undefined && (desc ? id >= before : id <= before))
      throw new StoreDamageError(`the id ${id} is out of order`)
    before = id
  }
  return plants
}

/** The last id of a step; undefined if there is no row left. */
function endOfStep(
  connection: Connection,
  first: bigint,
  last: bigint,
  maxRows: number,
  desc: boolean,
): bigint | undefined {
  const sizes = `SELECT id, octet_length(name) + ifnull(octet_length(tag), 0) AS size FROM plants
    WHERE id BETWEEN ? AND ? ORDER BY id ${orderOf({ desc })} LIMIT ?`
  const select = `SELECT ${desc ? 'min' : 'max'}(id), sum(size) FROM (${sizes})`
  for (let rows = maxRows; ; ) {
    const [end, bytes]: StepRow = connection.prepare(select).get(first, last, rows)
    if (end === null) return undefined
    if (rows === 1 || Number(bytes) <= stepBytes) {
      // Otherwise the steps may have no end.
      if (end < first || end > last) throw new StoreDamageError(`the id ${end} is out of order`)
      return end
    }
    rows = Math.max(1, Math.min(rows - 1, Math.floor((rows * stepBytes) / Number(bytes))))
  }
}

/** Of aggregates, which give one row. */
type StepRow = [end: bigint | null, bytes: bigint | null]

async function* readByText(
  connection: Connection,
  query: ReadQuery,
): AsyncGenerator<StoredPlant[]> {
  const { after, limit, sort, signal } = query
  const { sql, values } = filterOf(query)
  const order = orderOf(query)
  // Even with LIMIT -1, SQLite would sort into a b-tree, which takes twice the time.
  const select = `SELECT id, name, tag FROM plants WHERE ${after === undefined ? '?' : 'id > ?'} ${sql}
    ORDER BY ${sort} IS NULL, ${foldedSql(`${sort}`)} ${order}, ${sort} ${order}, id
    ${limit === undefined ? '' : `LIMIT ${limit}`}`
  const rows = connection.prepare(select).iterate(after ?? 1, ...values)
  for (;;) {
    signal?.throwIfAborted()
    const plants = await connection.retry(() => nextStep(rows))
    if (plants.length === 0) return
    yield plants
    await new Promise(setImmediate)
  }
}

function nextStep(rows: Iterator<unknown>): StoredPlant[] {
  const plants: StoredPlant[] = []
  for (let bytes = 0; plants.length < stepRows && bytes < stepBytes; ) {
    const { value, done } = rows.next()
    if (done) break
    const plant = toPlant(value)
    plants.push(plant)
    bytes += textLength(plant)
  }
  return plants
}

export function countPlants(connection: Connection, query: CountQuery = {}): Promise<bigint> {
  const { sql, values } = filterOf(query)
  const select = `SELECT count(*) FROM plants WHERE true ${sql}`
  return connection.retry(() => {
    const [count]: [bigint] = connection.prepare(select).get(...values)
    return count
  })
}

/** To append to a condition; empty for all plants. */
function filterOf({ tag, search }: CountQuery): { sql: string; values: string[] } {
  const conditions: string[] = []
  const values: string[] = []
  if (tag === false) conditions.push('AND tag IS NULL')
  if (typeof tag === 'string') {
    conditions.push('AND tag = ?')
    values.push(tag)
  }
  if (search !== undefined) {
    conditions.push(`AND (instr(${foldedSql('name')}, ?) OR instr(${foldedSql('tag')}, ?))`)
    values.push(foldText(search), foldText(search))
  }
  return { sql: conditions.join(' '), values }
}

/** NULL, which is neither in ASCII nor beyond it, takes the short way. */
function foldedSql(column: string): string {
  const isBeyondAscii = `octet_length(${column}) <> length(${column})`
  return `CASE WHEN ${isBeyondAscii} THEN ${foldFunction}(${column}) ELSE lower(${column}) END`
}

function orderOf({ desc }: ReadQuery): 'ASC' | 'DESC' {
  return desc ? 'DESC' : 'ASC'
}
