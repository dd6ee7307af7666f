/*
 * Writes plants as NDJSON, JSON, CSV or TSV, for exports and for lists on stdout.
 *
 * A table is written so that an import reads back the same, except for the plants that an export
 * rejects (`export/encode.ts`): the import trims cells, and takes `#N/A` for the error of a
 * formula, unless a cell is in quotes.
 */
import { fieldNames } from '../plant/fields.js'
import { toJson } from '../plant/json.js'
import type { StoredPlant } from '../plant/plant.js'
import { parseFileEnding } from '../platform/file-names.js'

/** A record of the output: the fields of a plant, or the number of plants with a name or a tag. */
export interface PlantRecord extends Partial<StoredPlant> {
  count?: bigint
}

export type Column = keyof PlantRecord

/** The formats of many plants that are text. */
export const formatNames = ['ndjson', 'json', 'csv', 'tsv'] as const
export type FormatName = (typeof formatNames)[number]
export type FileFormat = FormatName | 'xlsx'

/** Finds the format of text that the ending of a file name means. */
export function findNamedFormat(name: string): FormatName | undefined {
  const { ending } = parseFileEnding(name)
  return ending === 'jsonl' ? 'ndjson' : formatNames.find((format) => format === ending)
}

/** Formats records as the text of a document, one page of records after the other. */
interface RecordWriter {
  /** Returns the text of further records. The first text has the beginning of the document. */
  add(records: readonly PlantRecord[]): string
  /** Returns the end of the document. */
  end(): string
}

/**
 * Creates a writer of records. In a table (RFC 4180), the cell of a missing field is empty; JSON
 * omits the field.
 *
 * @param fields the columns of a table or the keys of an object, in their order
 */
export function createRecordWriter(
  format: FormatName,
  fields: readonly Column[] = fieldNames,
): RecordWriter {
  const pick = (record: PlantRecord) =>
    toJson(Object.fromEntries(fields.map((name) => [name, record[name]])))
  // Picking the fields takes time, and usually all fields are written.
  const writeJson = fields === fieldNames ? toJson : pick
  if (format === 'json') return createTextWriter(writeJson, jsonLayout)
  if (format === 'ndjson') return createTextWriter((record) => `${writeJson(record)}\n`, {})
  const delimiter = format === 'csv' ? ',' : '\t'
  const formatValue = (value: PlantRecord[Column]) =>
    typeof value === 'string' ? formatTableCell(value, delimiter) : String(value ?? '')
  const formatRow = (record: PlantRecord) =>
    `${fields.map((field) => formatValue(record[field])).join(delimiter)}\n`
  const header = `${fields.join(delimiter)}\n`
  return createTextWriter(formatRow, { start: header, empty: header })
}

/** What a format has around and between its records. By default, it is nothing. */
interface TextLayout {
  start?: string
  separator?: string
  end?: string
  /** The whole text if there are no records. */
  empty?: string
}

const jsonLayout: TextLayout = { start: '[\n', separator: ',\n', end: '\n]\n', empty: '[\n]\n' }

function createTextWriter(
  write: (record: PlantRecord) => string,
  { start = '', separator = '', end = '', empty = '' }: TextLayout,
): RecordWriter {
  let isEmpty = true
  return {
    add(records) {
      if (records.length === 0) return ''
      const prefix = isEmpty ? start : separator
      isEmpty = false
      return prefix + records.map(write).join(separator)
    },
    end: () => (isEmpty ? empty : end),
  }
}

const specialCharacter = /["\r\n]/

/** Matches the error values that a spreadsheet shows if a formula has no value. */
export const spreadsheetError =
  /^#(?:N\/A|NAME\?|GETTING_DATA|(?:DIV\/0|REF|VALUE|NUM|NULL|SPILL|CALC|BLOCKED|FIELD|CONNECT)!)$/

/**
 * Formats a string as a cell of a table (RFC 4180). The cell is in quotes if the string has a
 * quote, a line end or the delimiter. It is also in quotes if an import would trim the string, or
 * take it for the error of a formula. An empty string is in quotes, too, because other programs
 * tell it from a missing value by the quotes.
 */
export function formatTableCell(content: string, delimiter: string): string {
  const isSpecial = specialCharacter.test(content) || content.includes(delimiter)
  const isTrimmed = content === '' || content !== content.trim()
  const isQuoted = isSpecial || isTrimmed || spreadsheetError.test(content)
  return isQuoted ? `"${content.replaceAll('"', '""')}"` : content
}
