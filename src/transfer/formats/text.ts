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
  if (encoding === 'utf-8')
    for await (const bytes of validUtf8(blocks, name)) yield bytes.toString()
  else yield* decodedBy(new TextDecoder(encoding, { fatal: true }), blocks, name)
}

/** The same, as UTF-8: whole characters. */
export async function* asUtf8(
  blocks: AsyncIterable<Buffer>,
  encoding: string,
  name: string,
): AsyncGenerator<Buffer> {
  if (encoding === 'utf-8') yield* validUtf8(blocks, name)
  else for await (const text of decoded(blocks, encoding, name)) yield Buffer.from(text)
}

/** Whole characters. Takes a third of the time of a `TextDecoder` that is given a stream. */
async function* validUtf8(blocks: AsyncIterable<Buffer>, name: string): AsyncGenerator<Buffer> {
  let line = 1
  let rest: Buffer | undefined
  const valid = (bytes: Buffer) => {
    if (isUtf8(bytes)) return bytes
    throw misencoded(name, 'utf-8', line + lineFeedBytesIn(validLinesOf(bytes)))
  }
  for await (const block of blocks) {
    const isMarked = rest === undefined && markedEncoding(block) === 'utf-8'
    const bytes = rest?.length ? Buffer.concat([rest, block]) : block
    const end = startOfLastCharacter(bytes)
    const part = valid(bytes.subarray(isMarked ? 3 : 0, end))
    rest = bytes.subarray(end)
    yield part
    line += lineFeedBytesIn(part)
  }
  if (rest?.length) yield valid(rest)
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

/** Those before the first line that is not UTF-8. */
function validLinesOf(bytes: Buffer): Buffer {
  for (let start = 0; ; ) {
    const feed = bytes.indexOf('\n', start)
    if (feed === -1 || !isUtf8(bytes.subarray(start, feed))) return bytes.subarray(0, start)
    start = feed + 1
  }
}

async function* decodedBy(
  decoder: InstanceType<typeof TextDecoder>,
  blocks: AsyncIterable<Buffer>,
  name: string,
): AsyncGenerator<string> {
  let line = 1
  const decode = (block?: Buffer) => {
    try {
      // Only as a stream, Node reads 0x80 to 0x9f of windows-1252 (https://github.com/nodejs/node/issues/60888).
      if (block) return decoder.decode(block, { stream: true })
      return decoder.decode(new Uint8Array(), { stream: true }) + decoder.decode()
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      const text = new TextDecoder(decoder.encoding).decode(block)
      throw misencoded(name, decoder.encoding, line + lineFeedsIn(text, text.indexOf('\ufffd')))
    }
  }
  for await (const block of blocks) {
    const text = decode(block)
    yield text
    line += lineFeedsIn(text)
  }
  const end = decode()
  if (end !== '') yield end
}

export function lineFeedsIn(text: string, end = text.length): number {
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1 && at < end; at = text.indexOf('\n', at + 1))
    count += 1
  return count
}

/** `indexOf` of a buffer takes as long as to look at a hundred bytes. */
function lineFeedBytesIn(bytes: Buffer): number {
  let count = 0
  for (const byte of bytes) if (byte === lineFeed) count += 1
  return count
}

const lineFeed = 0x0a

function misencoded(name: string, encoding: string, line: number): Error {
  const isUtf8Wanted = encoding === 'utf-8'
  return inputError(
    `${name} is not ${isUtf8Wanted ? 'UTF-8' : encoding} in line ${line}`,
    isUtf8Wanted
      ? 'If it is of an old spreadsheet, look at it with: --encoding windows-1252 --dry-run'
      : 'Correct that line, or save the file as UTF-8',
  )
}
