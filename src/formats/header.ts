import { inputError, must } from '../errors.js'
import { foldText } from '../plant/folding.js'
import { isObject, parseJson } from '../plant/json.js'
import { type FieldName, fieldNames } from '../plant/plant.js'
import { shorten } from '../platform/escape.js'
import {
  type Cells,
  Chunk,
  type FormatReader,
  type Header,
  type InputOptions,
  type RawRecord,
  skipRecords,
} from './chunk.js'

export const rejectColumns = ['rejected_line', 'rejected_reason']

export function isRejectsName(name: string): boolean {
  return /^rejected_(?:line|reason|text)$/.test(foldName(name))
}

export const maxHeaderRows = 20

/** Where a table comes from. */
interface TableSource {
  /** The file, for messages. */
  name: string
  delimiter?: string | undefined
  /** Of a workbook: the sheet, and how all sheets are listed. */
  sheet?: string
  sheets?: readonly string[]
}

/**
 * Reads the rows below the header that have an id, a name or a tag. Throws `input` for its columns.
 */
export function createReader(
  first: Chunk<Cells>,
  rows: AsyncIterable<Chunk<Cells>>,
  rules: InputOptions,
  source: TableSource,
): FormatReader {
  const { delimiter } = source
  if (first.records.length === 0) return { chunks: rows, delimiter }
  const index = findHeader(first, rules)
  const header = parseHeader(index ?? findLikeliestHeader(first), first, rules, source)
  const columns = [...header.columns.values()]
  const isEmpty = (row: Cells) => columns.every((column) => row[column] === undefined)
  const chunks = omitEmptyRows(skipRecords(rows, must(index) + 1), isEmpty)
  return { header, delimiter, chunks }
}

async function* omitEmptyRows(
  chunks: AsyncIterable<Chunk<Cells>>,
  isEmpty: (row: Cells) => boolean,
): AsyncGenerator<Chunk> {
  for await (const chunk of chunks)
    yield chunk.records.some(isEmpty) ? copyWithoutEmptyRows(chunk, isEmpty) : chunk
}

/** Returns a copy that counts the rows it omits. */
function copyWithoutEmptyRows(
  { records, lines, surplusRows }: Chunk<Cells>,
  isEmpty: (row: Cells) => boolean,
): Chunk<Cells> {
  const copy = new Chunk<Cells>()
  copy.surplusRows = surplusRows
  for (const [index, row] of records.entries())
    if (isEmpty(row)) copy.emptyRows += 1
    else copy.add(row, must(lines[index]))
  return copy
}

/** The index of the first row that has the columns; -1 with `columns`. */
export function findHeader({ records }: Chunk<Cells>, rules: InputOptions): number | undefined {
  if (rules.columns) return records.length > 0 ? -1 : undefined
  const found = records.findIndex(
    (row) => missingIn(columnsIn(namesIn(row), rules), rules).length === 0,
  )
  return found === -1 ? undefined : found
}

/** The index of the row with the most filled cells. */
function findLikeliestHeader({ records }: Chunk<Cells>): number {
  const counts = records.map(countFilledCells)
  return counts.indexOf(Math.max(...counts))
}

export function countFilledCells(row: Cells = []): number {
  return row.filter((cell) => cell !== undefined).length
}

function parseHeader(
  row: number,
  rows: Chunk<Cells>,
  rules: InputOptions,
  source: TableSource,
): Header {
  const names = row === -1 ? must(rules.columns) : namesIn(must(rows.records[row]))
  const width = row === -1 ? must(rows.records[0]).length : 0
  if (width > names.length)
    throw inputError(
      `The first row of ${source.name} has ${width} cells`,
      `Name ${width} columns with --columns`,
    )
  const found = columnsIn(names, rules)
  assertFound(found, rules, source.name, describeColumns(names, rows.lines[row], source))
  const columns = chooseColumns(found, source.name)
  return { names, columns, unread: findUnreadNames(names, columns, rules) }
}

