import {
  largestId,
  type StoredPlant,
  smallestId,
  type TextName,
  textLength,
} from '../../plant/plant.js'
import type { Database } from '../../platform/sqlite.js'
import type { CountQuery, ReadQuery, TextCount } from '../common/query.js'
import { contains, foldText, soughtText } from '../common/search.js'
import { assertSorted, belowAll, preparePlants, toPlant } from './rows.js'
import type { Connection } from './sqlite-connection.js'
import { StoreDamageError } from './sqlite-errors.js'

export function countPlants(connection: Connection, query: CountQuery = {}): bigint {
  const { sql, values } = selectionOf(connection, query)
  const statement = `SELECT count(*) AS count FROM plants WHERE true ${sql}`
  return (connection.prepare(statement).get(...values) as { count: bigint }).count // a count gives one row
}

/** Reads in steps, between which the event loop turns. */
export function readPlants(
  connection: Connection,
  query: ReadQuery,
): AsyncGenerator<StoredPlant[]> {
  return query.sort === undefined || query.sort === 'id'
    ? readById(connection, query)
    : readByText(connection, query)
}

async function* readById(connection: Connection, query: ReadQuery): AsyncGenerator<StoredPlant[]> {
  const { after, limit = Infinity, desc = false, signal } = query
  const { sql, values } = selectionOf(connection, query)
  const select = `SELECT id, name, tag FROM plants WHERE id BETWEEN ? AND ? ${sql} ORDER BY id ${orderOf(desc)} LIMIT ?`
  let first = smallestId
  let last = largestId
  if (after !== undefined && desc) last = after - 1n
  else if (after !== undefined) first = after + 1n
  for (let left = limit; left > 0 && first <= last; ) {
    signal?.throwIfAborted()
    const limited = Math.min(left, stepRows)
    const step = await connection.run(() => {
      // With a filter, a step looks at so many rows, whether they match or not.
      const range = rangeThatFits(
        connection,
        { first, last },
        sql === '' ? limited : stepRows,
        desc,
      )
      if (!range) return undefined
      const rows = preparePlants(connection, select).all(
        range.first,
        range.last,
        ...values,
        limited,
      )
      const plants = rows.map(toPlant)
      assertSorted(plants, desc ? -belowAll : belowAll, desc)
      return { range, plants }
    })
    if (!step) return
    if (step.plants.length > 0) yield step.plants
    left -= step.plants.length
    if (desc) last = step.range.first - 1n
    else first = step.range.last + 1n
    await new Promise(setImmediate)
  }
}

export type IdRange = Record<'first' | 'last', bigint>

/** The beginning of a range, or its end: at most so many rows, and `stepBytes` of texts, or one row that is larger. */
export function rangeThatFits(
  connection: Connection,
  { first, last }: IdRange,
  rows: number,
  desc = false,
): IdRange | undefined {
  const sizes = `SELECT id, octet_length(name) + ifnull(octet_length(tag), 0) AS size FROM plants
    WHERE id BETWEEN ? AND ? ORDER BY id ${orderOf(desc)} LIMIT ?`
  const select = connection.prepare(
    `SELECT min(id) AS first, max(id) AS last, sum(size) AS size FROM (${sizes})`,
  )
  for (let count = rows; ; count = Math.ceil(count / 2)) {
    const found = select.get(first, last, count) as Record<'first' | 'last' | 'size', bigint | null> // a sum gives one row
    if (found.first === null || found.last === null) return undefined
    assertSorted([{ id: found.first }], first - 1n)
    assertSorted([{ id: found.last }], last + 1n, true)
    if (count === 1 || Number(found.size) <= stepBytes)
      return desc ? { first: found.first, last } : { first, last: found.last }
  }
}

function readByText(connection: Connection, query: ReadQuery): AsyncGenerator<StoredPlant[]> {
  const { after = belowAll, limit, sort, desc = false } = query
  const { sql, values } = selectionOf(connection, query)
  defineFunctions(connection.db)
  const order = `${sort} IS NULL, ${foldedText(`${sort}`)} ${orderOf(desc)}, ${sort} ${orderOf(desc)}, id`
  // Even with LIMIT -1, SQLite would sort into a b-tree, which takes twice the time.
  const [limited, limits] = limit === undefined ? ['', []] : ['LIMIT ?', [limit]]
  const select = `SELECT id, name, tag FROM plants WHERE id > ? ${sql} ORDER BY ${order} ${limited}`
  return inSteps(
    connection,
    preparePlants(connection, select).iterate(after, ...values, ...limits),
    toPlant,
    textLength,
  )
}

