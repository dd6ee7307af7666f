import { assertDefined } from '../errors.js'
import type { FormatReader, Header } from '../formats/chunk.js'
import { describeColumnNumbers, listNames } from '../formats/columns.js'
import type { ImportPlan } from '../import/inputs.js'
import type { FieldName } from '../plant/fields.js'
import { describeRepetition } from './describe-repetition.js'

/** Describes what a person may miss in the store after an input is read to its end. */
export function describeUnreadCells(
  { header, mergedFields }: FormatReader,
  file: string,
  plan: ImportPlan,
): string[] {
  const warnings: string[] = []
  if (header?.rowsAbove) warnings.push(describeRowsAbove(header, file, plan))
  if (header && mergedFields?.size)
    warnings.push(describeMergedCells(header, mergedFields, file, plan))
  return warnings
}

function describeRowsAbove({ rowsAbove, line }: Header, file: string, plan: ImportPlan): string {
  const isOnlyOne = rowsAbove === 1
  const clause = isOnlyOne
    ? '1 row above it was not read'
    : `${rowsAbove} rows above it were not read`
  const condition = isOnlyOne ? 'it is a plant' : 'they are plants'
  return (
    `The header is in line ${line} of ${file}, and ${clause}. ` +
    `If ${condition}, move the header to line 1, and ${describeRepetition(plan)}`
  )
}

function describeMergedCells(
  { columns, names }: Header,
  mergedFields: ReadonlySet<FieldName>,
  file: string,
  plan: ImportPlan,
): string {
  const numbers = describeColumnNumbers(names)
  const mergedColumns = [...columns]
    .filter(([field]) => mergedFields.has(field))
    .map(([, column]) => names[column] || assertDefined(numbers[column]))
  const list = listNames(mergedColumns)
  const subject =
    mergedColumns.length === 1
      ? `The column ${list} of ${file} has merged cells`
      : `The columns ${list} of ${file} have merged cells`
  // The plants with an empty field are stored, except in a dry run, and must be changed.
  const mustUpdate = plan.ifExists !== 'update' && !plan.dryRun
  const repeat = describeRepetition(plan, mustUpdate ? ' --if-exists update' : '')
  return (
    `${subject}, and only the first row of each has a value. To fill the other rows, ` +
    `unmerge the cells in a spreadsheet, enter a value in each row, and ${repeat}`
  )
}
