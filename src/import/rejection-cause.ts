/*
 * Finds out whether only the id of a record is wrong, and for which cause. Then an option, or one
 * change of the whole input, may help more than correcting each record.
 */
import { isObject } from '../plant/json.js'
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
  // Integers in the cells of a table are parsed before this, so such a string is one of JSON.
  const isQuoted = typeof id === 'string' && /^-?\d{1,19}$/.test(id)
  return isQuoted ? 'quotedId' : 'otherId'
}
