import { type FieldName, plantFields } from './fields.js'
import { parseJson, toJson } from './json.js'
import { acceptNewPlant, type NewPlant } from './plant.js'

/**
 * The format of one plant: a JSON object, as `toJson` writes it, or a row of CSV (RFC 4180) or TSV. In a row, an empty text is `""`, the
 * cell of a missing tag is empty, and a text with a space or tab at its ends is in quotes, because an import trims other cells.
 */
export type RecordKind = 'json' | 'csv' | 'tsv'

export const separators = { json: '', csv: ',', tsv: '\t' } as const satisfies Record<RecordKind, string>

export const fieldNames: readonly FieldName[] = plantFields.map(({ name }) => name)

/** JSON omits a field that the plant does not have. */
export function recordWriter(kind: RecordKind, fields = fieldNames): (plant: NewPlant) => string {
  if (kind === 'json')
    return fields === fieldNames ? toJson : (plant) => toJson(Object.fromEntries(fields.map((name) => [name, plant[name]])))
  const separator = separators[kind]
  const isSpecial = (text: string) => text === '' || /^[ \t]|[ \t]$|["\r\n]/.test(text) || text.includes(separator)
  const cell = (text: string) => (isSpecial(text) ? `"${text.replaceAll('"', '""')}"` : text)
  return (plant) => fields.map((name) => (plant[name] === undefined ? '' : cell(String(plant[name])))).join(separator)
}

export function readRecord(text: string): NewPlant | undefined {
  const parsed = parseJson(text)
  return 'value' in parsed ? acceptNewPlant(parsed.value) : undefined
}
