import { inputError, usageError } from '../../platform/errors.js'

export function markedEncoding(head: Buffer): string | undefined {
  if (head.toString('latin1', 0, 3) === '\xef\xbb\xbf') return 'utf-8'
  const mark = head.toString('latin1', 0, 2)
  return mark === '\xff\xfe' ? 'utf-16le' : mark === '\xfe\xff' ? 'utf-16be' : undefined
}

/** Its name in the Encoding Standard; otherwise, iconv-lite may know it, as Python does. */
export function encodingOf(label: string): string {
  try {
    return new TextDecoder(label.replace(/^ansi$/i, 'windows-1252')).encoding
  } catch {
    return label
  }
}

export function isUnicode(encoding: string): boolean {
  return /^utf-(?:8|16[bl]e)$/.test(encoding)
}

/** Node's decoders of Korean and Big5 give other characters, without an error, for what is beyond the old standards. */
async function decoderOf(encoding: string) {
  const iconv = isUnicode(encoding) ? undefined : (await import('iconv-lite')).default
  if (iconv?.encodingExists(encoding)) return iconv.getDecoder(encoding)
  try {
    const decoder = new TextDecoder(encoding, { fatal: true, ignoreBOM: true })
    const stream = encoding !== 'utf-8'
    return {
      write: (block: Buffer) => decoder.decode(block, { stream }),
      end: () => decoder.decode(),
    }
  } catch {
    throw usageError('The encoding is unknown', 'For example: --encoding windows-1252')
  }
}

/** Decodes blocks, without a byte order mark. Throws `input` with the line that is not of the encoding. */
export async function* decoded(
  blocks: AsyncIterable<Buffer>,
  encoding: string,
  name: string,
): AsyncGenerator<string> {
  const isUtf8 = encoding === 'utf-8'
  const decoder = await decoderOf(encoding)
  const wrong = /[\ufffd\u0080-\u009f]/ // what is replaced, and C1 controls
  let line = 0
  const decode = (block?: Buffer): string => {
    let text: string
    try {
      text = (block ? decoder.write(block) : decoder.end()) ?? ''
      if (isUnicode(encoding) || !wrong.test(text)) return text
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      text = new TextDecoder(encoding).decode(block)
    }
    const place = Math.max(1, line) + lineFeedsIn(text, text.search(wrong))
    throw inputError(
      `${name} is not ${isUtf8 ? 'UTF-8' : encoding} in line ${place}`,
      isUtf8
        ? 'If it is of an old spreadsheet, look at it with: --encoding windows-1252 --dry-run'
        : 'Correct that line, or save the file as UTF-8',
    )
  }
  for await (const block of isUtf8 ? wholeCharacters(blocks) : blocks) {
    const text = decode(block)
    yield line === 0 ? text.replace(/^\ufeff/, '') : text
    line = Math.max(1, line) + lineFeedsIn(text)
  }
  const end = decode()
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
