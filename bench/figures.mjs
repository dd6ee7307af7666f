import { appendFileSync } from 'node:fs'

/**
 * Adds figures to the file that `npm run bench` makes its page from; without that file, does nothing.
 *
 * @param name of the part that they belong to
 * @param figures a table has a `title` and `rows`, each with a `title` of its own; what was not measured is not a
 *   number
 */
export function note(name, figures) {
  const file = process.env.BENCH_FIGURES
  const round = (_, value) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value)
  if (file) appendFileSync(file, `${JSON.stringify({ name, figures }, round)}\n`)
}

/** Prints rows of text, the first column to the left and the others to the right. */
export function printColumns(rows) {
  const widths = rows[0].map((_, index) => Math.max(...rows.map((row) => row[index].length)))
  for (const row of rows) {
    const cells = row.map((cell, index) => (index ? cell.padStart(widths[index]) : cell.padEnd(widths[0])))
    print(cells.join('  ').trimEnd())
  }
}

export function median(values) {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]
}

/** What could not be measured is a dash. */
export function textOf(value, digits) {
  return Number.isFinite(value) ? value.toFixed(digits) : '-'
}

export function print(line) {
  process.stdout.write(`${line}\n`)
}
