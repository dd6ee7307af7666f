/*
 * Describes the columns of a table, or the keys of a list, for the dialogue that asks a person about
 * them.
 */
import type { Cells } from '../formats/reader.js'
import { readNames } from './columns.js'
import { parseIdCell } from './parse-id-cell.js'
import { isRejectsName } from './rejects-names.js'

/** A column of a table, or a key of JSON. */
export interface Column {
  /** The number of the column, from 1 on, as `--map` takes it. */
  number: number
  /** The name in the header; empty if it has none. */
  name: string
  /** The cells below the header that are not empty. */
  values: readonly string[]
  /** Whether each row has a different integer. */
  hasUniqueIntegers: boolean
}

/**
 * Describes the columns without those of a rejects file, which have no field of a plant.
 *
 * @param headerRow the index of the header; -1 without one
 */
export function describeColumns(rows: readonly Cells[], headerRow: number): Column[] {
  const header = readNames(rows[headerRow])
  const records = rows.slice(headerRow + 1).map(readNames)
  const width = Math.max(0, ...rows.map((row) => row.length))
  return Array.from({ length: width }, (_, index) => index)
    .filter((index) => !isRejectsName(header[index] ?? ''))
    .map((index, position) => {
      const cells = records.map((row) => row[index] ?? '')
      const name = (header[index] ?? '').trim().replace(/\s+/g, ' ')
      const values = cells.filter((text) => text !== '')
      return { number: position + 1, name, values, hasUniqueIntegers: areUniqueIntegers(cells) }
    })
}

function areUniqueIntegers(cells: readonly string[]): boolean {
  const isUnique = new Set(cells.map(parseIdCell)).size === cells.length
  return cells.length > 0 && isUnique && cells.every(isInteger)
}

export function isInteger(cell: string): boolean {
  return typeof parseIdCell(cell) === 'bigint'
}
