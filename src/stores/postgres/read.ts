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
  type ReadQuery,
  readInPages,
  type TextCounts,
} from '../query.js'
import type { LineFormat, PlantLines } from '../store.js'
import { createTooManyRowsError } from './client.js'
import { parseCopyRows } from './copy-text.js'
import type { PostgresDatabase } from './database.js'
import { toCount, toPlants, toText } from './rows.js'
import { columns, plants } from './schema.js'

/**
 * Reads in the order of ids. Each page is read by a separate statement, and so shows the store at a
 * moment of its own. It ends with the plant with which it has a million bytes.
 */
export function readPages(database: PostgresDatabase, query: ReadQuery) {
  return readInPages(query, async (after, rows) => {
    const { where, order } = await buildClauses(database, { ...query, after })
    const size = 'octet_length(name) + coalesce(octet_length(tag), 0)'
    const before = `sum(${size}) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) - (${size})`
    const page = `SELECT ${columns}, ${before} AS before FROM ${plants} ${where} ORDER BY ${order} LIMIT ${rows}`
    const select = `SELECT ${columns} FROM (${page}) AS page WHERE before < 1000000 ORDER BY ${order}`
    const options = { maxRows: rows, signal: query.signal }
    const reading = mayScan(query) ? database.scan(select, options) : database.read(select, rows)
    return toPlants(await reading, database.name)
  })
}

/** A plain list only reads the index of the ids, up to its limit, and so needs no scan. */
function mayScan({ tag, search, sort = 'id' }: ReadQuery): boolean {
  return tag !== undefined || search !== undefined || sort !== 'id'
}

/** Reads one consistent snapshot, in arrays of about 64 KiB. */
export async function* readSnapshot(database: PostgresDatabase, query: ReadQuery) {
  const parse = (chunks: AsyncIterable<Buffer>) => parseCopyRows(chunks, database.name)
  for await (const rows of streamSnapshot(database, query, parse))
    yield toPlants(rows, database.name)
}

/** The same snapshot as lines of a file. */
export async function* readSnapshotLines(
  database: PostgresDatabase,
  query: ReadQuery,
  format: LineFormat,
): AsyncGenerator<PlantLines> {
  const { formatCopyLines } = await import('./format-lines.js')
  const { name } = database
  yield* streamSnapshot(database, query, (chunks) => formatCopyLines(chunks, format, name))
}

async function* streamSnapshot<T extends { length: number }>(
  database: PostgresDatabase,
  query: ReadQuery,
  parse: (chunks: AsyncIterable<Buffer>) => AsyncGenerator<T>,
): AsyncGenerator<T> {
  const { where, order } = await buildClauses(database, query)
  const limit = query.limit === undefined ? '' : `LIMIT ${query.limit}`
  const select = `SELECT ${columns} FROM ${plants} ${where} ORDER BY ${order} ${limit}`
  let rowsLeft = query.limit ?? Infinity
  for await (const rows of database.streamRows(select, parse)) {
    query.signal?.throwIfAborted()
    rowsLeft -= rows.length
    if (rowsLeft < 0) throw createTooManyRowsError(database.name)
    yield rows
  }
}

export async function queryTextCounts(
  database: PostgresDatabase,
  field: StringFieldName,
  query: CountQuery,
): Promise<TextCounts> {
  const { where } = await buildClauses(database, query)
  // The owner of the table may have chosen a collation that takes different texts for equal.
  const exactText = `${field} COLLATE "C"`
  const select = `SELECT ${exactText}, count(*) FROM ${plants} ${where} GROUP BY ${exactText}`
  return database.collectRows(select, async (chunks) => {
    const counts: TextCounts = new Map()
    for await (const rows of parseCopyRows(chunks, database.name)) {
      query.signal?.throwIfAborted()
      for (const [text, count] of rows)
        addCount(counts, toText(field, text, database.name), toCount(count, database.name))
    }
    return counts
  })
}

