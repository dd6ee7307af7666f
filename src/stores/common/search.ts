export interface SoughtText {
  /** with one character for all those that match it; for A to Z that is the lower case */
  folded: string
  /** for each character of `folded`, those that match it: first itself */
  variants: string[][]
}

/**
 * A text contains `search` if it contains one of these: `search` as it is, composed (NFC) or decomposed (NFD).
 * Characters match by Unicode's simple case folding, as in a regular expression with the flags `iu`.
 */
export function soughtTexts(search: string): SoughtText[] {
  const cases = String.fromCodePoint(...Array(0x3000).keys(), 0xfb05, 0xfb06)
  return [...new Set([search, search.normalize('NFC'), search.normalize('NFD')])].map((text) => {
    const variants = Array.from(text, (character) => variantsOf(character, cases))
    return { folded: variants.map(([first]) => first).join(''), variants }
  })
}

/** @param cases those that are neither the upper nor the lower case of what they match, such as `ς`, among others */
function variantsOf(character: string, cases: string): string[] {
  const upper = character.toUpperCase()
  const candidates = character + character.toLowerCase() + upper + upper.toLowerCase() + cases
  const pattern = new RegExp(character.replace(/[$()*+./?[\\\]^{|}]/, '\\$&'), 'giu')
  const variants = [...new Set(candidates.match(pattern))].toSorted()
  return [...new Set([variants.find((variant) => variant === variant.toLowerCase()) ?? character, ...variants])]
}
