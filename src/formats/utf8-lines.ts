/*
 * Finds lines of UTF-8 in a text that is read in another encoding, because `--encoding` says so.
 *
 * Nearly every encoding decodes UTF-8 without an error, but to wrong letters: `Größe` becomes
 * `GrÃ¶ÃŸe`. Bytes that are valid UTF-8 are rarely anything else, but a few letters can be: `É»`
 * in Windows-1252 is one letter of UTF-8. So valid bytes count only if what they read as in UTF-8
 * is likely: for a single line, letters that the other encoding has, too, as those of one language
 * in a file of two programs; for a whole text, letters that are in use.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { canEncode, splitLines } from './encoding.js'

/** A line of UTF-8. */
interface Utf8Line {
  /** How many lines are before it. */
  index: number
  text: string
}

export interface Utf8Lines extends Utf8Line {
  /** Whether all lines are UTF-8, and not only some. */
  isWhole: boolean
}

/**
 * @param bytes whole lines, or a whole text
 * @param encoding the name of the decoder that shall read them
 * @param isStart whether all bytes before these were ASCII
 * @returns the first line of UTF-8; undefined if the bytes are likely in the encoding
 */
export async function findUtf8Lines(
  bytes: Buffer,
  encoding: string,
  isStart: boolean,
): Promise<Utf8Lines | undefined> {
  if (isAscii(bytes)) return undefined
  if (isStart && isUtf8(bytes) && isLikely(bytes.toString(), encoding)) {
    const index = [...splitLines(bytes)].findIndex((line) => !isAscii(line))
    return { isWhole: true, index, text: bytes.toString().split('\n')[index] ?? '' }
  }
  const line = await findUtf8Line(bytes, encoding)
  return line && { isWhole: false, ...line }
}

/**
 * Finds the first line of UTF-8 whose letters the other encoding has, too. In an encoding with two
 * bytes for a letter, lines of other texts are often valid UTF-8, so none is looked for there.
 */
export async function findUtf8Line(bytes: Buffer, encoding: string): Promise<Utf8Line | undefined> {
  // To look for the beginning of a letter takes a quarter of the time of looking at each line.
  if (isMultiByte(encoding) || !/[\xc2-\xf4][\x80-\xbf]/.test(bytes.toString('latin1')))
    return undefined
  let index = 0
  for (const line of splitLines(bytes)) {
    if (!isAscii(line) && isUtf8(line)) {
      const text = line.toString()
      if (await canEncode(text, encoding)) return { index, text }
    }
    index += 1
  }
  return undefined
}

/** Whether an encoding has letters of several bytes, as those of Chinese, Japanese and Korean. */
function isMultiByte(encoding: string): boolean {
  return /^(?:big5|cp949|euc-|gb|shift_jis|iso-2022-)/.test(encoding)
}

/**
 * Whether a text of UTF-8 has only letters that are in use. In an encoding with two bytes for a
 * letter, a text of two or three such letters may be valid UTF-8, but of two-byte letters only.
 */
function isLikely(text: string, encoding: string): boolean {
  return isMultiByte(encoding) ? /[\u0800-\uffff]/.test(text) : !rareLetter.test(text)
}

/**
 * Matches phonetic letters, modifiers and Syriac to N'Ko, a letter of Armenian that stands alone,
 * and a letter of Hebrew or Arabic next to a Latin one: `Õ±` in Windows-1252 is a letter of
 * Armenian, and `×` with a no-break space is one of Hebrew.
 */
const rareLetter =
  /[\u0250-\u02ff\u0700-\u08ff]|(?<![\u0530-\u058f])[\u0530-\u058f](?![\u0530-\u058f])|[\u0590-\u06ff][A-Za-z]|[A-Za-z][\u0590-\u06ff]/
