/**
 * Lists come in steps, between which the event loop turns: at most 1000 rows and 256 KiB of text,
 * or one larger plant. Before each, SQLite adds up the sizes of the rows. To iterate until there is
 * enough takes 1.6 times as long as `all`.
 *
 * Search and sort compare texts as `foldText` makes them, which is SQLite's `lower` for ASCII. What
 * else a search may find is decided here: a function that SQLite calls for each text takes twice
 * the time.
 */

import { foldText, normalForms } from '../../plant/folding.js'
import {
  largestId,
  plantFrom,
  type StoredPlant,
  smallestId,
  textLength,
} from '../../plant/plant.js'
import type { CountQuery, ReadQuery } from '../query.js'
import { type Connection, foldFunction } from './connection.js'
import { StoreDamageError } from './errors.js'

const stepRows = 1000
const stepBytes = 262_144

/** Another program may have written anything into it. */
export function toPlant([id, name, tag]: unknown[]): StoredPlant {
  const isTag = tag === null || typeof tag === 'string'
  if (typeof id !== 'bigint' || typeof name !== 'string' || !isTag)
    throw new StoreDamageError(`plant ${id} has a value of another type`)
  return plantFrom(id, name, tag)
}

export async function* readPlants(connection: Connection, query: ReadQuery) {
  const { sort = 'id', limit = Infinity, signal } = query
  const nextStep =
    sort === 'id' ? stepsById(connection, query) : stepsByText(connection, sort, query)
  for (let left = limit; left > 0; ) {
    signal?.throwIfAborted()
    const plants = (await connection.retry(() => nextStep(left)))?.slice(0, left)
    if (!plants) return
    if (plants.length > 0) yield plants
    left -= plants.length
    await new Promise(setImmediate)
  }
}

function stepsById({ prepare }: Connection, query: ReadQuery) {
  const { after, desc = false } = query
  const { where, values, matches } = filterOf(query)
  const range = 'FROM plants WHERE id BETWEEN ? AND ?'
  const order = `ORDER BY id ${desc ? 'DESC' : 'ASC'}`
  const select = `SELECT id, name, tag ${range} AND ${where} ${order}`
  const bytes = 'octet_length(name) + ifnull(octet_length(tag), 0) AS bytes'
  const sum = `SELECT ${desc ? 'min' : 'max'}(id), sum(bytes) FROM (SELECT id, ${bytes} ${range} ${order} LIMIT ?)`

  let first = after === undefined || desc ? smallestId : after + 1n
  let last = after === undefined || !desc ? largestId : after - 1n
  let rows = stepRows

  const endOfStep = (left: number): bigint | undefined => {
    // a few more than fitted
    rows = Math.min(left, stepRows, Math.ceil(rows * 1.25))
    while (first <= last) {
      const [end, size]: (bigint | null)[] = prepare(sum).get(first, last, rows)
      if (end == null) return undefined
      // A corrupt tree can lead back to one of its pages, without end.
      if (end < first || end > last) throw new StoreDamageError(`the id ${end} is out of order`)
      if (rows === 1 || Number(size) <= stepBytes) return end
      rows = Math.ceil(rows / 2)
    }
    return undefined
  }

  return (left: number): StoredPlant[] | undefined => {
    const end = endOfStep(where === everything ? left : stepRows)
    if (end === undefined) return undefined
    const [from, to] = desc ? [end, last] : [first, end]
    const plants = prepare(select)
      .all(from, to, ...values)
      .map(toPlant)
    // After all that may find the store in use, and is then called again.
    if (desc) last = end - 1n
    else first = end + 1n
    return plants.filter(matches)
  }
}

/** Of one statement: a transaction must hold its moment. */
function stepsByText({ prepare }: Connection, sort: 'name' | 'tag', query: ReadQuery) {
  const { after, limit, desc, search } = query
  const { where, values, matches } = filterOf(query)
  const direction = desc ? 'DESC' : 'ASC'
  // With any LIMIT, SQLite sorts into a b-tree, in twice the time.
  const select = `SELECT id, name, tag FROM plants
    WHERE ${where} ${after === undefined ? '' : `AND id > ${after}`}
    ORDER BY ${sort} IS NULL, ${foldedSql(sort)} ${direction}, ${sort} ${direction}, id
    ${limit === undefined || search !== undefined ? '' : `LIMIT ${limit}`}`
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
    return plants.length > 0 ? plants.filter(matches) : undefined
  }
}

export async function countPlants(connection: Connection, query: CountQuery = {}): Promise<bigint> {
  if (query.search === undefined) {
    const { where, values } = filterOf(query)
    const select = `SELECT count(*) FROM plants WHERE ${where}`
    const [count] = await connection.retry(() => connection.prepare(select).get(...values))
    return count
  }
  let count = 0n
  for await (const plants of readPlants(connection, query)) count += BigInt(plants.length)
  return count
}

/** A plant matches that `where` finds, and `matches`. */
function filterOf({ tag, search }: CountQuery) {
  const conditions: string[] = []
  const values: string[] = []
  if (tag === false) conditions.push('tag IS NULL')
  else if (tag !== undefined) {
    const forms = normalForms(tag)
    conditions.push(`tag IN (${forms.map(() => '?')})`)
    values.push(...forms)
  }
  const folded = foldText(search ?? '')
  if (search !== undefined) {
    conditions.push(`(${mayContain('name')} OR ${mayContain('tag')})`)
    values.push(folded, folded)
  }
  const matches = ({ name, tag = '' }: StoredPlant) =>
    search === undefined || [name, tag].some((text) => foldText(text).includes(folded))
  return { where: conditions.join(' AND ') || everything, values, matches }
}

const everything = 'true'

/** The SQL of `foldText`. */
function foldedSql(column: string): string {
  return `CASE WHEN ${isNotAscii(column)} THEN ${foldFunction}(${column}) ELSE lower(${column}) END`
}

function mayContain(column: string): string {
  return `CASE WHEN ${isNotAscii(column)} THEN true ELSE instr(lower(${column}), ?) END`
}

/** False for NULL. Bytes and characters are counted sooner than looked at. */
function isNotAscii(column: string): string {
  return `octet_length(${column}) <> length(${column})`
}
