import { parseInt64 } from '../../plant/exact-json.js'
import { type PlantField, plantFields, textFields, textNames } from '../../plant/fields.js'
import { delimiters } from '../../plant/records.js'
import { malformed, type PlantsError, shellOption } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { maxRecordBytes, type Reason } from './chunk.js'
import { Rows } from './line-reader.js'
import type { FieldRules } from './record-mapper.js'

/** `end` is after an optional `sep=` line and, unless the columns were given, title lines and the header. */
export interface Columns {
  end: number
  delimiter: string
  names: readonly string[]
  keys: readonly string[]
  /** -1 if there is none */
  id: number
  /** of each of `textFields`; -1 if there is none */
  texts: readonly number[]
  required: readonly number[]
  others: readonly number[]
  /** of the cells of the current row, and one after the last */
  starts: Uint32Array
}

interface HeaderOptions {
  isLast: boolean
  rules: FieldRules
  /** by default that of a `sep=` line, or the one with which a line names the required columns */
  given: string | undefined
  lineAt(offset: number): number
}

/**
 * The first line must not be blank. If none is a header, the first one with several cells is reported as one.
 *
 * @returns undefined if more bytes are needed
 * @throws {PlantsError} `malformed` if there is no usable header
 */
export function findHeader(bytes: Buffer, options: HeaderOptions): Columns | undefined {
  const { isLast, rules, given } = options
  const [separatorLine = '', separator] =
    /^"?sep=([^\r\n])"?(?:\r\n?|\n|$)/i.exec(bytes.toString('latin1', 0, 20)) ?? []
  if (separatorLine !== '' && separatorLine.length === bytes.length && !isLast) return undefined
  const known = given ?? separator
  const tables = (known === undefined ? delimiters : [known]).map((one) =>
    readFirstLines(bytes, separatorLine.length, one, options),
  )
  if (rules.columns) {
    const [best] = tables.toSorted((one, other) => cellsOf(other.lines[0]) - cellsOf(one.lines[0]))
    if (!best || (known === undefined && cellsOf(best.lines[0]) === 0)) return undefined
    return columnsOf(
      { names: rules.columns, delimiter: best.delimiter, end: separatorLine.length, line: undefined },
      rules,
    )
  }
  for (const { lines } of tables) {
    const header = headerIn(lines, rules)
    if (header) return columnsOf(header, rules)
  }
  if (tables.some(({ isCut }) => isCut && !isLast)) return undefined
  const likely = tables.flatMap(
    ({ lines }) => lines.find(({ why, names }) => why || isSeveral(names)) ?? lines[0] ?? [],
  )
  const [header] = likely.toSorted((one, other) => cellsOf(other) - cellsOf(one))
  if (!header) return undefined
  checkHeader(header)
  return columnsOf(header, rules)
}

/** Throws `malformed` if a line before it may be a record. */
function headerIn(lines: FirstLine[], rules: FieldRules): FirstLine | undefined {
  const found = lines.findIndex(({ names }, index) => isHeader(names, rules) && (index === 0 || names.length > 1))
  const header = lines[found]
  const hint = header && `If line ${header.line} is the header, delete the lines before it`
  for (const line of lines.slice(0, Math.max(found, 0))) if (isSeveral(line.names)) checkHeader(line, hint)
  return header
}

/** Of the first line with several cells; none if there is none. */
export function columnNames(bytes: Buffer): readonly string[] {
  const options = { isLast: true, rules: { map: {}, idFrom: undefined }, given: undefined, lineAt: () => 1 }
  const lines = delimiters.map((one) => readFirstLines(bytes, 0, one, options).lines.map(({ names }) => names))
  const found = lines.map((names) => names.find(isSeveral) ?? [])
  return found.toSorted((one, other) => other.length - one.length)[0] ?? []
}

/** maximum number of lines up to a header */
export const maxTitles = 10

interface FirstLine extends Pick<Columns, 'names' | 'delimiter' | 'end'> {
  line: number
  why: Reason | undefined
}

/** The first lines, without blank ones; `isCut` if the bytes end before. */
function readFirstLines(bytes: Buffer, start: number, delimiter: string, { isLast, lineAt }: HeaderOptions) {
  const rows = new Rows(bytes, isLast, delimiter)
  const lines: FirstLine[] = []
  for (let at = start; lines.length < maxTitles && at - start <= maxRecordBytes; ) {
    const row = at === bytes.length ? undefined : rows.find(at)
    if (!row) return { delimiter, lines, isCut: true }
    const { text, why, end } = row
    const names = why ? [] : parseCells(text, delimiter).map((cell) => cell ?? '')
    if (why || text !== '') lines.push({ names, delimiter, end, line: lineAt(at), why })
    if (why) break
    at = end
  }
  return { delimiter, lines, isCut: false }
}

function cellsOf(line: FirstLine | undefined): number {
  return line?.names.length ?? 0
}

/** A title has one cell, and perhaps empty ones. */
function isSeveral(names: readonly string[]): boolean {
  return names.filter((name) => name !== '').length > 1
}

function isHeader(names: readonly string[], rules: FieldRules): boolean {
  return missingIn(names, rules).length === 0 && !isNumber(names[columnOf('id', names, rules)] ?? '')
}

function checkHeader({ names, line, why }: FirstLine, hint = columnHint): void {
  const example = 'It must name the columns, for example: id,name,tag'
  if (why) throw malformed(`The header in line ${line} cannot be read: ${why.message}`, example)
  if (!names.some(isNumber)) return
  throw malformed(`There is no header: line ${line} is ${listOf(names)}`, hint)
}

/**
 * The row is valid, and has no line break. A cell in quotes is exact. Others are trimmed, and undefined if they are
 * empty; in the column `id`, zeros in front are removed.
 */
