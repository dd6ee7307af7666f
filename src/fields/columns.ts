/*
 * Finds the columns of a table that have the fields of a plant, by their names or by their numbers.
 */
import { foldLabel } from '../formats/names.js'
import type { Cells } from '../formats/reader.js'
import { type FieldName, fieldNames } from '../plant/fields.js'
import type { FieldOptions } from './options.js'
import { isRejectsName } from './rejects-names.js'

/** The columns of each field, by their indexes. Only the name may have several. */
export type FieldColumns = ReadonlyMap<FieldName, readonly number[]>

/** Returns the names in the cells of a header; an empty cell has an empty name. */
export function readNames(row: Cells = []): string[] {
  return row.map((cell) => (typeof cell === 'string' ? cell : (cell?.text ?? '')))
}

/**
 * The names in `--map` that are numbers of columns, from 1 on. The columns that a rejects file adds
 * do not count, so that the same command imports the input and its rejects.
 */
export type ColumnNumbers = ReadonlySet<string>

/** @param names the names of columns; a number that is among them is a name, and not a number */
export function findColumnNumbers(names: readonly string[], { map }: FieldOptions): ColumnNumbers {
  const foldedNames = new Set(names.map(foldLabel))
  const numbers = Object.values(map)
    .flat()
    .filter((name) => /^[1-9]\d{0,4}$/.test(name) && !foldedNames.has(name))
  return new Set(numbers)
}

/** Finds the indexes of the columns with a name, or of the one with a number. */
export type ColumnFinder = (wantedName: string) => readonly number[]

export function createColumnFinder(names: readonly string[], numbers: ColumnNumbers): ColumnFinder {
  const columnsByName = new Map<string, number[]>()
  for (const [column, name] of names.entries()) {
    if (name === '') continue
    const foldedName = foldLabel(name)
    const columns = columnsByName.get(foldedName)
    if (columns) columns.push(column)
    else columnsByName.set(foldedName, [column])
  }
  return (wantedName) =>
    numbers.has(wantedName)
      ? listOwnColumns(names).slice(Number(wantedName) - 1, Number(wantedName))
      : (columnsByName.get(foldLabel(wantedName)) ?? [])
}

/** Lists the columns without those that a rejects file adds. */
function listOwnColumns(names: readonly string[]): number[] {
  return [...names.keys()].filter((column) => !isRejectsName(names[column] ?? ''))
}

/**
 * Finds the names of columns that are not read, for a warning. It leaves out the columns that a
 * rejects file adds, and a field that a person has excluded on purpose (`--map id=`).
 */
export function findUnreadNames(
  names: readonly string[],
  columns: FieldColumns,
  { map }: FieldOptions,
): string[] {
  const readColumns = new Set([...columns.values()].flat())
  const ignoredNames = ['', ...fieldNames.filter((field) => map[field]?.length === 0)]
  return names.filter(
    (name, column) =>
      !readColumns.has(column) && !ignoredNames.includes(foldLabel(name)) && !isRejectsName(name),
  )
}
