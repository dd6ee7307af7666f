import { PlantsError } from '../../platform/errors.js'
import type { FormatName } from './format-names.js'
import { JsonScan } from './json-scan.js'

/** So many bytes are enough to recognise any format. */
export const headSize = 65_536

/**
 * Tells how records stand in an input from its first bytes, with or without a byte order mark. An input without any is NDJSON.
 *
 * @param isLast whether the input has no more bytes
 * @param source what people call the input
 * @throws {PlantsError} `malformed` for what is no text in UTF-8, and for a table whose cells have another separator
 */
export function recognise(head: Buffer, isLast: boolean, source: string): FormatName {
  refuseOtherEncodings(head, source)
  const start = firstOf(head)
  const character = String.fromCharCode(head[start] ?? 0)
  if (start === head.length) return 'ndjson'
  if (character === '[') return 'json'
  if (character === '{') return recogniseValues(head, start, isLast)
  return recogniseTable(head.toString('utf8', start), source)
}

/** UTF-16 begins with its own mark, or with a letter and a zero; a file that is no text has zeros soon. */
function refuseOtherEncodings(head: Buffer, source: string): void {
  const firstLine = head.subarray(0, lineEnd(head, 0))
  const mark = head.toString('latin1', 0, 2)
  if (mark === 'PK') {
    const hint = 'A spreadsheet is saved as CSV first'
    throw new PlantsError('malformed', `${source} is a ZIP archive, or a spreadsheet`, { hint })
  }
  if (mark === '\xff\xfe' || mark === '\xfe\xff') throw notText(`${source} is UTF-16, not UTF-8`, 'UTF-16')
  if (head[0] === 0 && head[1] !== 0 && head[2] === 0) throw notText(`${source} is UTF-16, not UTF-8`, 'UTF-16BE')
  if (head[0] !== 0 && head[1] === 0 && head[2] !== 0) throw notText(`${source} is UTF-16, not UTF-8`, 'UTF-16LE')
  if (firstLine.includes(0)) throw notText(`${source} is no text in UTF-8: its first line holds U+0000`, 'ENCODING')
}

function notText(message: string, encoding: string): PlantsError {
  return new PlantsError('malformed', message, { hint: `If it is a text, convert it first: iconv -f ${encoding} -t UTF-8` })
}

/** The place of the first byte that is neither of a byte order mark nor white space. */
function firstOf(head: Buffer): number {
  let at = head.toString('latin1', 0, 3) === '\xef\xbb\xbf' ? 3 : 0
  while (at < head.length && isSpace(head[at])) at += 1
  return at
}

/**
 * NDJSON when the first line holds one value, or one that breaks in that line or where the next record begins; so a broken first
 * line is a broken line. JSON when the value goes on in the next line, or another follows in the same.
 */
function recogniseValues(head: Buffer, start: number, isLast: boolean): FormatName {
  const end = lineEnd(head, start)
  const line = new JsonScan(0)
  const inLine = line.scan(head, start, end)
  if (inLine === 'whole') return isFollowed(head, start + line.length, end) || goesOnSomewhere(head, end) ? 'json' : 'ndjson'
  if (inLine === 'broken' || end === head.length) return 'ndjson'
  const value = new JsonScan(start - (head.lastIndexOf(lineFeed, start) + 1))
  const found = value.scan(head, start, head.length)
  if (found === 'whole' || (found === 'cut' && !isLast)) return 'json'
  return value.suspect > 0 || value.length <= end - start ? 'ndjson' : 'json'
}

/** Whether a line holds the beginning of a value that goes on in the next one, behind lines that hold one each. */
function goesOnSomewhere(head: Buffer, from: number): boolean {
  for (let start = from + 1; start < head.length; ) {
    const end = lineEnd(head, start)
    const isBegun = head[start] === brace && end < head.length && new JsonScan(0).scan(head, start, end) === 'cut'
    if (isBegun && end + 1 < head.length && head[end + 1] !== brace) return true
    start = end + 1
  }
  return false
}

/** Whether a place is followed by another value in the same line; what is none there breaks the line, and nothing else. */
function isFollowed(head: Buffer, from: number, end: number): boolean {
  let at = from
  while (at < end && isSpace(head[at])) at += 1
  return head[at] === brace || head[at] === bracket
}

function recogniseTable(text: string, source: string): FormatName {
  const [first = '', second = ''] = text.split('\n').filter((line) => line.trim() !== '')
  // A line that is no JSON, before lines that are.
  if (/^\{\s*"/.test(second)) return 'ndjson'
  const names = first.replace(/"(?:[^"]|"")*"/g, '')
  if (names.includes('\t')) return 'tsv'
  if (names.includes(',')) return 'csv'
  const other = /[;|]/.exec(names)?.[0]
  if (other === undefined) return 'csv'
  const hint = 'Save it with commas or tabs between its cells. If it has one column, say so with: --format csv'
  throw new PlantsError('malformed', `${source} seems to be a table with "${other}" between its cells`, { hint })
}

function lineEnd(head: Buffer, from: number): number {
  const found = head.indexOf(lineFeed, from)
  return found === -1 ? head.length : found
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === lineFeed || byte === 0x0d || byte === 0x09
}

const lineFeed = 0x0a
const brace = 0x7b
const bracket = 0x5b
