/**
 * `foldText` in SQL, with the same result whatever the locale of the database, for all letters that are in its version of
 * Unicode. PostgreSQL 18 has the full case mapping itself; before, ICU has it, and both differ from JavaScript's in
 * nothing but the final sigma, which is folded away.
 *
 * To normalize takes most of the time, so most texts take a shorter way: those with umlauts are searched in a sixth to a
 * tenth of the time. A subquery would save a repetition here and there, but a search with one is never parallel.
 */
import { foldText, latinMarks } from '../common/search.js'
import { type Connection, literal } from './connection.js'

/** A collation whose `upper` and `lower` are Unicode's. */
export type Collation = 'pg_unicode_fast' | 'und-x-icu'

export async function findCollation(connection: Connection): Promise<Collation> {
  const [row] = await connection.read(`SELECT FROM pg_collation WHERE collname = 'pg_unicode_fast'`)
  return row ? 'pg_unicode_fast' : 'und-x-icu'
}

/** Characters that no normalization changes, whatever is beside them, unless a mark is. */
const plain =
  '\u0001-¿ɐ-˿ΆΈ-҂Ҋ-ԯא-תء-ي\u200c-‧　-〩ぁ-ゖ゠-ヿ一-龥가-힣！-＠［-｀｛-～\u{1f000}-\u{1f7ff}'
/** Latin letters that fold to one other each, but for `ß`. */
const composedLatin = 'À-ňŊ-ɏḀ-ẙẛ-ẝẟ-ỿ'

/** In the order of code points. */
export function foldedSql(column: string, collation: Collation): string {
  const inLowerCase = `lower(upper(${column} COLLATE "${collation}") COLLATE "${collation}") COLLATE "C"`
  const lower = `replace(replace(${inLowerCase}, 'ς', 'σ'), 'ß', 'ss')`
  const bare = `regexp_replace(normalize(${lower}, NFD), '${latinMarks}', '', 'g')`
  // To normalize a run of marks takes a time that grows with the square of its length, which no timeout ends.
  return `(CASE WHEN ${isAscii(column)} THEN lower(${column} COLLATE "C")
    WHEN ${lower} !~ '[^${plain}]' THEN ${lower}
    WHEN ${lower} !~ '[^\u0001-ɏḀ-ỿ]' THEN ${bare}
    WHEN char_length(${lower}) > 30 AND ${lower} ~ '${classOfMarks()}{31}' THEN ${lower}
    ELSE normalize(${bare}, NFC) END) COLLATE "C"`
}

/** Whether a text contains another, which is folded. */
export function containsSql(column: string, folded: string, collation: Collation): string {
  const sought = literal(folded)
  const text = folded.includes('s') ? `replace(${column}, 'ß', 'ss')` : column
  return `CASE WHEN ${isAscii(column)} THEN strpos(lower(${column} COLLATE "C"), ${sought}) > 0
    WHEN ${column} !~ '[^${plain}${composedLatin}]' THEN ${text} ~ ${literal(patternOf(folded))}
    ELSE strpos(${foldedSql(column, collation)}, ${sought}) > 0 END`
}

function isAscii(column: string): string {
  return `octet_length(${column}) = char_length(${column})`
}

/** Each character, or another that folds to it, as a pattern of PostgreSQL. */
function patternOf(folded: string): string {
  letters ??= lettersThatFold()
  return Array.from(folded, (character) => {
    const others = letters?.get(character)
    return others ? `[${character}${others}]` : character.replace(/[$()*+.?[\\\]^{|}]/, '\\$&')
  }).join('')
}

let letters: Map<string, string> | undefined

function lettersThatFold(): Map<string, string> {
  const found = new Map<string, string>()
  const simple = RegExp(`[${plain}${composedLatin}]`, 'u')
  for (let code = 1; code < 0x1f00; code += 1) {
    const letter = String.fromCodePoint(code)
    const folded = foldText(letter)
    if (folded !== letter && simple.test(letter))
      found.set(folded, `${found.get(folded) ?? ''}${letter}`)
  }
  return found
}

let marks: string | undefined

/** PostgreSQL knows no properties. Of the first two planes, and of variation selectors. */
function classOfMarks(): string {
  if (marks !== undefined) return marks
  const planes = Array.from({ length: 0x2_0000 }, (_, code) =>
    code >= 0xd800 && code < 0xe000 ? '' : String.fromCodePoint(code),
  ).join('')
  const runs = planes.matchAll(/(?:(?!\p{Noncharacter_Code_Point})[\p{M}\p{Cn}])+/gu)
  const ranges = Array.from(runs, ([run]) => Array.from(run)).map(
    (characters) => `${characters[0]}-${characters.at(-1)}`,
  )
  marks = `[${ranges.join('')}\u{e0100}-\u{e01ef}]`
  return marks
}
