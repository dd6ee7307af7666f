import stringWidth from 'string-width'
import type { Output } from '../platform/io.js'

/** Fits a terminal. The first page sets the widths of the columns; later pages can only widen them. */
export function tableOf<Row>(
  titles: string[],
  cellsOf: (row: Row) => string[],
  { faint }: { faint(text: string): string },
  stdout: Output,
) {
  const columns = stdout.isTerminal ? stdout.columns : undefined
  let widths: number[] | undefined
  return (page: Row[]): string => {
    const rows = page.map((row) => cellsOf(row).map(prefixOf))
    const widest = (widths ?? titles.map(widthOf)).map((width, column) =>
      Math.max(width, ...rows.map((row) => widthOf(row[column] ?? ''))),
    )
    const fitted = fitWidths(titles, widest, columns)
    const lineOf = (row: string[]) => {
      const cells = row.map((text, column) => {
        const width = fitted[column] ?? 0
        if (isNumber(titles[column])) return text.padStart(width)
        const shown = truncate(width, text)
        return shown + ' '.repeat(width - widthOf(shown))
      })
      return `${cells.join(gap).trimEnd()}\n`
    }
    const header = widths === undefined ? `${faint(lineOf(titles).trimEnd())}\n` : ''
    widths = fitted
    return header + rows.map(lineOf).join('')
  }
}

/** Joins the first pages, with up to 1000 of `rows`, which set the widths of a table. */
export async function* withFirstRows<Row>(pages: AsyncIterable<Row[]>, rows = 200): AsyncGenerator<Row[]> {
  let first: Row[] | undefined = []
  for await (const page of pages) {
    if (!first) yield page
    else if (first.push(...page) >= Math.min(rows, 1000)) {
      yield first
      first = undefined
    }
  }
  if (first && first.length > 0) yield first
}

const gap = '  '

/** Whether a column with this title is aligned to the right, and never truncated. */
function isNumber(title: string | undefined): boolean {
  return title === 'ID' || title === 'COUNT'
}

/** Each row of a page is padded to the widest. */
const maxCellWidth = 1000

/** Measuring a long text is slow. */
function prefixOf(text: string): string {
  const end = 8 * maxCellWidth
  return text.length <= end ? text : `${text.slice(0, end).toWellFormed()}…`
}

/**
 * Divides the line, less the numbers, among the other columns: narrow ones keep their width, the others get equal widths.
 */
function fitWidths(titles: string[], widths: number[], columns: number | undefined): number[] {
  const texts = [...widths.entries()].filter(([column]) => !isNumber(titles[column]))
  const numbers = widths.reduce((sum, width, column) => (isNumber(titles[column]) ? sum + width : sum), 0)
  let room =
    columns === undefined ? Infinity : Math.max(columns - numbers - (titles.length - 1) * gap.length, 4 * texts.length)
  const fitted = [...widths]
  for (const [index, [column, width]] of texts.toSorted(([, a], [, b]) => a - b).entries()) {
    const maximum = Math.min(width, Math.floor(room / (texts.length - index)), maxCellWidth)
    fitted[column] = maximum
    room -= maximum
  }
  return fitted
}

/** Truncates between grapheme clusters, so that no letter loses its accent. */
function truncate(width: number, text: string): string {
  if (widthOf(text) <= width) return text
  let kept = ''
  let left = width - 1
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    left -= widthOf(segment)
    if (left < 0) break
    kept += segment
  }
  return `${kept}…`
}

/** In columns of a terminal. Measures slices, because the time of `stringWidth` grows with the square of the length. */
function widthOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length
  let width = 0
  for (let at = 0; at < text.length; at += 1000) width += stringWidth(text.slice(at, at + 1000))
  return width
}
