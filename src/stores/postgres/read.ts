import type { StoredPlant } from '../../plant/plant.js'
import { must } from '../../platform/errors.js'
import { type CountQuery, pagesOf, type ReadQuery } from '../common/query.js'
import { foldText } from '../common/search.js'
import { type Connection, literal, type Row } from './connection.js'
import type { PostgresDatabase } from './database.js'
import { containsSql, foldedSql } from './folding.js'
import { columns, plants, toPlant } from './schema.js'

export async function getPlants(
  connection: Connection,
  ids: readonly bigint[],
): Promise<Map<bigint, StoredPlant>> {
  const rows = await connection.read(
    `SELECT ${columns} FROM ${plants} WHERE id = ANY ('{${ids.join()}}'::bigint[])`,
  )
  return new Map(rows.map(toPlant).map((plant) => [plant.id, plant]))
}

export async function countPlants(connection: Connection, query: CountQuery): Promise<bigint> {
  const { where } = await clausesOf(connection, query)
  const [[count] = []] = await connection.read(`SELECT count(*) FROM ${plants} ${where}`)
  return BigInt(must(count ?? undefined))
}

/** In the order of ids, each page at a moment of its own: it ends with the plant that fills a million bytes. */
export function readPages(
  database: PostgresDatabase,
  query: ReadQuery,
): AsyncIterable<StoredPlant[]> {
  return pagesOf(query, (after, rows) =>
    database.run(async (connection) => {
      const { where, order } = await clausesOf(connection, { ...query, after })
      const size = 'octet_length(name) + coalesce(octet_length(tag), 0)'
      const before = `sum(${size}) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) - (${size})`
      const page = `SELECT ${columns}, ${before} AS before FROM ${plants} ${where} ORDER BY ${order} LIMIT ${rows}`
      const found = `SELECT ${columns} FROM (${page}) AS page WHERE before < 1000000 ORDER BY ${order}`
      return (await connection.read(found)).map(toPlant)
    }),
  )
}

/** One consistent snapshot, in arrays of about 64 KiB. COPY is by far the fastest way. */
export function readSnapshot(
  database: PostgresDatabase,
  query: ReadQuery,
): AsyncIterable<StoredPlant[]> {
  return database.stream(async function* (connection) {
    const { where, order } = await clausesOf(connection, query)
    const limit = query.limit === undefined ? '' : `LIMIT ${query.limit}`
    const select = `SELECT ${columns} FROM ${plants} ${where} ORDER BY ${order} ${limit}`
    for await (const rows of rowsOf(connection.copyOut(select))) {
      query.signal?.throwIfAborted()
      yield rows.map(toPlant)
    }
  })
}

/** Parses the text format of COPY, in which a line feed ends a row and nothing else. */
export async function* rowsOf(pieces: AsyncIterable<Buffer>): AsyncGenerator<Row[]> {
  let begun: Buffer[] = []
  for await (const piece of pieces) {
    const end = piece.lastIndexOf('\n') + 1
    if (end === 0) {
      begun.push(piece)
      continue
    }
    const text = Buffer.concat([...begun, piece.subarray(0, end - 1)]).toString()
    begun = [piece.subarray(end)]
    yield text.split('\n').map((line) => line.split('\t').map(textOf))
  }
}

function textOf(cell: string): string | null {
  if (!cell.includes('\\')) return cell
  if (cell === '\\N') return null
  return cell.replace(/\\(.)/g, (_, letter: string) => controls[letter] ?? letter)
}

const controls: Readonly<Record<string, string>> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
}

const newerCollation = `SELECT FROM pg_collation WHERE collname = 'pg_unicode_fast'`

async function clausesOf(connection: Connection, query: ReadQuery) {
  const { after, tag, search, sort = 'id', desc } = query
  const direction = desc ? 'DESC' : 'ASC'
  const isFolded = search !== undefined || sort !== 'id'
  const [newer] = isFolded ? await connection.read(newerCollation) : []
  // Whose `upper` and `lower` are Unicode's.
  const collation = newer ? 'pg_unicode_fast' : 'und-x-icu'
  const conditions: string[] = []
  if (after !== undefined) conditions.push(`id ${desc && sort === 'id' ? '<' : '>'} '${after}'`)
  if (tag === false) conditions.push('tag IS NULL')
  else if (tag !== undefined) conditions.push(`tag = ${literal(tag)}`)
  if (search !== undefined) {
    const sought = foldText(search)
    const found = ['name', 'tag'].map((column) => containsSql(column, sought, collation))
    conditions.push(`(${found.join(' OR ')})`)
  }
  const byText = () =>
    `${sort} IS NULL, ${foldedSql(sort, collation)} ${direction}, ${sort} COLLATE "C" ${direction}, id`
  return {
    where: conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`,
    order: sort === 'id' ? `id ${direction}` : byText(),
  }
}
