/**
 * `foldText` in SQL, with the same result whatever the locale of the database, for all letters that are in its version of
 * Unicode. PostgreSQL 18 has the full case mapping itself; before, ICU has it, and both differ from JavaScript's in
 * nothing but the final sigma, which is folded away.
 *
 * To normalize takes most of the time, so most texts take a shorter way: those with umlauts are searched in a sixth to a
 * tenth of the time (and by `translate` in twenty times that). A search with a subquery is never parallel.
 */
import { foldText, latinMarks } from '../common/search.js'
import { literal } from './connection.js'

/** Characters that no normalization changes, whatever is beside them, unless a mark is. */
const plain =
  '\u0001-¿ɐ-˿ΆΈ-҂Ҋ-ԯא-תء-ي\u200c-‧　-〩ぁ-ゖ゠-ヿ一-龥가-힣！-＠［-｀｛-～\u{1f000}-\u{1f7ff}'
/** Latin letters that fold to one other each, but for `ß`. */
const composedLatin = 'À-ňŊ-ɏḀ-ẙẛ-ẝẟ-ỿ'

/** In the order of code points. */
export function foldedSql(column: string, collation: string): string {
  const inLowerCase = `lower(upper(${column} COLLATE "${collation}") COLLATE "${collation}") COLLATE "C"`
  const lower = `replace(replace(${inLowerCase}, 'ς', 'σ'), 'ß', 'ss')`
  const bare = `regexp_replace(normalize(${lower}, NFD), '${latinMarks}', '', 'g')`
  // To normalize a run of marks takes a time that grows with the square of its length, which no timeout ends.
  return `(CASE WHEN ${isAscii(column)} THEN lower(${column} COLLATE "C")
    WHEN ${lower} !~ '[^${plain}]' THEN ${lower}
    WHEN ${lower} !~ '[^\u0001-ɏḀ-ỿ]' THEN ${bare}
    WHEN char_length(${lower}) > 30 AND ${lower} ~ '${marks()}{31}' THEN ${lower}
    ELSE normalize(${bare}, NFC) END) COLLATE "C"`
}

/** Whether a text contains another, which is folded. */
export function containsSql(column: string, folded: string, collation: string): string {
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
  return Array.from(folded, (character) => {
    const others = letters().get(character)
    return others ? `[${character}${others}]` : character.replace(/[$()*+.?[\\\]^{|}]/, '\\$&')
  }).join('')
}

/** The letters that fold to a character, by that character. */
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
