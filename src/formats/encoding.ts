import { inputError, usageError } from '../errors.js'

export function markedEncoding(head: Buffer): string | undefined {
  if (head.toString('latin1', 0, 3) === '\xef\xbb\xbf') return 'utf-8'
  const mark = head.toString('latin1', 0, 2)
  return mark === '\xff\xfe' ? 'utf-16le' : mark === '\xfe\xff' ? 'utf-16be' : undefined
}

/** Its name in the Encoding Standard; otherwise, iconv-lite may know it. */
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

/**
 * Node's decoders of Korean and Big5 give other characters, without an error, for what is beyond
 * the old standards.
 */
async function decoderOf(encoding: string) {
  const iconv = isUnicode(encoding) ? undefined : (await import('iconv-lite')).default
  if (iconv?.encodingExists(encoding)) return iconv.getDecoder(encoding)
  try {
    const decoder = new TextDecoder(encoding, { fatal: true })
    return {
      write: (block: Buffer) => decoder.decode(block, { stream: true }),
      end: () => decoder.decode(),
    }
  } catch {
    throw usageError('The encoding is unknown', 'For example: --encoding windows-1252')
  }
}

/**
 * Without a byte order mark, and with a line feed at the end. Throws `input` with the line of other
 * bytes.
 */
export async function* decoded(
  blocks: AsyncIterable<Buffer>,
  encoding: string,
  name: string,
): AsyncGenerator<string> {
  const isUtf8 = encoding === 'utf-8'
  const decoder = await decoderOf(encoding)
  const wrong = /[\ufffd\u0080-\u009f]/ // what is replaced, and C1 controls
  let line = 1
  const decode = (block?: Buffer): string => {
    let text: string
    try {
      text = (block ? decoder.write(block) : decoder.end()) ?? ''
      if (isUnicode(encoding) || !wrong.test(text)) return text
    } catch (error) {
      if (!(error instanceof TypeError)) throw error
      text = new TextDecoder(encoding).decode(block)
    }
    const place = line + lineFeedsIn(text, text.search(wrong))
    throw inputError(
      `${name} is not ${isUtf8 ? 'UTF-8' : encoding} in line ${place}`,
      isUtf8
        ? 'If it is of an old spreadsheet, look at it with: --encoding windows-1252 --dry-run'
        : 'Correct that line, or save the file as UTF-8',
    )
  }
  let text = ''
  // Where a block begins within a character, iconv-lite can lose its last one: rather, it begins
  // with a line.
  let rest: Buffer = Buffer.alloc(0)
  for await (const block of blocks) {
    if (text !== '') yield text
    const end = isUnicode(encoding) ? block.length : block.lastIndexOf('\n') + 1
    text = decode(Buffer.concat([rest, block.subarray(0, end)]))
    rest = block.subarray(end)
    line += lineFeedsIn(text)
  }
  yield `${omitEndOfFile(`${text}${decode(rest)}${decode()}`)}\n`
}

/** Omits Ctrl-Z, with which programs of DOS end a file. */
function omitEndOfFile(text: string): string {
  return text.endsWith('\x1a') ? text.slice(0, -1) : text
}

export function lineFeedsIn(text: string, end = text.length): number {
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1 && at < end; at = text.indexOf('\n', at + 1))
    count += 1
  return count
}
