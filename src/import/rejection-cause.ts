/*
 * Finds out whether only the id of a record is wrong, and for which cause. Then an option, or one
 * change of the whole input, may help more than correcting each record.
 */
import { isObject, NumberLiteral } from '../plant/json.js'
import { parsePlant } from '../plant/plant.js'
import type { PlantForm } from '../plant/schema.js'
import type { RejectionCause } from '../stores/change.js'

/** @param record a record that is no valid plant */
export function findIdCause(
  record: unknown,
  form: Exclude<PlantForm, 'newPlant'>,
): RejectionCause | undefined {
  if (!isObject(record)) return undefined
  const { id } = record
  if (!parsePlant({ ...record, id: 0n }, form)) return undefined
  if (id === undefined || id === null) return 'missingId'
  if (id instanceof NumberLiteral) return isFormattedNumber(id.source) ? 'formattedId' : undefined
  if (typeof id !== 'string') return undefined
  // Integers in the cells of a table are parsed before this, so such a string is one of JSON.
  if (/^-?\d{1,19}$/.test(id)) return 'quotedId'
  if (isFormattedNumber(id)) return 'formattedId'
  return /\p{L}/u.test(id) ? 'textId' : undefined
}

/** Whether a text is a number with separators, decimals or an exponent: `1.234`, `1,5` or `1E3`. */
function isFormattedNumber(text: string): boolean {
  return /^[+-]?\d+(?:[.,'’\s]\d+)*(?:E[+-]?\d+)?$/i.test(text) && /[^-\d]/.test(text)
}
