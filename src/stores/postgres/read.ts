import { to as copyTo } from 'pg-copy-streams'
import { plantFrom, type StoredPlant, type TextName } from '../../plant/plant.js'
import { must } from '../../platform/errors.js'
import { type CountQuery, pagesOf, type ReadQuery, type TextCount } from '../common/query.js'
import { BinaryRows } from './binary-copy.js'
import { containsSql, findLowerCase, foldedSql } from './folding.js'
import type { ConnectionPool } from './pool.js'
import { type Connection, maxAnswer, responseTooLarge } from './postgres-connection.js'
import { otherProtocol } from './postgres-errors.js'
import { soughtText } from './search-patterns.js'
import { columns, idsOf, literal, plants, toBigInt, toPlant } from './sql.js'

export async function getPlants(
  connection: Connection,
  ids: readonly bigint[],
): Promise<Map<bigint, StoredPlant>> {
  const rows = await connection.ask(
    `SELECT ${columns} FROM ${plants} WHERE id = ANY (${idsOf(ids)})`,
    ids.length,
  )
  return new Map(rows.map(toPlant).map((plant) => [plant.id, plant]))
}

/** In the order of ids, each page at a moment of its own, limited by rows and by bytes of text, but to at least one row. */
export function readPages(pool: ConnectionPool, query: ReadQuery): AsyncIterable<StoredPlant[]> {
  const order = `id ${directionOf(query)}`
  const call = query.waited === undefined ? undefined : pool.newCall(query)
  const size = 'octet_length(name) + coalesce(octet_length(tag), 0)'
  return pagesOf(query, async (after, rows) => {
    const filter = where({ ...query, after })
    const page = `SELECT ${columns}, ${size} AS size FROM ${plants} ${filter} ORDER BY ${order} LIMIT ${rows}`
    const sums = `SELECT *, sum(size) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) AS bytes FROM (${page}) AS page`
    const found = `SELECT ${columns} FROM (${sums}) AS sums WHERE bytes <= ${pageBytes} OR bytes = size`
    return (await pool.query(`${found} ORDER BY ${order}`, call)).map(toPlant)
  })
}

const pageBytes = 1_000_000

/** One consistent snapshot, in arrays of about 64 KiB. */
export async function* readSnapshot(
  pool: ConnectionPool,
  query: ReadQuery,
): AsyncGenerator<StoredPlant[]> {
  const limit = query.limit === undefined ? '' : `LIMIT ${query.limit}`
  const order = await orderOf(pool, query)
  const statement = `SELECT ${columns} FROM ${plants} ${where(query)} ORDER BY ${order} ${limit}`
  yield* copyRows(
    pool,
    statement,
    (row) => plantFrom(row.int64(), must(row.text()), row.text()),
    query,
  )
}

export async function countPlants(pool: ConnectionPool, query: CountQuery): Promise<bigint> {
  const [[count] = []] = await pool.query(`SELECT count(*) FROM ${plants} ${where(query)}`)
  return toBigInt(count)
}

export async function* countTexts(
  pool: ConnectionPool,
  by: TextName,
  query: CountQuery,
): AsyncGenerator<TextCount[]> {
  const order = `${by} IS NULL, ${foldedSql(by, await findLowerCase(pool))}, ${by} COLLATE "C"`
  const statement = `SELECT ${by}, count(*) FROM ${plants} ${where(query)} GROUP BY ${by}
    ORDER BY count(*) DESC, ${order}`
  yield* copyRows(pool, statement, (row) => ({ text: row.text(), count: row.int64() }))
}

async function orderOf(pool: ConnectionPool, query: ReadQuery): Promise<string> {
  const { sort = 'id' } = query
  const direction = directionOf(query)
  if (sort === 'id') return `id ${direction}`
  const folded = foldedSql(sort, await findLowerCase(pool))
  return `${sort} IS NULL, ${folded} ${direction}, ${sort} COLLATE "C" ${direction}, id`
}

function directionOf({ desc }: ReadQuery): string {
  return desc ? 'DESC' : 'ASC'
}

function where({ after, tag, search, sort = 'id', desc }: ReadQuery): string {
  const conditions: string[] = []
  if (after !== undefined)
    conditions.push(`id ${desc && sort === 'id' ? '<' : '>'} ${literal(after)}`)
  if (tag === false) conditions.push('tag IS NULL')
  else if (tag !== undefined) conditions.push(`tag = ${literal(tag)}`)
  if (search !== undefined) {
    const sought = soughtText(search)
    conditions.push(`(${containsSql('name', sought)} OR ${containsSql('tag', sought)})`)
  }
  return conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
}

/** COPY is by far the fastest way, and in binary, texts need no escapes. */
async function* copyRows<Item>(
  pool: ConnectionPool,
  statement: string,
  toItem: (row: BinaryRows) => Item,
  options: ReadQuery = {},
): AsyncGenerator<Item[]> {
  const call = pool.newCall(options)
  const connection = await pool.retry(call, () => pool.lease(call))
  try {
    await connection.ask('BEGIN READ ONLY; SET LOCAL statement_timeout = 0')
    const rows = new BinaryRows()
    for await (const chunk of chunksOf(
      connection,
      `COPY (${statement}) TO STDOUT (FORMAT binary)`,
      pool,
    )) {
      options.signal?.throwIfAborted()
      rows.append(chunk)
      const items: Item[] = []
      while (rows.next()) items.push(toItem(rows))
      if (rows.waiting > maxAnswer) throw connection.failure('TOO_LARGE', responseTooLarge)
      if (items.length > 0) yield items
    }
    if (!rows.isComplete) throw new RangeError('The rows have no end')
    await connection.ask('COMMIT')
  } catch (error) {
    connection.destroy()
    throw error instanceof RangeError ? connection.failure('PROTOCOL', otherProtocol, error) : error
  } finally {
    pool.release(connection)
  }
}

async function* chunksOf(
  connection: Connection,
  statement: string,
  pool: ConnectionPool,
): AsyncGenerator<Buffer> {
  const chunks = connection.query(copyTo(statement)).iterator() as AsyncIterableIterator<Buffer>
  for (;;) {
    const { value: chunk, done } = await connection.inTime(chunks.next())
    if (done) return
    yield chunk
    pool.renew(connection) // for the next chunk, however long the caller took to use this one
  }
}
