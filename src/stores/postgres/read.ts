/**
 * Reads plants, and builds the SQL of searches and sorts, which folds names and tags as
 * `foldString` does. The database must fold them itself: otherwise it would have to send every
 * plant for each search. docs/design/search.md says how, and what was tried.
 */
import { escapeLiteral } from 'pg'
import type { StringFieldName } from '../../plant/fields.js'
import { foldString, latinMarksPattern, listNormalForms } from '../../plant/folding.js'
import {
  addCount,
  type CountQuery,
  type FieldCounts,
  type ReadQuery,
  readInPages,
} from '../query.js'
import type { PostgresDatabase } from './database.js'
import { toCount, toFieldValue, toPlants } from './rows.js'
import { plantColumns, plantsTable } from './schema.js'

/**
 * Reads in the order of ids. Each page is read by a separate statement, so each page may show a
 * later moment of the store. A page ends with the plant with which its names and tags reach a
 * million bytes.
 */
export function readPages(database: PostgresDatabase, query: ReadQuery) {
  return readInPages(query, async (after, rows) => {
    const { where, order } = await buildClauses(database, { ...query, after })
    const size = 'octet_length(name) + coalesce(octet_length(tag), 0)'
    const bytesBefore = `sum(${size}) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) - (${size})`
    const page = `SELECT ${plantColumns}, ${bytesBefore} AS before FROM ${plantsTable} ${where} ORDER BY ${order} LIMIT ${rows}`
    const select = `SELECT ${plantColumns} FROM (${page}) AS page WHERE before < 1000000 ORDER BY ${order}`
    const reading = mayScan(query) ? database.scan(select, query.signal) : database.read(select)
    return toPlants(await reading, database.name)
  })
}

/**
 * Returns true for a query that may read all plants. A list without these parameters only reads the
 * index of the ids, up to its limit.
 */
function mayScan({ tag, search, sort = 'id' }: ReadQuery): boolean {
  return tag !== undefined || search !== undefined || sort !== 'id'
}

/** Reads one consistent snapshot, in arrays of about 64 KiB. */
export async function* readSnapshot(database: PostgresDatabase, query: ReadQuery) {
  const { where, order } = await buildClauses(database, query)
  const limit = query.limit === undefined ? '' : `LIMIT ${query.limit}`
  const select = `SELECT ${plantColumns} FROM ${plantsTable} ${where} ORDER BY ${order} ${limit}`
  for await (const rows of database.streamRows(select)) {
    query.signal?.throwIfAborted()
    yield toPlants(rows, database.name)
  }
}

export async function queryFieldCounts(
  database: PostgresDatabase,
  field: StringFieldName,
  query: CountQuery,
): Promise<FieldCounts> {
  const { where } = await buildClauses(database, query)
  // The owner of the table may have chosen a collation in which different strings are equal.
  const exactColumn = `${field} COLLATE "C"`
  const select = `SELECT ${exactColumn}, count(*) FROM ${plantsTable} ${where} GROUP BY ${exactColumn}`
  const counts: FieldCounts = new Map()
  for await (const rows of database.streamRows(select)) {
    query.signal?.throwIfAborted()
    for (const [text, count] of rows)
      addCount(counts, toFieldValue(field, text, database.name), toCount(count, database.name))
  }
  return counts
}

