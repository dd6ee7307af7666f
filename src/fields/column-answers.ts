/*
 * The answers about columns, as the options of an import that have the same meaning.
 */
import type { FormatOptions } from '../formats/reader.js'
import { quoteWord } from '../platform/shell.js'
import type { FieldColumns } from './columns.js'
import type { FieldOptions } from './options.js'

export type ColumnAnswers = Partial<
  Pick<FormatOptions & FieldOptions, 'sheet' | 'columns' | 'map' | 'byName'>
>

/**
 * Names the columns of a table without a header by their fields. A column that is not read has an
 * empty name. Several columns of the name have names of their own, which are joined.
 */
export function nameColumns(width: number, fieldColumns: FieldColumns): ColumnAnswers {
  const columns = Array<string>(width).fill('')
  for (const [field, [column]] of fieldColumns) if (column !== undefined) columns[column] = field
  const joinedColumns = fieldColumns.get('name') ?? []
  if (joinedColumns.length < 2) return { columns }
  const parts = joinedColumns.map((_, index) => nameParts[index] ?? `part ${index + 1}`)
  for (const [index, column] of joinedColumns.entries()) columns[column] = parts[index] ?? ''
  return { columns, map: { name: parts } }
}

const nameParts = ['genus', 'species']

/** Lists the words of the options. */
export function listOptions({ sheet, columns, map = {}, byName }: ColumnAnswers): string[] {
  const pairs = Object.entries(map).flatMap(([field, names]) =>
    names.length === 0 ? `${field}=` : names.map((name) => `${field}=${name}`),
  )
  const words: string[] = []
  if (sheet !== undefined) words.push('--sheet', sheet)
  if (columns) words.push('--columns', columns.join(','))
  if (pairs.length > 0) words.push('--map', pairs.join(','))
  if (byName) words.push('--by-name')
  return words
}

/** Writes the options as people copy them. */
export function formatOptions(answers: ColumnAnswers): string {
  return listOptions(answers)
    .map((word) => quoteWord(word))
    .join(' ')
}
