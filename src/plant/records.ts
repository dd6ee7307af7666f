import { parseJson, toJson } from './exact-json.js'
import { fieldNames } from './fields.js'
import { acceptNewPlant, type NewPlant } from './plant.js'

/**
 * Of one plant: a JSON object, or a row of a table (RFC 4180) with this delimiter. In a row, an empty text is `""`, the
 * cell of a missing tag is empty, and a text with a space or tab at its ends is in quotes, because an import trims other
 * cells.
 */
export type RecordFormat = 'json' | Delimiter

/** those that an import detects */
export const delimiters = [',', ';', '\t', '|'] as const
export type Delimiter = (typeof delimiters)[number]

export interface TableLayout {
  /** of CSV; by default a comma */
  delimiter?: Exclude<Delimiter, '\t'> | undefined
  /** a byte order mark before the header, as Excel expects it of UTF-8 */
  bom?: boolean | undefined
}

/** A plant, or how many have a text. */
export interface PlantRecord extends Partial<NewPlant> {
  count?: bigint
}

export type Column = keyof PlantRecord

/** JSON omits a field that the plant does not have. */
export function recordWriter(
  format: RecordFormat,
  fields: readonly Column[] = fieldNames,
): (plant: PlantRecord) => string {
  if (format === 'json')
    return fields === fieldNames
      ? toJson
      : (plant) => toJson(Object.fromEntries(fields.map((name) => [name, plant[name]])))
  const cell = (value: PlantRecord[Column]) => (value === undefined ? '' : tableCell(String(value), format))
  return (plant) => fields.map((name) => cell(plant[name])).join(format)
}

export function tableCell(text: string, delimiter: Delimiter): string {
  const isSpecial = text === '' || /^[ \t]|[ \t]$|["\r\n]/.test(text) || text.includes(delimiter)
  return isSpecial ? `"${text.replaceAll('"', '""')}"` : text
}

/** The formats of many plants, in a file or on stdout. */
export const formatNames = ['ndjson', 'json', 'csv', 'tsv'] as const
export type FormatName = (typeof formatNames)[number]
/** A workbook is made from a JSON object on each line. */
export type FileFormat = FormatName | 'xlsx'

export function recordFormatOf(format: FileFormat, { delimiter = ',' }: TableLayout = {}): RecordFormat {
  if (format === 'csv') return delimiter
  return format === 'tsv' ? '\t' : 'json'
}

/** The records of a part are separated by line feeds, which in JSON are always separators. */
export function documentIn(format: FileFormat, fields: readonly Column[] = fieldNames, layout: TableLayout = {}) {
  const record = recordFormatOf(format, layout)
  const write = recordWriter(record, fields)
  const isArray = format === 'json'
  let head = isArray ? '[\n' : record === 'json' ? '' : `${layout.bom ? '\ufeff' : ''}${fields.join(record)}\n`
  const join = (records: string) => {
    const text = isArray ? head + records.replaceAll('\n', ',\n') : `${head}${records}\n`
    head = isArray ? ',\n' : ''
    return text
  }
  return {
    join,
    add: (records: PlantRecord[]) => (records.length === 0 ? '' : join(records.map(write).join('\n'))),
    end: () => (!isArray ? head : head === ',\n' ? '\n]\n' : '[\n]\n'),
  }
}

export function readRecord(text: string): NewPlant | undefined {
  const parsed = parseJson(text)
  return 'value' in parsed ? acceptNewPlant(parsed.value) : undefined
}
