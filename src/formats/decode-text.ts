/*
 * Decodes the text of an input block by block. If bytes are not in the encoding,
 * `encoding-error.ts` builds the error.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { assertDefined } from '../errors.js'
import {
  countLineEnds,
  createStrictDecoder,
  decodeLeniently,
  findEndOfCharacters,
  findLineEnd,
  isEastAsian,
  isUnicode,
  isUtf16,
  type LineEnd,
  type StrictDecoder,
  splitLines,
  UndecodableError,
} from './encoding.js'
import {
  createEncodingError,
  createUtf8Error,
  type ForeignLine,
  type TextEncoding,
} from './encoding-error.js'
import { maxRecordBytes } from './limits.js'
import type { FormatInput } from './reader.js'

type TextInput = Pick<FormatInput, 'name' | 'head' | 'blocks' | 'isReadOnce'>

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
  readonly #lineEnd: LineEnd
  /** The number of the line in which the next section begins. */
  #line = 1
  /** The first line with letters beyond ASCII. */
  #foreignLine: ForeignLine | undefined
  /** Counts the lines of UTF-8 beyond ASCII; undefined if a line is not UTF-8. */
  #utf8Lines: number | undefined = 0

  constructor(
    private readonly input: TextInput,
    private readonly textEncoding: TextEncoding,
    private readonly decoder: StrictDecoder,
  ) {
    this.#lineEnd = findLineEnd(decodeLeniently(input.head, textEncoding.encoding))
  }

  async decode(section: Buffer): Promise<string> {
    const text = await this.#decodeStrictly(section, () => this.decoder.write(section))
    // A pipe is not examined before it is imported, so its first letters decide.
    if (this.input.isReadOnce) this.#assertNotUtf8()
    this.#line += countLineEnds(text, this.#lineEnd)
    return text
  }

  async decodeLast(section: Buffer): Promise<string> {
    const decode = () => this.decoder.write(section) + this.decoder.end()
    const text = await this.#decodeStrictly(section, decode)
    this.#assertNotUtf8()
    return text
  }

  async #decodeStrictly(section: Buffer, decode: () => string): Promise<string> {
    const { encoding } = this.textEncoding
    if (!isUtf16(encoding) && !isAscii(section)) this.#noteForeignLines(section)
    try {
      return decode()
    } catch (error) {
      if (!(error instanceof UndecodableError)) throw error
      this.#assertNotUtf8()
      const { name, blocks, isReadOnce } = this.input
      throw await createEncodingError({
        ...this.textEncoding,
        name,
        line: this.#line,
        lineEnd: this.#lineEnd,
        foreignLine: this.#foreignLine,
        bytes: section,
        laterBlocks: isReadOnce ? [] : blocks,
      })
    }
  }

  /** Notes the first line beyond ASCII, and counts those of UTF-8 if another encoding is read. */
  #noteForeignLines(section: Buffer): void {
    const mayBeUtf8 = !isUnicode(this.textEncoding.encoding) && this.#utf8Lines !== undefined
    if (this.#foreignLine && !mayBeUtf8) return
    if (!isUtf8(section)) this.#utf8Lines = undefined
    let line = this.#line
    for (const bytes of splitLines(section, this.#lineEnd)) {
      if (!isAscii(bytes)) {
        this.#foreignLine ??= { line, bytes }
        if (!mayBeUtf8 || this.#utf8Lines === undefined) return
        this.#utf8Lines += 1
      }
      line += 1
    }
  }

  /**
   * Every byte is a letter in Windows-1252, so it decodes UTF-8, too, but to wrong letters. In an
   * encoding of East Asia, one line may be valid UTF-8 by chance.
   *
   * @throws {EncodingError} if `--encoding` is given for a text of UTF-8
   */
  #assertNotUtf8(): void {
    const { encoding, source } = this.textEncoding
    if (source !== 'option' || isUnicode(encoding) || this.#utf8Lines === undefined) return
    if (this.#utf8Lines < (isEastAsian(encoding) ? 2 : 1)) return
    throw createUtf8Error(this.input.name, encoding)
  }
}

/** Removes Ctrl-Z, with which programs for DOS end a file. */
function omitEndOfFileMark(text: string): string {
  return text.endsWith('\x1a') ? text.slice(0, -1) : text
}

/**
 * Finds how many of the bytes can be decoded now. The remaining bytes wait for the next block.
 *
 * A decoder of UTF-16 keeps an incomplete character itself. Any other encoding is decoded in whole
 * lines, because joining bytes takes less time than joining strings. A line may be long, or never
 * end, so without a line feed, whole characters are decoded.
 *
 * @param remainderBytes how many of the bytes could not be decoded before the last block was there
 */
function findDecodableEnd(bytes: Buffer, encoding: string, remainderBytes: number): number {
  if (isUtf16(encoding)) return bytes.length
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
