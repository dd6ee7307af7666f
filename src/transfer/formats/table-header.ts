import { type PlantField, plantFields, textFields } from '../../plant/fields.js'
import { parseInt64 } from '../../plant/json.js'
import { malformed, type PlantsError, shellWord } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { maxRecordBytes, type Reason } from './chunk.js'
import { Rows } from './line-reader.js'
import type { FieldRules } from './record-mapper.js'

/** The columns of a table, after an optional `sep=` line and, unless the columns were given, title lines and the header. */
export interface Columns {
  /** the offset of the first row */
  end: number
  delimiter: string
  names: readonly string[]
  /** the field of the record for each column */
  keys: readonly string[]
  /** the column of the id; -1 if there is none */
  id: number
  /** the column of each of `textFields`; -1 if there is none */
  texts: readonly number[]
  /** the columns of required texts */
  required: readonly number[]
  /** the columns of unknown fields */
  others: readonly number[]
  /** the offsets of the cells of the current row, and of one after the last; reused for each row */
  starts: Uint32Array
}

/**
 * Finds the delimiter and the header of a table, whose first line is not blank.
 *
 * @param given the delimiter; by default that of a `sep=` line, or the one with which a line names the required columns
 * @returns undefined if more bytes are needed
 * @throws {PlantsError} `malformed` if there is no usable header
 */
export function findHeader(bytes: Buffer, isLast: boolean, rules: FieldRules, given: string | undefined): Columns | undefined {
  const [separatorLine = '', separator] = /^"?sep=([^\r\n])"?\r?(?:\n|$)/i.exec(bytes.toString('latin1', 0, 20)) ?? []
  const known = given ?? separator
  const tables = (known === undefined ? delimiters : [known]).map((one) => readFirstLines(bytes, isLast, separatorLine.length, one))
  const [best] = tables.toSorted((one, other) => cellsOf(other) - cellsOf(one))
  if (rules.columns) {
    if (!best || (known === undefined && cellsOf(best) === 0)) return undefined
    return columnsOf({ names: rules.columns, delimiter: best.delimiter, end: separatorLine.length }, rules)
  }
  for (const { lines } of tables) {
    const header = lines.find(({ names }, index) => isHeader(names, rules) && (index === 0 || names.length > 1))
    if (header) return columnsOf(header, rules)
  }
  if (tables.some(({ isCut }) => isCut && !isLast)) return undefined
  const first = best?.lines[0]
  if (!first) return undefined
  checkHeader(first, bytes)
  return columnsOf(first, rules)
}

/** the delimiters that are detected */
const delimiters = [',', ';', '\t', '|']

/** the maximum number of lines before a header, each with one cell at most */
export const maxTitles = 10

interface FirstLine extends Pick<Columns, 'names' | 'delimiter' | 'end'> {
  why: Reason | undefined
}

/** The first lines of a table that are not blank, up to one with several cells; `isCut` if the bytes end before. */
function readFirstLines(bytes: Buffer, isLast: boolean, start: number, delimiter: string) {
  const rows = new Rows(bytes, isLast, delimiter)
  const lines: FirstLine[] = []
  for (let at = start; lines.length < maxTitles && at - start <= maxRecordBytes; ) {
    const row = at === bytes.length ? undefined : rows.find(at)
    if (!row) return { delimiter, lines, isCut: true }
    const { text, why, end } = row
    const names = why ? [] : parseCells(text, delimiter).map((cell) => cell ?? '')
    if (why || text !== '') lines.push({ names, delimiter, end, why })
    if (why || names.filter((name) => name !== '').length > 1) break
    at = end
  }
  return { delimiter, lines, isCut: false }
}

function cellsOf({ lines: [first] }: { lines: FirstLine[] }): number {
  return first?.names.length ?? 0
}

function isHeader(names: readonly string[], rules: FieldRules): boolean {
  return (
    missingIn(names, rules).length === 0 &&
    !names.some((name) => name.includes('\r')) &&
    !isNumber(names[columnOf('id', names, rules)] ?? '')
  )
}

/** Throws `malformed` for a first line that is not a header. */
function checkHeader({ names, why }: FirstLine, bytes: Buffer): void {
  // Lines end with LF or CRLF. A carriage return alone was the line break of classic Mac OS.
  if (why ? bytes.includes('\r') : names.some((name) => name.includes('\r')))
    throw malformed('The header contains a carriage return: its lines seem to end with CR', "Convert them to LF first: tr '\\r' '\\n'")
  if (why) throw malformed(`The header cannot be read: ${why.message}`, 'The first line must name the columns, for example: id,name,tag')
  if (names.some(isNumber)) throw missingHeader(names)
}

/** The cells of a valid row without its line break; undefined for an unquoted empty cell. */
export function parseCells(text: string, delimiter: string): (string | undefined)[] {
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
      cells.push(end === at ? undefined : text.slice(at, end))
    }
    if (end >= text.length) return cells
    at = end
  }
}

