import { parseJson, toJson } from './exact-json.js'
import { type FieldName, plantFields } from './fields.js'
import { acceptNewPlant, type NewPlant } from './plant.js'

/**
 * Of one plant: a JSON object, or a row of CSV (RFC 4180) or TSV. In a row, an empty text is `""`, the cell of a
 * missing tag is empty, and a text with a space or tab at its ends is in quotes, because an import trims other cells.
 */
export type RecordFormat = 'json' | 'csv' | 'tsv'

export const separators = { json: '', csv: ',', tsv: '\t' } as const satisfies Record<RecordFormat, string>

export const fieldNames: readonly FieldName[] = plantFields.map(({ name }) => name)

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
  const separator = separators[format]
  const isSpecial = (text: string) => text === '' || /^[ \t]|[ \t]$|["\r\n]/.test(text) || text.includes(separator)
  const cell = (text: string) => (isSpecial(text) ? `"${text.replaceAll('"', '""')}"` : text)
  return (plant) => fields.map((name) => (plant[name] === undefined ? '' : cell(String(plant[name])))).join(separator)
}

/** The formats of many plants, in a file or on stdout. */
export const formatNames = ['ndjson', 'json', 'csv', 'tsv'] as const
export type FormatName = (typeof formatNames)[number]

export function recordFormatOf(format: FormatName): RecordFormat {
  return format === 'ndjson' ? 'json' : format
}

/** The records of a part are separated by line feeds, which in JSON are always separators. */
export function documentIn(format: FormatName, fields: readonly Column[] = fieldNames) {
  const record = recordFormatOf(format)
  const write = recordWriter(record, fields)
  const isArray = format === 'json'
  let head = isArray ? '[\n' : record === 'json' ? '' : `${fields.join(separators[record])}\n`
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
