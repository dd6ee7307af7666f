/** What a text is searched for. */
export interface Sought {
  /** without marks, and with one character for all those that match it; for A to Z that is the lower case */
  folded: string
  /** the characters that match one of `folded`, and that one */
  translations: ReadonlyMap<string, string>
}

/** Latin letters, as in a character class of JavaScript and of PostgreSQL. */
const latin = 'A-Za-zªºÀ-ÖØ-öø-ʸᴀ-ᴥḀ-ỿⱠ-ⱿꜢ-ꞇＡ-Ｚａ-ｚ'

/** A Latin letter with its marks, decomposed (NFD). */
export const markedLetter = `([${latin}])[\u0300-\u036f]+`
const markedLetters = RegExp(markedLetter, 'g')

/** A text contains `search` without regard to the marks of Latin letters, and to case (Unicode's simple folding). */
export function soughtText(search: string): Sought {
  const cases = String.fromCodePoint(...Array(0x3000).keys(), 0xfb05, 0xfb06)
  const variants = Array.from(withoutMarks(search), (character) => variantsOf(character, cases))
  return {
    folded: variants.map(([first]) => first).join(''),
    translations: new Map(variants.flatMap(([first = '', ...others]) => others.map((other) => [other, first]))),
  }
}

export function contains(text: string, { folded, translations }: Sought): boolean {
  const characters = Array.from(withoutMarks(text), (character) => translations.get(character) ?? character)
  return characters.join('').includes(folded)
}

/** Composed (NFC). Marks of other scripts stay: they make another letter, such as `й`. */
function withoutMarks(text: string): string {
  return text.normalize('NFD').replace(markedLetters, '$1').normalize('NFC')
}

/** @param cases those that are neither the upper nor the lower case of what they match, such as `ς`, among others */
function variantsOf(character: string, cases: string): string[] {
  const upper = character.toUpperCase()
  const candidates = character + character.toLowerCase() + upper + upper.toLowerCase() + cases
  const pattern = new RegExp(character.replace(/[$()*+./?[\\\]^{|}]/, '\\$&'), 'giu')
  const variants = [...new Set(candidates.match(pattern))].toSorted()
  return [...new Set([variants.find((variant) => variant === variant.toLowerCase()) ?? character, ...variants])]
}
