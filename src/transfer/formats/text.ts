import { inputError } from '../../platform/errors.js'

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
  const isUtf8 = encoding === 'utf-8'
  const decoder = new TextDecoder(encoding, { fatal: true, ignoreBOM: true })
  let line = 0
  const decode = (block: Uint8Array, stream = !isUtf8) => {
    try {
      return decoder.decode(block, { stream })
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      const text = new TextDecoder(encoding).decode(block)
      const place = Math.max(1, line) + lineFeedsIn(text, text.indexOf('\ufffd'))
      throw inputError(
        `${name} is not ${isUtf8 ? 'UTF-8' : encoding} in line ${place}`,
        isUtf8
          ? 'If it is of an old spreadsheet, look at it with: --encoding windows-1252 --dry-run'
          : 'Correct that line, or save the file as UTF-8',
      )
    }
  }
  for await (const block of isUtf8 ? wholeCharacters(blocks) : blocks) {
    const text = decode(block)
    yield line === 0 ? text.replace(/^\ufeff/, '') : text
    line = Math.max(1, line) + lineFeedsIn(text)
  }
  const end = decode(new Uint8Array(), false)
  if (end !== '') yield end
}

/** Of UTF-8, which a `TextDecoder` then decodes in a third of the time of a stream. */
async function* wholeCharacters(blocks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const block of blocks) {
    const bytes = rest.length > 0 ? Buffer.concat([rest, block]) : block
    const last = Math.max(0, bytes.length - 3)
    const lead = bytes.subarray(last).findLastIndex((byte) => byte >= 0xc0)
    const end = lead === -1 ? bytes.length : last + lead
    yield bytes.subarray(0, end)
    rest = bytes.subarray(end)
  }
  if (rest.length > 0) yield rest
}

export function lineFeedsIn(text: string, end = text.length): number {
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1 && at < end; at = text.indexOf('\n', at + 1))
    count += 1
  return count
}
