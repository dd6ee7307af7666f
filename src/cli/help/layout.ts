import { wrap } from '../../output/output.js'

/** A word and what it means, side by side. */
export interface Row {
  term: string
  meaning: string
}

/** Rows whose meanings begin at the same column, and stay behind it; below a term that leaves no room beside it. */
export function rowsOf(rows: readonly Row[], width: number, column = columnFor(rows, width)): string {
  const indent = `\n${' '.repeat(column)}`
  const beside = (term: string) => (term.length + 4 <= column ? `  ${term}`.padEnd(column) : `  ${term}${indent}`)
  return rows.map(({ term, meaning }) => `${beside(term)}${wrap(meaning, width - column).join(indent)}\n`).join('')
}

/** Where the meanings begin that stand beside the longest of the terms, but in the left half. */
export function columnFor(rows: readonly Row[], width: number): number {
  return Math.max(4, ...rows.map(({ term }) => term.length + 4).filter((column) => column <= width / 2))
}

/** Lines under a title; they stay as they are, since some are for a shell. */
export function section(title: string, lines: string[]): string {
  return `${title}:\n${lines.map((line) => `  ${line}\n`).join('')}`
}

export function paragraph(text: string, width: number): string {
  return `${wrap(text, width).join('\n')}\n`
}
