import stringWidth from 'string-width'
import type { NewPlant } from '../plant/plant.js'
import type { Output } from '../platform/io.js'
import { readable, type Style } from './output.js'
import { wrap } from './wrap.js'

/**
 * Makes the rows of an aligned table, a page of plants at a time. The first page decides the widths, in columns of a
 * terminal, and a later one can only widen them. What does not fit is cut and ends with "…".
 *
 * @param columns width of the terminal; undefined when there is none, and only what is longer than `widestCell` is cut
 */
export function plantTable(columns: number | undefined, style: Style): (page: NewPlant[]) => string {
  let widths: Widths | undefined
  return (page) => {
    const rows = page.map(({ id, name, tag }) => ({
      id: String(id),
      name: readable(begin(name, columns)),
      tag: tag === undefined ? '' : readable(begin(tag, columns)),
    }))
    const isFirst = widths === undefined
    const fitted = share(widen(widths ?? headerWidths, rows), columns)
    widths = fitted
    const header = isFirst ? [style.faint(line(titles, fitted))] : []
    return [...header, ...rows.map((row) => line(row, fitted))].map((text) => `${text}\n`).join('')
  }
}

/**
 * Makes the rows of a table whose columns are as wide as what is in them, up to `widestCell`, a page at a time: a later page can
 * only widen them. What does not fit of the last one goes on below.
 *
 * @param output where it goes to; on a terminal its width counts
 */
export function textTable(titles: string[], style: Style, { isTerminal, columns }: Output): (rows: string[][]) => string {
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

interface Row {
  id: string
  name: string
  tag: string
}
type Widths = Record<keyof Row, number>

const titles: Row = { id: 'ID', name: 'NAME', tag: 'TAG' }
const headerWidths: Widths = { id: 2, name: 4, tag: 3 }
const gap = '  '

/** columns of a name, a tag or a cell where no terminal says how many: each row of a page is padded to the widest */
const widestCell = 1000

/** As much of a text as could ever be seen in its column, so that a long one costs no more. */
function begin(text: string, columns = widestCell): string {
  const end = 8 * columns
  return text.length <= end ? text : `${text.slice(0, end).toWellFormed()}…`
}

function widen(widths: Widths, rows: Row[]): Widths {
  const widest = (column: keyof Row) => rows.reduce((width, row) => Math.max(width, widthOf(row[column])), widths[column])
  return { id: widest('id'), name: widest('name'), tag: widest('tag') }
}

/** Shares what the id leaves of a line: the narrower of name and tag keeps its width, the wider one is cut. */
function share(widths: Widths, columns: number | undefined): Widths {
  if (columns === undefined) return { ...widths, name: Math.min(widths.name, widestCell), tag: Math.min(widths.tag, widestCell) }
  const room = Math.max(columns - widths.id - 2 * gap.length, 2 * headerWidths.name)
  if (widths.name + widths.tag <= room) return widths
  const half = Math.floor(room / 2)
  const tag = Math.max(Math.min(widths.tag, half), room - widths.name)
  return { ...widths, tag, name: room - tag }
}

function line({ id, name, tag }: Row, widths: Widths): string {
  const cells = [id.padStart(widths.id), pad(cutTo(widths.name, name), widths.name), cutTo(widths.tag, tag)]
  return cells.join(gap).trimEnd()
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
