import type { FormatReader } from '../formats/chunk.js'
import type { ImportPlan } from '../import/inputs.js'
import { describeRepeat } from './describe-repeat.js'

/** Describes what a person may miss in the store after an input is read to its end. */
export function describeUnreadCells(
  { header }: FormatReader,
  file: string,
  plan: ImportPlan,
): string[] {
  const { rowsAbove = 0, line } = header ?? {}
  if (rowsAbove === 0) return []
  const isOnlyOne = rowsAbove === 1
  const clause = isOnlyOne
    ? '1 row above it was not read'
    : `${rowsAbove} rows above it were not read`
  const condition = isOnlyOne ? 'it is a plant' : 'they are plants'
  return [
    `The header is in line ${line} of ${file}, and ${clause}. ` +
      `If ${condition}, move the header to line 1, and ${describeRepeat(plan)}`,
  ]
}
