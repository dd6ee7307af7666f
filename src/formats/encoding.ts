/*
 * The encodings of text that an import reads, and their decoders.
 *
 * All decoders are strict, because a wrong letter in the store is worse than a rejected file. Bytes
 * that are not in the encoding are an error. So are the control characters of C1, to which a wrong
 * encoding often decodes letters. Node.js decodes UTF-8 and UTF-16, this file decodes UTF-32, and
 * iconv-lite decodes all other encodings, because it knows more than Node.js, such as those of DOS.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { createUsageError } from '../errors.js'
import { isPlainWord } from '../platform/escape.js'

/** Decodes the blocks of one text. Both methods throw `UndecodableError`. */
export interface StrictDecoder {
  write(block: Buffer): string
  end(): string
}

/** The bytes are not in the encoding, or decode to a control character of C1, which no list has. */
export class UndecodableError extends Error {}

/** Finds the encoding of a text that begins with a byte order mark. */
export function findMarkedEncoding(head: Buffer): string | undefined {
  const marks: readonly [mark: string, encoding: string][] = [
    ['\xef\xbb\xbf', 'utf-8'],
    // The mark of UTF-32 begins with the mark of UTF-16, so it is looked for first.
    ['\xff\xfe\0\0', 'utf-32le'],
    ['\0\0\xfe\xff', 'utf-32be'],
    ['\xff\xfe', 'utf-16le'],
    ['\xfe\xff', 'utf-16be'],
  ]
  const start = head.toString('latin1', 0, 4)
  return marks.find(([mark]) => start.startsWith(mark))?.[1]
}

/**
 * Finds out whether a text without a byte order mark is UTF-16 or UTF-32. Any list has characters
 * of ASCII, such as line feeds and commas, which have zero bytes in these encodings. Only the right
 * encoding decodes them to characters of ASCII: in the other byte order, a comma would be U+2C00.
 */
export function findUnmarkedUnicode(head: Buffer): string | undefined {
  const start = head.subarray(0, Math.min(head.length, 4000) & ~3)
  if (!start.includes(0) || isAsciiWithFewZeros(start)) return undefined
  return ['utf-32le', 'utf-32be', 'utf-16le', 'utf-16be'].find((encoding) => {
    const text = decodeLeniently(start, encoding)
    // The last character may be one half of a surrogate pair, because the bytes end after it.
    return !/[\0\ufffd]/.test(text.slice(0, -1)) && /[\n\r,;\t"|]/.test(text)
  })
}

/**
 * Whether a text of ASCII has a few characters U+0000. In UTF-16, all of its characters would have
 * a zero byte, and a text of other characters has bytes from 0x80 on.
 */
function isAsciiWithFewZeros(bytes: Buffer): boolean {
  const zeroCount = bytes.filter((byte) => byte === 0).length
  return zeroCount * 10 < bytes.length && bytes.every((byte) => byte < 0x80)
}

/**
 * Finds the decoder of an encoding by any name that the Encoding Standard, Python or Excel has for
 * the encoding: `windows-1252` decodes `latin1`, `ISO-8859-1` and `cp1252`.
 *
 * @throws {PlantsError} `usage` if no decoder has the name
 */
export async function findEncoding(name: string): Promise<string> {
  const { encodingNames } = await import('./encoding-aliases.js')
  // Excel shows a name with its number, as in "1252 : Western European (Windows)".
  const key = normalizeName(name.replace(/^\s*\d+\s*:/, ''))
  const row = encodingNames.find(([, names]) => names.split(' ').includes(key))
  if (row) return row[0]
  try {
    // ISO-8859-8-I differs from ISO-8859-8 in the direction of Hebrew, but not in its bytes.
    return new TextDecoder(name).encoding.replace(/-i$/, '')
  } catch {
    const namePart = isPlainWord(name) ? ` ${name}` : ''
    throw createUsageError(
      `The encoding${namePart} is unknown`,
      'For UTF-8, leave out --encoding. For example: --encoding windows-1252. More names: plants import --help',
    )
  }
}

function normalizeName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '')
}

/** Whether the encoding is UTF-8, UTF-16 or UTF-32. */
export function isUnicode(encoding: string): boolean {
  return /^utf-(?:8|(?:16|32)[bl]e)$/.test(encoding)
}

/** Returns the size of a code unit of the encoding. Blocks must not be divided within a unit. */
export function getUnitBytes(encoding: string): number {
  if (encoding.startsWith('utf-16')) return 2
  return encoding.startsWith('utf-32') ? 4 : 1
}

/** @throws {UndecodableError} if any of the bytes are not in the encoding */
export async function decodeBytes(bytes: Buffer, encoding: string): Promise<string> {
  const decoder = await createStrictDecoder(encoding)
  return decoder.write(bytes) + decoder.end()
}

/** Decodes bytes. Returns undefined if they are not valid in the encoding. */
export async function tryDecodeBytes(bytes: Buffer, encoding: string): Promise<string | undefined> {
  try {
    return await decodeBytes(bytes, encoding)
  } catch (error) {
    if (error instanceof UndecodableError) return undefined
    throw error
  }
}

/**
 * Lists the characters of an encoding with one byte for a character. It lists none for an encoding
 * that only Node.js decodes.
 */
export async function listSingleByteCharacters(encoding: string): Promise<ReadonlySet<string>> {
  const { default: iconv } = await import('iconv-lite')
  if (!iconv.encodingExists(encoding)) return new Set()
  const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte)
  return new Set(iconv.decode(Buffer.from(bytes), encoding))
}

