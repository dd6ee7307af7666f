/** What a text is searched for. */
export interface Sought {
  /** In ASCII, the lower case. */
  folded: string
  /** For a text without `ß` that is `plain`, or without the marks of Latin letters. */
  regexp: RegExp
  /** The same for PostgreSQL. */
  pattern: string
  /** Whether the pattern needs `ss` in place of `ß`. */
  hasSharp: boolean
}

/** Latin letters, as in a character class of JavaScript and of PostgreSQL. */
const latin = 'A-Za-zªºÀ-ÖØ-öø-ʸᴀ-ᴥḀ-ỿⱠ-ⱿꜢ-ꞇＡ-Ｚａ-ｚ'

/** The marks of a Latin letter in decomposed text (NFD). */
export const marksOfLatin = `(?<=[${latin}])[\u0300-\u036f]+`
const allLatinMarks = RegExp(`(?=[\u0300-\u036f])${marksOfLatin}`, 'g') // A look ahead is cheaper than one behind.

/**
 * What a normalization may reorder: marks, and what another version of Unicode, such as a database's, may make one. Only
 * the first two planes have scripts.
 */
const mark = '(?:(?![\\u{20000}-\\u{10ffff}])[\\p{M}\\p{Cn}])'

/**
 * The time to normalize a run of marks grows with the square of its length, so `joiner` divides a longer one into runs
 * of 30: the Stream-Safe Text Process (https://www.unicode.org/reports/tr15/#Stream_Safe_Text_Format).
 *
 * @param ofMark a character class, or a group
 */
export const partOfRun = (ofMark: string) => `${ofMark}{30}(?=${ofMark})`

export const runs = RegExp(`${mark}+`, 'gu')
const longRun = RegExp(`${mark}{31}`, 'u')
const partsOfRun = RegExp(partOfRun('.'), 'gsu')

/** COMBINING GRAPHEME JOINER: marks are not reordered across it. */
export const joiner = '\u034f'

/**
 * Characters that fold to the same whatever is beside them, in all versions of Unicode and ICU. A text of nothing else
 * is not normalized, which takes most of the time. V8 takes several times as long for more ranges, or with a flag `u`.
 */
export const plain = '\u0001-¿ɐ-˿ΆΈ-҂Ҋ-ԯא-תء-ي\u200c-‧　-〩ぁ-ゖ゠-ヿ一-龥가-힣！-～'
/** Such that may have marks, of Latin letters. */
export const composedLatin = 'À-ɏḀ-ỿ'
const symbols = '\ud83c\ud83d\udc00-\udfff' // as far as U+1F7FF
const notPlain = RegExp(`[^${plain}${composedLatin}${symbols}]`)

export const casedLetter = '\\p{Changes_When_Casemapped}'
const changedByFolding = RegExp(`(?![a-z])${casedLetter}`, 'gu')

/**
 * Without the marks of Latin letters, composed (NFC), in lower case (Unicode's simple case folding), and with `ss` for
 * `ß`: equal for texts that are the same to a search.
 */
function foldText(text: string): string {
  return foldPlain(text) ?? foldPlain(text.replace(allLatinMarks, '')) ?? foldAny(text)
}

function foldAny(text: string): string {
  const normal = withoutMarks(text)
  return foldPlain(normal) ?? normal.replace(changedByFolding, foldCase).replaceAll('ß', 'ss')
}

/** Without the marks of Latin letters. Undefined for a text that must be normalized to find them. */
function simpleText(text: string): string | undefined {
  if (!notPlain.test(text)) return text
  const bare = text.replace(allLatinMarks, '')
  return notPlain.test(bare) ? undefined : bare
}

/**
 * Folds each code unit once, which takes a fifth of the time of JavaScript's functions for texts. Undefined for a text
 * that must be normalized first.
 */
function foldPlain(text: string): string | undefined {
  const length = 2 * text.length
  const folded = length <= short.length ? short : Buffer.allocUnsafe(length)
  let hasSharp = false
  for (let index = 0; index < length; index += 2) {
    const unit = text.charCodeAt(index / 2)
    const known = foldings[unit] || foldUnit(unit)
    if (known === unknown) return undefined
    if (known === sharp) hasSharp = true
    folded[index] = known & 0xff
    folded[index + 1] = known >> 8
  }
  const result = folded.toString('utf16le', 0, length)
  return hasSharp ? result.replaceAll('ß', 'ss') : result
}

/** For texts of up to 512 code units: to allocate takes as long as to fold them. */
const short = Buffer.allocUnsafe(1024)
const foldings = new Uint16Array(0x10000)
/** The folding of what is not plain: a noncharacter. */
const unknown = 0xffff
const sharp = 0xdf

function foldUnit(unit: number): number {
  const character = String.fromCharCode(unit)
  const known = notPlain.test(character) ? unknown : foldCase(withoutMarks(character)).charCodeAt(0)
  foldings[unit] = known
  return known
}

/** Of a character of a composed text. `ß` stays. */
export function foldCase(character: string): string {
  const lower = character.toLowerCase()
  const other = character.toUpperCase().toLowerCase() // such as `σ` of `ς`
  if (lower === other) return lower
  const same = new RegExp(`^${escaped(character)}$`, 'iu')
  return [other, 'ﬆ', lower].find((each) => same.test(each)) ?? character
}

/** A text contains `search` without regard to the marks of Latin letters, to case, and to whether `ß` is `ss`. */
export function soughtText(search: string): Sought {
  const folded = foldText(search)
  cases ||= String.fromCodePoint(...Array(0x3000).keys(), 0xfb05, 0xfb06)
  const patterns = new Map(Array.from(folded, (character) => [character, patternOf(character)]))
  const pattern = Array.from(folded, (character) => patterns.get(character)).join('')
  return { folded, regexp: RegExp(pattern, 'u'), pattern, hasSharp: folded.includes('s') }
}

/** Has the letters that are neither the upper nor the lower case of what they match, such as `ς`. */
let cases = ''

function patternOf(character: string): string {
  const same = new RegExp(escaped(character), 'giu')
  const found = new Set((character + character.toUpperCase() + cases).match(same))
  for (const letter of found) for (const composed of composedOf(letter)) found.add(composed)
  return found.size === 1 ? escaped(character) : `[${[...found].join('')}]`
}

/** The letters that are the same without their marks. */
function composedOf(letter: string): string {
  if (!composed) {
    composed = new Map()
    for (const each of cases.match(RegExp(`[${composedLatin}]`, 'g')) ?? []) {
      const [base = each] = each.normalize('NFD')
      if (base !== each) composed.set(base, `${composed.get(base) ?? ''}${each}`)
    }
  }
  return composed.get(letter) ?? ''
}

let composed: Map<string, string> | undefined

export function contains(text: string, { regexp, hasSharp }: Sought): boolean {
  const normal = simpleText(text) ?? withoutMarks(text)
  return regexp.test(hasSharp ? normal.replace(/[ßẞ]/g, 'ss') : normal)
}

/** Composed (NFC). Marks of other scripts stay: they make another letter, such as `й`. */
function withoutMarks(text: string): string {
  const isStreamSafe = text.length <= 30 || !notPlain.test(text) || !longRun.test(text)
  // Whole runs, because V8 would look for 30 marks from each mark of a shorter run.
  const streamSafe = isStreamSafe
    ? text
    : text.replace(runs, (run) => run.replace(partsOfRun, `$&${joiner}`))
  return streamSafe.normalize('NFD').replace(allLatinMarks, '').normalize('NFC')
}

function escaped(character: string): string {
  return character.replace(/[$()*+./?[\\\]^{|}]/, '\\$&')
}
