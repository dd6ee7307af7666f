/*
 * Formats Markdown as text for a terminal. The pages of `docs` use only a part of Markdown, in
 * which a paragraph, an item of a list and a row of a table are one line each. So no parser is
 * needed, and most of what is here is the layout, which parsers leave to their callers.
 */

/** Matches what a terminal does not show: comments and pictures. */
const invisible = /<!--.*?-->\s*|!\[[^\]]*\]\([^)]*\)\s*/gs

/** Matches the blocks of a page: code, a table, a heading, and a line of text. */
const block =
  /^(?<indent> *)```\w*\n(?<code>.*?)\n\k<indent>```$|^(?<table>\|[^\n]*(?:\n\|[^\n]*)*)$|^(?<level>#+) (?<title>[^\n]*)$|^(?<text>[^\n]+)$/gms

type Block = Partial<Record<'code' | 'table' | 'level' | 'title' | 'text', string>>

/** Returns the words of a link. No-break spaces keep them on one line. */
type FormatLink = (label: string, target: string) => string

/** @param width the columns of the terminal, of which code may need more */
export function formatMarkdown(markdown: string, width: number, formatLink: FormatLink): string {
  const formatInline = (text: string) =>
    text
      .replaceAll(/\[([^[\]]+)\]\(([^)]*)\)/g, (_, label, target) => formatLink(label, target))
      .replaceAll('**', '')
  const formatBlock = ({ code, table, level = '', title, text = '' }: Block) => {
    if (code !== undefined) return code.replaceAll(/^(?=.)/gm, '  ')
    if (table !== undefined) return formatTable(formatInline(table), width)
    if (title !== undefined)
      return `${title}\n${'=-~'.charAt(level.length - 1).repeat(title.length)}`
    return formatText(formatInline(text), width)
  }
  return markdown
    .replaceAll(invisible, '')
    .replaceAll(block, (...match) => formatBlock(match.at(-1) as Block))
    .replaceAll('\u00a0', ' ')
}

/** Wraps a line below its beginning, or below the text of the item of a list. */
function formatText(line: string, width: number): string {
  const [start = ''] = /^ *(?:- |\d+\. )?/.exec(line) ?? []
  const lines = wrap(line.slice(start.length), width - start.length)
  return start + lines.join(`\n${' '.repeat(start.length)}`)
}

/** Wraps a text at spaces. A word that is longer than a line has a line of its own. */
function wrap(text: string, width: number): string[] {
  return text.match(RegExp(`[^ ].{0,${width - 1}}(?= |$)|[^ ]+`, 'g')) ?? []
}

const gap = '  '

/** Formats a table with wrapped cells or, where its columns would be too narrow, its records. */
function formatTable(source: string, width: number): string {
  const [titles = [], , ...rows] = source.split('\n').map(splitCells)
  const widths = fitColumns([titles, ...rows], width)
  if (widths === undefined) return rows.map((row) => formatRecord(titles, row, width)).join('\n\n')
  const rule = widths.map((columns) => '-'.repeat(columns))
  return [titles, rule, ...rows].map((row) => formatRow(row, widths)).join('\n')
}

function splitCells(row: string): string[] {
  const cells = row.slice(1, -1).split(/(?<!\\)\|/)
  return cells.map((cell) => cell.trim().replaceAll('\\|', '|'))
}

/**
 * Narrows the widest columns to the same width until a row fits. No column becomes narrower than
 * its longest word, and none of the widest narrower than 16.
 *
 * @returns undefined if no row fits
 */
function fitColumns(rows: readonly string[][], width: number): number[] | undefined {
  const measure = (getWidth: (cell: string) => number) =>
    (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => getWidth(row[column] ?? ''))))
  const fullWidths = measure((cell) => cell.length)
  const wordWidths = measure((cell) => Math.max(...cell.split(' ').map(({ length }) => length)))
  for (let cap = width; cap >= 16; cap -= 1) {
    const widths = fullWidths.map((full, column) =>
      Math.max(Math.min(full, cap), wordWidths[column] ?? 0),
    )
    const total = widths.reduce((sum, columns) => sum + columns, gap.length * (widths.length - 1))
    if (total <= width) return widths
  }
  return undefined
}

function formatRow(row: readonly string[], widths: readonly number[]): string {
  const cells = row.map((cell, column) => wrap(cell, widths[column] ?? 0))
  const height = Math.max(...cells.map(({ length }) => length))
  const lines = Array.from({ length: height }, (_, index) =>
    cells.map((cell, column) => (cell[index] ?? '').padEnd(widths[column] ?? 0)).join(gap),
  )
  return lines.map((line) => line.trimEnd()).join('\n')
}

/** Formats a row as its first cell, and below it the others with their titles. */
function formatRecord(titles: readonly string[], row: readonly string[], width: number): string {
  const [name = '', ...cells] = row
  const lines = cells.flatMap((cell, index) =>
    cell === '' ? [] : wrap(`${titles[index + 1]}: ${cell}`, width - gap.length),
  )
  return [...wrap(name, width), ...lines.map((line) => gap + line)].join('\n')
}
