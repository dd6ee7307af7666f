import type { UnreadSheet } from '../../../formats/chunk.js'
import { listNames } from '../../../formats/columns.js'
import type { ImportPlan } from '../../../import/inputs.js'
import { escapeControlChars } from '../../../platform/escape.js'
import { formatOption } from '../../../platform/shell.js'
import { describeRepetition } from '../../describe-repetition.js'

/**
 * Describes the sheets of a workbook that have rows but were not read, and how to read them.
 *
 * @param sheets at least one sheet
 */
export function describeUnreadSheets(
  file: string,
  sheets: readonly UnreadSheet[],
  plan: ImportPlan,
): string {
  const [first] = sheets
  const isOnlyOne = sheets.length === 1
  const predicate = isOnlyOne ? 'has rows, but was not read' : 'have rows, but were not read'
  const object = isOnlyOne ? 'it' : 'one of them'
  const sheetOption = formatOption('sheet', isOnlyOne && canRepeat(first) ? first?.name : 'NAME')
  return (
    `${listSheets(sheets)} of ${file} ${predicate}. To read ${object}, ` +
    `${describeRepetition(plan, sheetOption)}${describeMapping(sheets)}`
  )
}

/**
 * Whether a command can have the name of a sheet. Spreadsheets allow 31 characters. Only other
 * programs write longer names, or control characters, which would be printed escaped.
 */
function canRepeat(sheet: UnreadSheet | undefined): boolean {
  const { name = '' } = sheet ?? {}
  return name.length <= 31 && escapeControlChars(name) === name
}

const maxSheets = 5

/** Lists the names of sheets: `The sheets "Nord" and "Old" (hidden)`. */
function listSheets(sheets: readonly UnreadSheet[]): string {
  const names = sheets
    .slice(0, maxSheets)
    .map(({ name, isHidden }) => listNames([name]) + (isHidden ? ' (hidden)' : ''))
  const moreCount = sheets.length - names.length
  if (moreCount > 0) names.push(`${moreCount} more`)
  const noun = sheets.length === 1 ? 'sheet' : 'sheets'
  return `The ${noun} ${[names.slice(0, -1).join(', '), names.at(-1)].filter(Boolean).join(' and ')}`
}

/** Describes that `--map` is needed for the sheets whose columns have other names. */
function describeMapping(sheets: readonly UnreadSheet[]): string {
  if (sheets.every(({ hasColumns }) => hasColumns)) return ''
  const verb = sheets.some(({ hasColumns }) => hasColumns)
    ? 'name other columns'
    : 'name its columns'
  return `, and ${verb} with --map`
}
