import { fieldNames } from '../plant/fields.js'
import { toJson } from '../plant/json.js'
import type { StoredPlant } from '../plant/plant.js'

/** A plant, or how many have a text. */
export interface PlantRecord extends Partial<StoredPlant> {
  count?: bigint
}

export type Column = keyof PlantRecord

/** Of many plants, in a file or on stdout. */
export const formatNames = ['ndjson', 'json', 'csv', 'tsv'] as const
export type FormatName = (typeof formatNames)[number]
export type FileFormat = FormatName | 'xlsx'

/** The text of a document, as its records come. */
interface RecordDocument {
  add(records: readonly PlantRecord[]): string
  end(): string
}

/** In a table (RFC 4180), the cell of a missing field is empty; JSON omits the field. */
export function createRecordWriter(
  format: FormatName,
  fields: readonly Column[] = fieldNames,
): RecordDocument {
  const pick = (record: PlantRecord) =>
    toJson(Object.fromEntries(fields.map((name) => [name, record[name]])))
  const writeJson = fields === fieldNames ? toJson : pick // which is slower
  if (format === 'json') return createTextWriter(writeJson, ['[\n', ',\n', '\n]\n'], '[\n]\n')
  if (format === 'ndjson') return createTextWriter((record) => `${writeJson(record)}\n`)
  const table = createTableFormat(format, fields)
  return createTextWriter(table.format, [table.header, '', ''], table.header)
}

export function createTableFormat(name: 'csv' | 'tsv', fields: readonly Column[]) {
  const delimiter = name === 'csv' ? ',' : '\t'
  const formatValue = (value: PlantRecord[Column]) =>
    typeof value === 'string' ? tableCell(value, delimiter) : String(value ?? '')
  return {
    header: `${fields.join(delimiter)}\n`,
    format: (record: PlantRecord) =>
      `${fields.map((field) => formatValue(record[field])).join(delimiter)}\n`,
  }
}

function createTextWriter(
  write: (record: PlantRecord) => string,
  [start, separator, end] = ['', '', ''],
  empty = '',
): RecordDocument {
  let isEmpty = true
  return {
    add(records) {
      if (records.length === 0) return ''
      const before = isEmpty ? start : separator
      isEmpty = false
      return before + records.map(write).join(separator)
    },
    end: () => (isEmpty ? empty : end),
  }
}

const special = /["\r\n]/

/** What a spreadsheet shows in place of the value of a formula. */
export const spreadsheetError =
  /^#(?:N\/A|NAME\?|GETTING_DATA|(?:DIV\/0|REF|VALUE|NUM|NULL|SPILL|CALC|BLOCKED|FIELD|CONNECT)!)$/

/**
 * In quotes also if it is empty, which other programs tell from no value, and if an import would
 * trim it or take it for the error of a formula.
 */
export function tableCell(text: string, delimiter: string): string {
  const isSpecial = special.test(text) || text.includes(delimiter)
  const isTrimmed = text === '' || text !== text.trim()
  const isQuoted = isSpecial || isTrimmed || spreadsheetError.test(text)
  return isQuoted ? `"${text.replaceAll('"', '""')}"` : text
}
