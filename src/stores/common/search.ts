/** What a text is searched for. */
export interface Sought {
  /** Without marks, and with one character for all those that match it; for A to Z that is the lower case. */
  folded: string
  /** The characters that match one of `folded`, and that one. */
  translations: ReadonlyMap<string, string>
  /** A regular expression of PostgreSQL for the same, whose time does not grow with the number of translations. */
  pattern: string
}

/** Latin letters, as in a character class of JavaScript and of PostgreSQL. */
const latin = 'A-Za-zªºÀ-ÖØ-öø-ʸᴀ-ᴥḀ-ỿⱠ-ⱿꜢ-ꞇＡ-Ｚａ-ｚ'

/** The marks of a Latin letter in decomposed text (NFD). */
export const latinMarks = `(?<=[${latin}])[\u0300-\u036f]+`
const allLatinMarks = RegExp(latinMarks, 'g')

/**
 * What a normalization may reorder: marks, and what another version of Unicode, such as a database's, may make one. Only
 * the first two planes have scripts.
 */
const mark = '[[\\p{M}\\p{Cn}]&&[\\u{0}-\\u{1ffff}]]'

/**
 * The time to normalize a run of marks grows with the square of its length, so `joiner` divides a longer one into runs
 * of 30: the Stream-Safe Text Process (https://www.unicode.org/reports/tr15/#Stream_Safe_Text_Format).
 *
 * @param ofMark a character class
 */
export const partOfRun = (ofMark: string) => `${ofMark}{30}(?=${ofMark})`

// From each mark of a shorter run, V8 would look for 30, so it looks for whole runs.
const runs = RegExp(`${mark}+`, 'gv')
const partsOfRun = RegExp(partOfRun('.'), 'gsu')

/** COMBINING GRAPHEME JOINER: marks are not reordered across it. */
export const joiner = '\u034f'

let ranges: string | undefined

/** `mark` as ranges, for PostgreSQL, which knows no properties: made when they are needed, as that takes 15 ms. */
export function markRanges(): string {
  const codes = Uint32Array.from(Array(0x1000).keys())
  ranges ??= Array.from({ length: 0x20 }, (_, block) => {
    const found = String.fromCodePoint(...codes.map((code) => block * 0x1000 + code)).match(runs) ?? []
    return found.map((run) => run.replace(/^(.).*?(.?)$/su, (_, first, last) => `${first}-${last || first}`)).join('')
  }).join('')
  return `[${ranges}]`
}

/** A text contains `search` without regard to the marks of Latin letters, and to case (Unicode's simple folding). */
export function soughtText(search: string): Sought {
  const cases = String.fromCodePoint(...Array(0x3000).keys(), 0xfb05, 0xfb06)
  const variants = Array.from(withoutMarks(search), (character) => variantsOf(character, cases))
  return {
    folded: variants.map(([first]) => first).join(''),
    translations: new Map(variants.flatMap(([first = '', ...others]) => others.map((other) => [other, first]))),
    pattern: variants.map((some) => (some.length > 1 ? `[${some.join('')}]` : some.map(escaped).join(''))).join(''),
  }
}

export function contains(text: string, { folded, translations }: Sought): boolean {
  const characters = Array.from(withoutMarks(text), (character) => translations.get(character) ?? character)
  return characters.join('').includes(folded)
}

/** Composed (NFC). Marks of other scripts stay: they make another letter, such as `й`. */
function withoutMarks(text: string): string {
  const streamSafe = text.replace(runs, (run) => run.replace(partsOfRun, `$&${joiner}`))
  return streamSafe.normalize('NFD').replace(allLatinMarks, '').normalize('NFC')
}

/** @param cases those that are neither the upper nor the lower case of what they match, such as `ς`, among others */
function variantsOf(character: string, cases: string): string[] {
  const upper = character.toUpperCase()
  const candidates = character + character.toLowerCase() + upper + upper.toLowerCase() + cases
  const pattern = new RegExp(escaped(character), 'giu')
  const variants = [...new Set(candidates.match(pattern))].toSorted()
  return [...new Set([variants.find((variant) => variant === variant.toLowerCase()) ?? character, ...variants])]
}

function escaped(character: string): string {
  return character.replace(/[$()*+./?[\\\]^{|}]/, '\\$&')
}
