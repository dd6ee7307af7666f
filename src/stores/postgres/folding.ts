/**
 * How texts are folded and searched in SQL, with the same result as in JavaScript (`foldText`, `contains`), whatever the
 * locale of the database and the versions of its libraries.
 */
import {
  casedLetter,
  composedLatin,
  foldCase,
  joiner,
  latinMarks,
  partOfRun,
  plain,
  runs,
  type Sought,
} from '../common/search.js'
import type { ConnectionPool } from './pool.js'
import { literal } from './sql.js'

/** As `contains` of the search does, with short ways for ASCII and for plain texts. */
export function containsSql(column: string, { folded, pattern, hasSharp }: Sought): string {
  const normal = `CASE WHEN ${column} ~ ${notOf(plain + composedLatin)} THEN ${withoutMarks(column)} ELSE ${column} END`
  const text = hasSharp ? `replace(replace(${normal}, 'ß', 'ss'), 'ẞ', 'ss')` : `(${normal})`
  const inAscii = `strpos(lower(${column} COLLATE "C"), ${literal(folded)}) > 0`
  return `CASE WHEN ${isAscii(column)} THEN ${inAscii} ELSE ${text} ~ ${literal(pattern)} END`
}

/** A collation with the lower case of all letters. */
export type LowerCase = 'pg_c_utf8' | 'und-x-icu'

/** Undefined for PostgreSQL before version 17 without ICU. */
export async function findLowerCase(pool: ConnectionPool): Promise<LowerCase | undefined> {
  const names: readonly LowerCase[] = ['pg_c_utf8', 'und-x-icu']
  const rows = await pool.query(`SELECT collname FROM pg_collation WHERE collnamespace = 'pg_catalog'::regnamespace
    AND collname IN (${names.map(literal).join()})`)
  return names.find((name) => rows.some(([found]) => found === name))
}

/** As `foldText` does, to be sorted by. The subquery has a text normalized once. */
export function foldedSql(column: string, lowerCase: LowerCase | undefined): string {
  tables ??= makeTables()
  const { letters, from, to } = tables
  const normal = `CASE WHEN ${column} ~ ${notOf(plain)} THEN ${withoutMarks(column)} ELSE ${column} END`
  // It looks through all letters for each character, so it is for texts whose lower case depends on a version.
  const translated = `translate(normal, ${literal(from)}, ${literal(to)})`
  const lower = `replace(lower(normal COLLATE pg_catalog."${lowerCase}") COLLATE "C", 'ς', 'σ')`
  const any = lowerCase ? `CASE WHEN normal ~ ${literal(letters)} THEN ${translated} ELSE ${lower} END` : translated
  const ascii = 'lower(normal COLLATE "C")'
  const folded = `CASE WHEN ${isAscii('normal')} THEN ${ascii} ELSE replace(${any}, 'ß', 'ss') END`
  const short = `CASE WHEN ${isAscii(column)} THEN lower(${column} COLLATE "C")`
  return `(${short} ELSE (SELECT ${folded} FROM (SELECT ${normal} AS normal OFFSET 0) AS texts) END) COLLATE "C"`
}

function withoutMarks(column: string): string {
  marks ??= rangesOf(runs)
  const [part, joined] = [partOfRun(marks), `\\&${joiner}`].map(literal)
  const decomposed = `normalize(regexp_replace(${column}, ${part}, ${joined}, 'g'), NFD)`
  return `normalize(regexp_replace(${decomposed}, ${literal(latinMarks)}, '', 'g'), NFC)`
}

function isAscii(column: string): string {
  return `octet_length(${column}) = char_length(${column})`
}

function notOf(characters: string): string {
  return literal(`[^${characters}\u{1f000}-\u{1f7ff}]`)
}

let marks: string | undefined
let tables: { letters: string; from: string; to: string } | undefined

/** Takes 15 ms. */
function makeTables() {
  const cased = allCharacters().match(RegExp(casedLetter, 'gu')) ?? []
  const pairs = cased
    .map((letter) => [letter, foldCase(letter)] as const)
    .filter(([letter, folded]) => letter !== folded && letter !== 'İ')
  const [from, to] = [0, 1].map((side) => pairs.map((pair) => pair[side]).join(''))
  const rare = RegExp(`(?:(?![${plain}${composedLatin}])${casedLetter}|[µſϐϑϕϖϰϱϵẞ])+`, 'gu')
  return { letters: rangesOf(rare), from: from ?? '', to: to ?? '' }
}

/** A character class, because PostgreSQL knows no properties. Takes 15 ms. */
export function rangesOf(runsOfCharacters: RegExp): string {
  const found = allCharacters().match(runsOfCharacters) ?? []
  return `[${found.map((run) => run.replace(/^(.).*?(.?)$/su, (_, first, last) => `${first}-${last || first}`)).join('')}]`
}

/** Of the first two planes: only they have scripts. */
function allCharacters(): string {
  const codes = Uint32Array.from(Array(0x1000).keys())
  const blocks = Array.from({ length: 0x20 }, (_, block) =>
    String.fromCodePoint(...codes.map((code) => block * 0x1000 + code)),
  )
  return blocks.join('')
}
