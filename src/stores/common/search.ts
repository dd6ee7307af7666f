/** The marks of a Latin letter in decomposed text (NFD), as a pattern of JavaScript and of PostgreSQL. */
export const latinMarks = '(?<=[A-Za-zªºÀ-ÖØ-öø-ʸᴀ-ᴥḀ-ỿⱠ-ⱿꜢ-ꞇＡ-Ｚａ-ｚ])[\u0300-\u036f]+'

const allLatinMarks = RegExp(latinMarks, 'g')

/** The time to normalize a run of marks grows with the square of its length, so such a text stays as it is. */
const longRun = /\p{M}{31}/u

/**
 * All but the characters whose lower case (and σ for ς) is all that folding makes of them, whatever is beside them. A
 * text of these is not normalized, which would take most of the time. With a flag `u`, it would take longer, too.
 */
const surrogatesOfEmoji = '\ud83c\ud83d\udc00-\udfff'
const unusual = RegExp(
  `[^\0-´¶-¿ÆÐØÞæðøþĐđŁłŒœΆΈ-ώЀ-҂Ҋ-ԯא-תء-ي‐-‧\u3000-〩ぁ-ゖ゠-ヿ一-龥가-힣！-～${surrogatesOfEmoji}]`,
)

const latinLetter = /[à-ɏḁ-ỿ]/g

/**
 * Equal for texts that are the same to a search: in lower case, with `ss` for `ß`, and without the accents of Latin
 * letters. Marks of other scripts stay, because they make another letter, such as `й`. In linear time.
 */
export function foldText(text: string): string {
  // The lower case of JavaScript has another sigma at the end of a word.
  if (!unusual.test(text)) return text.toLowerCase().replace(/ς/g, 'σ')
  const lower = text.toUpperCase().toLowerCase().replace(/[ßς]/g, otherForm)
  const bare = lower.replace(latinLetter, bareLetter)
  if (!unusual.test(bare)) return bare
  return longRun.test(lower) ? lower : withoutLatinMarks(lower)
}

function otherForm(letter: string): string {
  return letter === 'ß' ? 'ss' : 'σ'
}

function withoutLatinMarks(text: string): string {
  return text.normalize('NFD').replace(allLatinMarks, '').normalize('NFC')
}

function bareLetter(letter: string): string {
  const known = bareLetters.get(letter)
  if (known !== undefined) return known
  const bare = withoutLatinMarks(letter)
  bareLetters.set(letter, bare)
  return bare
}

/** To look a letter up takes a tenth of the time of normalizing it. */
const bareLetters = new Map<string, string>()
