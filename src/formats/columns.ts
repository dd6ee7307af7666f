/* Which columns of a table have the fields of a plant: by their names, or by their numbers. */

import { type FieldName, fieldNames } from '../plant/fields.js'
import { foldText } from '../plant/folding.js'
import { shorten } from '../platform/escape.js'
import type { Cells, InputOptions } from './chunk.js'

export const rejectColumns = ['rejected_line', 'rejected_reason']

export function isRejectsName(name: string): boolean {
  return /^rejected_(?:line|reason|text)$/.test(foldName(name))
}

/** As a search compares texts, and without soft hyphens and spaces of no width. */
export function foldName(name: string): string {
  const visible = name.replace(/[\u00ad\u200b]/g, '')
  return foldText(visible.trim().replace(/\s+/g, ' '))
}

export function readNames(row: Cells): string[] {
  return row.map((cell) => (typeof cell === 'string' ? cell : (cell?.text ?? '')))
}

/** The numbers of columns that `--map` gives, from 1 on. Those of a rejects file do not count. */
export type ColumnNumbers = ReadonlyMap<FieldName, number>

/** @param names the names of columns: a number that is one of them is a name */
export function findColumnNumbers(names: readonly string[], { map }: InputOptions): ColumnNumbers {
  const folded = new Set(names.map(foldName))
  const numbers = new Map<FieldName, number>()
  for (const field of fieldNames) {
    const text = map[field] ?? ''
    if (/^[1-9]\d{0,4}$/.test(text) && !folded.has(text)) numbers.set(field, Number(text))
  }
  return numbers
}

/** Finds the columns that may have a field, by its own name or by that of `--map`. */
export function findColumns(
  names: readonly string[],
  { map }: InputOptions,
  numbers: ColumnNumbers,
): Map<FieldName, number[]> {
  const folded = names.map(foldName)
  const ownColumns = [...names.keys()].filter((column) => !isRejectsName(names[column] ?? ''))
  const found = new Map<FieldName, number[]>()
  for (const field of fieldNames) {
    const number = numbers.get(field)
    const wanted = foldName(map[field] ?? field)
    const columns =
      number === undefined
        ? [...folded.keys()].filter((column) => folded[column] === wanted)
        : ownColumns.slice(number - 1, number)
    if (wanted !== '' && columns.length > 0) found.set(field, columns)
  }
  return found
}

/** @param found has the fields for which there is a column or a key */
export function findMissingFields(
  found: Pick<ReadonlySet<FieldName>, 'has'>,
  rules: InputOptions,
): FieldName[] {
  const mayLack = {
    id: (rules.idFrom ?? rules.match) !== undefined,
    name: rules.ifExists === 'update' && found.has('tag'),
    tag: true,
  }
  return fieldNames.filter((field) => !found.has(field) && (rules.map[field] || !mayLack[field]))
}

/** A rejects file has columns of its own, and `--map` can say that a field is not read. */
export function findUnreadNames(
  names: readonly string[],
  columns: ReadonlyMap<FieldName, number>,
  { map }: InputOptions,
): string[] {
  const read = new Set(columns.values())
  const ignored = ['', ...fieldNames.filter((field) => map[field] === '')]
  return names.filter(
    (name, column) =>
      !read.has(column) && !ignored.includes(foldName(name)) && !isRejectsName(name),
  )
}

/** Lists names that are not empty in quotes, the first ones and how many more there are. */
export function listNames(names: readonly string[], maxShown = 8): string {
  const named = names.filter(Boolean)
  const shown = named.slice(0, maxShown).map((name) => JSON.stringify(shorten(name)))
  const more = named.length - shown.length
  return shown.join(', ') + (more > 0 ? ` and ${more} more` : '')
}
