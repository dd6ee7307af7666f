import type { Io } from '../platform/io.js'
import { type OutputStyle, recordPrinter } from './output.js'

/** Prints rows page by page: as JSON, or as a table, which is slow to load. */
export function rowPrinter<Row extends object>(
  titles: string[],
  cellsOf: (row: Row) => string[],
  style: Pick<OutputStyle, 'output' | 'colors'>,
  io: Io,
) {
  return recordPrinter<Row>(io, style, { text: async () => (await import('./table.js')).rowTable(titles, cellsOf, style, io) })
}
