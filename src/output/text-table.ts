import truncatedWidth from 'fast-string-truncated-width'
import type { Output } from '../platform/io.js'
import type { Style } from './output.js'

/**
 * Returns a function that lays out one page of rows after the other. The first page sets the widths
 * of the columns, and later ones can only widen them. On a terminal, a text that is too wide is
 * truncated. Elsewhere it moves the rest of its line to the right.
 */
export function formatTable<Row>(
  titles: string[],
  getCells: (row: Row) => string[],
  { faint }: Pick<Style, 'faint'>,
  { isTerminal, columns }: Pick<Output, 'isTerminal' | 'columns'>,
): (page: Row[]) => string {
  const heading = titles.map(measureText)
  let widths = heading.map(({ width }) => width)
  let isFirst = true
  const formatLine = (row: MeasuredText[]) => {
    const cells = row.map((cell, column) => {
      const width = widths[column] ?? 0
      if (isNumber(titles[column])) return cell.text.padStart(width)
      const fitted = isTerminal ? truncateText(cell, width) : cell
      return fitted.text + ' '.repeat(Math.max(0, width - fitted.width))
    })
    return cells.join(gap).trimEnd()
  }
  return (page) => {
    const rows = page.map((row) => getCells(row).map(measureText))
    widths = widths.map((width, column) =>
      rows.reduce((widest, row) => Math.max(widest, row[column]?.width ?? 0), width),
    )
    if (isTerminal) widths = fitWidths(widths, titles, columns)
    const head = isFirst ? `${faint(formatLine(heading))}\n` : ''
    isFirst = false
    return head + rows.map((row) => `${formatLine(row)}\n`).join('')
  }
}

const gap = '  '

/**
 * A text with its width in columns of a terminal. It is measured only once, because that takes most
 * of the time of a table.
 */
interface MeasuredText {
  text: string
  width: number
}

/** Rows are padded to the widest one, and a name may be a mebibyte long. */
const maxWidth = 1000

function measureText(text: string): MeasuredText {
  return { text, width: Math.min(truncatedWidth(takeBeginning(text)).width, maxWidth) }
}

/** Cuts a text, because the library is slow on long ones. */
function takeBeginning(text: string): string {
  return text.slice(0, 2 * maxWidth)
}

function truncateText(cell: MeasuredText, maxColumns: number): MeasuredText {
  if (cell.width <= maxColumns) return cell
  const text = takeBeginning(cell.text)
  const { index } = truncatedWidth(text, {
    limit: maxColumns,
    ellipsis: '…',
    ellipsisWidth: 1,
  })
  // The library counts a rare ideograph as one code unit, and so may cut it in two.
  return measureText(`${text.slice(0, index).replace(/[\ud800-\udbff]$/, '')}…`)
}

/** Whether a column has numbers, which are aligned to the right and never truncated. */
function isNumber(title: string | undefined): boolean {
  return title === 'ID' || title === 'COUNT'
}

/** Narrows the widest columns to the same width until the line fits. */
function fitWidths(widths: number[], titles: string[], columns: number): number[] {
  const capWidths = (cap: number) =>
    widths.map((width, column) => (isNumber(titles[column]) ? width : Math.min(width, cap)))
  const measureLine = (line: number[]) =>
    line.reduce((sum, width) => sum + width, (line.length - 1) * gap.length)
  let cap = maxWidth
  while (cap > 4 && measureLine(capWidths(cap)) > columns) cap -= 1
  return capWidths(cap)
}
