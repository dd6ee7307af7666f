import type { Output } from '../platform/io.js'
import { widthOf, wrap } from './width.js'

interface Layout<Row> {
  titles: string[]
  cellsOf(row: Row): string[]
  /** whether the last column is wrapped to the terminal; otherwise cells are truncated to fit it, and end with "…" */
  isWrapped: boolean
  /** the style of the titles */
  style: { faint(text: string): string }
}

/** Formats rows as a table, page by page. The first page sets the widths of the columns, and later pages can only widen them. */
export function tableOf<Row>({ titles, cellsOf, isWrapped, style }: Layout<Row>, stdout: Output) {
  const columns = stdout.isTerminal ? stdout.columns : undefined
  let widths: number[] | undefined
  return (page: Row[]): string => {
    const rows = page.map((row) => cellsOf(row).map(prefixOf))
    const widest = (widths ?? titles.map(widthOf)).map((width, column) => Math.max(width, ...rows.map((row) => widthOf(row[column] ?? ''))))
    const fitted = fitWidths(titles, widest, isWrapped ? undefined : columns)
    const start = fitted.slice(0, -1).reduce((sum, width) => sum + width + gap.length, 0)
    const lineOf = (row: string[]) => {
      const cells = row.map((text, column) => {
        const width = fitted[column] ?? 0
        if (titles[column] === idTitle) return text.padStart(width)
        if (isWrapped && column === row.length - 1) return wrap(text, (columns ?? 0) - start).join(`\n${' '.repeat(start)}`)
        const shown = truncate(width, text)
        return shown + ' '.repeat(width - widthOf(shown))
      })
      return `${cells.join(gap).trimEnd()}\n`
    }
    const header = widths === undefined ? `${style.faint(lineOf(titles).trimEnd())}\n` : ''
    widths = fitted
    return header + rows.map(lineOf).join('')
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

const gap = '  '

/** the title of a column that is aligned to the right, and never truncated */
const idTitle = 'ID'

/** The maximum width of a cell without a terminal: each row of a page is padded to the widest. */
const maxCellWidth = 1000

/** The part of a text that a column can show, so that measuring a long text is cheap. */
function prefixOf(text: string): string {
  const end = 8 * maxCellWidth
  return text.length <= end ? text : `${text.slice(0, end).toWellFormed()}…`
}

/** Divides the line, less the id, among the other columns: narrow ones keep their width, the others get equal widths. */
function fitWidths(titles: string[], widths: number[], columns: number | undefined): number[] {
  const texts = [...widths.entries()].filter(([column]) => titles[column] !== idTitle)
  const id = widths[titles.indexOf(idTitle)] ?? 0
  let room = columns === undefined ? Infinity : Math.max(columns - id - (titles.length - 1) * gap.length, 4 * texts.length)
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
  for (const { segment } of segmenter.segment(text)) {
    left -= widthOf(segment)
    if (left < 0) break
    kept += segment
  }
  return `${kept}…`
}

const segmenter = new Intl.Segmenter()
