/*
 * Ranks the readings of a text: what it would be in each of several encodings.
 *
 * jschardet gives each encoding a confidence: how frequent the pairs of decoded letters are in the
 * languages of the world. For a list with a dozen letters beyond ASCII, this says little, and rare
 * encodings win by chance. So three more things count:
 *
 * - A reading is unlikely if it has what no list of plants has, such as a word with letters of two
 *   alphabets. Such readings come last: in a Cyrillic encoding, `Südbeet` would be `Sьdbeet`.
 * - Some readings are hardly possible by chance, such as a text with only letters of Hangul. Such
 *   readings come first.
 * - For the readings between these, the confidence is weighed by how many programs write the
 *   encoding. It is lowered if no language has all the letters of the reading, as in
 *   `Crčme brűlée`, or if most of its Chinese characters are rare.
 */
import { commonEncodings } from './common-encodings.js'

/** A text that was decoded in an encoding. */
export interface Reading {
  encoding: string
  text: string
  /** How likely the encoding is according to jschardet, from 0 to 1. */
  confidence: number
}

/** Sorts readings of the same bytes. The most likely one is first. */
export function sortReadings(readings: readonly Reading[]): Reading[] {
  return readings
    .map((reading) => ({ reading, rank: rankReading(reading), weight: weighReading(reading) }))
    .toSorted((a, b) => a.rank - b.rank || b.weight - a.weight)
    .map(({ reading }) => reading)
}

const ranks = { likely: 0, possible: 1, unlikely: 2 }

function rankReading({ text, encoding }: Reading): number {
  if (unlikelyText.test(text)) return ranks.unlikely
  const letters = extractForeignLetters(text)
  // The only bytes beyond ASCII are those of dashes and quotes, which programs for Windows write.
  const isWindowsText = letters === '' && encoding.startsWith('windows-')
  const isLikely =
    isWindowsText || isKorean(letters) || isJapanese(letters) || isHalfwidthJapanese(letters, text)
  return isLikely ? ranks.likely : ranks.possible
}

function weighReading({ text, encoding, confidence }: Reading): number {
  const useWeight = useWeights[rankByUse(encoding)] ?? 1
  const languageWeight = isInOneLanguage(text) && hasCommonCharacters(text, encoding) ? 1 : 0.2
  // A confidence of 0 says only that jschardet does not know the encoding.
  return (confidence + minConfidence) * useWeight * languageWeight
}

const minConfidence = 0.0005

/**
 * Ranks encodings by how many programs write them. Most lists that are not UTF-8 come from Excel,
 * which writes the encoding of Windows for the language of the computer.
 */
export function rankByUse(encoding: string): number {
  if (encoding === 'windows-1252') return 0
  if (!commonEncodings.some(({ name }) => name === encoding)) return 3
  return /^(?:windows-|shift_jis|euc-jp|gb18030|big5|cp949|koi8-r)/.test(encoding) ? 1 : 2
}

/** The weight of an encoding by its rank, which `rankByUse` returns. */
const useWeights = [1, 0.6, 0.4, 0.15]

/**
 * Whether all letters of Latin and Cyrillic are in ASCII and in one of the alphabets, and there are
 * no unusual symbols, as in `∫˘`.
 */
function isInOneLanguage(text: string): boolean {
  const words = text.toLowerCase().replace(typographicCharacters, '')
  const letters = new Set(words.match(/(?![\0-\x7f])[\p{sc=Latin}\p{sc=Cyrillic}\p{S}]/gu))
  return alphabets.some((alphabet) => [...letters].every((letter) => alphabet.includes(letter)))
}

/**
 * The letters beyond ASCII of languages that are written in Latin or Cyrillic letters. A list may
 * have foreign names, such as those of French roses, so most rows have `é` and the umlauts.
 */
