/*
 * Finds the columns of a table that have the fields of a plant, by their names or by their numbers.
 */
import { type FieldName, fieldNames } from '../plant/fields.js'
import { foldString } from '../plant/folding.js'
import { shorten } from '../platform/escape.js'
import type { Cells, Header, InputOptions } from './chunk.js'

/** The columns that a rejects file has before the columns of its input. */
export const rejectColumns = ['rejected_line', 'rejected_reason']

/** Whether a column or a key was added by a rejects file, and so has no field of a plant. */
export function isRejectsName(name: string): boolean {
  return /^rejected_(?:line|reason|text)$/.test(foldName(name))
}

/** Whether an object has only what a rejects file says of a line that is not JSON. */
export function isRejectedText(object: object): boolean {
  const keys = Object.keys(object)
  return keys.includes('rejected_text') && keys.every(isRejectsName)
}

/** This says how to correct such a line. Its text alone is no plant, even if it is corrected. */
export const replaceRejectedTextHint =
  'Replace "rejected_text" and its text with the keys and values of the corrected line'

/**
 * Folds the name of a column to compare it. `ID`, ` id ` and `Id` are the same name. So are `Größe`
 * and `grosse`, as in a search. Soft hyphens and zero-width spaces are invisible, so they are
 * removed.
 */
export function foldName(name: string): string {
  // In a wide sheet, most names are empty.
  if (name === '') return ''
  const visibleName = name.replace(/[\u00ad\u200b]/g, '')
  return foldString(visibleName.trim().replace(/\s+/g, ' '))
}

/** Returns the names in the cells of a header; an empty cell has an empty name. */
export function readNames(row: Cells = []): string[] {
  return row.map((cell) => (typeof cell === 'string' ? cell : (cell?.text ?? '')))
}

/** A column or a key that an import reads if it is there. */
export interface WantedName {
  field: FieldName
  name: string
}

/** Lists the names that `--map` gives to columns or keys, or else the names of the fields. */
function listWantedNames({ map }: Pick<InputOptions, 'map'>): WantedName[] {
  return fieldNames.flatMap((field) => (map[field] ?? [field]).map((name) => ({ field, name })))
}

/**
 * The names in `--map` that are numbers of columns, from 1 on. The columns that a rejects file adds
 * do not count, so that the same command imports the input and its rejects.
 */
export type ColumnNumbers = ReadonlySet<string>

/** @param names the names of columns; a number that is among them is a name, and not a number */
export function findColumnNumbers(names: readonly string[], { map }: InputOptions): ColumnNumbers {
  const foldedNames = new Set(names.map(foldName))
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
    const foldedName = foldName(name)
    const columns = columnsByName.get(foldedName)
    if (columns) columns.push(column)
    else columnsByName.set(foldedName, [column])
  }
  return (wantedName) =>
    numbers.has(wantedName)
      ? listOwnColumns(names).slice(Number(wantedName) - 1, Number(wantedName))
      : (columnsByName.get(foldName(wantedName)) ?? [])
}

/** Lists the columns without those that a rejects file adds. */
function listOwnColumns(names: readonly string[]): number[] {
  return [...names.keys()].filter((column) => !isRejectsName(names[column] ?? ''))
}

/** Whether no option says where the ids are, or that there are none. */
export function needsOwnIds(options: InputOptions): boolean {
  return !options.byName && options.map.id === undefined && !options.columns
}

/**
 * Finds the columns or keys that an import needs and the input lacks. An import needs those that
 * `--map` names, the id, unless records without one get one, and the name, unless only tags are
 * updated.
 */
export function findMissingNames(
  hasName: (name: string) => boolean,
  options: InputOptions,
): WantedName[] {
  const { map, byName = false, ifExists } = options
  const wantedNames = listWantedNames(options)
  const hasTag = wantedNames.some(({ field, name }) => field === 'tag' && hasName(name))
  const isOptional = { id: byName, name: ifExists === 'update' && hasTag, tag: true }
  return fieldNames.flatMap((field) => {
    const names = map[field]
    if (!names?.length && isOptional[field]) return []
    // A field that an import needs, but must not read, is missing.
    const missingNames =
      names?.length === 0 ? [field] : (names ?? [field]).filter((name) => !hasName(name))
    return missingNames.map((name) => ({ field, name }))
  })
}

/**
 * Finds the names of columns that are not read, for a warning. It leaves out the columns that a
 * rejects file adds, and a field that a person has excluded on purpose (`--map id=`).
 */
export function findUnreadNames(
  names: readonly string[],
  columns: Header['columns'],
  { map }: InputOptions,
): string[] {
  const readColumns = new Set([...columns.values()].flat())
  const ignoredNames = ['', ...fieldNames.filter((field) => map[field]?.length === 0)]
  return names.filter(
    (name, column) =>
      !readColumns.has(column) && !ignoredNames.includes(foldName(name)) && !isRejectsName(name),
  )
}

/**
 * Joins the values of several columns or keys to a name, without the empty ones. A value that is no
 * string makes the whole name invalid.
 */
export function joinNames(values: readonly unknown[]): unknown {
  const filledValues = values.filter((value) => (value ?? '') !== '')
  const invalidValue = filledValues.find((value) => typeof value !== 'string')
  return invalidValue ?? (filledValues.join(' ') || undefined)
}

/** Lists the first names in quotes, without empty ones: `"Nr", "Kind" and 3 more`. */
export function listNames(names: readonly string[], maxListed = 8): string {
  const filledNames = names.filter(Boolean)
  const quotedNames = filledNames.slice(0, maxListed).map((name) => JSON.stringify(shorten(name)))
  const moreCount = filledNames.length - quotedNames.length
  return quotedNames.join(', ') + (moreCount > 0 ? ` and ${moreCount} more` : '')
}