export function countTexts(
  connection: Connection,
  by: TextName,
  query: CountQuery,
): AsyncGenerator<TextCount[]> {
  const { sql, values } = selectionOf(connection, query)
  defineFunctions(connection.db)
  const select = `SELECT ${by} AS text, count(*) AS count FROM plants WHERE true ${sql} GROUP BY ${by}
    ORDER BY count(*) DESC, ${by} IS NULL, ${foldedText(by)}, ${by}`
  return inSteps(
    connection,
    connection.prepare(select).iterate(...values),
    toCount,
    ({ text = '' }) => text.length,
  )
}

/** Reads a statement that the connection keeps: the driver finalizes one that is garbage, even while it is read. */
async function* inSteps<Item>(
  connection: Connection,
  rows: Iterator<unknown>,
  toItem: (row: unknown) => Item,
  lengthOf: (item: Item) => number,
): AsyncGenerator<Item[]> {
  for (;;) {
    const items = await connection.run(() => {
      const step: Item[] = []
      for (let length = 0; step.length < stepRows && length < stepBytes; ) {
        const { value, done } = rows.next()
        if (done) break
        const item = toItem(value)
        step.push(item)
        length += lengthOf(item)
      }
      return step
    })
    if (items.length === 0) return
    yield items
    await new Promise(setImmediate)
  }
}

const stepRows = 1000
const stepBytes = 262_144

function orderOf(desc: boolean): string {
  return desc ? 'DESC' : 'ASC'
}

function toCount(row: unknown): TextCount {
  const { text, count } = row as { text: unknown; count: bigint } // the columns of the statement
  if (text !== null && typeof text !== 'string')
    throw new StoreDamageError('a plant has a value that is not text')
  return { text: text ?? undefined, count }
}

/** The SQL is to append to another condition, and empty for all plants. */
function selectionOf(
  { db }: Connection,
  { tag, search }: CountQuery,
): { sql: string; values: string[] } {
  const conditions: string[] = []
  const values: string[] = []
  if (tag === false) conditions.push('AND tag IS NULL')
  else if (tag !== undefined) conditions.push('AND tag = ?')
  if (typeof tag === 'string') values.push(tag)
  if (search !== undefined) {
    const { folded } = soughtText(search)
    const contained = ['name', 'tag'].map((name) => {
      values.push(folded, search)
      return `CASE WHEN ${isAscii(name)} THEN instr(lower(${name}), ?) ELSE ${searchFunction}(${name}, ?) END`
    })
    conditions.push(`AND (${contained.join(' OR ')})`)
    defineFunctions(db)
  }
  return { sql: conditions.join(' '), values }
}

function foldedText(column: string): string {
  return `CASE WHEN ${isAscii(column)} THEN lower(${column}) ELSE ${foldFunction}(${column}) END`
}

/** A call of JavaScript takes several times as long as SQLite's own functions, and ASCII does not need it. */
function isAscii(column: string): string {
  return `octet_length(${column}) = length(${column})`
}

const searchFunction = 'plants_contains'
const foldFunction = 'plants_fold'

const prepared = new WeakSet<Database>()

/** Searches that take turns in steps share it, so it takes what is sought as an argument. */
function defineFunctions(db: Database): void {
  if (prepared.has(db)) return
  prepared.add(db)
  const options = { deterministic: true, directOnly: true }
  let last = { search: '', sought: soughtText('') }
  db.function(searchFunction, options, (text: unknown, search: unknown) => {
    if (last.search !== search) last = { search: `${search}`, sought: soughtText(`${search}`) }
    return Number(typeof text === 'string' && contains(text, last.sought))
  })
  db.function(foldFunction, options, (text: unknown) =>
    typeof text === 'string' ? foldText(text) : null,
  )
}
