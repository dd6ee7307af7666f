import { tableCell } from '../../plant/records.js'
import { errorValue, usageError } from '../../platform/errors.js'
import type { Cell, FormatReader, RawRecord } from '../formats/chunk.js'
import { rejectNames } from '../formats/header.js'

/** In a rejects file, each has its line and the reason: a table or NDJSON, which an import takes back. */
export interface RejectedRecord {
  line: number
  /** Index in a JSON array. */
  element: number | undefined
  raw: RawRecord
  error: number
  message: string
  /** Whether its id or name is in the input twice. */
  isTwin?: boolean
}

/** Throws `usage` if the rejected records of both inputs cannot be in one file. */
export function assertSameLayout(reader: FormatReader, first: FormatReader, name: string): void {
  if (rejectsHeader(reader) === rejectsHeader(first)) return
  const what = `The format or the header of ${name} differs, so its rejected records need a file of their own`
  throw usageError(what, 'Import it alone, with another --rejects')
}

export function rejectsHeader({ header, delimiter = ',' }: FormatReader): string {
  if (!header) return ''
  const names = header.kept.map((column) => header.names[column] || undefined)
  return `\ufeff${rowOf([...rejectNames.slice(0, 2), ...names], delimiter)}\n`
}

export function rejectsRow(
  { line, raw, error, message }: RejectedRecord,
  { header, delimiter = ',' }: FormatReader,
): string {
  if (typeof raw === 'string') return lineOf(line, message, raw, error === errorValue('usage'))
  const kept =
    header?.kept.filter((column) => column < raw.length).map((column) => raw[column]) ?? []
  return rowOf([String(line), message, ...kept, ...raw.slice(header?.names.length)], delimiter)
}

function rowOf(cells: readonly Cell[], delimiter: string): string {
  const texts = cells.map((cell) => (typeof cell === 'object' ? cell.text || undefined : cell))
  return texts.map((text) => (text === undefined ? '' : tableCell(text, delimiter))).join(delimiter)
}

/** The members of the object stay as they are, except those that an earlier import has added. */
function lineOf(line: number, message: string, raw: string, isBroken: boolean): string {
  const start = `{"rejected_line":${line},"rejected_reason":${JSON.stringify(message)}`
  const text = raw.replace(/[\r\n]/g, ' ').trim()
  if (isBroken || !text.startsWith('{'))
    return `${start}${text && `,"rejected_text":${JSON.stringify(text)}`}}`
  const members = text.slice(1, -1).replace(addedMembers, '').trim()
  return `${start}${members && `,${members}`}}`
}

const addedMembers =
  /^"rejected_line":\d+,"rejected_reason":"(?:[^"\\]|\\.){0,2000}",?(?:"rejected_text":"(?:[^"\\]|\\.){0,2000}",?)?/
