import { isUtf8 } from 'node:buffer'
import { StringDecoder } from 'node:string_decoder'
import { malformed } from '../../platform/errors.js'
import { commonEncodings, type EncodingName, endOfLine } from './format.js'

type Decode = (bytes: Buffer, isLast: boolean) => string

/** undefined for UTF-8. The function throws a TypeError for invalid bytes and for a truncated character. */
function decodeFrom(name: EncodingName): Decode | undefined {
  if (name === 'utf-8') return undefined
  if (name === 'windows-1252') return windows1252
  const decoder = new TextDecoder(name, { fatal: true, ignoreBOM: true })
  return (bytes, isLast) => decoder.decode(bytes, { stream: !isLast })
}

/**
 * TextDecoder of Node 20.18.3 and newer reads 0x80 to 0x9f as ISO 8859-1 (https://github.com/nodejs/node/issues/60888).
 */
function windows1252(bytes: Buffer): string {
  return bytes.toString('latin1').replace(/[\x80-\x9f]/g, (character) => special.charAt(character.charCodeAt(0) - 0x80))
}

const special = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'

/** undefined for UTF-8, and for an encoding that the runtime can only decode */
function encodeTo(name: EncodingName): ((text: string) => Buffer) | undefined {
  if (name === 'utf-16le') return (text) => Buffer.from(text, 'utf16le')
  if (name === 'utf-16be') return (text) => Buffer.from(text, 'utf16le').swap16()
  if (!isSingleByte.test(name)) return undefined
  const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
  const characters = name === 'windows-1252' ? windows1252(all) : new TextDecoder(name).decode(all)
  const bytes = new Map(Array.from(characters, (character, byte) => [character, byte]))
  // every character was such a byte
  return (text) => Buffer.from(Array.from(text, (character) => bytes.get(character) ?? 0x3f))
}

const isSingleByte = /^(ibm866|iso-8859-|koi8-|macintosh$|windows-|x-mac-)/

export function canEncode(name: EncodingName): boolean {
  return name === 'utf-8' || encodeTo(name) !== undefined
}

/** undefined for UTF-8 */
export function decoderFor(
  encoding: EncodingName,
  source: string,
): ((bytes: Buffer, isLast: boolean) => Buffer) | undefined {
  const decode = decodeFrom(encoding)
  if (!decode) return undefined
  return (bytes, isLast) => {
    try {
      return Buffer.from(decode(bytes, isLast))
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      throw malformed(`${source} is not ${encoding}`, encodingHint, error)
    }
  }
}

/** UTF-8 stays as it is if the runtime can only decode the encoding. */
export function encoderFor(encoding: EncodingName): (bytes: Uint8Array) => Uint8Array {
  const encode = encodeTo(encoding)
  const text = new StringDecoder() // a part of a large record can end inside a character
  return encode ? (bytes) => encode(text.write(bytes)) : (bytes) => bytes
}

/** UTF-8 if there is no byte order mark. */
export function markedEncoding(head: Buffer): EncodingName {
  const mark = head.toString('latin1', 0, 2)
  if (head.toString('latin1', 0, 4) === '\xff\xfe\0\0') return 'utf-8' // UTF-32, which is reported later
  return mark === '\xff\xfe' ? 'utf-16le' : mark === '\xfe\xff' ? 'utf-16be' : 'utf-8'
}

/**
 * Without `--encoding`. Throws `malformed` for UTF-16 without a byte order mark, a binary file (zero bytes in its first
 * line, or in a table that is not UTF-8), and a table that is neither UTF-8 nor windows-1252.
 */
export function checkEncoding(
  head: Buffer,
  { isLast, isTable, source }: { isLast: boolean; isTable: boolean; source: string },
): void {
  const other = isTable ? otherLetters(head, isLast) : undefined
  const zeros = Array.from(head.subarray(0, 3), (byte) => byte === 0).join()
  const encoding = unmarked[zeros]
  if (encoding)
    throw malformed(`${source} is not UTF-8, but seems to be ${encoding}`, `Run it again with: --encoding ${encoding}`)
  const isBinary = (other ?? head.toString('latin1', 0, endOfLine(head, 0))).includes('\0')
  if (isBinary) throw malformed(`${source} is not text: it contains U+0000`, 'Use a file of CSV, TSV, NDJSON or JSON')
  if (other && notWindows1252.test(other)) throw malformed(`${source} is not UTF-8`, encodingHint)
}

/** Whether a table without a byte order mark, which passes `checkEncoding`, is not UTF-8. */
export function isWindows1252(head: Buffer, isLast: boolean): boolean {
  return otherLetters(head, isLast) !== undefined
}

/** The whole lines, one character per byte, if they have letters, and none of UTF-8. */
function otherLetters(head: Buffer, isLast: boolean): string | undefined {
  const whole = head.subarray(0, isLast ? head.length : Math.max(head.lastIndexOf(0x0a), head.lastIndexOf(0x0d)) + 1)
  return isUtf8(whole) || /[^\0-\x7f\ufffd]/.test(whole.toString()) ? undefined : whole.toString('latin1')
}

/** bytes without a character */
const notWindows1252 = /[\x81\x8d\x8f\x90\x9d]/

const encodingHint = `Set its encoding with --encoding, such as ${commonEncodings.join(', ')}`

const unmarked: Readonly<Record<string, EncodingName>> = {
  'true,false,true': 'utf-16be',
  'false,true,false': 'utf-16le',
}
