import { toJson } from './exact-json.js'
import { fieldNames, type StoredPlant } from './plant.js'

/** A plant, or how many have a text. */
export interface PlantRecord extends Partial<StoredPlant> {
  count?: bigint
}

export type Column = keyof PlantRecord

/** The formats of many plants, in a file or on stdout. */
export const formatNames = ['ndjson', 'json', 'csv', 'tsv'] as const
export type FormatName = (typeof formatNames)[number]
export type FileFormat = FormatName | 'xlsx'

const delimiters = { csv: ',', tsv: '\t' }

/** The text of a document, as its records come. It is complete after `end`. */
export interface RecordDocument {
  add(records: readonly PlantRecord[]): string
  end(): string
}

/** In a table (RFC 4180), the cell of a missing field is empty; JSON omits the field. */
export function documentIn(
  format: FormatName,
  fields: readonly Column[] = fieldNames,
): RecordDocument {
  const writeJson = fields === fieldNames ? toJson : jsonOf(fields)
  if (format === 'json') return arrayOf(writeJson)
  if (format === 'ndjson') return linesOf('', writeJson)
  const delimiter = delimiters[format]
  return linesOf(`${fields.join(delimiter)}\n`, rowOf(fields, delimiter))
}

type WriteRecord = (record: PlantRecord) => string

/** Each record ends its own line. A header comes before the first one, or alone. */
function linesOf(header: string, write: WriteRecord): RecordDocument {
  let unwritten = header
  return {
    add: (records) => {
      if (records.length === 0) return ''
      const start = unwritten
      unwritten = ''
      return start + records.map((record) => `${write(record)}\n`).join('')
    },
    end: () => unwritten,
  }
}

function arrayOf(write: WriteRecord): RecordDocument {
  let isEmpty = true
  return {
    add: (records) => {
      if (records.length === 0) return ''
      const start = isEmpty ? '[\n' : ',\n'
      isEmpty = false
      return start + records.map(write).join(',\n')
    },
    end: () => (isEmpty ? '[\n]\n' : '\n]\n'),
  }
}

function jsonOf(fields: readonly Column[]): WriteRecord {
  return (record) => toJson(Object.fromEntries(fields.map((name) => [name, record[name]])))
}

function rowOf(fields: readonly Column[], delimiter: string): WriteRecord {
  const cellOf = (value: PlantRecord[Column]) =>
    typeof value === 'string' ? tableCell(value, delimiter) : String(value ?? '')
  return (record) => fields.map((name) => cellOf(record[name])).join(delimiter)
}

const special = /["\r\n]|^\p{White_Space}|\p{White_Space}$/u

/** What a spreadsheet shows in place of the value of a formula. */
export const spreadsheetError = /^#(?:N\/A|REF!|VALUE!|DIV\/0!|NAME\?|NUM!|NULL!)$/

/**
 * In quotes also if it is empty, which other programs tell from no value, and if an import would trim it or take it for
 * the error of a formula.
 */
export function tableCell(text: string, delimiter: string): string {
  const isSpecial = text === '' || special.test(text) || text.includes(delimiter)
  const isQuoted = isSpecial || spreadsheetError.test(text)
  return isQuoted ? `"${text.replaceAll('"', '""')}"` : text
}
