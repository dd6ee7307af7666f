/*
 * The encodings of text that an import reads, and their decoders.
 *
 * All decoders are strict, because a wrong letter in the store is worse than a rejected file. Bytes
 * that are not in the encoding are an error. Node.js decodes UTF-8 and UTF-16. iconv-lite decodes
 * all other encodings, because it knows more than Node.js, such as those of DOS. In these, control
 * characters of C1 are an error, too, because a wrong encoding often decodes letters to them.
 */
import { createUsageError } from '../errors.js'
import { isPlainWord } from '../platform/escape.js'

/** Decodes the blocks of one text. Both methods throw `UndecodableError`. */
export interface StrictDecoder {
  write(block: Buffer): string
  end(): string
}

/** The bytes are not in the encoding, or another one than Unicode decodes them to C1. */
export class UndecodableError extends Error {}

/** Finds the encoding of a text that begins with a byte order mark. */
export function findMarkedEncoding(head: Buffer): string | undefined {
  const start = head.toString('latin1', 0, 3)
  if (start === '\xef\xbb\xbf') return 'utf-8'
  if (start.startsWith('\xff\xfe')) return 'utf-16le'
  return start.startsWith('\xfe\xff') ? 'utf-16be' : undefined
}

/**
 * Finds the decoder of an encoding by a label of the Encoding Standard, such as `latin1`, by a name
 * that iconv-lite knows, such as `maccenteuro`, or by the number of a code page, such as `850`.
 *
 * @throws {PlantsError} `usage` if no decoder has the name
 */
export async function findEncoding(name: string): Promise<string> {
  const key = name.toLowerCase().replace(/[^a-z0-9]/g, '')
  const codePage = /^\d+$/.test(key) ? `cp${key}` : key
  for (const label of [name, codePage])
    try {
      // ISO-8859-8-I differs from ISO-8859-8 in the direction of Hebrew, but not in its bytes.
      return new TextDecoder(label).encoding.replace(/-i$/, '')
    } catch {
      // The name is not a label.
    }
  const { default: iconv } = await import('iconv-lite')
  if (!/^(?:|base64|binary|hex|cesu.*|ucs.*|utf.*)$/.test(key) && iconv.encodingExists(codePage))
    return codePage
  throw createUsageError(
    `The encoding${isPlainWord(name) ? ` ${name}` : ''} is unknown`,
    'See: plants help tables',
  )
}

/** Whether the encoding is UTF-8 or UTF-16. */
export function isUnicode(encoding: string): boolean {
  return encoding === 'utf-8' || isUtf16(encoding)
}

export function isUtf16(encoding: string): boolean {
  return encoding === 'utf-16le' || encoding === 'utf-16be'
}

/** Whether an encoding has two bytes for a letter, as all Chinese and Japanese ones have. */
export function isEastAsian(encoding: string): boolean {
  return /^(?:big5|euc|gb|iso-?2022|ks|shift|sjis|uhc)|9(?:32|36|49|50)$/.test(encoding)
}

/** Decodes bytes. Returns undefined if they are not valid in the encoding. */
export async function tryDecodeBytes(bytes: Buffer, encoding: string): Promise<string | undefined> {
  const decoder = await createStrictDecoder(encoding)
  try {
    return decoder.write(bytes) + decoder.end()
  } catch (error) {
    if (error instanceof UndecodableError) return undefined
    throw error
  }
}

/** @param encoding the name of a decoder, as `findEncoding` returns it */
export async function createStrictDecoder(encoding: string): Promise<StrictDecoder> {
  if (isUnicode(encoding)) return createTextDecoder(encoding)
  const { default: iconv } = await import('iconv-lite')
  // For Korean and Big5, Node.js decodes bytes beyond the old standards to wrong characters,
  // without an error.
  const decoder = iconv.encodingExists(encoding)
    ? iconv.getDecoder(encoding)
    : createTextDecoder(encoding)
  const check = (text: string | undefined): string => {
    if (text !== undefined && /[\ufffd\u0080-\u009f]/.test(text)) throw new UndecodableError()
    return text ?? ''
  }
  return { write: (block) => check(decoder.write(block)), end: () => check(decoder.end()) }
}

export function createTextDecoder(encoding: string): StrictDecoder {
  const decoder = new TextDecoder(encoding, { fatal: true })
  const decode = (block?: Buffer): string => {
    try {
      return decoder.decode(block, { stream: block !== undefined })
    } catch (error) {
      throw new UndecodableError(undefined, { cause: error })
    }
  }
  return { write: decode, end: () => decode() }
}

/**
 * Returns the index of the last character of UTF-8 if the bytes end within it, or else their
 * length.
 */
export function findEndOfCharacters(bytes: Buffer): number {
  const { length } = bytes
  for (let index = length - 1; index >= Math.max(0, length - 3); index -= 1) {
    const byte = bytes.readUInt8(index)
    const isContinuation = byte >= 0x80 && byte < 0xc0
    if (!isContinuation) return index + countBytes(byte) > length ? index : length
  }
  return length
}

/** Returns how many bytes a character of UTF-8 has, by its first byte. */
function countBytes(firstByte: number): number {
  if (firstByte < 0xc0) return 1
  if (firstByte < 0xe0) return 2
  return firstByte < 0xf0 ? 3 : 4
}

/**
 * Decodes the beginning of a text, and replaces bytes that are not in the encoding by U+FFFD. An
 * encoding other than Unicode is decoded as Latin-1. Only the characters of ASCII are then right,
 * which are enough to detect a format.
 */
export function decodeLeniently(bytes: Buffer, encoding: string): string {
  return new TextDecoder(isUnicode(encoding) ? encoding : 'latin1').decode(bytes)
}

/** What ends a line: CR in files of old Macs, else LF. A CR before an LF is white space. */
export type LineEnd = '\n' | '\r'

/**
 * Finds what ends the lines of a text by its beginning. In a file of an old Mac, CR ends a line,
 * and a cell in quotes may have a line feed.
 */
export function findLineEnd(head: string): LineEnd {
  const unquoted = head.replace(/"[^"]*"/g, '')
  return unquoted.includes('\r') && !unquoted.includes('\n') ? '\r' : '\n'
}

/** Yields each line of bytes with the character that ends it. */
export function* splitLines(bytes: Buffer, lineEnd: LineEnd = '\n'): Generator<Buffer> {
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf(lineEnd, start) + 1 || bytes.length
    yield bytes.subarray(start, end)
    start = end
  }
}

/** Counts the ends of lines before the index `end`. */
export function countLineEnds(text: string, lineEnd: LineEnd = '\n', end = text.length): number {
  let count = 0
  for (
    let index = text.indexOf(lineEnd);
    index !== -1 && index < end;
    index = text.indexOf(lineEnd, index + 1)
  )
    count += 1
  return count
}
