/*
 * Finds the columns of a table that have the fields of a plant, by their names or by their numbers.
 */
import { type FieldName, fieldNames } from '../plant/fields.js'
import { foldString } from '../plant/folding.js'
import { shorten } from '../platform/escape.js'
import type { Cells, InputOptions } from './chunk.js'

/** The columns that a rejects file has before the columns of its input. */
export const rejectColumns = ['rejected_line', 'rejected_reason']
/** With `--id-from`, this is the third one. */
export const countedIdName = 'rejected_id'

/** Whether a column or a key was added by a rejects file, and so has no field of a plant. */
export function isRejectsName(name: string): boolean {
  return /^rejected_(?:line|reason|id|text)$/.test(foldName(name))
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
export function readNames(row: Cells): string[] {
  return row.map((cell) => (typeof cell === 'string' ? cell : (cell?.text ?? '')))
}

/**
 * The columns that `--map` gives by their numbers, from 1 on. The columns that a rejects file adds
 * do not count, so that the same command imports the input and its rejects.
 */
export type ColumnNumbers = ReadonlyMap<FieldName, number>

/** @param names the names of columns; a number that is among them is a name, and not a number */
export function findColumnNumbers(names: readonly string[], { map }: InputOptions): ColumnNumbers {
  const foldedNames = new Set(names.map(foldName))
  const numbers = new Map<FieldName, number>()
  for (const field of fieldNames) {
    const mappedName = map[field] ?? ''
    if (/^[1-9]\d{0,4}$/.test(mappedName) && !foldedNames.has(mappedName))
      numbers.set(field, Number(mappedName))
  }
  return numbers
}

/**
 * Finds the columns that may have each field: those with the name that `--map` gives, or else with
 * the name of the field. Several columns with the same name are all returned.
 */
export function findColumns(
  names: readonly string[],
  { map }: InputOptions,
  numbers: ColumnNumbers,
): Map<FieldName, number[]> {
  const columnsByName = new Map<string, number[]>()
  for (const [column, name] of names.entries()) {
    if (name === '') continue
    const foldedName = foldName(name)
    const columns = columnsByName.get(foldedName)
    if (columns) columns.push(column)
    else columnsByName.set(foldedName, [column])
  }
  const columnsByField = new Map<FieldName, number[]>()
  for (const field of fieldNames) {
    const columnNumber = numbers.get(field)
    const wantedName = foldName(map[field] ?? field)
    const columns =
      columnNumber === undefined
        ? (columnsByName.get(wantedName) ?? [])
        : listOwnColumns(names).slice(columnNumber - 1, columnNumber)
    // An empty name in `--map` says that the field is not read.
    if (wantedName !== '' && columns.length > 0) columnsByField.set(field, columns)
  }
  return columnsByField
}

/** Lists the columns without those that a rejects file adds. */
function listOwnColumns(names: readonly string[]): number[] {
  return [...names.keys()].filter((column) => !isRejectsName(names[column] ?? ''))
}

/** The two ways to an id. */
export const idOptionsHint =
  'If the plants have no ids, add --by-name, or for one plant for each record, --id-from 1'

/** Whether a record without an id gets one. */
export function assignsIds({ byName, idFrom }: InputOptions): boolean {
  return byName === true || idFrom !== undefined
}

/**
 * Finds the fields that an import needs and the input lacks. An import needs the fields that
 * `--map` names, the id, unless records without one get one, and the name, unless only tags
 * are updated.
 *
 * @param presentFields the fields for which there is a column or a key
 */
export function findMissingFields(
  presentFields: Pick<ReadonlySet<FieldName>, 'has'>,
  options: InputOptions,
): FieldName[] {
  const isOptional = {
    id: assignsIds(options),
    name: options.ifExists === 'update' && presentFields.has('tag'),
    tag: true,
  }
  return fieldNames.filter(
    (field) => !presentFields.has(field) && (options.map[field] || !isOptional[field]),
  )
}

/**
 * Finds the names of columns that are not read, for a warning. It leaves out the columns that a
 * rejects file adds, and a field that a person has excluded on purpose (`--map id=`).
 */
export function findUnreadNames(
  names: readonly string[],
  columns: ReadonlyMap<FieldName, number>,
  { map }: InputOptions,
): string[] {
  const readColumns = new Set(columns.values())
  const ignoredNames = ['', ...fieldNames.filter((field) => map[field] === '')]
  return names.filter(
    (name, column) =>
      !readColumns.has(column) && !ignoredNames.includes(foldName(name)) && !isRejectsName(name),
  )
}

/** Finds the columns without a name that no number in `--map` gives. */
export function findUnnamedColumns(
  names: readonly string[],
  columns: ReadonlyMap<FieldName, number>,
): number[] {
  const readColumns = new Set(columns.values())
  return [...names.keys()].filter(
    (column) => foldName(names[column] ?? '') === '' && !readColumns.has(column),
  )
}

/** Describes each column by its number, as `--map` takes it: `column 3`. */
export function describeColumnNumbers(names: readonly string[]): string[] {
  let number = 0
  return names.map((name) => {
    if (!isRejectsName(name)) number += 1
    return `column ${number}`
  })
}

/** Lists the first names in quotes, without empty ones: `"Nr", "Kind" and 3 more`. */
export function listNames(names: readonly string[], maxListed = 8): string {
  const filledNames = names.filter(Boolean)
  const quotedNames = filledNames.slice(0, maxListed).map((name) => JSON.stringify(shorten(name)))
  const moreCount = filledNames.length - quotedNames.length
  return quotedNames.join(', ') + (moreCount > 0 ? ` and ${moreCount} more` : '')
}
