import { fieldNames } from '../plant/fields.js'
import { toJson } from '../plant/json.js'
import type { StoredPlant } from '../plant/plant.js'
import { createTableFormat, type FormatName } from './write.js'

/** How plants are written in lines. */
interface LineFormat {
  name: Exclude<FormatName, 'json'>
  /** The line above all others, or ''. */
  header: string
  format(plant: StoredPlant): string
}

/** Returns undefined for JSON, which has no lines. */
export function createLineFormat(name: FormatName): LineFormat | undefined {
  if (name === 'json') return undefined
  if (name === 'ndjson') return { name, header: '', format: (plant) => `${toJson(plant)}\n` }
  return { name, ...createTableFormat(name, fieldNames) }
}
