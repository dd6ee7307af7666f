/**
 * Lists come in steps of at most 1000 rows and 256 KiB of text, or of one plant that is larger, between which the event
 * loop turns. Before each, SQLite adds up the sizes of the rows, whether they match a filter or not: that needs a tenth
 * of the time of reading them. (To iterate over a statement until there is enough takes 1.7 times as long as `all`.)
 *
 * Search and sort compare texts as `foldText` makes them, which is SQLite's `lower` for ASCII. What else a search may
 * find is decided here, in half of the time that a function takes which SQLite calls for each text.
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
  const row = connection.prepare(`SELECT id, name, tag FROM plants WHERE ${column} = ?`).get(value)
  return row && toPlant(row)
}

/** Another program may have written what a STRICT table does not allow. */
function toPlant(row: unknown): StoredPlant {
  const [id, name, tag] = row as unknown[]
  const isTag = tag === null || typeof tag === 'string'
  if (typeof id !== 'bigint' || typeof name !== 'string' || !isTag)
    throw new StoreDamageError(`plant ${id} has a value of another type`)
  return plantFrom(id, name, tag)
}

/** What is sorted by a text is one statement: a transaction must hold its moment. */
export function readPlants(
  connection: Connection,
  query: ReadQuery,
): AsyncGenerator<StoredPlant[]> {
  const { sort = 'id' } = query
  return sort === 'id' ? readById(connection, query) : readByText(connection, sort, query)
}

async function* readById(connection: Connection, query: ReadQuery): AsyncGenerator<StoredPlant[]> {
  const { after, limit = Infinity, desc = false, signal } = query
  const { where, values, matches } = filterOf(query)
  const range = `FROM plants WHERE id BETWEEN ? AND ?`
  const order = `ORDER BY id ${desc ? 'DESC' : 'ASC'}`
  const select = `SELECT id, name, tag ${range} AND ${where} ${order}`
  const size = 'octet_length(name) + ifnull(octet_length(tag), 0) AS size'
  const sum = `SELECT ${desc ? 'min' : 'max'}(id), sum(size) FROM (SELECT id, ${size} ${range} ${order} LIMIT ?)`

  let [first, last] = [smallestId, largestId]
  if (after !== undefined && desc) last = after - 1n
  else if (after !== undefined) first = after + 1n

  /** The last id of the next step; undefined if there is no row left. */
  const endOfStep = (maxRows: number): bigint | undefined => {
    for (let rows = maxRows; ; ) {
      const [end, bytes]: (bigint | null)[] = connection.prepare(sum).get(first, last, rows)
      if (end == null) return undefined
      if (end < first || end > last) throw outOfOrder(end)
      if (rows === 1 || Number(bytes) <= stepBytes) return end
      const fitting = Math.floor((rows * stepBytes) / Number(bytes))
      rows = Math.max(1, Math.min(rows - 1, fitting))
    }
  }

  for (let left = limit; left > 0 && first <= last; ) {
    signal?.throwIfAborted()
    const rows = Math.min(left, stepRows)
    const step = await connection.retry(() => {
      const end = endOfStep(where === everything ? rows : stepRows)
      if (end === undefined) return undefined
      const [from, to] = desc ? [end, last] : [first, end]
      const found = connection
        .prepare(select)
        .all(from, to, ...values)
        .map(toPlant)
      return { end, plants: inOrder(found, desc).filter(matches).slice(0, rows) }
    })
    if (!step) return
    if (step.plants.length > 0) yield step.plants
    left -= step.plants.length
    if (desc) last = step.end - 1n
    else first = step.end + 1n
    await new Promise(setImmediate)
  }
}

function inOrder(plants: StoredPlant[], desc: boolean): StoredPlant[] {
  let before: bigint | undefined
  for (const { id } of plants) {
    if (before !== undefined && (desc ? id >= before : id <= before)) throw outOfOrder(id)
    before = id
  }
  return plants
}

/** A corrupt tree can lead back to one of its pages: a list of it would have no end. */
function outOfOrder(id: bigint): StoreDamageError {
  return new StoreDamageError(`the id ${id} is out of order`)
}

async function* readByText(
  connection: Connection,
  sort: 'name' | 'tag',
  query: ReadQuery,
): AsyncGenerator<StoredPlant[]> {
  const { after, limit, desc, signal } = query
  const { where, values, matches } = filterOf(query)
  const direction = desc ? 'DESC' : 'ASC'
  // Even with LIMIT -1, SQLite would sort into a b-tree, which takes twice the time.
  const select = `SELECT id, name, tag FROM plants
    WHERE ${where} ${after === undefined ? '' : `AND id > ${after}`}
    ORDER BY ${sort} IS NULL, ${foldedSql(sort)} ${direction}, ${sort} ${direction}, id
    ${limit === undefined || query.search !== undefined ? '' : `LIMIT ${limit}`}`
  const rows = connection.prepare(select).iterate(...values)
  for (let left = limit ?? Infinity; left > 0; ) {
    signal?.throwIfAborted()
    const step = await connection.retry(() => nextStep(rows))
    if (step.length === 0) return
    const plants = step.filter(matches).slice(0, left)
    if (plants.length > 0) yield plants
    left -= plants.length
    await new Promise(setImmediate)
  }
}

function nextStep(rows: Iterator<unknown>): StoredPlant[] {
  const plants: StoredPlant[] = []
  for (let length = 0; plants.length < stepRows && length < stepBytes; ) {
    const { value, done } = rows.next()
    if (done) break
    const plant = toPlant(value)
    plants.push(plant)
    length += textLength(plant)
  }
  return plants
}

export async function countPlants(connection: Connection, query: CountQuery = {}): Promise<bigint> {
  const { where, values } = filterOf(query)
  if (query.search === undefined) {
    const select = `SELECT count(*) FROM plants WHERE ${where}`
    const [count]: [bigint] = await connection.retry(() =>
      connection.prepare(select).get(...values),
    )
    return count
  }
  let count = 0n
  for await (const plants of readById(connection, query)) count += BigInt(plants.length)
  return count
}

/** What `where` finds matches if `matches` says so, too. */
function filterOf({ tag, search }: CountQuery) {
  const conditions: string[] = []
  const values: string[] = []
  if (tag === false) conditions.push('tag IS NULL')
  if (typeof tag === 'string') {
    conditions.push('tag = ?')
    values.push(tag)
  }
  const folded = search === undefined ? undefined : foldText(search)
  if (folded !== undefined) {
    conditions.push(`(${mayContain('name')} OR ${mayContain('tag')})`)
    values.push(folded, folded)
  }
  const contains = (text?: string) => text !== undefined && foldText(text).includes(folded ?? '')
  const matches = ({ name, tag }: StoredPlant) =>
    folded === undefined || contains(name) || contains(tag)
  return { where: conditions.join(' AND ') || everything, values, matches }
}

const everything = 'true'

/** The SQL of `foldText`. */
export function foldedSql(column: string): string {
  return `CASE WHEN ${isNotAscii(column)} THEN ${foldFunction}(${column}) ELSE lower(${column}) END`
}

function mayContain(column: string): string {
  return `CASE WHEN ${isNotAscii(column)} THEN true ELSE instr(lower(${column}), ?) END`
}

/** False for NULL. Bytes and characters are counted sooner than looked at. */
function isNotAscii(column: string): string {
  return `octet_length(${column}) <> length(${column})`
}
