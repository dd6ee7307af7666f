/**
 * `foldText` in SQL, with the same result whatever the locale of the database, for all letters that are in its version of
 * Unicode. PostgreSQL 18 has the full case mapping itself; before, ICU has it, and both differ from JavaScript's in
 * nothing but the final sigma, which is folded away.
 */
import { latinMarks } from '../common/search.js'
import type { Connection } from './connection.js'

/** A collation whose `upper` and `lower` are Unicode's. */
export type Collation = 'pg_unicode_fast' | 'und-x-icu'

export async function findCollation(connection: Connection): Promise<Collation> {
  const [row] = await connection.read(`SELECT FROM pg_collation WHERE collname = 'pg_unicode_fast'`)
  return row ? 'pg_unicode_fast' : 'und-x-icu'
}

/** In the order of code points. A subquery keeps what is used several times. */
export function foldedSql(column: string, collation: Collation): string {
  marks ??= rangesOf(/(?:(?!\p{Noncharacter_Code_Point})[\p{M}\p{Cn}])+/gu)
  const inLowerCase = `lower(upper(${column} COLLATE "${collation}") COLLATE "${collation}") COLLATE "C"`
  const lower = `replace(replace(${inLowerCase}, 'ς', 'σ'), 'ß', 'ss')`
  // To normalize a run of marks takes a time that grows with the square of its length, which no timeout ends.
  const hasLongRun = `char_length(lower) > 30 AND lower ~ '${marks}{31}'`
  const withoutMarks = `normalize(regexp_replace(normalize(lower, NFD), '${latinMarks}', '', 'g'), NFC)`
  return `(CASE WHEN octet_length(${column}) = char_length(${column}) THEN lower(${column} COLLATE "C")
    ELSE (SELECT CASE WHEN ${hasLongRun} THEN lower ELSE ${withoutMarks} END
      FROM (SELECT ${lower} AS lower OFFSET 0) AS texts) END) COLLATE "C"`
}

let marks: string | undefined

/** A character class, because PostgreSQL knows no properties. Of the first two planes, and of variation selectors. */
function rangesOf(runs: RegExp): string {
  const planes = Array.from({ length: 0x2_0000 }, (_, code) =>
    code >= 0xd800 && code < 0xe000 ? '' : String.fromCodePoint(code),
  ).join('')
  const ranges = Array.from(planes.matchAll(runs), ([run]) => {
    const characters = Array.from(run)
    return `${characters[0]}-${characters.at(-1)}`
  })
  return `[${ranges.join('')}\u{e0100}-\u{e01ef}]`
}