const alphabets = [
  'äöüßàâæçèéêëîïôœùûÿñå', // German, French, Dutch, English
  'áàâãçéêèíìïîóòôõúùüñ', // Spanish, Portuguese, Catalan, Italian
  'åäöæøéèêüáôò', // Danish, Norwegian, Swedish, Finnish
  'ąćęłńóśźżéöü', // Polish
  'áčďéěíňóřšťúůýžäôľĺŕöü', // Czech, Slovak
  'áéíóöőúüűä', // Hungarian
  'ăâîşţșțéöü', // Romanian
  'čćđšžéöü', // Croatian, Slovenian
  'çğıöşüâîûé', // Turkish
  'ąčęėįšųūžéöü', // Lithuanian
  'āčēģīķļņšūžéöü', // Latvian
  'äõöüšžé', // Estonian
  'áðéíóúýþæö', // Icelandic
  'абвгдеёжзийклмнопрстуфхцчшщъыьэюя', // Russian, Bulgarian
  'абвгґдеєжзиіїйклмнопрстуўфхцчшщьюяёы', // Ukrainian, Belarusian
  'абвгдђѓежзѕијклљмнњопрстћќуфхцчџш', // Serbian, Macedonian
]

/**
 * Whether most characters of a text are common ones of an encoding with several bytes for a
 * character. Such an encoding decodes letters of another one to rare characters.
 */
function hasCommonCharacters(text: string, encoding: string): boolean {
  const rows = commonRows[encoding]
  const characters = Array.from(text.match(/[\p{sc=Han}\p{sc=Hangul}]/gu) ?? [])
  if (!rows || characters.length === 0) return true
  const commonCharacters = listCharacters(rows)
  const commonCount = characters.filter((character) => commonCharacters.has(character)).length
  return commonCount >= 0.7 * characters.length
}

/**
 * A range of rows of an encoding with two bytes for a character. The first byte, the lead, is the
 * number of the row.
 */
interface Rows {
  /** The encoding that has the rows, as a label of `TextDecoder`. */
  label: string
  firstLead: number
  lastLead: number
}

/** The rows of the common characters: in most standards, the first of two levels. */
const commonRows: Readonly<Record<string, Rows>> = {
  // Roses, violets and other plants have names with characters of the second level. EUC-JP has the
  // same characters as Shift_JIS, and in rows that follow one another.
  shift_jis: { label: 'euc-jp', firstLead: 0xb0, lastLead: 0xf4 },
  'euc-jp': { label: 'euc-jp', firstLead: 0xb0, lastLead: 0xcf },
  gb18030: { label: 'gbk', firstLead: 0xb0, lastLead: 0xd7 },
  big5: { label: 'big5', firstLead: 0xa4, lastLead: 0xc6 },
  cp949: { label: 'euc-kr', firstLead: 0xb0, lastLead: 0xc8 },
  'euc-kr': { label: 'euc-kr', firstLead: 0xb0, lastLead: 0xc8 },
}

function listCharacters({ label, firstLead, lastLead }: Rows): Set<string> {
  const bytes: number[] = []
  // A line feed after each pair keeps a pair that is no character from hiding the next one.
  for (let lead = firstLead; lead <= lastLead; lead += 1)
    for (let trail = 0x40; trail <= 0xfe; trail += 1) bytes.push(lead, trail, 0x0a)
  return new Set(new TextDecoder(label).decode(Uint8Array.from(bytes)))
}

/** Programs for Windows write these characters into texts of every language. */
const typographicCharacters = /[\xa0“”‘’„–—…•€£°×±™©®½¼¾²³]/g

/** Returns the characters beyond ASCII, without typographic ones, as one string. */
function extractForeignLetters(text: string): string {
  return text.replace(typographicCharacters, '').replace(/[\0-\x7f]/g, '')
}

/**
 * Whether there are only letters of Hangul. A Chinese text rarely gives such a text in a Korean
 * encoding.
 */
function isKorean(letters: string): boolean {
  return /^\p{sc=Hangul}{12,}$/u.test(letters) && hasCommonCharacters(letters, 'cp949')
}

/** Whether the letters are Hiragana, Katakana and Chinese characters, the first two mostly. */
function isJapanese(letters: string): boolean {
  const kana = letters.replace(/[^\u3041-\u30fe]/g, '')
  const isMostlyKana = kana.length >= 4 && kana.length >= 0.5 * letters.length
  return isMostlyKana && /^[\u3005\u3041-\u30fe\u4e00-\u9fff]+$/.test(letters)
}

/**
 * Whether most letters are half-width Katakana, which old Japanese programs write, and the others
 * are Japanese. Letters of other languages decode to half-width Katakana, too. But then the text
 * has `misplacedKana`, or none of the five vowels that are letters.
 */
