/** The marks of a Latin letter in decomposed text (NFD), as a pattern of JavaScript and of PostgreSQL. */
export const latinMarks = '(?<=[A-Za-zªºÀ-ÖØ-öø-ʸᴀ-ᴥḀ-ỿⱠ-ⱿꜢ-ꞇＡ-Ｚａ-ｚ])[\u0300-\u036f]+'

const allLatinMarks = RegExp(latinMarks, 'g')

/** The time to normalize a run of marks grows with the square of its length, so such a text stays as it is. */
const longRun = /\p{M}{31}/u

/**
 * Equal for texts that are the same to a search: in lower case, with `ss` for `ß`, and without the accents of Latin
 * letters. Marks of other scripts stay, because they make another letter, such as `й`. In linear time.
 */
export function foldText(text: string): string {
  // The lower case of JavaScript has another sigma at the end of a word.
  const lower = text.toUpperCase().toLowerCase().replaceAll('ß', 'ss').replaceAll('ς', 'σ')
  const isSlow = lower.length > 30 && longRun.test(lower)
  return isSlow ? lower : lower.normalize('NFD').replace(allLatinMarks, '').normalize('NFC')
}
