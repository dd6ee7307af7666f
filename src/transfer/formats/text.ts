import { isUtf8 } from 'node:buffer'
import { inputError } from '../../platform/errors.js'

export const commonEncodings = ['utf-8', 'utf-16le', 'windows-1252', 'iso-8859-2', 'shift_jis']

/** The name of the encoding that has this label. */
export function encodingOf(label: string): string | undefined {
  try {
    return new TextDecoder(label).encoding
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

export function markedEncoding(head: Buffer): string | undefined {
  if (head.toString('latin1', 0, 3) === '\xef\xbb\xbf') return 'utf-8'
  const mark = head.toString('latin1', 0, 2)
  return mark === '\xff\xfe' ? 'utf-16le' : mark === '\xfe\xff' ? 'utf-16be' : undefined
}

/**
 * Decodes blocks, without a byte order mark.
 *
 * @throws {PlantsError} `input` with the line that is not of the encoding
 */
export async function* decoded(
  blocks: AsyncIterable<Buffer>,
  encoding: string,
  name: string,
): AsyncGenerator<string> {
  const decode = encoding === 'utf-8' ? utf8Decoder() : decoderOf(encoding)
  let line = 1
  const textOf = (block?: Buffer) => {
    try {
      return decode(block)
    } catch (error) {
      if (!(error instanceof MisencodedError)) throw error
      const isUtf8Wanted = encoding === 'utf-8'
      throw inputError(
        `${name} is not ${isUtf8Wanted ? 'UTF-8' : encoding} in line ${line + error.lineFeeds}`,
        isUtf8Wanted
          ? 'If it is of an old spreadsheet, look at it with: --encoding windows-1252 --dry-run'
          : 'Correct that line, or save the file as UTF-8',
        error,
      )
    }
  }
  for await (const block of blocks) {
    const text = textOf(block)
    yield text
    line += lineFeedsIn(text)
  }
  const end = textOf()
  if (end !== '') yield end
}

/** Decodes a block; without one, what is left of the block before. Throws `MisencodedError`. */
type Decode = (block?: Buffer) => string

class MisencodedError extends Error {
  /** Line feeds of the block before the bytes that are wrong. */
  readonly lineFeeds: number

  constructor(lineFeeds: number) {
    super()
    this.lineFeeds = lineFeeds
  }
}

/** Takes a third of the time of a `TextDecoder` that is given a stream. */
function utf8Decoder(): Decode {
  let rest: Buffer | undefined
  return (block) => {
    const marked = rest === undefined && block !== undefined && markedEncoding(block) === 'utf-8'
    const added = marked ? block.subarray(3) : (block ?? Buffer.alloc(0))
    const bytes = rest && rest.length > 0 ? Buffer.concat([rest, added]) : added
    const end = block ? startOfLastCharacter(bytes) : bytes.length
    if (!isUtf8(bytes.subarray(0, end))) throw new MisencodedError(lineOfInvalid(bytes))
    rest = bytes.subarray(end)
    return bytes.toString('utf8', 0, end)
  }
}

/** Of one that may go on in the next block; else the length. */
function startOfLastCharacter(bytes: Buffer): number {
  for (let at = bytes.length - 1; at >= Math.max(0, bytes.length - 4); at -= 1) {
    const byte = bytes.readUInt8(at)
    if (byte < 0x80) break
    if (byte >= 0xc0) return at
  }
  return bytes.length
}

function lineOfInvalid(bytes: Buffer): number {
  let line = 0
  for (let start = 0; ; line += 1) {
    const feed = bytes.indexOf('\n', start)
    if (feed === -1 || !isUtf8(bytes.subarray(start, feed))) return line
    start = feed + 1
  }
}

function decoderOf(encoding: string): Decode {
  const decoder = new TextDecoder(encoding, { fatal: true })
  return (block) => {
    try {
      // Only as a stream, Node reads 0x80 to 0x9f of windows-1252 (https://github.com/nodejs/node/issues/60888).
      if (block) return decoder.decode(block, { stream: true })
      return decoder.decode(new Uint8Array(), { stream: true }) + decoder.decode()
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      const text = new TextDecoder(encoding).decode(block)
      throw new MisencodedError(lineFeedsIn(text.slice(0, Math.max(0, text.indexOf('\ufffd')))))
    }
  }
}

function lineFeedsIn(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count += 1
  return count
}
