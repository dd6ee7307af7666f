import stringWidth from 'string-width'
import type { FieldName, NewPlant } from '../plant/fields.js'
import { toJson } from '../plant/json.js'
import type { Io } from '../platform/io.js'
import { type OutputStyle, quoteIfNeeded, type Style, styleFor, wrap } from './output.js'

/**
 * Formats plants as the rows of an aligned table, a page at a time. The first page decides the widths, in columns of a terminal, and a
 * later one can only widen them. What is wider than the terminal, or than `maxCellWidth` without one, is cut and ends with "…".
 */
export function plantTable(columns: number | undefined, style: Style, fields: readonly FieldName[]): (page: NewPlant[]) => string {
  const titles = fields.map((name) => name.toUpperCase())
  let widths: number[] | undefined
  return (page) => {
    const cellOf = (text: string | undefined) => (text === undefined ? '' : quoteIfNeeded(begin(text, columns)))
    const rows = page.map((plant) => fields.map((name) => (name === 'id' ? String(plant.id) : cellOf(plant[name]))))
    const fitted = share(fields, widen(widths ?? titles.map((title) => title.length), rows), columns)
    const lineOf = (row: string[]) =>
      row
        .map((text, column) => align(fields[column], text, fitted[column]))
        .join(gap)
        .trimEnd()
    const header = widths === undefined ? [style.faint(lineOf(titles))] : []
    widths = fitted
    return [...header, ...rows.map(lineOf)].map((text) => `${text}\n`).join('')
  }
}

/**
 * Formats rows, a page at a time: as lines of JSON for programs, or for people as a table whose columns are as wide as what is in them, up
 * to `maxCellWidth`. A later page can only widen them. What does not fit of the last column goes on below.
 */
export async function rowFormatter<Row extends object>(
  titles: string[],
  cellsOf: (row: Row) => string[],
  { output, colors }: Pick<OutputStyle, 'output' | 'colors'>,
  { stdout }: Io,
): Promise<(rows: Row[]) => string> {
  if (output === 'json') return (rows) => rows.map((row) => `${toJson(row)}\n`).join('')
  const { faint } = await styleFor(colors(stdout))
  let widths: number[] | undefined
  return (rows) => {
    const cut = rows.map(cellsOf).map((row) => [...row.slice(0, -1).map((cell) => cutTo(maxCellWidth, begin(cell))), row.at(-1) ?? ''])
    const fitted = widen(widths ?? titles.map((title) => title.length), cut)
    const start = fitted.slice(0, -1).reduce((sum, width) => sum + width + gap.length, 0)
    const lineOf = (row: string[]) => {
      const cells = row.slice(0, -1).map((cell, column) => pad(cell, fitted[column] ?? 0) + gap)
      const last = wrap(row.at(-1) ?? '', stdout.isTerminal ? stdout.columns - start : Infinity)
      return `${cells.join('')}${last.join(`\n${' '.repeat(start)}`)}`.trimEnd()
    }
    const header = widths === undefined ? [faint(lineOf(titles))] : []
    widths = fitted
    return [...header, ...cut.map(lineOf)].map((text) => `${text}\n`).join('')
  }
}

const gap = '  '

/** columns of a name, a tag or a cell where no terminal says how many: each row of a page is padded to the widest */
const maxCellWidth = 1000

/** The beginning of a text, with all that its column can show: measuring a long one costs no more. */
function begin(text: string, columns = maxCellWidth): string {
  const end = 8 * columns
  return text.length <= end ? text : `${text.slice(0, end).toWellFormed()}…`
}

function widen(widths: number[], rows: string[][]): number[] {
  return widths.map((width, column) => rows.reduce((widest, row) => Math.max(widest, widthOf(row[column] ?? '')), width))
}

/** Shares what the id leaves of a line among the texts: the narrow ones keep their width, the others are cut to the same one. */
function share(fields: readonly FieldName[], widths: number[], columns: number | undefined): number[] {
  const texts = [...widths.entries()].filter(([column]) => fields[column] !== 'id')
  const ids = widths.reduce((sum, width, column) => (fields[column] === 'id' ? sum + width : sum), 0)
  let room = columns === undefined ? Infinity : Math.max(columns - ids - (fields.length - 1) * gap.length, 4 * texts.length)
  const fitted = [...widths]
  for (const [index, [column, width]] of texts.toSorted(([, a], [, b]) => a - b).entries()) {
    const most = Math.min(width, Math.floor(room / (texts.length - index)), columns === undefined ? maxCellWidth : Infinity)
    fitted[column] = most
    room -= most
  }
  return fitted
}

/** Ids end at the same column, texts begin there. */
function align(field: FieldName | undefined, text: string, width = 0): string {
  return field === 'id' ? text.padStart(width) : pad(cutTo(width, text), width)
}

function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(width - widthOf(text), 0))
}

/** Cuts between grapheme clusters, so that no letter loses its accent. */
function cutTo(width: number, text: string): string {
  if (widthOf(text) <= width) return text
  let kept = ''
  let left = width - 1
  for (const { segment } of segmenter.segment(text)) {
    left -= widthOf(segment)
    if (left < 0) break
    kept += segment
  }
  return `${kept}…`
}

const segmenter = new Intl.Segmenter()

/** Measured in slices, because the time that clusters take grows with the square of the length. */
function widthOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length
  let width = 0
  for (let at = 0; at < text.length; at += 1000) width += stringWidth(text.slice(at, at + 1000))
  return width
}
