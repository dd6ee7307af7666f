import { malformed } from '../../platform/errors.js'
import { csv, tsv } from './csv.js'
import { endOfLine, type Format, type FormatName, isSpace } from './format.js'
import { json } from './json.js'
import { ndjson } from './ndjson.js'

/** All formats, in the order in which they are detected. */
export const formats: Readonly<Record<FormatName, Format>> = { json, ndjson, tsv, csv }

/** bytes that are enough to detect any format */
export const headSize = 65_536

/** Detects the format of an input from its first bytes. Throws `malformed` for what is not UTF-8, and for another delimiter. */
export function detectFormat(bytes: Buffer, isLast: boolean, source: string): FormatName {
  checkEncoding(bytes, source)
  let start = bytes.toString('latin1', 0, 3) === '\xef\xbb\xbf' ? 3 : 0
  while (start < bytes.length && isSpace(bytes[start])) start += 1
  const head = { bytes, start, isLast }
  // The keys of the table are the names of its type.
  const name = (Object.keys(formats) as FormatName[]).find((one) => formats[one].detect(head))
  if (name !== undefined) return name
  const delimiter = /[;|]/.exec(bytes.toString('utf8', start))?.[0]
  const hint = 'Save it with commas or tabs between its cells. If it has one column, say so with: --format csv'
  throw malformed(`${source} seems to be a table with "${delimiter}" between its cells`, hint)
}

/** UTF-16 begins with its own mark, or with a letter and a zero; a binary file has zeros soon. */
function checkEncoding(head: Buffer, source: string): void {
  const mark = head.toString('latin1', 0, 2)
  if (mark === 'PK') throw malformed(`${source} is a ZIP archive, or a spreadsheet`, 'A spreadsheet is saved as CSV first')
  const zeros = Array.from(head.subarray(0, 3), (byte) => byte === 0).join()
  const encoding = mark === '\xff\xfe' || mark === '\xfe\xff' ? 'UTF-16' : utf16[zeros]
  if (encoding === undefined && !head.subarray(0, endOfLine(head, 0)).includes(0)) return
  const what = encoding === undefined ? 'no text in UTF-8: its first line holds U+0000' : 'UTF-16, not UTF-8'
  throw malformed(`${source} is ${what}`, `If it is a text, convert it first: iconv -f ${encoding ?? 'ENCODING'} -t UTF-8`)
}

/** by which of the first three bytes are zero */
const utf16: Readonly<Record<string, string>> = { 'true,false,true': 'UTF-16BE', 'false,true,false': 'UTF-16LE' }
