import { quoteIfNeeded, styleFor } from '../output/output.js'
import type { Column, PlantRecord } from '../plant/records.js'
import type { Io } from '../platform/io.js'
import type { Settings } from './settings.js'

export async function plantTable(fields: readonly Column[], { colors }: Settings, { stdout }: Io) {
  const { tableOf } = await import('../output/text-table.js')
  const titles = fields.map((name) => name.toUpperCase())
  const cellsOf = (plant: PlantRecord) =>
    fields.map((name) => (plant[name] === undefined ? '' : quoteIfNeeded(String(plant[name]))))
  return tableOf(titles, cellsOf, await styleFor(colors(stdout)), stdout)
}
