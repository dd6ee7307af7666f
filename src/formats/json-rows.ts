/*
 * Finds the plants in JSON whose records are lists of cells, as in `[[1, "Fern"], [2, "Moss"]]`,
 * and builds the jq program that prints them as objects.
 *
 * Spreadsheets and databases write tables like this. The first list may contain the names of the
 * columns. Without names, the first column of integers has the ids, the first column of strings the
 * names, and the column after it the tags, if it has strings. A person sees this in the program,
 * and can change it.
 */
import { type FieldName, fieldNames } from '../plant/fields.js'
import { isString } from '../plant/json.js'
import type { InputOptions } from './chunk.js'
import { findColumns, findMissingFields } from './columns.js'

type Row = readonly unknown[]

/** A program of jq, and the first objects that it prints. */
interface RowList {
  program: string
  objects: readonly Record<string, unknown>[]
  elements: 'lists'
}

/**
 * @param rows the first rows, at least one
 * @param path the steps of a jq program to the list of rows, such as `.values`; undefined if there
 *   is no list around the rows
 * @returns undefined if no column has names
 */
export function findRowList(
  rows: readonly Row[],
  path: string | undefined,
  options: InputOptions,
): RowList | undefined {
  const [firstRow = []] = rows
  const namedColumns = readHeader(firstRow, options)
  const hasHeader = namedColumns !== undefined || isUnknownHeader(rows)
  const plantRows = hasHeader ? rows.slice(1) : rows
  const columns = namedColumns ?? guessColumns(plantRows)
  if (!columns.has('name')) return undefined
  const members = fieldNames.flatMap((field) => {
    const column = columns.get(field)
    return column === undefined ? [] : [{ key: options.map[field] || field, column }]
  })
  const steps = members.map(({ key, column }) => `${formatKey(key)}: .[${column}]`)
  const header = hasHeader ? firstRow : undefined
  return {
    program: `${selectRows(path, header)}{${steps.join(', ')}}`,
    objects: (plantRows.length > 0 ? plantRows : rows).map((row) =>
      Object.fromEntries(members.map(({ key, column }) => [key, row[column]])),
    ),
    elements: 'lists',
  }
}

/** Builds the step of a jq program that selects the rows without their header. */
function selectRows(path: string | undefined, header: Row | undefined): string {
  if (path !== undefined) return `${path}[${header ? '1:][' : ''}] | `
  return header ? `select(. != ${JSON.stringify(header)}) | ` : ''
}

/** Finds the columns by their names in the first row; undefined if it lacks a needed column. */
function readHeader(row: Row, options: InputOptions): Map<FieldName, number> | undefined {
  const names = row.map((cell) => (isString(cell) ? cell : ''))
  const candidates = findColumns(names, options, new Map())
  const missingFields = findMissingFields(candidates, options)
  // The hint says how to generate ids.
  if (missingFields.some((field) => field !== 'id' || options.map.id)) return undefined
  return new Map([...candidates].map(([field, [column = 0]]) => [field, column]))
}

/** Whether only the first row has nothing but strings, which are most likely names of columns. */
function isUnknownHeader([firstRow = [], ...otherRows]: readonly Row[]): boolean {
  const hasOnlyStrings = (row: Row) => row.every(isString)
  return otherRows.length > 0 && hasOnlyStrings(firstRow) && !otherRows.some(hasOnlyStrings)
}

function guessColumns(rows: readonly Row[]): Map<FieldName, number> {
  const width = Math.max(0, ...rows.map((row) => row.length))
  const hasOnly = (column: number, isValue: (cell: unknown) => boolean) =>
    column < width && rows.every((row) => isValue(row[column]))
  const indexes = Array.from({ length: width }, (_, column) => column)
  const columns = new Map<FieldName, number>()
  const idColumn = indexes.find((column) => hasOnly(column, Number.isInteger))
  if (idColumn !== undefined) columns.set('id', idColumn)
  const nameColumn = indexes.find((column) => hasOnly(column, isString))
  if (nameColumn === undefined) return columns
  columns.set('name', nameColumn)
  if (hasOnly(nameColumn + 1, isOptionalString)) columns.set('tag', nameColumn + 1)
  return columns
}

function isOptionalString(cell: unknown): boolean {
  return cell === null || cell === undefined || isString(cell)
}

function formatKey(key: string): string {
  return /^[A-Za-z_]\w*$/.test(key) ? key : JSON.stringify(key)
}