export async function buildClauses(database: PostgresDatabase, query: ReadQuery) {
  const { after, tag, search, sort = 'id', desc } = query
  const direction = desc ? 'DESC' : 'ASC'
  const isFolded = search !== undefined || sort !== 'id'
  // Only these collations have an `upper` and a `lower` that follow Unicode.
  const newest = `SELECT coalesce(to_regcollation('pg_unicode_fast')::text, 'und-x-icu')`
  const [[collation] = []] = isFolded ? await database.read(newest) : []
  const conditions: string[] = []
  if (after !== undefined) conditions.push(`id ${desc && sort === 'id' ? '<' : '>'} '${after}'`)
  if (tag === false) conditions.push('tag IS NULL')
  else if (tag !== undefined) conditions.push(`tag IN (${listNormalForms(tag).map(escapeLiteral)})`)
  if (search !== undefined) {
    const folded = foldString(search)
    const matches = ['name', 'tag'].map((column) =>
      buildSearchCondition(column, folded, `${collation}`),
    )
    conditions.push(`(${matches.join(' OR ')})`)
  }
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  if (sort === 'id') return { where, order: `id ${direction}` }
  // A plant without a tag comes last. Texts that fold alike are in the order of their code points.
  const foldedText = buildFoldedText(sort, `${collation}`)
  const exactText = `${sort} COLLATE "C"`
  const order = `${sort} IS NULL, ${foldedText} ${direction}, ${exactText} ${direction}, id`
  return { where, order }
}

/**
 * The SQL below folds as `foldString` does. It has the same result in any locale, for all letters
 * that the database's version of Unicode has. The full case mapping of PostgreSQL 18, and of ICU in
 * older versions, differs from JavaScript's only in the final sigma (ς), which is therefore folded
 * to σ.
 *
 * Normalization takes most of the time. So most texts take a shorter way: those that are ASCII,
 * those whose characters need no normalization (`plain`), and Latin letters with marks. A search in
 * texts with umlauts then takes a sixth to a tenth of the time. There is no subquery, because
 * PostgreSQL never runs a search with one in parallel.
 */

/** Normalization leaves these characters as they are, unless a mark follows. */
const plain =
  '\u0001-¿ɐ-˿ΆΈ-҂Ҋ-ԯא-תء-ي\u200c-‧　-〩ぁ-ゖ゠-ヿ一-龥가-힣！-＠［-｀｛-～\u{1f000}-\u{1f7ff}'
/** Each of these Latin letters folds to one other letter, except `ß`, which folds to `ss`. */
const composedLatin = 'À-ňŊ-ɏḀ-ẙẛ-ẝẟ-ỿ'

export function buildFoldedText(column: string, collation: string): string {
  const inLowerCase = `lower(upper(${column} COLLATE "${collation}") COLLATE "${collation}") COLLATE "C"`
  const lower = `replace(replace(${inLowerCase}, 'ς', 'σ'), 'ß', 'ss')`
  const bare = `regexp_replace(normalize(${lower}, NFD), '${latinMarksPattern}', '', 'g')`
  // The time to normalize a run of marks grows with the square of its length, and no timeout ends
  // it. So a text with more than 30 marks in a row is compared without normalization.
  return `(CASE WHEN ${buildAsciiTest(column)} THEN lower(${column} COLLATE "C")
    WHEN ${lower} !~ '[^${plain}]' THEN ${lower}
    WHEN ${lower} !~ '[^\u0001-ɏḀ-ỿ]' THEN ${bare}
    WHEN char_length(${lower}) > 30 AND ${lower} ~ '${getMarkClass()}{31}' THEN ${lower}
    ELSE normalize(${bare}, NFC) END) COLLATE "C"`
}

function buildSearchCondition(column: string, folded: string, collation: string): string {
  const literal = escapeLiteral(folded)
  const text = folded.includes('s') ? `replace(${column}, 'ß', 'ss')` : column
  return `CASE WHEN ${buildAsciiTest(column)} THEN strpos(lower(${column} COLLATE "C"), ${literal}) > 0
    WHEN ${column} !~ '[^${plain}${composedLatin}]' THEN ${text} ~ ${escapeLiteral(buildPattern(folded))}
    ELSE strpos(${buildFoldedText(column, collation)}, ${literal}) > 0 END`
}

function buildAsciiTest(column: string): string {
  return `octet_length(${column}) = char_length(${column})`
}

/** Builds a pattern of PostgreSQL that matches each character, or another one that folds to it. */
function buildPattern(folded: string): string {
  return Array.from(folded, (character) => {
    const variants = getVariants().get(character)
    return variants ? `[${character}${variants}]` : character.replace(/[$()*+.?[\\\]^{|}]/, '\\$&')
  }).join('')
}

const getVariants = computeOnce(() => {
  const variants = new Map<string, string>()
  const simple = RegExp(`[${plain}${composedLatin}]`, 'u')
  for (let code = 1; code < 0x1f00; code += 1) {
    const letter = String.fromCodePoint(code)
    const folded = foldString(letter)
    if (folded !== letter && simple.test(letter))
      variants.set(folded, `${variants.get(folded) ?? ''}${letter}`)
  }
  return variants
})

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

function computeOnce<T>(make: () => T): () => T {
  let result: T | undefined
  return () => {
    result ??= make()
    return result
  }
}
