import type { FormatReader, Header } from '../formats/chunk.js'
import type { ImportPlan } from '../import/inputs.js'

/** Describes what a person may miss in the store after an input is read to its end. */
export function describeUnreadCells(
  { header, mergedCells }: FormatReader,
  file: string,
  plan: ImportPlan,
): string[] {
  const warnings: string[] = []
  if (header?.rowsAbove) warnings.push(describeRowsAbove(header, file, plan))
  const { firstRange } = mergedCells ?? {}
  if (firstRange !== undefined)
    warnings.push(
      `${file} has merged cells, such as ${firstRange}. Only the first cell of each has a value`,
    )
  return warnings
}

function describeRowsAbove({ rowsAbove, line }: Header, file: string, plan: ImportPlan): string {
  const isOnlyOne = rowsAbove === 1
  const clause = isOnlyOne
    ? '1 row above it was not read'
    : `${rowsAbove} rows above it were not read`
  const condition = isOnlyOne ? 'it is a plant' : 'they are plants'
  // The other files of the same command may be unchanged, or may not fit the options.
  const action = plan.inputs.length === 1 ? 'run the command again' : 'import only this file'
  return (
    `The header is in line ${line} of ${file}, and ${clause}. ` +
    `If ${condition}, move the header to line 1, and ${action}`
  )
}
