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
  const decoder = new TextDecoder(encoding, { fatal: true, ignoreBOM: true })
  const isUtf8 = encoding === 'utf-8'
  let line = 0
  const decode = (block: Uint8Array, options = { stream: !isUtf8 }) => {
    try {
      return decoder.decode(block, options)
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      const text = new TextDecoder(encoding).decode(block)
      const place = Math.max(1, line) + lineFeedsIn(text, text.indexOf('\ufffd'))
      throw misencoded(name, isUtf8 ? 'UTF-8' : encoding, place)
    }
  }
  for await (const block of isUtf8 ? wholeCharacters(blocks) : blocks) {
    const text = decode(block)
    yield line === 0 ? text.replace(/^\ufeff/, '') : text
    line = Math.max(1, line) + lineFeedsIn(text)
  }
  // Only as a stream, Node reads 0x80 to 0x9f of windows-1252 (https://github.com/nodejs/node/issues/60888).
  const nothing = new Uint8Array()
  const end = decode(nothing) + decode(nothing, { stream: false })
  if (end !== '') yield end
}

/** Of UTF-8, which a `TextDecoder` then decodes in a third of the time of a stream. */
async function* wholeCharacters(blocks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const block of blocks) {
    const bytes = rest.length > 0 ? Buffer.concat([rest, block]) : block
    const end = startOfLastCharacter(bytes)
    yield bytes.subarray(0, end)
    rest = bytes.subarray(end)
  }
  if (rest.length > 0) yield rest
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

export function lineFeedsIn(text: string, end = text.length): number {
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1 && at < end; at = text.indexOf('\n', at + 1))
    count += 1
  return count
}

function misencoded(name: string, encoding: string, line: number): Error {
  return inputError(
    `${name} is not ${encoding} in line ${line}`,
    encoding === 'UTF-8'
      ? 'If it is of an old spreadsheet, look at it with: --encoding windows-1252 --dry-run'
      : 'Correct that line, or save the file as UTF-8',
  )
}
