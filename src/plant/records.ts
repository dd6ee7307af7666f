import { type FieldName, plantFields } from './fields.js'
import { isNotJson, toJson, tryJson } from './json.js'
import { acceptNewPlant, type NewPlant } from './plant.js'

/**
 * How a plant is written: as an object of JSON, like `toJson` does it; or as the cells of CSV (RFC 4180) or TSV, where an empty text is in
 * quotes, and a tag that is not there is an empty cell without.
 */
export type RecordKind = 'json' | 'csv' | 'tsv'

/** What is between the cells of a row. */
export const separators = { json: '', csv: ',', tsv: '\t' } as const satisfies Record<RecordKind, string>

/** The fields of a plant, in the order in which they are written. */
export const fieldNames: readonly FieldName[] = plantFields.map(({ name }) => name)

/** Gives a function that writes these fields of a plant; those of JSON that it does not have are left out. */
export function recordWriter(kind: RecordKind, fields = fieldNames): (plant: NewPlant) => string {
  if (kind === 'json')
    return fields === fieldNames ? toJson : (plant) => toJson(Object.fromEntries(fields.map((name) => [name, plant[name]])))
  const separator = separators[kind]
  const isSpecial = (text: string) => text === '' || /["\r\n]/.test(text) || text.includes(separator)
  const cell = (text: string) => (isSpecial(text) ? `"${text.replaceAll('"', '""')}"` : text)
  return (plant) => fields.map((name) => (plant[name] === undefined ? '' : cell(String(plant[name])))).join(separator)
}

/** Reads a plant that was written as JSON; undefined for anything else. */
export function readRecord(text: string): NewPlant | undefined {
  const parsed = tryJson(text)
  return isNotJson(parsed) ? undefined : acceptNewPlant(parsed.value)?.plant
}
