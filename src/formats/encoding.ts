/*
 * The encodings of text that an import reads, and their decoders, all of which are strict.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { usageError } from '../errors.js'

/** Decodes blocks of one text. Both methods throw `UndecodableError`. */
export interface StrictDecoder {
  write(block: Buffer): string
  end(): string
}

/** Bytes are not of the encoding, or give what no plant list has: a control character of C1. */
export class UndecodableError extends Error {}

export function findMarkedEncoding(head: Buffer): string | undefined {
  const marks: readonly [mark: string, encoding: string][] = [
    ['\xef\xbb\xbf', 'utf-8'],
    ['\xff\xfe\0\0', 'utf-32le'], // before UTF-16, which begins with the same two bytes
    ['\0\0\xfe\xff', 'utf-32be'],
    ['\xff\xfe', 'utf-16le'],
    ['\xfe\xff', 'utf-16be'],
  ]
  const start = head.toString('latin1', 0, 4)
  return marks.find(([mark]) => start.startsWith(mark))?.[1]
}

/**
 * UTF-16 or UTF-32 without a byte order mark, by the zeros of its ASCII characters: a list has a
 * line feed, and a comma, a tab or a quote, at the least.
 */
export function findUnmarkedUnicode(head: Buffer): string | undefined {
  const start = head.subarray(0, Math.min(head.length, 4000) & ~3)
  if (!start.includes(0)) return undefined
  return ['utf-32le', 'utf-32be', 'utf-16le', 'utf-16be'].find((encoding) => {
    const text = decodeLeniently(start, encoding)
    // A surrogate pair may be cut at the end. In the other byte order, a comma is U+2C00.
    return !/[\0\ufffd]/.test(text.slice(0, -1)) && /[\n\r,;\t"|]/.test(text)
  })
}

/**
 * Finds the decoder of any name that the Encoding Standard, Python or Excel has for it.
 * @throws `usage` for a name that no decoder has
 */
export async function findEncoding(name: string): Promise<string> {
  const { encodingNames } = await import('./encoding-aliases.js')
  // Excel shows a name with its number, as in "1252 : Western European (Windows)".
  const key = normalizeName(name.replace(/^\s*\d+\s*:/, ''))
  const row = encodingNames.find(([, names]) => names.split(' ').includes(key))
  if (row) return row[0]
  try {
    return new TextDecoder(name).encoding.replace(/-i$/, '') // visual and logical Hebrew are one
  } catch {
    throw usageError(
      'The encoding is unknown',
      'Use a name of docs/encodings.md, for example: --encoding windows-1252',
    )
  }
}

function normalizeName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, '')
}

export function isUnicode(encoding: string): boolean {
  return /^utf-(?:8|(?:16|32)[bl]e)$/.test(encoding)
}

/** Of the units of an encoding, which no block may divide. */
export function getUnitBytes(encoding: string): number {
  return encoding.startsWith('utf-16') ? 2 : encoding.startsWith('utf-32') ? 4 : 1
}

/** @throws {UndecodableError} */
export async function decodeBytes(bytes: Buffer, encoding: string): Promise<string> {
  const decoder = await createStrictDecoder(encoding)
  return decoder.write(bytes) + decoder.end()
}

/** @param encoding as `findEncoding` returns it */
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
 * Node's decoders of Korean and Big5 give other characters, without an error, for what is beyond
 * the old standards, so iconv-lite goes first.
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
 * Decodes blocks of ASCII as Latin-1, in a tenth of the time. `Buffer.toString` takes longer than a
 * `TextDecoder` for any other text. The bytes of a character that a block divides wait for the next
 * block, and most blocks, which divide none, are not copied.
 */
function createUtf8Decoder(): StrictDecoder {
  const decoder = createUnicodeDecoder('utf-8')
  let rest: Buffer = Buffer.alloc(0)
  let isStart = true
  const write = (block: Buffer): string => {
    const bytes = joinBytes(rest, block)
    const end = findEndOfCharacters(bytes)
    const whole = bytes.subarray(0, end)
    rest = bytes.subarray(end)
    // The decoder has to see the beginning, where a mark may be.
    const isPlain = !isStart && isAscii(whole)
    isStart &&= whole.length === 0
    return isPlain ? whole.toString('latin1') : decoder.write(whole)
  }
  return { write, end: () => decoder.write(rest) + decoder.end() }
}

/**
 * Whether blocks are UTF-8 throughout, in a tenth of the time that decoding takes, which says where
 * they are not.
 */
export async function areUtf8(blocks: AsyncIterable<Buffer>): Promise<boolean> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const block of blocks) {
    const bytes = joinBytes(rest, block)
    const end = findEndOfCharacters(bytes)
    if (!isUtf8(bytes.subarray(0, end))) return false
    rest = bytes.subarray(end)
  }
  return rest.length === 0
}

function joinBytes(rest: Buffer, block: Buffer): Buffer {
  return rest.length === 0 ? block : Buffer.concat([rest, block])
}

/** Returns where the last character begins if it has further bytes after these, or the length. */
function findEndOfCharacters(bytes: Buffer): number {
  const { length } = bytes
  for (let at = length - 1; at >= Math.max(0, length - 3); at -= 1) {
    const byte = bytes.readUInt8(at)
    const isContinuation = byte >= 0x80 && byte < 0xc0
    if (!isContinuation) return at + countBytes(byte) > length ? at : length
  }
  return length
}

/** Returns how many bytes a character has that begins with this one. */
function countBytes(first: number): number {
  if (first < 0xc0) return 1
  if (first < 0xe0) return 2
  return first < 0xf0 ? 3 : 4
}

/** Blocks that are no multiple of four bytes end the text. */
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

/** U+FFFD stands for what is not of the encoding. It is for a beginning, of which one looks. */
export function decodeLeniently(bytes: Buffer, encoding: string): string {
  if (encoding.startsWith('utf-32')) return decodeUtf32(bytes, encoding)
  return new TextDecoder(isUnicode(encoding) ? encoding : 'latin1').decode(bytes)
}

function decodeUtf32(bytes: Buffer, encoding: string): string {
  const parts: string[] = []
  for (let at = 0; at + 4 <= bytes.length; at += 4) {
    const point = encoding === 'utf-32le' ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at)
    const isCharacter = point <= 0x10ffff && (point < 0xd800 || point > 0xdfff)
    parts.push(isCharacter ? String.fromCodePoint(point) : '\ufffd')
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

export function countLineFeeds(text: string, end = text.length): number {
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1 && at < end; at = text.indexOf('\n', at + 1))
    count += 1
  return count
}
