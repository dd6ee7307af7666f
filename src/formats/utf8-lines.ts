/*
 * Finds lines of UTF-8 in a text that is decoded in another encoding, because `--encoding` says so.
 *
 * Nearly every encoding decodes UTF-8 without an error, but to wrong letters: `Größe` becomes
 * `GrÃ¶ÃŸe`. Bytes that are valid UTF-8 are rarely in another encoding, but a few letters can be:
 * the bytes of `É»` in Windows-1252 are one letter in UTF-8. So the letters to which UTF-8 decodes
 * the bytes must be likely, too:
 *
 * - The letters of a whole text must be in use in some language.
 * - The letters of a single line must be in the other encoding, too. Two programs that write to one
 *   file write the same language.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { listSingleByteCharacters, splitLines } from './encoding.js'

/** A line of UTF-8. */
interface Utf8Line {
  /** How many lines are before it. */
  index: number
  text: string
}

export interface Utf8Lines extends Utf8Line {
  /** Whether all lines are UTF-8, and not only some. */
  isAllUtf8: boolean
}

/**
 * @param bytes whole lines, or a whole text
 * @param encoding the name of the decoder that `--encoding` chooses
 * @param isStart whether all bytes of the input before these are ASCII
 * @returns the first line of UTF-8; undefined if the bytes are most likely in the encoding
 */
export async function findUtf8Lines(
  bytes: Buffer,
  encoding: string,
  isStart: boolean,
): Promise<Utf8Lines | undefined> {
  if (isAscii(bytes)) return undefined
  if (isStart && isUtf8(bytes) && isLikely(bytes.toString(), encoding)) {
    const index = [...splitLines(bytes)].findIndex((line) => !isAscii(line))
    return { isAllUtf8: true, index, text: bytes.toString().split('\n')[index] ?? '' }
  }
  const line = await findUtf8Line(bytes, encoding)
  return line && { isAllUtf8: false, ...line }
}

/**
 * Finds the first line of UTF-8 whose letters the other encoding has, too. A line in an encoding
 * with two bytes for a letter is often valid UTF-8 by chance, so it finds nothing for those.
 */
export async function findUtf8Line(bytes: Buffer, encoding: string): Promise<Utf8Line | undefined> {
  // To look for the beginning of a letter takes a quarter of the time of looking at each line.
  if (isMultiByte(encoding) || !/[\xc2-\xf4][\x80-\xbf]/.test(bytes.toString('latin1')))
    return undefined
  const characters = await listSingleByteCharacters(encoding)
  const isInEncoding = (text: string) =>
    Array.from(text).every((character) => character <= '\x7f' || characters.has(character))
  let index = 0
  for (const line of splitLines(bytes)) {
    if (!isAscii(line) && isUtf8(line)) {
      const text = line.toString()
      if (isInEncoding(text)) return { index, text }
    }
    index += 1
  }
  return undefined
}

/**
 * Finds the first line of UTF-8 in a text of which other lines are not UTF-8. Any other encoding
 * would decode the lines of UTF-8 to wrong letters.
 *
 * A line in an encoding with two bytes for a letter can be valid UTF-8 by chance. So a line counts
 * only if most lines with letters beyond ASCII are UTF-8, or if a tenth of them surely are.
 *
 * @returns how many lines are before the line
 */
export function findUtf8LineInMixture(bytes: Buffer): number | undefined {
  const validIndexes: number[] = []
  const sureIndexes: number[] = []
  let invalidCount = 0
  for (const [index, line] of [...splitLines(bytes)].entries()) {
    if (isAscii(line)) continue
    if (!isUtf8(line)) invalidCount += 1
    else {
      validIndexes.push(index)
      if (sureLetters.test(line.toString())) sureIndexes.push(index)
    }
  }
  if (validIndexes.length > invalidCount) return validIndexes[0]
  const foreignCount = validIndexes.length + invalidCount
  return sureIndexes.length * 10 >= foreignCount ? sureIndexes[0] : undefined
}

/**
 * Finds the first line that is not UTF-8, but has accented letters of UTF-8 within Latin words.
 * Such a line was joined of fields in two encodings.
 *
 * @returns how many lines are before the line
 */
export function findPartlyUtf8Line(bytes: Buffer): number | undefined {
  const lines = [...splitLines(bytes)]
  const index = lines.findIndex((line) => !isUtf8(line) && hasUtf8Letter(line.toString('latin1')))
  return index === -1 ? undefined : index
}

/**
 * @param bytes a line, with one character for each byte
 */
function hasUtf8Letter(bytes: string): boolean {
  return utf8InWord.test(bytes) || (utf8AtWordEdge.test(bytes) && singleByteInWord.test(bytes))
}

/** Matches the bytes of letters from U+00C0 to U+017F after a letter of ASCII and before one. */
const utf8InWord = /[A-Za-z](?:[\xc3-\xc5][\x80-\xbf])+[a-z]/

/**
 * Matches the bytes of such letters at the beginning or the end of a word. A Chinese character next
 * to a Latin word has such bytes, too, so `singleByteInWord` must also match.
 */
const utf8AtWordEdge =
  /[a-z]{2}(?:[\xc3-\xc5][\x80-\xbf])+(?![\x80-\xff])|(?<![\x80-\xff])(?:[\xc3-\xc5][\x80-\xbf])+[a-z]{2}/

/** Matches an accented letter of an encoding with one byte for a letter, as in `Fr\xfchling`. */
const singleByteInWord = /[A-Za-z][\x80-\xff][a-z]/

/**
 * Matches letters to which a line of another encoding is hardly decoded by chance: an accented
 * letter in a Latin word, a word in Greek or Cyrillic, and letters of three bytes that are in use.
 */
const sureLetters = RegExp(
  [
    '[A-Za-z][\\u00c0-\\u017f]|[\\u00c0-\\u017f][A-Za-z]',
    '[\\u0370-\\u04ff]{4}',
    '[\\u2010-\\u203a\\u3041-\\u30fe\\u4e00-\\u9fff\\uac00-\\ud7a3]',
  ].join('|'),
)

/** Whether an encoding has letters of several bytes, as all Chinese and Japanese ones have. */
function isMultiByte(encoding: string): boolean {
  return /^(?:big5|cp949|euc-|gb|shift_jis|iso-2022-)/.test(encoding)
}

/**
 * Whether the letters of a text that was decoded as UTF-8 are likely. A short text in an encoding
 * with two bytes for a letter may be valid UTF-8 by chance, but then each letter has two bytes in
 * UTF-8, too. A letter of three bytes shows that the text is UTF-8.
 */
function isLikely(text: string, encoding: string): boolean {
  return isMultiByte(encoding) ? /[\u0800-\uffff]/.test(text) : !rareLetter.test(text)
}

/**
 * Matches letters that no list of plants has: phonetic letters, modifiers, the scripts from Syriac
 * to N'Ko, a single letter of Armenian, and a letter of Hebrew or Arabic next to a Latin letter.
 * Letters of Windows-1252 can have the same bytes: `Õ±` is a letter of Armenian in UTF-8, and `×`
 * with a no-break space is a letter of Hebrew.
 */
const rareLetter =
  /[\u0250-\u02ff\u0700-\u08ff]|(?<![\u0530-\u058f])[\u0530-\u058f](?![\u0530-\u058f])|[\u0590-\u06ff][A-Za-z]|[A-Za-z][\u0590-\u06ff]/