function isHalfwidthJapanese(letters: string, text: string): boolean {
  const halfwidth = letters.replace(/[^\uff65-\uff9f]/g, '')
  const isMostlyHalfwidth = halfwidth.length >= 4 && halfwidth.length >= 0.5 * letters.length
  const hasOnlyJapanese = /^[\u3005-\u30fe\u4e00-\u9fff\uff65-\uff9f]+$/.test(letters)
  const hasVowels = /[\uff70-\uff75]/.test(letters)
  return isMostlyHalfwidth && hasOnlyJapanese && hasVowels && !misplacedKana.test(text)
}

/** Matches half-width Katakana after a character that it never follows in Japanese. */
const misplacedKana = RegExp(
  [
    // The marks that make a consonant voiced, as `ｶﾞ`, or a P, as `ﾊﾟ`.
    '(?<![ｳｶ-ﾄﾊ-ﾎ])ﾞ|(?<![ﾊ-ﾎ])ﾟ',
    // Small vowels, as in `ﾌｧ`, and small letters of Y, as in `ｷｬ`.
    '(?<![ｳｸｼﾁﾃﾄﾌﾞ])[ｧ-ｫ]|(?<![ｷｼﾁﾃﾆﾋﾌﾐﾘﾞﾟ])[ｬ-ｮ]',
    // The small letter that doubles a consonant, and the mark of a long vowel, begin no word.
    '(?<![ｦ-ﾟ])[ｯｰ]',
    // A program that writes half-width Katakana joins no Chinese characters to them.
    '[ｦ-ﾟ]\\p{sc=Han}|\\p{sc=Han}[ｦ-ﾟ]',
  ].join('|'),
  'u',
)

// The parts of `unlikelyText`. The first two stand between the brackets of a character class.

/**
 * Letters that stand next to no letter of ASCII. The marks of Arabic vowels, from U+064B on, and
 * half-width Katakana are given by their codes: the marks belong to no script.
 */
const foreignLetters = [
  '\\p{sc=Cyrillic}\\p{sc=Greek}\\p{sc=Hebrew}\\p{sc=Arabic}\\p{sc=Thai}',
  '\\u064b-\\u0652\\uff61-\\uff9f',
].join('')
const symbols = '\\p{No}\\p{Sk}\\p{Sc}\\p{So}'
const accentedCapital = '(?![A-Z])(?=\\p{sc=Latin})\\p{Lu}'
const accentedSmallLetter = '(?![a-z])(?=\\p{sc=Latin})\\p{Ll}'

/** Matches what no list of plants has, and so a text that was decoded in a wrong encoding. */
const unlikelyText = RegExp(
  [
    // A word with letters of two alphabets: `Südbeet` is `Sьdbeet` in windows-1251.
    `[A-Za-z][${foreignLetters}]|[${foreignLetters}][A-Za-z]`,
    // `Rosa玫瑰` is usual, but a Latin word hardly continues after a Chinese character.
    '[\\p{sc=Han}\\p{sc=Hira}\\p{sc=Kana}\\p{sc=Hangul}][a-z]',
    // A symbol within a word, or before one.
    `\\p{L}[“”„…•†‡¶§\\p{Sm}${symbols}]\\p{L}`,
    `(?<!\\p{L})[ƒµ¬¶§—${symbols}]\\p{Ll}{3}`,
    // Two raised digits before a letter: `łąka` is `³¹ka` in windows-1252.
    '[¹²³]{2}\\p{L}',
    // A list of macOS has `–` for `ñ`, and `—` for `ó`, as in `monta–a`.
    '\\p{Ll}[–—]\\p{Ll}',
    // An accented capital within a word: `Königskerze` is `KŲnigskerze` in x-mac-ce. But an Irish
    // word may have such a capital after one small letter, as in `hÉireann`.
    `\\p{L}\\p{Ll}${accentedCapital}|\\p{Lu}${accentedCapital}\\p{Ll}`,
    // A capital after an accented small letter, or of Cyrillic or Greek after any small letter.
    `${accentedSmallLetter}[A-Z]`,
    '(?<=\\p{Ll})(?=[\\p{sc=Cyrillic}\\p{sc=Greek}])\\p{Lu}',
    // Control characters, box drawings and ligatures.
    '[\\x80-\\x9f\\u2500-\\u25ff\\ufb00-\\ufb06]',
  ].join('|'),
  'u',
)
