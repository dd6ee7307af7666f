import type { FormatReader } from '../formats/chunk.js'

/** Describes what a person may miss in the store after an input is read to its end. */
export function describeUnreadCells({ header, mergedCells }: FormatReader, file: string): string[] {
  const warnings: string[] = []
  const { rowsAbove = 0, line } = header ?? {}
  if (rowsAbove > 0) {
    const rows = rowsAbove === 1 ? '1 row' : `${rowsAbove} rows`
    warnings.push(
      `The header is in line ${line} of ${file}. Not read above it: ${rows}. ` +
        'If plants are there, move the header to line 1, and run the command again',
    )
  }
  const { firstRange } = mergedCells ?? {}
  if (firstRange !== undefined)
    warnings.push(
      `${file} has merged cells, such as ${firstRange}. Only the first cell of each has a value`,
    )
  return warnings
}
