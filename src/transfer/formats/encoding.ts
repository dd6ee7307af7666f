import { malformed } from '../../platform/errors.js'

/** a name of the Encoding Standard (https://encoding.spec.whatwg.org), not a label such as `latin1` */
export type EncodingName = string

export const commonEncodings = ['utf-8', 'utf-16le', 'windows-1252', 'iso-8859-2', 'shift_jis']

export function encodingOf(label: string): EncodingName | undefined {
  try {
    return new TextDecoder(label).encoding
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

export function markedEncoding(head: Buffer): EncodingName | undefined {
  if (head.toString('latin1', 0, 3) === '\xef\xbb\xbf') return 'utf-8'
  const mark = head.toString('latin1', 0, 2)
  return mark === '\xff\xfe' ? 'utf-16le' : mark === '\xfe\xff' ? 'utf-16be' : undefined
}

/** As UTF-8, without a byte order mark, which is in the first block. Bytes of UTF-8 stay as they are. */
export async function* toUtf8(
  blocks: AsyncIterable<Buffer>,
  encoding: EncodingName,
  source: string,
): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder(encoding, { fatal: true })
  let isFirst = true
  try {
    for await (const block of blocks) {
      // Only as a stream, Node reads 0x80 to 0x9f of windows-1252 (https://github.com/nodejs/node/issues/60888).
      if (encoding !== 'utf-8') yield Buffer.from(decoder.decode(block, { stream: true }))
      else yield isFirst && markedEncoding(block) === 'utf-8' ? block.subarray(3) : block
      isFirst = false
    }
    if (encoding !== 'utf-8') yield Buffer.from(decoder.decode())
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw malformed(`${source} is not ${encoding}`, 'Name its encoding, such as --encoding windows-1252', error)
  }
}
