/*
 * Guesses the encoding of a text that is not UTF-8. An import never decodes by a guess: the error
 * and the dialogue show a person how a line reads in the likely encodings.
 *
 * The text is decoded strictly in each of the common encodings, and what it reads in each of them
 * is rated. No model of languages is needed for that:
 *
 * - A reading is unlikely if it has what no list of plants has, such as a word with letters of two
 *   alphabets. Such readings come last: in a Cyrillic encoding, `Südbeet` would be `Sьdbeet`.
 * - Some readings are hardly possible by chance, such as a text with only letters of Hangul. Such
 *   readings come first.
 * - Of the readings between these, those come last of which no language has all the letters, as of
 *   `Crčme brűlée`, or of which most Chinese characters are rare.
 * - The remaining readings are in the order of how many programs write the encoding.
 */
import { isAscii } from 'node:buffer'
import { commonEncodings } from './common-encodings.js'
import { splitLines, tryDecodeBytes } from './encoding.js'

/** A text that was decoded in an encoding. */
interface Reading {
  encoding: string
  text: string
}

/**
 * @param bytes a text in lines
 * @returns the names for `--encoding`, the most likely one first. Each encoding decodes all bytes,
 * and no two of them decode the bytes to the same text. The array may be empty.
 */
export async function guessEncodings(bytes: Buffer): Promise<readonly string[]> {
  // Most lists have botanical names in Latin, which say nothing about the encoding.
  const sample = Buffer.concat([...splitLines(bytes)].filter((line) => !isAscii(line)))
  const readings: Reading[] = []
  for (const { name } of commonEncodings) {
    const text = await tryDecodeBytes(sample, name)
    const isNew = readings.every((reading) => reading.text !== text)
    if (text !== undefined && isNew) readings.push({ encoding: name, text })
  }
  return readings
    .map((reading) => ({ reading, rank: rankReading(reading), weight: weighReading(reading) }))
    .toSorted((a, b) => a.rank - b.rank || b.weight - a.weight)
    .map(({ reading }) => reading.encoding)
}

/** A long list may have a line that no other list has, such as one with box drawings. */
const maxUnlikelyShare = 0.01

const ranks = { likely: 0, possible: 1, unlikely: 2 }

function rankReading({ text, encoding }: Reading): number {
  const lines = text.split('\n')
  const unlikelyLines = lines.filter((line) => unlikelyText.test(line))
  if (unlikelyLines.length > maxUnlikelyShare * lines.length) return ranks.unlikely
  const letters = extractForeignLetters(text)
  // The only bytes beyond ASCII are those of dashes and quotes, which programs for Windows write.
  const isWindowsText = letters === '' && encoding.startsWith('windows-')
  const isLikely =
    isWindowsText || isKorean(letters) || isJapanese(letters) || isHalfwidthJapanese(letters, text)
  return isLikely ? ranks.likely : ranks.possible
}

function weighReading({ text, encoding }: Reading): number {
  const isLanguage =
    isInOneLanguage(text) && hasCommonCharacters(text, encoding) && hasUsualWords(text)
  return (isLanguage ? 1 : 0.2) * weighUse(encoding)
}

/**
 * Weighs an encoding by how many programs write it. Most lists that are not UTF-8 come from Excel,
 * which writes the encoding of Windows for the language of the computer.
 */
function weighUse(encoding: string): number {
  if (encoding === 'windows-1252') return 1
  return /^(?:windows-|shift_jis|euc-jp|gb18030|big5|cp949|koi8-r)/.test(encoding) ? 0.6 : 0.4
}

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
 * Whether words of Cyrillic or Greek have vowels, and small letters. Another encoding decodes
 * Hebrew to words without vowels, and small letters to capitals.
 */
function hasUsualWords(text: string): boolean {
  const words = text.match(/[\p{sc=Cyrillic}\p{sc=Greek}]{3,}/gu) ?? []
  const usualWords = words.filter((word) => /[аеёиіїєоуыэюяαεηιουωάέήίόύώ]/i.test(word))
  const areCapitals = words.length > 0 && words.every((word) => word === word.toUpperCase())
  return usualWords.length >= 0.7 * words.length && !areCapitals
}

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
const typographicCharacters = /[\xa0“”‘’„–—…•€£°×±™©®½¼¾²³№]/g

/** Returns the characters beyond ASCII, without typographic ones, as one string. */
function extractForeignLetters(text: string): string {
  return text.replace(typographicCharacters, '').replace(/[\0-\x7f]/g, '')
}

/**
 * Whether there are only letters of Hangul. A Chinese text rarely gives such a text in a Korean
 * encoding.
 */
function isKorean(letters: string): boolean {
  return /^\p{sc=Hangul}{6,}$/u.test(letters) && hasCommonCharacters(letters, 'cp949')
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
    `\\p{sc=Latin}[${foreignLetters}]|[${foreignLetters}]\\p{sc=Latin}`,
    // Hebrew is written without points, and no Thai word begins with a mark.
    '[\\u05b0-\\u05c3]|(?<![\\u0e01-\\u0e4e])[\\u0e31\\u0e34-\\u0e3a\\u0e47-\\u0e4e]',
    // `Rosa玫瑰` is usual, but a Latin word hardly continues after a Chinese character.
    '[\\p{sc=Han}\\p{sc=Hira}\\p{sc=Kana}\\p{sc=Hangul}][a-z]',
    // No word has four accented letters in a row, or a final sigma before another letter.
    '(?:(?![A-Za-z])\\p{sc=Latin}){4}|ς\\p{L}',
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
    // Control characters, box drawings, characters for private use and ligatures.
    '[\\x80-\\x9f\\ue000-\\uf8ff\\u2500-\\u25ff\\ufb00-\\ufb06]',
  ].join('|'),
  'u',
)
