/*
 * What is the same to a search and to a sort, in all stores: see docs/design/search.md.
 */

/**
 * The marks of a Latin letter in decomposed text (NFD), as a pattern of JavaScript and of
 * PostgreSQL.
 */
export const latinMarks = '(?<=[A-Za-zªºÀ-ÖØ-öø-ʸᴀ-ᴥḀ-ỿⱠ-ⱿꜢ-ꞇＡ-Ｚａ-ｚ])[\u0300-\u036f]+'

const allLatinMarks = RegExp(latinMarks, 'g')

/**
 * The time to normalize a run of marks grows with the square of its length, so such a text stays as
 * it is. What has no meaning yet may be a mark to another version of Unicode, as a database has it:
 * but beyond the first two planes, where there are only variation selectors.
 */
function hasLongRun(text: string): boolean {
  return /(?:(?![\u{20000}-\u{e00ff}\u{e01f0}-\u{10ffff}])[\p{M}\p{Cn}]){31}/u.test(text)
}

const surrogatesOfEmoji = '\ud83c\ud83d\udc00-\udfff'
/**
 * All but the characters, in lower case, that no normalization changes, whatever is beside them.
 */
const unusual = RegExp(
  `[^\0-´¶-¿ÆÐØÞæðøþĐđŁłŒœΆΈ-ώЀ-҂Ҋ-ԯא-תء-ي\u200c-‧\u3000-〩ぁ-ゖ゠-ヿ一-龥가-힣！-～${surrogatesOfEmoji}]`,
)

/**
 * Equal for texts that are the same to a search: in lower case, with `ss` for `ß`, and without the
 * accents of Latin letters. Marks of other scripts stay, because they make another letter, such as
 * `й`. In linear time.
 */
export function foldText(text: string): string {
  if (ascii.test(text)) return text.toLowerCase()
  let folded = ''
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index)
    const folding = foldings.get(code) ?? addFolding(code)
    if (folding === undefined) return foldAny(text)
    folded += folding
  }
  return folded
}

const ascii = /^[\0-\x7f]*$/

/**
 * Of a UTF-16 code unit; undefined if it depends on what is beside it. A lookup takes a tenth of
 * the time of folding.
 */
const foldings = new Map<number, string | undefined>()

function addFolding(code: number): string | undefined {
  if (foldings.has(code)) return undefined
  const folded = foldAny(String.fromCharCode(code))
  const folding = unusual.test(folded) ? undefined : folded
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

export function normalForms(text: string): string[] {
  return hasLongRun(text) ? [text] : [text, text.normalize(), text.normalize('NFD')]
}

function foldAny(text: string): string {
  // The lower case of JavaScript has another sigma at the end of a word.
  const lower = text.toUpperCase().toLowerCase().replaceAll('ß', 'ss').replaceAll('ς', 'σ')
  if (hasLongRun(lower)) return lower
  return lower.normalize('NFD').replace(allLatinMarks, '').normalize('NFC')
}
