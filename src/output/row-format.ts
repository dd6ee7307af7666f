import { toJson } from '../plant/json.js'
import type { Io } from '../platform/io.js'
import type { OutputStyle } from './output.js'

/** Formats rows, one page at a time: as lines of JSON, or as a table, which is slow to load. */
export async function rowFormatter<Row extends object>(
  titles: string[],
  cellsOf: (row: Row) => string[],
  style: Pick<OutputStyle, 'output' | 'colors'>,
  io: Io,
): Promise<(rows: Row[]) => string> {
  if (style.output === 'json') return (rows) => rows.map((row) => `${toJson(row)}\n`).join('')
  const { rowTable } = await import('./table.js')
  return rowTable(titles, cellsOf, style, io)
}
