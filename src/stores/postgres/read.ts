/* Reads plants, and folds texts in SQL for searches and sorts: see docs/design/search.md. */
import { escapeLiteral } from 'pg'
import type { TextName } from '../../plant/fields.js'
import { foldText, latinMarks, listNormalForms } from '../../plant/folding.js'
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
 * In the order of ids, each page at a moment of its own: it ends with the plant that fills a
 * million bytes.
 */
export function readPages(database: PostgresDatabase, query: ReadQuery) {
  return readInPages(query, async (after, rows) => {
    const { where, order } = await buildClauses(database, { ...query, after })
    const size = 'octet_length(name) + coalesce(octet_length(tag), 0)'
    const before = `sum(${size}) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) - (${size})`
    const page = `SELECT ${columns}, ${before} AS before FROM ${plants} ${where} ORDER BY ${order} LIMIT ${rows}`
    const found = `SELECT ${columns} FROM (${page}) AS page WHERE before < 1000000 ORDER BY ${order}`
    const options = { maxRows: rows, signal: query.signal }
    const reading = mayScan(query) ? database.scan(found, options) : database.read(found, rows)
    return toPlants(await reading, database.name)
  })
}

/** A plain list reads the index of the ids, and ends with its limit. */
function mayScan({ tag, search, sort = 'id' }: ReadQuery): boolean {
  return tag !== undefined || search !== undefined || sort !== 'id'
}

/** One consistent snapshot, in arrays of about 64 KiB. */
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
  field: TextName,
  query: CountQuery,
): Promise<TextCounts> {
  const { where } = await buildClauses(database, query)
  // Another collation, which the owner of the table may choose, can take other texts for equal.
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
  // Whose `upper` and `lower` are Unicode's.
  const newest = `SELECT coalesce(to_regcollation('pg_unicode_fast')::text, 'und-x-icu')`
  const [[collation] = []] = isFolded ? await database.read(newest) : []
  const conditions: string[] = []
  if (after !== undefined) conditions.push(`id ${desc && sort === 'id' ? '<' : '>'} '${after}'`)
  if (tag === false) conditions.push('tag IS NULL')
  else if (tag !== undefined) conditions.push(`tag IN (${listNormalForms(tag).map(escapeLiteral)})`)
  if (search !== undefined) {
    const sought = foldText(search)
    const found = ['name', 'tag'].map((column) => containsSql(column, sought, `${collation}`))
    conditions.push(`(${found.join(' OR ')})`)
  }
  const byText = () =>
    `${sort} IS NULL, ${buildFoldedText(sort, `${collation}`)} ${direction}, ${sort} COLLATE "C" ${direction}, id`
  return {
    where: conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`,
    order: sort === 'id' ? `id ${direction}` : byText(),
  }
}

/**
 * `foldText` in SQL, with the same result in any locale, for all letters in the database's version
 * of Unicode. The full case mapping of PostgreSQL 18, and of ICU before, differs from JavaScript's
 * in the final sigma, which is folded away.
 *
 * To normalize takes most of the time, so most texts take a shorter way: those with umlauts are
 * searched in a sixth to a tenth of it. A search with a subquery is never parallel.
 */

/** Characters that no normalization changes, whatever is beside them, unless a mark is. */
const plain =
  '\u0001-¿ɐ-˿ΆΈ-҂Ҋ-ԯא-תء-ي\u200c-‧　-〩ぁ-ゖ゠-ヿ一-龥가-힣！-＠［-｀｛-～\u{1f000}-\u{1f7ff}'
/** Latin letters that fold to one other each, but for `ß`. */
const composedLatin = 'À-ňŊ-ɏḀ-ẙẛ-ẝẟ-ỿ'

export function buildFoldedText(column: string, collation: string): string {
  const inLowerCase = `lower(upper(${column} COLLATE "${collation}") COLLATE "${collation}") COLLATE "C"`
  const lower = `replace(replace(${inLowerCase}, 'ς', 'σ'), 'ß', 'ss')`
  const bare = `regexp_replace(normalize(${lower}, NFD), '${latinMarks}', '', 'g')`
  // To normalize a run of marks takes a time that grows with the square of its length, which no
  // timeout ends.
  return `(CASE WHEN ${isAscii(column)} THEN lower(${column} COLLATE "C")
    WHEN ${lower} !~ '[^${plain}]' THEN ${lower}
    WHEN ${lower} !~ '[^\u0001-ɏḀ-ỿ]' THEN ${bare}
    WHEN char_length(${lower}) > 30 AND ${lower} ~ '${marks()}{31}' THEN ${lower}
    ELSE normalize(${bare}, NFC) END) COLLATE "C"`
}

function containsSql(column: string, folded: string, collation: string): string {
  const sought = escapeLiteral(folded)
  const text = folded.includes('s') ? `replace(${column}, 'ß', 'ss')` : column
  return `CASE WHEN ${isAscii(column)} THEN strpos(lower(${column} COLLATE "C"), ${sought}) > 0
    WHEN ${column} !~ '[^${plain}${composedLatin}]' THEN ${text} ~ ${escapeLiteral(buildPattern(folded))}
    ELSE strpos(${buildFoldedText(column, collation)}, ${sought}) > 0 END`
}

function isAscii(column: string): string {
  return `octet_length(${column}) = char_length(${column})`
}

/** Each character, or another that folds to it, as a pattern of PostgreSQL. */
function buildPattern(folded: string): string {
  return Array.from(folded, (character) => {
    const others = letters().get(character)
    return others ? `[${character}${others}]` : character.replace(/[$()*+.?[\\\]^{|}]/, '\\$&')
  }).join('')
}

const letters = once(() => {
  const found = new Map<string, string>()
  const simple = RegExp(`[${plain}${composedLatin}]`, 'u')
  for (let code = 1; code < 0x1f00; code += 1) {
    const letter = String.fromCodePoint(code)
    const folded = foldText(letter)
    if (folded !== letter && simple.test(letter))
      found.set(folded, `${found.get(folded) ?? ''}${letter}`)
  }
  return found
})

/** PostgreSQL knows no properties. Of the first two planes, and of variation selectors. */
const marks = once(() => {
  const planes = Array.from({ length: 0x2_0000 }, (_, code) => String.fromCodePoint(code)).join('')
  const runs = Array.from(planes.matchAll(/[\p{M}\p{Cn}]+/gu), ([run]) => Array.from(run))
  const ranges = runs.map((characters) => `${characters[0]}-${characters.at(-1)}`)
  return `[${ranges.join('')}\u{e0100}-\u{e01ef}]`
})

function once<T>(make: () => T): () => T {
  let made: T | undefined
  return () => {
    made ??= make()
    return made
  }
}