export async function buildClauses(database: PostgresDatabase, query: ReadQuery) {
  const { after, tag, search, sort = 'id', desc } = query
  const direction = desc ? 'DESC' : 'ASC'
  const isFolded = search !== undefined || sort !== 'id'
  // Only these collations have an `upper` and a `lower` that follow Unicode.
  const selectCollation = `SELECT coalesce(to_regcollation('pg_unicode_fast')::text, 'und-x-icu')`
  const [[collation] = []] = isFolded ? await database.read(selectCollation) : []
  const conditions: string[] = []
  if (after !== undefined) conditions.push(`id ${desc && sort === 'id' ? '<' : '>'} '${after}'`)
  if (tag === false) conditions.push('tag IS NULL')
  else if (tag !== undefined) conditions.push(`tag IN (${listNormalForms(tag).map(escapeLiteral)})`)
  if (search !== undefined) {
    const foldedSearch = foldString(search)
    const tests = ['name', 'tag'].map((column) => {
      const foldedColumn = buildFoldedColumn(column, `${collation}`)
      return `strpos(${foldedColumn}, ${escapeLiteral(foldedSearch)}) > 0`
    })
    conditions.push(`(${tests.join(' OR ')})`)
  }
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  if (sort === 'id') return { where, order: `id ${direction}` }
  // A plant without a tag comes last. Fields with the same folding are in the order of their code
  // points.
  const foldedColumn = buildFoldedColumn(sort, `${collation}`)
  const exactColumn = `${sort} COLLATE "C"`
  const order = `${sort} IS NULL, ${foldedColumn} ${direction}, ${exactColumn} ${direction}, id`
  return { where, order }
}

/**
 * The SQL below folds as `foldString` does. It has the same result in any locale, for all letters
 * that the database's version of Unicode has. The full case mapping of PostgreSQL 18, and of ICU in
 * older versions, differs from JavaScript's only in the final sigma (ς), which is therefore folded
 * to σ.
 *
 * Normalization takes most of the time. So it is skipped, or a part of it, for fields in ASCII, for
 * fields whose characters need no normalization (`plainCharacters`), and for Latin letters with
 * marks. There is no subquery, because PostgreSQL never runs a search with one in parallel.
 */

/** Normalization leaves these characters, and their lower case, as they are. */
const plainCharacters =
  '\u0001-¿ɐ-˿ΆΈ-ΏΑ-ία-҂Ҋ-ԯא-תء-ي\u200c-‧　-〩ぁ-ゖ゠-ヿ一-龥가-힣！-＠［-｀｛-～\u{1f000}-\u{1f7ff}'

export function buildFoldedColumn(column: string, collation: string): string {
  const inLowerCase = `lower(upper(${column} COLLATE "${collation}") COLLATE "${collation}") COLLATE "C"`
  const lower = `replace(replace(${inLowerCase}, 'ς', 'σ'), 'ß', 'ss')`
  const withoutMarks = `regexp_replace(normalize(${lower}, NFD), '${latinMarksPattern}', '', 'g')`
  // The time to normalize a run of marks grows with the square of its length, and no timeout ends
  // it. So a field with more than 30 marks in a row is compared without normalization.
  return `(CASE WHEN octet_length(${column}) = char_length(${column}) THEN lower(${column} COLLATE "C")
    WHEN ${column} !~ '[^${plainCharacters}]' THEN ${lower}
    WHEN ${column} !~ '[^\u0001-ɏḀ-ỿ]' THEN ${withoutMarks}
    WHEN char_length(${lower}) > 30 AND ${lower} ~ '${getMarkClass()}{31}' THEN ${lower}
    ELSE normalize(${withoutMarks}, NFC) END) COLLATE "C"`
}

/**
 * The patterns of PostgreSQL have no Unicode properties such as `\p{M}`. So this lists the marks of
 * the first two planes, the characters there that Unicode has not assigned yet, which may become
 * marks, and the variation selectors.
 */
const getMarkClass = computeOnce(() => {
  const planes = Array.from({ length: 0x2_0000 }, (_, code) => String.fromCodePoint(code)).join('')
  const runs = Array.from(planes.matchAll(/[\p{M}\p{Cn}]+/gu), ([run]) => Array.from(run))
  const ranges = runs.map((characters) => `${characters[0]}-${characters.at(-1)}`)
  return `[${ranges.join('')}\u{e0100}-\u{e01ef}]`
})

function computeOnce<T>(compute: () => T): () => T {
  let result: T | undefined
  return () => {
    result ??= compute()
    return result
  }
}
