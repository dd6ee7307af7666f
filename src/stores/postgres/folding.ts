/**
 * How texts are folded and searched in SQL, with the same result as in JavaScript (`foldText`, `contains`), whatever the
 * locale of the database and the versions of its libraries.
 */

import type { ConnectionPool } from './pool.js'
import {
  casedLetter,
  composedLatin,
  foldCase,
  joiner,
  marksOfLatin,
  partOfRun,
  plain,
  runs,
  type Sought,
} from './search-patterns.js'
import { literal } from './sql.js'

/** As `contains` of the search does, with short ways for ASCII and for plain texts. */
export function containsSql(column: string, { folded, pattern, hasSharp }: Sought): string {
  const composed = `normalize(${withoutMarks(column)}, NFC)`
  const normal = `CASE WHEN ${column} ~ ${notOf(plain + composedLatin)} THEN ${composed} ELSE ${column} END`
  const text = hasSharp ? `replace(replace(${normal}, 'ß', 'ss'), 'ẞ', 'ss')` : `(${normal})`
  const inAscii = `strpos(lower(${column} COLLATE "C"), ${literal(folded)}) > 0`
  return `CASE WHEN ${isAscii(column)} THEN ${inAscii} ELSE ${text} ~ ${literal(pattern)} END`
}

/** A collation with the lower case of all letters. */
export type LowerCase = 'pg_c_utf8' | 'und-x-icu'

/** Undefined for PostgreSQL before version 17 without ICU. */
export async function findLowerCase(pool: ConnectionPool): Promise<LowerCase | undefined> {
  const names: readonly LowerCase[] = ['pg_c_utf8', 'und-x-icu']
  const rows =
    await pool.query(`SELECT collname FROM pg_collation WHERE collnamespace = 'pg_catalog'::regnamespace
    AND collname IN (${names.map(literal).join()})`)
  return names.find((name) => rows.some(([found]) => found === name))
}

/** As `foldText` does, to be sorted by. A subquery keeps what is used several times: normalizing takes most of the time. */
export function foldedSql(column: string, lowerCase: LowerCase | undefined): string {
  const composed = `SELECT normalize(stripped, NFC) AS composed OFFSET 0`
  const stripped = `SELECT ${withoutMarks(column)} AS stripped OFFSET 0`
  return `(CASE WHEN ${isAscii(column)} THEN lower(${column} COLLATE "C")
    WHEN ${column} !~ ${notOf(plain)} THEN ${inLowerCase(column, lowerCase)}
    ELSE (SELECT CASE WHEN ${isAscii('stripped')} THEN lower(stripped COLLATE "C")
      ELSE (SELECT ${inLowerCase('composed', lowerCase)} FROM (${composed}) AS texts) END FROM (${stripped}) AS texts)
    END) COLLATE "C"`
}

/** To translate looks through all letters for each character, so it is for what depends on a version. */
function inLowerCase(column: string, lowerCase: LowerCase | undefined): string {
  tables ??= makeTables()
  const translated = `translate(${column}, ${literal(tables.from)}, ${literal(tables.to)})`
  const lower = `replace(lower(${column} COLLATE pg_catalog."${lowerCase}") COLLATE "C", 'ς', 'σ')`
  const isRare = `${column} ~ ${literal(tables.letters)}`
  return `replace(${lowerCase ? `CASE WHEN ${isRare} THEN ${translated} ELSE ${lower} END` : translated}, 'ß', 'ss')`
}

/** Decomposed (NFD). */
function withoutMarks(column: string): string {
  marks ??= rangesOf(runs)
  const [part, joined] = [partOfRun(marks), `\\&${joiner}`].map(literal)
  const mayHaveLongRun = `char_length(${column}) > 30 AND ${column} ~ ${notOf(plain + composedLatin)}`
  const divided = `regexp_replace(${column}, ${part}, ${joined}, 'g')`
  const decomposed = `normalize(CASE WHEN ${mayHaveLongRun} THEN ${divided} ELSE ${column} END, NFD)`
  return `regexp_replace(${decomposed}, ${literal(marksOfLatin)}, '', 'g')`
}

function isAscii(column: string): string {
  return `octet_length(${column}) = char_length(${column})`
}

function notOf(characters: string): string {
  return literal(`[^${characters}\u{1f000}-\u{1f7ff}]`)
}

let marks: string | undefined
let tables: { letters: string; from: string; to: string } | undefined

/** The letters of which the lower case depends on a version, or is not what they fold to; and all that fold to another. */
function makeTables() {
  const cased = allCharacters().match(RegExp(casedLetter, 'gu')) ?? []
  const common = RegExp(`(?![µſϐϑϕϖϰϱϵẞ])[${plain}${composedLatin}]`, 'u')
  const pairs = cased
    .map((letter) => [letter, foldCase(letter)] as const)
    .filter(([letter, folded]) => letter !== folded && letter !== 'İ')
  const [from, to] = [0, 1].map((side) => pairs.map((pair) => pair[side]).join(''))
  return {
    letters: `[${cased.filter((letter) => !common.test(letter)).join('')}]`,
    from: from ?? '',
    to: to ?? '',
  }
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
