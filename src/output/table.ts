import stringWidth from 'string-width'
import { type NewPlant, plantFields, textFields } from '../plant/fields.js'
import { toJson } from '../plant/json.js'
import type { Io, Output } from '../platform/io.js'
import { type OutputStyle, quoteIfNeeded, type Style, styleFor, wrap } from './output.js'

/**
 * Makes the rows of an aligned table, a page of plants at a time. The first page decides the widths, in columns of a
 * terminal, and a later one can only widen them. What does not fit is cut and ends with "…".
 *
 * @param columns width of the terminal; undefined when there is none, and only what is longer than `widestCell` is cut
 */
export function plantTable(columns: number | undefined, style: Style): (page: NewPlant[]) => string {
  let widths: number[] | undefined
  return (page) => {
    const rows = page.map((plant) => [String(plant.id), ...textFields.map(({ name }) => cellOf(plant[name], columns))])
    const isFirst = widths === undefined
    const fitted = share(widen(widths ?? titles.map((title) => title.length), rows), columns)
    widths = fitted
    const header = isFirst ? [style.faint(line(titles, fitted))] : []
    return [...header, ...rows.map((row) => line(row, fitted))].map((text) => `${text}\n`).join('')
  }
}

/**
 * Makes text of rows, a page at a time: lines of JSON for programs, the rows of a table for people.
 *
 * @param cellsOf the cells of a row, as they may be shown
 */
export async function rowFormatter<Row extends object>(
  titles: string[],
  cellsOf: (row: Row) => string[],
  { output, colors }: Pick<OutputStyle, 'output' | 'colors'>,
  io: Io,
): Promise<(rows: Row[]) => string> {
  if (output === 'json') return (rows) => rows.map((row) => `${toJson(row)}\n`).join('')
  const table = textTable(titles, await styleFor(colors(io.stdout)), io.stdout)
  return (rows) => table(rows.map(cellsOf))
}

/**
 * Makes the rows of a table whose columns are as wide as what is in them, up to `widestCell`, a page at a time: a later page can
 * only widen them. What does not fit of the last one goes on below.
 *
 * @param output where it goes to; on a terminal its width counts
 */
function textTable(titles: string[], style: Style, { isTerminal, columns }: Output): (rows: string[][]) => string {
  const widths = titles.map((title) => title.length)
  let isFirst = true
  return (rows) => {
    const cut = rows.map((row) => row.map((cell, column) => (column === row.length - 1 ? cell : cutTo(widestCell, begin(cell)))))
    for (const row of cut) for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, widthOf(cell))
    const start = widths.slice(0, -1).reduce((sum, width) => sum + width + gap.length, 0)
    const lineOf = (row: string[]) => {
      const cells = row.slice(0, -1).map((cell, column) => pad(cell, widths[column] ?? 0) + gap)
      const last = wrap(row.at(-1) ?? '', isTerminal ? columns - start : Infinity)
      return `${cells.join('')}${last.join(`\n${' '.repeat(start)}`)}`.trimEnd()
    }
    const header = isFirst ? [style.faint(lineOf(titles))] : []
    isFirst = false
    return [...header, ...cut.map(lineOf)].map((text) => `${text}\n`).join('')
  }
}

const titles = plantFields.map(({ name }) => name.toUpperCase())
const gap = '  '

/** columns of a name, a tag or a cell where no terminal says how many: each row of a page is padded to the widest */
const widestCell = 1000

/** As much of a text as could ever be seen in its column, so that a long one costs no more. */
function begin(text: string, columns = widestCell): string {
  const end = 8 * columns
  return text.length <= end ? text : `${text.slice(0, end).toWellFormed()}…`
}

function cellOf(text: string | undefined, columns: number | undefined): string {
  return text === undefined ? '' : quoteIfNeeded(begin(text, columns))
}

function widen(widths: number[], rows: string[][]): number[] {
  return widths.map((width, column) => rows.reduce((widest, row) => Math.max(widest, widthOf(row[column] ?? '')), width))
}

/** Shares what the id leaves of a line among the texts: the narrow ones keep their width, the others are cut to the same one. */
function share([id = 0, ...texts]: number[], columns: number | undefined): number[] {
  if (columns === undefined) return [id, ...texts.map((width) => Math.min(width, widestCell))]
  let room = Math.max(columns - id - texts.length * gap.length, 4 * texts.length)
  const fitted = new Map<number, number>()
  const narrowFirst = [...texts.entries()].toSorted(([, a], [, b]) => a - b)
  for (const [index, [column, width]] of narrowFirst.entries()) {
    const most = Math.min(width, Math.floor(room / (texts.length - index)))
    fitted.set(column, most)
    room -= most
  }
  return [id, ...texts.map((width, column) => fitted.get(column) ?? width)]
}

function line([id = '', ...texts]: string[], [idWidth = 0, ...widths]: number[]): string {
  const cells = texts.map((text, column) => pad(cutTo(widths[column] ?? 0, text), widths[column] ?? 0))
  return [id.padStart(idWidth), ...cells].join(gap).trimEnd()
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
