import { isObject, parseJson } from '../../plant/exact-json.js'
import { type FieldName, fieldNames } from '../../plant/plant.js'
import { inputError, must } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { foldText } from '../../stores/common/search.js'
import {
  type Cells,
  Chunk,
  type FormatReader,
  type Header,
  type InputOptions,
  skipRecords,
} from './chunk.js'

/** The keys of a rejects file, which an import ignores. */
export const rejectNames: readonly string[] = ['rejected_line', 'rejected_reason', 'rejected_text']

export const maxHeaderRows = 20

/** Reads the rows below the header that have an id, a name or a tag. Throws `input` for its columns. */
export function readerOf(
  table: Pick<FormatReader, 'format' | 'delimiter'>,
  first: Chunk<Cells>,
  rows: AsyncIterable<Chunk<Cells>>,
  rules: InputOptions,
  name: string,
): FormatReader {
  if (first.records.length === 0) return { ...table, chunks: rows }
  const index = findHeader(first, rules)
  const header = headerAt(index ?? 0, first, rules, name)
  const columns = [...header.columns.values()]
  const isEmpty = (row: Cells) => columns.every((column) => row[column] === undefined)
  async function* records(): AsyncGenerator<Chunk> {
    for await (const part of skipRecords(rows, must(index) + 1)) {
      const chunk = new Chunk<Cells>()
      const hasEmpty = part.records.some(isEmpty) // seldom, and a copy takes 20 MB
      for (const [at, row] of hasEmpty ? part.records.entries() : [])
        if (isEmpty(row)) chunk.emptyRows += 1
        else chunk.add(row, must(part.lines[at]))
      yield hasEmpty ? chunk : part
    }
  }
  return { ...table, header, chunks: records() }
}

/** The index of the first row that has the columns; -1 with `columns`. */
export function findHeader({ records }: Chunk<Cells>, rules: InputOptions): number | undefined {
  if (rules.columns) return records.length > 0 ? -1 : undefined
  const found = records.findIndex((row) => missingColumns(namesIn(row), rules).length === 0)
  return found === -1 ? undefined : found
}

function headerAt(row: number, rows: Chunk<Cells>, rules: InputOptions, source: string): Header {
  const names = row === -1 ? must(rules.columns) : namesIn(must(rows.records[row]))
  const width = row === -1 ? must(rows.records[0]).length : 0
  if (width > names.length)
    throw inputError(
      `The first row of ${source} has ${width} cells`,
      `Name ${width} columns with --columns`,
    )
  const place = row === -1 ? 'it' : `line ${rows.lines[row]}`
  assertFound(missingColumns(names, rules), rules, source, `${place} has only ${listOf(names)}`)
  const columns = new Map<FieldName, number>()
  for (const field of fieldNames) {
    const [column, ...others] = columnsOf(field, names, rules)
    if (column !== undefined) columns.set(field, column)
    if (others.length > 0)
      throw inputError(
        `Several columns of ${source} may be the ${field}`,
        `Choose one with --map ${field}=COLUMN, or give each a different name`,
      )
  }
  const read = [...columns.values()]
  const ignored = ['', ...rejectNames, ...fieldNames.filter((field) => rules.map[field] === '')]
  const others = [...names.keys()].filter(
    (column) => !read.includes(column) && !ignored.includes(foldName(must(names[column]))),
  )
  return { names, columns, others }
}

/** Throws `input` if the first part of a JSON list lacks a key of the plants. */
export function assertKeys({ records }: Chunk, rules: InputOptions, source: string): void {
  const keys = new Set<string>()
  const has = (field: FieldName) => field === 'tag' || keys.has(rules.map[field] ?? field)
  for (const record of records) {
    const parsed = typeof record === 'string' ? parseJson(record) : {}
    if ('value' in parsed && isObject(parsed.value)) for (const key in parsed.value) keys.add(key)
    if (missingIn(has, rules).length === 0) return
  }
  if (keys.size === 0) return
  assertFound(missingIn(has, rules), rules, source, `it has only ${listOf([...keys])}`)
}

function assertFound(missing: FieldName[], { map }: InputOptions, source: string, has: string) {
  if (missing.length === 0) return
  const wanted = listOf(missing.map((field) => map[field] || field))
  throw inputError(
    `${source} has no column ${wanted}: ${has}`,
    'Choose columns with --map id=COLUMN,name=COLUMN, or name those of a table without a header with --columns id,name. Plants without ids: --id-from next',
  )
}

function missingIn(has: (field: FieldName) => boolean, rules: InputOptions): FieldName[] {
  const mayLack = {
    id: (rules.idFrom ?? rules.match) !== undefined,
    name: rules.ifExists === 'update' && has('tag'),
    tag: true,
  }
  return fieldNames.filter((field) => !has(field) && (rules.map[field] || !mayLack[field]))
}

function missingColumns(names: readonly string[], rules: InputOptions): FieldName[] {
  return missingIn((field) => columnsOf(field, names, rules).length > 0, rules)
}

/** As a search compares texts. */
function columnsOf(field: FieldName, names: readonly string[], { map }: InputOptions): number[] {
  const wanted = map[field] ?? field
  if (wanted === '') return []
  const folded = foldName(wanted)
  return names.flatMap((name, column) => (foldName(name) === folded ? column : []))
}

/** Without soft hyphens and spaces without a width, which nobody sees. */
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
