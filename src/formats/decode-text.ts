/*
 * Decodes the text of an input block by block.
 *
 * If bytes are not of the encoding, `encoding-error.ts` builds the error that says in which line
 * they are, and in which encoding the text most likely is. A text that is read in the encoding of
 * `--encoding`, and is in truth UTF-8, decodes without an error in most encodings, but to wrong
 * letters: `utf8-lines.ts` finds it.
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
 * @throws {EncodingError} if bytes are not of the encoding
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
  // The decoded bytes of the line that the next block continues are kept for an error.
  let lineStart: Buffer = Buffer.alloc(0)
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
      const bytes = Buffer.concat([lineStart, section])
      const following = isReadOnce ? undefined : blocks
      const undecodable = { name, encoding, source, line, foreignLine, bytes, following }
      throw await createEncodingError(undecodable)
    }
  }
  for await (const block of blocks) {
    // Each text waits for the next block, because only the last one loses its Ctrl-Z.
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
    lineStart = findLineStart(lineStart, section, encoding)
  }
  yield `${omitEndOfFile(`${text}${await decode(remainder, true)}`)}\n`
}

/** Omits Ctrl-Z, with which programs for DOS end a file. */
function omitEndOfFile(text: string): string {
  return text.endsWith('\x1a') ? text.slice(0, -1) : text
}

/**
 * Finds how many of the bytes can be decoded now. The others wait for the next block.
 *
 * If a block ends within a character, iconv-lite can lose the last character of the block. So an
 * encoding that is not Unicode is decoded in whole lines. So is UTF-8, where a block has a line
 * feed, because joining bytes takes less than joining texts. The decoders of Unicode keep an
 * incomplete character themselves, and only the bytes of a UTF-16 or UTF-32 unit must be together.
 */
function findDecodableEnd(bytes: Buffer, encoding: string): number {
  const linesEnd = bytes.lastIndexOf('\n') + 1
  if (!isUnicode(encoding) || (encoding === 'utf-8' && linesEnd > 0)) return linesEnd
  return bytes.length - (bytes.length % getUnitBytes(encoding))
}

/**
 * Returns the bytes of the line that is not complete yet. Only UTF-8 needs them, whose error has
 * the number of the byte in its line: UTF-16 and UTF-32 have no such error, and all other encodings
 * are decoded in whole lines.
 */
function findLineStart(lineStart: Buffer, section: Buffer, encoding: string): Buffer {
  if (encoding !== 'utf-8') return lineStart
  const end = section.lastIndexOf('\n') + 1
  return end === 0 ? Buffer.concat([lineStart, section]) : section.subarray(end)
}