function describeColumns(
  names: readonly string[],
  line: number | undefined,
  { sheet, sheets = [] }: TableSource,
): string {
  if (line === undefined) return `it has only ${listOf(names)}`
  if (sheet === undefined) return `line ${line} has only ${listOf(names)}`
  const allSheets = sheets.length > 1 ? ` (its sheets: ${sheets.slice(0, 8).join(', ')})` : ''
  return `line ${line} of the sheet ${listOf([sheet])} has only ${listOf(names)}${allSheets}`
}

/** Throws `input` for a field that may be in several columns. */
function chooseColumns(
  found: ReadonlyMap<FieldName, readonly number[]>,
  source: string,
): Map<FieldName, number> {
  const chosen = new Map<FieldName, number>()
  for (const [field, columns] of found) {
    if (columns.length > 1)
      throw inputError(
        `Several columns of ${source} may be the ${field}`,
        `Choose one with --map ${field}=COLUMN, or give each a different name`,
      )
    chosen.set(field, must(columns[0]))
  }
  return chosen
}

/** A rejects file has columns of its own, and `--map` can say that a field is not read. */
function findUnreadNames(
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

/** Throws `input` if the records of JSON together have no key for a field that is needed. */
export function assertKeys({ records }: Chunk, rules: InputOptions, source: string): void {
  const keys = new Set<string>()
  const found = new Set<FieldName>(['tag'])
  for (const record of records) {
    for (const key of findKeys(record)) keys.add(key)
    for (const field of fieldNames) if (keys.has(rules.map[field] ?? field)) found.add(field)
    if (missingIn(found, rules).length === 0) return
  }
  if (keys.size > 0) assertFound(found, rules, source, `it has only ${listOf([...keys])}`)
}

/** Returns no keys of what is no object. */
function findKeys(record: RawRecord): string[] {
  const parsed = typeof record === 'string' ? parseJson(record) : {}
  return 'value' in parsed && isObject(parsed.value) ? Object.keys(parsed.value) : []
}

type Found = Pick<ReadonlySet<FieldName>, 'has'>

function assertFound(found: Found, rules: InputOptions, source: string, has: string): void {
  const missing = missingIn(found, rules)
  if (missing.length === 0) return
  const wanted = listOf(missing.map((field) => rules.map[field] || field))
  throw inputError(
    `${source} has no column ${wanted}: ${has}`,
    'Choose columns with --map id=COLUMN,name=COLUMN, or name those of a table without a header with --columns id,name. Plants without ids: --id-from next',
  )
}

function missingIn(found: Found, rules: InputOptions): FieldName[] {
  const mayLack = {
    id: (rules.idFrom ?? rules.match) !== undefined,
    name: rules.ifExists === 'update' && found.has('tag'),
    tag: true,
  }
  return fieldNames.filter((field) => !found.has(field) && (rules.map[field] || !mayLack[field]))
}

function columnsIn(names: readonly string[], { map }: InputOptions): Map<FieldName, number[]> {
  const folded = names.map(foldName)
  const found = new Map<FieldName, number[]>()
  for (const field of fieldNames) {
    const wanted = foldName(map[field] ?? field)
    const columns = [...folded.keys()].filter((column) => folded[column] === wanted)
    if (wanted !== '' && columns.length > 0) found.set(field, columns)
  }
  return found
}

/** As a search compares texts, and without soft hyphens and spaces of no width. */
export function foldName(name: string): string {
  const visible = name.replace(/[\u00ad\u200b]/g, '')
  return foldText(visible.trim().replace(/\s+/g, ' '))
}

function namesIn(row: Cells): string[] {
  return row.map((cell) => (typeof cell === 'string' ? cell : (cell?.text ?? '')))
}

export function listOf(names: readonly string[]): string {
  const shown = names.filter(Boolean).slice(0, 8)
  return shown.map((name) => JSON.stringify(shorten(name))).join(', ')
}
