/**
 * Lists come in steps, between which the event loop turns: at most 1000 rows and 256 KiB of text, or one larger plant.
 * Before each, SQLite adds up the sizes of the rows, in a tenth of the time of reading them. To iterate until there is
 * enough takes 1.6 times as long as `all`.
 *
 * Search and sort compare texts as `foldText` makes them. To call it for each row takes several times as long as
 * SQLite's own functions, so only the texts get there that these do not fold alike.
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
import { type Connection, containsFunction, foldFunction } from './connection.js'
import { StoreDamageError } from './errors.js'

const stepRows = 1000
const stepBytes = 262_144

export function findPlant(
  connection: Connection,
  column: 'id' | 'idempotency_key',
  value: bigint | string,
) {
  const row = connection.prepare(`SELECT id, name, tag FROM plants WHERE ${column} = ?`).get(value)
  return row && toPlant(row)
}

/** Another program may have written anything into it. */
function toPlant([id, name, tag]: unknown[]): StoredPlant {
  const isTag = tag === null || typeof tag === 'string'
  if (typeof id !== 'bigint' || typeof name !== 'string' || !isTag)
    throw new StoreDamageError(`plant ${id} has a value of another type`)
  return plantFrom(id, name, tag)
}

export async function* readPlants(connection: Connection, query: ReadQuery) {
  const { sort = 'id', signal } = query
  const nextStep =
    sort === 'id' ? stepsById(connection, query) : stepsByText(connection, sort, query)
  for (;;) {
    signal?.throwIfAborted()
    const plants = await connection.retry(nextStep)
    if (!plants) return
    if (plants.length > 0) yield plants
    await new Promise(setImmediate)
  }
}

/** The result returns undefined at the end. */
function stepsById({ prepare }: Connection, query: ReadQuery) {
  const { after, limit = Infinity, desc = false } = query
  const { where, values } = filterOf(query)
  const range = 'FROM plants WHERE id BETWEEN ? AND ?'
  const order = `ORDER BY id ${desc ? 'DESC' : 'ASC'} LIMIT ?`
  const select = `SELECT id, name, tag ${range} AND ${where} ${order}`
  const bytes = 'octet_length(name) + ifnull(octet_length(tag), 0) AS bytes'
  const sum = `SELECT ${desc ? 'min' : 'max'}(id), sum(bytes) FROM (SELECT id, ${bytes} ${range} ${order})`

  let left = limit
  let [first, last] = [smallestId, largestId]
  if (after !== undefined && desc) last = after - 1n
  else if (after !== undefined) first = after + 1n

  /** Undefined if there is no row left. */
  const endOfStep = (rows: number): bigint | undefined => {
    const [end, size]: (bigint | null)[] = prepare(sum).get(first, last, rows)
    if (end == null) return undefined
    // A corrupt tree can lead back to one of its pages, without end.
    if (end < first || end > last) throw new StoreDamageError(`the id ${end} is out of order`)
    if (rows === 1 || Number(size) <= stepBytes) return end
    return endOfStep(Math.max(1, Math.floor((rows * stepBytes) / Number(size))))
  }

  return (): StoredPlant[] | undefined => {
    const rows = Math.min(left, stepRows)
    const isAtEnd = rows === 0 || first > last
    const end = isAtEnd ? undefined : endOfStep(where === everything ? rows : stepRows)
    if (end === undefined) return undefined
    const [from, to] = desc ? [end, last] : [first, end]
    const plants = prepare(select)
      .all(from, to, ...values, rows)
      .map(toPlant)
    left -= plants.length
    if (desc) last = end - 1n
    else first = end + 1n
    return plants
  }
}

/** Of one statement: a transaction must hold its moment. */
function stepsByText({ prepare }: Connection, sort: 'name' | 'tag', query: ReadQuery) {
  const { after, limit, desc } = query
  const { where, values } = filterOf(query)
  const direction = desc ? 'DESC' : 'ASC'
  // With any LIMIT, SQLite sorts into a b-tree, in twice the time.
  const select = `SELECT id, name, tag FROM plants
    WHERE ${where} ${after === undefined ? '' : `AND id > ${after}`}
    ORDER BY ${sort} IS NULL, ${foldedSql(sort)} ${direction}, ${sort} ${direction}, id
    ${limit === undefined ? '' : `LIMIT ${limit}`}`
  const rows: Iterator<unknown[]> = prepare(select).iterate(...values)
  return (): StoredPlant[] | undefined => {
    const plants: StoredPlant[] = []
    for (let length = 0; plants.length < stepRows && length < stepBytes; ) {
      const { value, done } = rows.next()
      if (done) break
      const plant = toPlant(value)
      plants.push(plant)
      length += textLength(plant)
    }
    return plants.length > 0 ? plants : undefined
  }
}

export function countPlants(connection: Connection, query: CountQuery = {}): Promise<bigint> {
  const { where, values } = filterOf(query)
  const select = `SELECT count(*) FROM plants WHERE ${where}`
  return connection.retry(() => {
    const [count]: [bigint] = connection.prepare(select).get(...values)
    return count
  })
}

function filterOf({ tag, search }: CountQuery): { where: string; values: string[] } {
  const conditions: string[] = []
  const values: string[] = []
  if (tag === false) conditions.push('tag IS NULL')
  if (typeof tag === 'string') {
    conditions.push('tag = ?')
    values.push(tag)
  }
  if (search !== undefined) {
    conditions.push(`(${containsSql('name')} OR ${containsSql('tag')})`)
    values.push(...Array<string>(4).fill(foldText(search)))
  }
  return { where: conditions.join(' AND ') || everything, values }
}

const everything = 'true'

/** For SQLite's GLOB: what has no case beyond ASCII, and is not normalized, whatever is beside it. */
const simple = '\u0001-~\u3000-〩ぁ-ゖ゠-ヿ一-龥가-힣'

/** The SQL of `foldText`. */
export function foldedSql(column: string): string {
  return `CASE WHEN ${isOther(column)} THEN ${foldFunction}(${column}) ELSE lower(${column}) END`
}

/** Twice with a folded text: whether it is a part of another. A number comes from JavaScript sooner than a text. */
export function containsSql(column: string): string {
  return `CASE WHEN ${isOther(column)} THEN ${containsFunction}(${column}, ?)
    ELSE instr(lower(${column}), ?) END`
}

/** False for NULL. Whether a text is in ASCII is found sooner from the number of its bytes. */
function isOther(column: string): string {
  return `octet_length(${column}) <> length(${column}) AND ${column} GLOB '*[^${simple}]*'`
}
