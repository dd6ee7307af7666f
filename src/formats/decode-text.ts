/*
 * Decodes the text of an input block by block.
 *
 * If bytes are not in the encoding, `encoding-error.ts` builds the error, which names the line and
 * the likely encoding. Most values of `--encoding` decode UTF-8 without an error, but to wrong
 * letters, so `utf8-lines.ts` looks for UTF-8 in a text that is decoded with that option.
 */
import { isAscii } from 'node:buffer'
import { assertDefined } from '../errors.js'
import { type FormatInput, maxRecordBytes } from './chunk.js'
import {
  countLineFeeds,
  createStrictDecoder,
  findEndOfCharacters,
  getUnitBytes,
  isUnicode,
  type StrictDecoder,
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
  input: TextInput,
  textEncoding: TextEncoding,
): AsyncGenerator<string> {
  const { encoding } = textEncoding
  const decoder = new SectionDecoder(input, textEncoding, await createStrictDecoder(encoding))
  let waitingText = ''
  let remainder: Buffer = Buffer.alloc(0)
  for await (const block of input.blocks) {
    // Each text waits until the next block is there, because Ctrl-Z is removed only from the last.
    if (waitingText !== '') yield waitingText
    const bytes = remainder.length === 0 ? block : Buffer.concat([remainder, block])
    const end = findDecodableEnd(bytes, encoding, remainder.length)
    waitingText = await decoder.decode(bytes.subarray(0, end))
    remainder = bytes.subarray(end)
  }
  const lastText = waitingText + (await decoder.decodeLast(remainder))
  yield `${omitEndOfFileMark(lastText)}\n`
}

/** Decodes one section of a text after the other, and knows where an error is. */
class SectionDecoder {
  readonly #input: TextInput
  readonly #textEncoding: TextEncoding
  readonly #decoder: StrictDecoder
  /** The number of the line in which the next section begins. */
  #line = 1
  /** The number of the first line with letters beyond ASCII. */
  #foreignLine: number | undefined
  /**
   * How many bytes of the line `#line` were in earlier sections. Only UTF-8 needs this number, and
   * its sections are whole lines, or parts of one line.
   */
  #lineOffset = 0

  constructor(input: TextInput, textEncoding: TextEncoding, decoder: StrictDecoder) {
    this.#input = input
    this.#textEncoding = textEncoding
    this.#decoder = decoder
  }

  async decode(section: Buffer): Promise<string> {
    const text = await this.#decodeStrictly(section, () => this.#decoder.write(section))
    this.#noteForeignLine(section, text)
    this.#line += countLineFeeds(text)
    this.#lineOffset = section.includes('\n') ? 0 : this.#lineOffset + section.length
    return text
  }

  decodeLast(section: Buffer): Promise<string> {
    return this.#decodeStrictly(section, () => this.#decoder.write(section) + this.#decoder.end())
  }

  async #decodeStrictly(section: Buffer, decode: () => string): Promise<string> {
    await this.#assertNotUtf8(section)
    try {
      return decode()
    } catch (error) {
      if (!(error instanceof UndecodableError)) throw error
      const { name, blocks, isReadOnce } = this.#input
      throw await createEncodingError({
        ...this.#textEncoding,
        name,
        line: this.#line,
        foreignLine: this.#foreignLine,
        lineOffset: this.#lineOffset,
        bytes: section,
        laterBlocks: isReadOnce ? undefined : blocks,
      })
    }
  }

  /** @throws {EncodingError} if `--encoding` would decode lines of UTF-8 to wrong letters */
  async #assertNotUtf8(section: Buffer): Promise<void> {
    const { encoding, source } = this.#textEncoding
    if (source !== 'option' || isUnicode(encoding)) return
    const utf8Lines = await findUtf8Lines(section, encoding, this.#foreignLine === undefined)
    if (!utf8Lines) return
    throw createUtf8Error({ name: this.#input.name, encoding, line: this.#line, ...utf8Lines })
  }

  #noteForeignLine(section: Buffer, text: string): void {
    if (this.#foreignLine !== undefined || isAscii(section)) return
    const index = text.search(/[^\0-\x7f]/)
    if (index !== -1) this.#foreignLine = this.#line + countLineFeeds(text, index)
  }
}

/** Removes Ctrl-Z, with which programs for DOS end a file. */
function omitEndOfFileMark(text: string): string {
  return text.endsWith('\x1a') ? text.slice(0, -1) : text
}

/**
 * Finds how many of the bytes can be decoded now. The remaining bytes wait for the next block.
 *
 * - UTF-16 and UTF-32 are decoded in whole code units. Their decoders keep an incomplete character.
 * - Any other encoding is decoded in whole lines, because joining bytes takes less time than
 *   joining strings. A line may be long, or never end, so without a line feed, whole characters are
 *   decoded.
 *
 * @param remainderBytes how many of the bytes could not be decoded before the last block was there
 */
function findDecodableEnd(bytes: Buffer, encoding: string, remainderBytes: number): number {
  const unitBytes = getUnitBytes(encoding)
  if (unitBytes > 1) return bytes.length - (bytes.length % unitBytes)
  const linesEnd = bytes.lastIndexOf('\n') + 1
  if (linesEnd > 0) return linesEnd
  return encoding === 'utf-8' ? findEndOfCharacters(bytes) : findEndOfAscii(bytes, remainderBytes)
}

/**
 * Finds the last byte that is surely a character of its own, because iconv-lite can lose a
 * character that is divided between blocks. A byte below `0` (0x30), such as a space or a comma, is
 * one in all of its encodings. Of 2 MiB without such a byte, no record is small enough to be
 * stored.
 */
function findEndOfAscii(bytes: Buffer, remainderBytes: number): number {
  for (let index = bytes.length - 1; index >= remainderBytes; index -= 1)
    if (assertDefined(bytes[index]) < 0x30) return index + 1
  return bytes.length > 2 * maxRecordBytes ? bytes.length : 0
}
