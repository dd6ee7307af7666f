/*
 * Decides which strings are equal to a search and to a sort, in all stores alike. JavaScript,
 * SQLite and PostgreSQL have different rules for case and accents, so `foldString` defines them.
 * SQLite calls it; `stores/postgres/read.ts` says the same in SQL, which a test compares with it.
 * docs/design/search.md says why, and what was tried.
 */

/**
 * A pattern of the marks that follow a Latin letter in a decomposed string (NFD). It means the same
 * in JavaScript and in PostgreSQL.
 */
export const latinMarksPattern = '(?<=[A-Za-zªºÀ-ÖØ-öø-ʸᴀ-ᴥḀ-ỿⱠ-ⱿꜢ-ꞇＡ-Ｚａ-ｚ])[\u0300-\u036f]+'

const allLatinMarks = RegExp(latinMarksPattern, 'g')

/**
 * Returns true for a string with more than 30 marks in a row. The time to normalize such a run
 * grows with the square of its length, so such a string is not normalized.
 *
 * An unassigned code point counts as a mark, because a database with a newer version of Unicode may
 * know it as one. Planes 2 and above are excluded: their only marks are variation selectors.
 */
function hasLongRun(string: string): boolean {
  return /(?:(?![\u{20000}-\u{e00ff}\u{e01f0}-\u{10ffff}])[\p{M}\p{Cn}]){31}/u.test(string)
}

const emojiSurrogates = '\ud83c\ud83d\udc00-\udfff'
/**
 * Matches a character that normalization may change, by itself or together with its neighbors. The
 * brackets list the characters that normalization never changes.
 */
const normalizableCharacter = RegExp(
  `[^\0-´¶-¿ÆÐØÞæðøþĐđŁłŒœΆΈ-ώЀ-҂Ҋ-ԯא-תء-ي\u200c-‧\u3000-〩ぁ-ゖ゠-ヿ一-龥가-힣！-～${emojiSurrogates}]`,
)

/**
 * Returns the form of a string that a search compares: in lower case, with `ss` for `ß`, and
 * without the accents of Latin letters. The marks of other scripts stay, because they make another
 * letter: `й` is not `и`. The time is linear in the length of the string.
 */
export function foldString(string: string): string {
  if (asciiOnly.test(string)) return string.toLowerCase()
  let foldedString = ''
  for (let index = 0; index < string.length; index += 1) {
    const code = string.charCodeAt(index)
    const folding = cachedFoldings.get(code) ?? cacheFolding(code)
    if (folding === dependsOnNeighbors) return foldByNormalizing(string)
    foldedString += folding
  }
  return foldedString
}

const asciiOnly = /^[\0-\x7f]*$/

/**
 * The cached folding of a code unit that folds differently next to other characters. No plant
 * contains U+0000, so no code unit folds to it.
 */
const dependsOnNeighbors = '\0'

/**
 * The folded form of each UTF-16 code unit that has occurred. To look it up takes a tenth of the
 * time that it takes to fold the code unit.
 */
const cachedFoldings = new Map<number, string>()

function cacheFolding(code: number): string {
  const foldedString = foldByNormalizing(String.fromCharCode(code))
  const folding = normalizableCharacter.test(foldedString) ? dependsOnNeighbors : foldedString
  cachedFoldings.set(code, folding)
  return folding
}

/**
 * Returns the form in which an import compares the names of a list with those of the store, as
 * gardeners write them: without regard to case, to white space, to the form of quotes, and to the
 * sign of a hybrid, which is `×` or the word `x`. Accents count.
 */
export function foldName(name: string): string {
  const lowerCase = name.toLowerCase()
  if (plainName.test(lowerCase)) return lowerCase
  const composedName = hasLongRun(lowerCase) ? lowerCase : lowerCase.normalize()
  return composedName
    .replace(/[’‘´`]/g, "'")
    .replace(/[“”„]/g, '"')
    .replace(/(?<!\S)x(?!\S)/g, '×')
    .replace(/×(?=\p{L})/gu, '× ')
    .trim()
    .replace(/\s+/g, ' ')
}

/** Matches the folded form of most names: words of two letters or more, with single spaces. */
const plainName = /^[a-z]{2,}(?: [a-z]{2,})*$/

/**
 * Returns a key by which `<` sorts strings in the order of their code points, which is also the
 * order of their bytes in UTF-8. `<` compares UTF-16 code units, so without the key it would put
 * `🌿` (U+1F33F, two surrogates) before U+FFFF.
 */
export function toSortKey(string: string): string {
  return string.replace(/[\ud800-\uffff]/g, (unit) => {
    const code = unit.charCodeAt(0)
    const isSurrogate = code < 0xe000
    return String.fromCharCode(isSurrogate ? code + 0x2000 : code - 0x800)
  })
}

/**
 * Returns the string, its composed form (NFC) and its decomposed form (NFD). A store may contain
 * each of the three.
 */
export function listNormalForms(string: string): string[] {
  return hasLongRun(string) ? [string] : [string, string.normalize(), string.normalize('NFD')]
}

function foldByNormalizing(string: string): string {
  const foldedCase = foldCase(string)
  if (hasLongRun(foldedCase)) return foldedCase
  return foldedCase.normalize('NFD').replace(allLatinMarks, '').normalize('NFC')
}

/** `toLowerCase` writes a final sigma as ς, so both forms become σ. */
function foldCase(string: string): string {
  return string.toUpperCase().toLowerCase().replaceAll('ß', 'ss').replaceAll('ς', 'σ')
}