export function parseCells(text: string, delimiter: string, id = -1): (string | undefined)[] {
  const cells: (string | undefined)[] = []
  for (let at = 0; ; at += 1) {
    let end: number
    if (text[at] === '"') {
      end = text.indexOf('"', at + 1)
      while (text[end + 1] === '"') end = text.indexOf('"', end + 2)
      cells.push(text.slice(at + 1, end).replaceAll('""', '"'))
      end += 1
    } else {
      const found = text.indexOf(delimiter, at)
      end = found === -1 ? text.length : found
      cells.push(plainCell(text, at, end, cells.length === id))
    }
    if (end >= text.length) return cells
    at = end
  }
}

/** White space other than spaces and tabs, such as U+00A0, belongs to the cell. */
function plainCell(text: string, start: number, end: number, isId: boolean): string | undefined {
  const isBlank = (at: number) => text[at] === ' ' || text[at] === '\t'
  let [from, to] = [start, end]
  while (from < to && isBlank(from)) from += 1
  while (from < to && isBlank(to - 1)) to -= 1
  const cell = text.slice(from, to)
  if (cell === '') return undefined
  return isId && /^-?\d+$/.test(cell) ? cell.replace(/^(-?)0+(?=\d)/, '$1') : cell
}

/** `line` is undefined for `--columns`. */
type HeaderLine = Omit<FirstLine, 'why' | 'line'> & { line: number | undefined }

function columnsOf({ names, delimiter, end, line }: HeaderLine, rules: FieldRules): Columns {
  const seen = new Set<string>()
  const repeated = names.find((name) => name !== '' && seen.size === seen.add(name).size)
  if (repeated !== undefined)
    throw malformed(
      `The header has the column ${JSON.stringify(shorten(repeated))} twice`,
      'Give each column a different name',
    )
  const missing = missingIn(names, rules)
  if (missing.length > 0) throw missingColumns(missing, { names, line }, rules)
  const fields = plantFields.map((field) => ({ ...field, column: columnOf(field.name, names, rules) }))
  const keys = [...names]
  for (const { name, column } of fields) if (column >= 0) keys[column] = rules.map[name] ?? name
  const [id = -1, ...texts] = fields.map(({ column }) => column)
  const ignored = plantFields.map(({ name }) =>
    rules.map[name] === '' ? columnOf(name, names, { ...rules, map: {} }) : -1,
  )
  const read = [id, ...texts, ...ignored]
  const others = names.flatMap((name, index) => (read.includes(index) || name === '' ? [] : index))
  const isRequired = new Set<number>(fields.filter((field) => field.isRequired).map(({ column }) => column))
  const required = texts.filter((column) => column >= 0 && isRequired.has(column))
  return { names, delimiter, end, keys, id, texts, required, others, starts: new Uint32Array(names.length + 1) }
}

function missingIn(names: readonly string[], rules: FieldRules): PlantField[] {
  const isPatch = rules.isPartial === true && textFields.some(({ name }) => columnOf(name, names, rules) !== -1)
  return plantFields.filter(({ name, isRequired }) => {
    const mayLack = name === 'id' ? rules.idFrom !== undefined : isPatch
    return columnOf(name, names, rules) === -1 && (rules.map[name] || (isRequired && !mayLack))
  })
}

/** Prefers an exact match to one without regard to case and surrounding spaces. */
function columnOf(field: PlantField['name'], names: readonly string[], { map }: FieldRules): number {
  const wanted = map[field] ?? field
  if (wanted === '') return -1
  const exact = names.indexOf(wanted)
  const plain = (name: string) => name.trim().toLowerCase()
  return exact === -1 ? names.findIndex((name) => plain(name) === plain(wanted)) : exact
}

function missingColumns(
  missing: PlantField[],
  { names, line }: Pick<HeaderLine, 'names' | 'line'>,
  rules: FieldRules,
): PlantsError {
  const { map, isPartial } = rules
  // one text is enough for an update
  const texts = isPartial && missing.some(({ name }) => name !== 'id' && !map[name]) ? textNames.join(' or ') : ''
  const wanted = missing
    .map(({ name }) =>
      map[name] ? `${JSON.stringify(shorten(map[name]))} for ${name}` : (name !== 'id' && texts) || name,
    )
    .join(' and ')
  const what = line === undefined ? '--columns' : `The header in line ${line}`
  const columns = missing.length === 1 ? 'column' : 'columns'
  // so that an optional text may have one of them
  const isMore = texts !== '' || names.filter(Boolean).length >= plantFields.length
  const isOpen = (field: PlantField) =>
    missing.includes(field) ||
    (isMore && field.name !== 'id' && map[field.name] === undefined && columnOf(field.name, names, rules) === -1)
  const pairs = plantFields.flatMap((field) => {
    const column = isOpen(field) ? 'COLUMN' : map[field.name]
    return column === undefined ? [] : `${field.name}=${column}`
  })
  const isNumberable = !isPartial && missing.every(({ name }) => name === 'id')
  const more = isNumberable ? ', or number the plants with --id-from next' : texts && `: ${texts} may be left out`
  const hint = `Choose columns with${shellOption('map', pairs.join(','))}${more}`
  return malformed(`${what} has no ${columns} ${wanted}, only ${listOf(names.filter(Boolean))}`, hint)
}

const columnHint = 'Name the columns with --columns, such as --columns id,name,tag'

function listOf(names: readonly string[]): string {
  if (names.length === 0) return 'empty cells'
  const shown = names.slice(0, 8).map((name) => JSON.stringify(shorten(name)))
  return `${shown.join(', ')}${names.length > shown.length ? ` and ${names.length - shown.length} more` : ''}`
}

function isNumber(cell: string): boolean {
  return parseInt64(cell.trim()) !== undefined
}
