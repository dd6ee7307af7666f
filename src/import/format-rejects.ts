/*
 * Formats rejected records for the file of `--rejects`, and for people. Like its input, the file is
 * a table or NDJSON, so that a person can correct the records and import the file.
 */
import { createUsageError } from '../errors.js'
import type { Cell, FormatReader, RawRecord } from '../formats/chunk.js'
import { isRejectsName, rejectColumns } from '../formats/columns.js'
import { formatTableCell, spreadsheetError } from '../formats/write.js'
import { parseJson } from '../plant/json.js'
import type { RecordProblem } from './rejection-cause.js'

export interface RejectedRecord extends RecordProblem {
  /** The line of the input in which the record begins. */
  line: number
  raw: RawRecord
}

/** Formats rejected records as rows of a table, or as lines of NDJSON, with their reasons. */
export function formatRejectedRecords(
  rejections: readonly RejectedRecord[],
  { header, delimiter }: FormatReader,
): string {
  const { names = [], columns } = header ?? {}
  const stringColumns = [...(columns?.get('name') ?? []), ...(columns?.get('tag') ?? [])]
  const areRejectsNames = names.map(isRejectsName)
  const rows = rejections.map((record) => {
    const { line, raw, message } = record
    if (raw === null || typeof raw === 'string') return formatJsonLine(record, raw ?? '')
    const cells = Array.from(raw, (cell, column) =>
      stringColumns.includes(column) ? markUnusable(cell) : cell,
    ).filter((_, column) => !areRejectsNames[column])
    return formatRow([String(line), message, ...cells], delimiter)
  })
  return rows.join('')
}

/**
 * Replaces the text of a name or a tag that was rejected by an error value, unless it is one. Any
 * other text would be a name when the rejects file is imported, such as the number `1.5E+19`, which
 * has lost digits.
 */
function markUnusable(cell: Cell): Cell {
  if (typeof cell !== 'object' || spreadsheetError.test(cell.text)) return cell
  return { ...cell, text: '#NUM!' }
}

/** Formats the header of a table, with a byte order mark for spreadsheets. NDJSON has none. */
export function formatRejectsHeader({ header, delimiter }: FormatReader): string {
  if (!header) return ''
  const names = header.names.filter((name) => !isRejectsName(name))
  return `\ufeff${formatRow([...rejectColumns, ...names], delimiter)}`
}

/**
 * A rejects file has one header, so all inputs of an import must have the same one.
 *
 * @param name the name of the input, for the message
 * @throws {PlantsError} `usage` if the headers differ
 */
export function assertSameHeader(
  reader: FormatReader,
  firstReader: FormatReader,
  name: string,
): void {
  const [header, firstHeader] = [reader, firstReader].map(formatRejectsHeader)
  if (header === firstHeader) return
  throw createUsageError(
    `${name} has another header, so its rejected records need a file of their own`,
    'Import it with its own command and its own --rejects file',
  )
}

/**
 * A rejects file is of the same kind as its input, and an import of the file trusts its name.
 *
 * @throws {PlantsError} `usage` if the ending of the name means another kind
 */
export function assertRejectsName(path: string, { format, delimiter }: FormatReader): void {
  const isTable = format === undefined
  const wrongEnding = isTable ? jsonEnding : tableEnding
  const isWrong = wrongEnding.test(path) || (/\.tsv$/i.test(path) && delimiter !== '\t')
  if (!isWrong) return
  throw createUsageError(
    `The rejected records of this input are written as ${isTable ? 'CSV' : 'NDJSON'}`,
    `Give the file a name such as rejected.${isTable ? 'csv' : 'ndjson'}`,
  )
}

const jsonEnding = /\.(?:json|ndjson|jsonl)$/i
const tableEnding = /\.(?:csv|tsv)$/i

/**
 * Formats a row of a table. A cell that was rejected, such as `#N/A`, is written without quotes, so
 * that an import rejects it again until somebody has corrected it. In quotes, it would be a name.
 */
function formatRow(cells: readonly Cell[], delimiter = ','): string {
  const fields = cells.map((cell) =>
    typeof cell === 'object' ? cell.text : cell && formatTableCell(cell, delimiter),
  )
  return `${fields.join(delimiter)}\n`
}

/**
 * Formats a line of NDJSON. An object keeps its members as they were written, except the members
 * that an earlier rejects file has added. A line that is no object becomes the string
 * `rejected_text`.
 */
function formatJsonLine({ line, message }: RejectedRecord, raw: string): string {
  const text = raw.replace(/[\r\n]/g, ' ').trim()
  const isObject = text.startsWith('{') && 'value' in parseJson(text)
  const members = isObject
    ? text.slice(1, -1).replace(membersOfRejectsFile, '').trim()
    : text && `"rejected_text":${JSON.stringify(text)}`
  const reason = JSON.stringify(message)
  return `{"rejected_line":${line},"rejected_reason":${reason}${members && `,${members}`}}\n`
}

const membersOfRejectsFile = /^"rejected_line":\d+,"rejected_reason":"(?:[^"\\]|\\.){0,2000}",?/
