/*
 * Decides which strings are equal to a search and to a sort, in all stores alike. JavaScript,
 * SQLite and PostgreSQL have different rules for case and accents, so one function folds strings,
 * and PostgreSQL gets a pattern that only excludes what cannot match. docs/design/search.md says
 * why, and what was tried.
 */

/**
 * Matches the marks that follow a Latin letter in decomposed text (NFD). The pattern means the same
 * in JavaScript and in PostgreSQL.
 */
export const latinMarks = '(?<=[A-Za-zªºÀ-ÖØ-öø-ʸᴀ-ᴥḀ-ỿⱠ-ⱿꜢ-ꞇＡ-Ｚａ-ｚ])[\u0300-\u036f]+'

const allLatinMarks = RegExp(latinMarks, 'g')

/**
 * Whether a string has more than 30 marks in a row. The time to normalize such a run grows with the
 * square of its length, so the string stays as it is.
 *
 * An unassigned code point counts as a mark, because a database with a newer version of Unicode may
 * know it as one. Planes 2 and above are excluded: their only marks are variation selectors.
 */
function hasLongRun(text: string): boolean {
  return /(?:(?![\u{20000}-\u{e00ff}\u{e01f0}-\u{10ffff}])[\p{M}\p{Cn}]){31}/u.test(text)
}

const surrogatesOfEmoji = '\ud83c\ud83d\udc00-\udfff'
/**
 * Matches a character that normalization may change, by itself or together with its neighbors. The
 * characters in the brackets are those that it never changes.
 */
const changeable = RegExp(
  `[^\0-´¶-¿ÆÐØÞæðøþĐđŁłŒœΆΈ-ώЀ-҂Ҋ-ԯא-תء-ي\u200c-‧\u3000-〩ぁ-ゖ゠-ヿ一-龥가-힣！-～${surrogatesOfEmoji}]`,
)

/**
 * Returns the form of a string that a search compares: in lower case, with `ss` for `ß`, and
 * without the accents of Latin letters. The marks of other scripts stay, because they make another
 * letter: `й` is not `и`. The time is linear in the length of the string.
 */
export function foldText(text: string): string {
  if (ascii.test(text)) return text.toLowerCase()
  let folded = ''
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    const folding = foldings.get(code) ?? addFolding(code)
    if (folding === dependsOnNeighbors) return foldAny(text)
    folded += folding
  }
  return folded
}

const ascii = /^[\0-\x7f]*$/

/** Stands for a form that depends on the neighbors. No plant has U+0000. */
const dependsOnNeighbors = '\0'

/**
 * The folded form of each UTF-16 code unit that was met. A lookup takes a tenth of the time of
 * folding.
 */
const foldings = new Map<number, string>()

function addFolding(code: number): string {
  const folded = foldAny(String.fromCharCode(code))
  const folding = changeable.test(folded) ? dependsOnNeighbors : folded
  foldings.set(code, folding)
  return folding
}

/**
 * Returns a key whose order by `<` is that of the text by code points, as in UTF-8 and in a sorted
 * list: `<` compares code units, so it would put `🌿` (U+1F33F, of two surrogates) before U+FFFF.
 */
export function toSortKey(text: string): string {
  return text.replace(/[\ud800-\uffff]/g, (unit) => {
    const code = unit.charCodeAt(0)
    const isSurrogate = code < 0xe000
    return String.fromCharCode(isSurrogate ? code + 0x2000 : code - 0x800)
  })
}

/** Returns the string and its composed and decomposed forms, which a store may contain. */
export function listNormalForms(text: string): string[] {
  return hasLongRun(text) ? [text] : [text, text.normalize(), text.normalize('NFD')]
}

function foldAny(text: string): string {
  const lower = toFoldedCase(text)
  if (hasLongRun(lower)) return lower
  return lower.normalize('NFD').replace(allLatinMarks, '').normalize('NFC')
}

/** `toLowerCase` writes a final sigma as ς, so both forms become σ. */
export function toFoldedCase(text: string): string {
  return text.toUpperCase().toLowerCase().replaceAll('ß', 'ss').replaceAll('ς', 'σ')
}