/** Finds the fields in the names of the columns. Throws `malformed` for a missing or repeated column. */
function columnsOf({ names, delimiter, end }: Omit<FirstLine, 'why'>, rules: FieldRules): Columns {
  const seen = new Set<string>()
  const repeated = names.find((name) => name !== '' && seen.size === seen.add(name).size)
  if (repeated !== undefined)
    throw malformed(`The header has the column ${JSON.stringify(shorten(repeated))} twice`, 'Give each column a different name')
  const missing = missingIn(names, rules)
  if (missing.length > 0) throw missingColumns(missing, names, rules)
  const columns = plantFields.map(({ name }) => columnOf(name, names, rules))
  const [id = -1, ...texts] = columns
  const keys = [...names]
  for (const [index, { name }] of plantFields.entries()) {
    const column = columns[index] ?? -1
    if (column >= 0) keys[column] = rules.map[name] ?? name
  }
  const ignored = plantFields.map(({ name }) => (rules.map[name] === '' ? columnOf(name, names, { ...rules, map: {} }) : -1))
  const read = [id, ...texts, ...ignored]
  const others = names.flatMap((name, index) => (read.includes(index) || (rules.columns && name === '') ? [] : index))
  const required = textFields.flatMap(({ isRequired }, index) => (isRequired ? (texts[index] ?? []) : []))
  return { names, delimiter, end, keys, id, texts, required, others, starts: new Uint32Array(names.length + 1) }
}

/** The fields whose required columns are missing. */
function missingIn(names: readonly string[], rules: FieldRules): PlantField[] {
  return plantFields.filter(({ name, isRequired }) => {
    const isNumbered = name === 'id' && rules.idFrom !== undefined
    return columnOf(name, names, rules) === -1 && (rules.map[name] || (isRequired && !isNumbered))
  })
}

/** The column of a field: an exact match, else one without regard to case and surrounding spaces; -1 if there is none. */
function columnOf(field: PlantField['name'], names: readonly string[], { map }: FieldRules): number {
  const wanted = map[field] ?? field
  if (wanted === '') return -1
  const exact = names.indexOf(wanted)
  const plain = (name: string) => name.trim().toLowerCase()
  return exact === -1 ? names.findIndex((name) => plain(name) === plain(wanted)) : exact
}

function missingColumns(missing: PlantField[], names: readonly string[], rules: FieldRules): PlantsError {
  const { map: given, idFrom } = rules
  const wanted = missing.map(({ name }) => (given[name] ? `${JSON.stringify(shorten(given[name]))} for ${name}` : name)).join(' and ')
  const shown = names.slice(0, 8).map((name) => JSON.stringify(shorten(name)))
  const more = names.length > shown.length ? ` and ${names.length - shown.length} more` : ''
  const what = rules.columns ? '--columns' : 'The header'
  const message = `${what} has no ${missing.length === 1 ? 'column' : 'columns'} ${wanted}, only ${shown.join(', ')}${more}`
  const columns = plantFields.map(({ name }) => columnOf(name, names, rules))
  const unused = names.filter((name, index) => !columns.includes(index) && name.trim() !== '')
  const isClear = unused.length === missing.length && unused.every((name) => /^[^,=\p{Cc}]{1,60}$/u.test(name))
  const sourceOf = (field: PlantField) => [field.name, isClear ? unused[missing.indexOf(field)]?.trim() : 'COLUMN']
  const kept = Object.entries(given).filter(([field]) => !missing.some(({ name }) => name === field))
  const map = (fields: PlantField[]) =>
    fields.length === 0 ? '' : `--map ${shellWord([...kept, ...fields.map(sourceOf)].map((entry) => entry.join('=')).join())} `
  const others = missing.filter(({ name }) => name !== 'id')
  const isIdMissing = idFrom === undefined && others.length < missing.length
  const numbered = isIdMissing ? `. Or number the rows: ${map(others)}--id-from 1` : ''
  const headless =
    isIdMissing && others.length > 0 ? `. If there is no header: --columns ${plantFields.map(({ name }) => name).join()}` : ''
  return malformed(message, `Name the columns: ${map(missing).trimEnd()}${numbered}${headless}`)
}

/** The error for a first line that contains a number, which is not a header. */
function missingHeader(cells: readonly string[]): PlantsError {
  const id = cells.findIndex(isNumber)
  const texts = cells.flatMap((cell, index) => (index === id || cell === '' ? [] : index))
  const columns = cells.map((_, index) => (index === id ? 'id' : (textFields[texts.indexOf(index)]?.name ?? '')))
  const shown = cells.slice(0, 8).map((cell) => JSON.stringify(shorten(cell)))
  return malformed(
    `There is no header: the first line is ${shown.join(', ')}`,
    `If that is a header, name its columns with --map id=COLUMN. If not, run it again with: --columns ${shellWord(columns.join())}`,
  )
}

function isNumber(cell: string): boolean {
  return parseInt64(cell.trim()) !== undefined
}
