import { fieldNames } from '../plant/fields.js'
import { toJson } from '../plant/json.js'
import type { StoredPlant } from '../plant/plant.js'
import { createTableFormat, type FormatName } from './write.js'

/** A format in which each plant is one line, so that a store can write the lines itself. */
interface LineFormat {
  name: Exclude<FormatName, 'json'>
  /** The first line of a table; empty for NDJSON. */
  header: string
  /** Returns the line of a plant, with its line feed. */
  format(plant: StoredPlant): string
}

/** @returns undefined for JSON, which has commas between the plants */
export function createLineFormat(name: FormatName): LineFormat | undefined {
  if (name === 'json') return undefined
  if (name === 'ndjson') return { name, header: '', format: (plant) => `${toJson(plant)}\n` }
  return { name, ...createTableFormat(name, fieldNames) }
}
