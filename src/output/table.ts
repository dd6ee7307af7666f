import type { FieldName, NewPlant } from '../plant/fields.js'
import type { Io } from '../platform/io.js'
import { type OutputStyle, quoteIfNeeded, type Style, styleFor, wrap } from './output.js'
import { widthOf } from './width.js'

/**
 * Formats plants as an aligned table, one page at a time. The first page sets the column widths, and later pages can only widen them.
 * Texts that do not fit the terminal, or `maxCellWidth` without one, are truncated and end with "…".
 */
export function plantTable(columns: number | undefined, style: Style, fields: readonly FieldName[]): (page: NewPlant[]) => string {
  const titles = fields.map((name) => name.toUpperCase())
  let widths: number[] | undefined
  return (page) => {
    const cellOf = (text: string | undefined) => (text === undefined ? '' : quoteIfNeeded(prefixOf(text, columns)))
    const rows = page.map((plant) => fields.map((name) => (name === 'id' ? String(plant.id) : cellOf(plant[name]))))
    const fitted = fitWidths(fields, widen(widths ?? titles.map((title) => title.length), rows), columns)
    const align = (text: string, column: number) => {
      const width = fitted[column] ?? 0
      return fields[column] === 'id' ? text.padStart(width) : pad(truncate(width, text), width)
    }
    const lineOf = (row: string[]) => row.map(align).join(gap).trimEnd()
    const header = widths === undefined ? [style.faint(lineOf(titles))] : []
    widths = fitted
    return [...header, ...rows.map(lineOf)].map((text) => `${text}\n`).join('')
  }
}

/**
 * Joins the first pages of a table, because they set its widths: up to 200 rows, or for half a second, so that a slow search shows
 * what it has found.
 */
export async function* withFirstRows<Row>(pages: AsyncGenerator<Row[]>): AsyncGenerator<Row[]> {
  const first: Row[] = []
  let timer: NodeJS.Timeout | undefined
  const isLate = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, 500)
  })
  const read = () => {
    const page = pages.next()
    page.catch(() => undefined) // it is awaited below, perhaps only after a slow write
    return page
  }
  let next = read()
  try {
    while (first.length < 200) {
      const page = await Promise.race([next, isLate])
      if (!page || page.done) break
      first.push(...page.value)
      next = read()
    }
    if (first.length > 0) yield first
    for (let page = await next; !page.done; page = await pages.next()) yield page.value
  } finally {
    clearTimeout(timer)
    await pages.return(undefined)
  }
}

/**
 * Formats rows as a table, one page at a time. Columns are as wide as their content, up to `maxCellWidth`, and later
 * pages can only widen them. The last column is wrapped to the terminal.
 */
export async function rowTable<Row extends object>(
  titles: string[],
  cellsOf: (row: Row) => string[],
  { colors }: Pick<OutputStyle, 'colors'>,
  { stdout }: Io,
): Promise<(rows: Row[]) => string> {
  const { faint } = await styleFor(colors(stdout))
  let widths: number[] | undefined
  return (rows) => {
    const shown = rows
      .map(cellsOf)
      .map((row) => [...row.slice(0, -1).map((cell) => truncate(maxCellWidth, prefixOf(cell))), row.at(-1) ?? ''])
    const fitted = widen(widths ?? titles.map((title) => title.length), shown)
    const start = fitted.slice(0, -1).reduce((sum, width) => sum + width + gap.length, 0)
    const lineOf = (row: string[]) => {
      const cells = row.slice(0, -1).map((cell, column) => pad(cell, fitted[column] ?? 0) + gap)
      const last = wrap(row.at(-1) ?? '', stdout.isTerminal ? stdout.columns - start : Infinity, widthOf)
      return `${cells.join('')}${last.join(`\n${' '.repeat(start)}`)}`.trimEnd()
    }
    const header = widths === undefined ? [faint(lineOf(titles))] : []
    widths = fitted
    return [...header, ...shown.map(lineOf)].map((text) => `${text}\n`).join('')
  }
}

const gap = '  '

/** The maximum width of a cell without a terminal: each row of a page is padded to the widest. */
const maxCellWidth = 1000

/** The part of a text that its column can show, so that measuring a long text is cheap. */
function prefixOf(text: string, columns = maxCellWidth): string {
  const end = 8 * columns
  return text.length <= end ? text : `${text.slice(0, end).toWellFormed()}…`
}

function widen(widths: number[], rows: string[][]): number[] {
  return widths.map((width, column) => rows.reduce((widest, row) => Math.max(widest, widthOf(row[column] ?? '')), width))
}

/** Divides the line, less the id, among the text columns: narrow ones keep their width, the others get equal widths. */
function fitWidths(fields: readonly FieldName[], widths: number[], columns: number | undefined): number[] {
  const texts = [...widths.entries()].filter(([column]) => fields[column] !== 'id')
  const ids = widths.reduce((sum, width, column) => (fields[column] === 'id' ? sum + width : sum), 0)
  let room = columns === undefined ? Infinity : Math.max(columns - ids - (fields.length - 1) * gap.length, 4 * texts.length)
  const fitted = [...widths]
  for (const [index, [column, width]] of texts.toSorted(([, a], [, b]) => a - b).entries()) {
    const maximum = Math.min(width, Math.floor(room / (texts.length - index)), columns === undefined ? maxCellWidth : Infinity)
    fitted[column] = maximum
    room -= maximum
  }
  return fitted
}

function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(width - widthOf(text), 0))
}

/** Truncates between grapheme clusters, so that no letter loses its accent. */
function truncate(width: number, text: string): string {
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