/** @param encoding the name of a decoder, as `findEncoding` returns it */
export async function createStrictDecoder(encoding: string): Promise<StrictDecoder> {
  if (encoding === 'utf-8') return createUtf8Decoder()
  if (isUnicode(encoding)) return createUnicodeDecoder(encoding)
  const decoder = await createTableDecoder(encoding)
  const check = (text: string | undefined): string => {
    if (text !== undefined && /[\ufffd\u0080-\u009f]/.test(text)) throw new UndecodableError()
    return text ?? ''
  }
  return { write: (block) => check(decoder.write(block)), end: () => check(decoder.end()) }
}

/**
 * Prefers iconv-lite to the decoders of Node.js. For Korean and Big5, Node.js decodes bytes beyond
 * the old standards to wrong characters, without an error.
 */
async function createTableDecoder(encoding: string) {
  const { default: iconv } = await import('iconv-lite')
  if (iconv.encodingExists(encoding)) return iconv.getDecoder(encoding)
  return createUnicodeDecoder(encoding)
}

function createUnicodeDecoder(encoding: string): StrictDecoder {
  if (encoding.startsWith('utf-32')) return createUtf32Decoder(encoding)
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
 * Decodes blocks of ASCII as Latin-1, which gives the same text in a tenth of the time. For any
 * other text, a `TextDecoder` is faster than `Buffer.toString`.
 *
 * A block may end within a character. The first bytes of the character then wait for the next block
 * in `remainder`, although a `TextDecoder` could keep them. A next block of ASCII bypasses the
 * decoder, so the decoder would not notice that the character before this block is incomplete.
 */
function createUtf8Decoder(): StrictDecoder {
  const decoder = createUnicodeDecoder('utf-8')
  let remainder: Buffer = Buffer.alloc(0)
  let isStart = true
  const write = (block: Buffer): string => {
    const bytes = joinBytes(remainder, block)
    const end = findEndOfCharacters(bytes)
    const wholeCharacters = bytes.subarray(0, end)
    remainder = bytes.subarray(end)
    // The decoder removes a byte order mark, but only if it gets the beginning of the text.
    const isPlain = !isStart && isAscii(wholeCharacters)
    isStart &&= wholeCharacters.length === 0
    return isPlain ? wholeCharacters.toString('latin1') : decoder.write(wholeCharacters)
  }
  return { write, end: () => decoder.write(remainder) + decoder.end() }
}

/**
 * Whether the blocks together are valid UTF-8. This takes a tenth of the time of decoding them, but
 * does not find the invalid bytes.
 */
export async function areUtf8(blocks: AsyncIterable<Buffer>): Promise<boolean> {
  let remainder: Buffer = Buffer.alloc(0)
  for await (const block of blocks) {
    const bytes = joinBytes(remainder, block)
    const end = findEndOfCharacters(bytes)
    if (!isUtf8(bytes.subarray(0, end))) return false
    remainder = bytes.subarray(end)
  }
  return remainder.length === 0
}

/** Joins two blocks. Mostly the remainder is empty, and then the block is not copied. */
function joinBytes(remainder: Buffer, block: Buffer): Buffer {
  return remainder.length === 0 ? block : Buffer.concat([remainder, block])
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

/** Only the last block of a text may have a length that is no multiple of four bytes. */
function createUtf32Decoder(encoding: string): StrictDecoder {
  let isFirst = true
  const write = (block: Buffer): string => {
    const text = decodeUtf32(block, encoding)
    if (text.includes('\ufffd')) throw new UndecodableError()
    const hasMark = isFirst && text.startsWith('\ufeff')
    isFirst = isFirst && block.length === 0
    return hasMark ? text.slice(1) : text
  }
  return { write, end: () => '' }
}

/**
 * Decodes the beginning of a text, and replaces bytes that are not in the encoding by U+FFFD. An
 * encoding other than Unicode is decoded as Latin-1. Only the characters of ASCII are then right,
 * which are enough to detect a format.
 */
export function decodeLeniently(bytes: Buffer, encoding: string): string {
  if (encoding.startsWith('utf-32')) return decodeUtf32(bytes, encoding)
  return new TextDecoder(isUnicode(encoding) ? encoding : 'latin1').decode(bytes)
}

function decodeUtf32(bytes: Buffer, encoding: string): string {
  const parts: string[] = []
  for (let index = 0; index + 4 <= bytes.length; index += 4) {
    const codePoint =
      encoding === 'utf-32le' ? bytes.readUInt32LE(index) : bytes.readUInt32BE(index)
    const isCharacter = codePoint <= 0x10ffff && (codePoint < 0xd800 || codePoint > 0xdfff)
    parts.push(isCharacter ? String.fromCodePoint(codePoint) : '\ufffd')
  }
  return parts.join('') + (bytes.length % 4 === 0 ? '' : '\ufffd')
}

/** Yields each line of bytes with the line feed that ends it. */
export function* splitLines(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; ) {
    const end = bytes.indexOf('\n', start) + 1 || bytes.length
    yield bytes.subarray(start, end)
    start = end
  }
}

/** Counts the line feeds before the index `end`. */
export function countLineFeeds(text: string, end = text.length): number {
  let count = 0
  for (
    let index = text.indexOf('\n');
    index !== -1 && index < end;
    index = text.indexOf('\n', index + 1)
  )
    count += 1
  return count
}
