/*
 * Decodes the text of an input block by block.
 *
 * If bytes are not in the encoding, `encoding-error.ts` builds the error, which names the line and
 * the likely encoding. Most values of `--encoding` decode UTF-8 without an error, but to wrong
 * letters, so `utf8-lines.ts` looks for UTF-8 in a text that is decoded with that option.
 */
import { isAscii } from 'node:buffer'
import type { FormatInput } from './chunk.js'
import {
  countLineFeeds,
  createStrictDecoder,
  getUnitBytes,
  isUnicode,
  UndecodableError,
} from './encoding.js'
import { createEncodingError, createUtf8Error, type TextEncoding } from './encoding-error.js'
import { findUtf8Lines } from './utf8-lines.js'

type TextInput = Pick<FormatInput, 'name' | 'blocks' | 'isReadOnce'>

/**
 * Yields the text without a byte order mark, and with a line feed at its end, so that its last line
 * ends like all others.
 *
 * @throws {EncodingError} if bytes are not in the encoding
 */
export async function* decodeText(
  { name, blocks, isReadOnce }: TextInput,
  { encoding, source }: TextEncoding,
): AsyncGenerator<string> {
  const decoder = await createStrictDecoder(encoding)
  const mayBeUtf8 = source === 'option' && !isUnicode(encoding)
  let line = 1
  /** The first line with letters beyond ASCII. */
  let foreignLine: number | undefined
  // If the next block has an error, these are the bytes of its first line that were decoded before.
  let lineStartBytes: Buffer = Buffer.alloc(0)
  let text = ''
  let remainder: Buffer = Buffer.alloc(0)
  const decode = async (section: Buffer, isEnd = false): Promise<string> => {
    if (mayBeUtf8) {
      const utf8Lines = await findUtf8Lines(section, encoding, foreignLine === undefined)
      if (utf8Lines) throw createUtf8Error({ name, encoding, line, ...utf8Lines })
    }
    try {
      return decoder.write(section) + (isEnd ? decoder.end() : '')
    } catch (error) {
      if (!(error instanceof UndecodableError)) throw error
      const bytes = Buffer.concat([lineStartBytes, section])
      const laterBlocks = isReadOnce ? undefined : blocks
      const failure = { name, encoding, source, line, foreignLine, bytes, laterBlocks }
      throw await createEncodingError(failure)
    }
  }
  for await (const block of blocks) {
    // Each text waits until the next block is there, because Ctrl-Z is removed only from the last.
    if (text !== '') yield text
    const bytes = remainder.length === 0 ? block : Buffer.concat([remainder, block])
    const end = findDecodableEnd(bytes, encoding)
    const section = bytes.subarray(0, end)
    text = await decode(section)
    remainder = bytes.subarray(end)
    const foreignIndex =
      foreignLine === undefined && !isAscii(section) ? text.search(/[^\0-\x7f]/) : -1
    if (foreignIndex !== -1) foreignLine = line + countLineFeeds(text, foreignIndex)
    line += countLineFeeds(text)
    lineStartBytes = findLineStartBytes(lineStartBytes, section, encoding)
  }
  yield `${omitEndOfFileMark(`${text}${await decode(remainder, true)}`)}\n`
}

/** Removes Ctrl-Z, with which programs for DOS end a file. */
function omitEndOfFileMark(text: string): string {
  return text.endsWith('\x1a') ? text.slice(0, -1) : text
}

/**
 * Finds how many of the bytes can be decoded now. The remaining bytes wait for the next block.
 *
 * - An encoding that is not Unicode is decoded in whole lines, because iconv-lite can lose the last
 *   character of a block that ends within a character.
 * - UTF-8 is decoded in whole lines if the block has a line feed, because joining bytes takes less
 *   time than joining strings.
 * - UTF-16 and UTF-32 are decoded in whole code units. Their decoders keep an incomplete character.
 */
function findDecodableEnd(bytes: Buffer, encoding: string): number {
  const linesEnd = bytes.lastIndexOf('\n') + 1
  if (!isUnicode(encoding) || (encoding === 'utf-8' && linesEnd > 0)) return linesEnd
  return bytes.length - (bytes.length % getUnitBytes(encoding))
}

/**
 * Returns the bytes of the last line, which is not complete yet. Only UTF-8 needs them, because its
 * error gives the position of a byte in its line. The errors of UTF-16 and UTF-32 give no such
 * position, and all other encodings are decoded in whole lines.
 */
function findLineStartBytes(lineStartBytes: Buffer, section: Buffer, encoding: string): Buffer {
  if (encoding !== 'utf-8') return lineStartBytes
  const end = section.lastIndexOf('\n') + 1
  return end === 0 ? Buffer.concat([lineStartBytes, section]) : section.subarray(end)
}
