import type { ColumnAnswers } from '../../fields/column-answers.js'
import { askForColumns } from '../../fields/column-questions.js'
import { findHeader, findLikeliestHeader } from '../../fields/header.js'
import type { Sample } from '../../fields/missing-fields.js'
import type { ImportPlan } from '../../import/inputs.js'
import type { Io } from '../../platform/io.js'
import { askForColumn, askForSheet } from './questions.js'

/**
 * Asks for the sheet and the columns that the options do not name.
 *
 * @returns undefined if no answer about columns would help
 */
export async function askForSheetAndColumns(
  { noun, heads }: Sample,
  plan: ImportPlan,
  io: Io,
): Promise<ColumnAnswers | undefined> {
  if (plan.columns) return undefined
  const filledHeads = heads.filter(({ rows }) => rows.length > 0)
  const sheet = filledHeads.length > 1 ? await askForSheet(filledHeads, io) : undefined
  const head = filledHeads.find((filledHead) => filledHead.sheet === sheet) ?? filledHeads[0]
  if (!head) return undefined
  const { rows } = head
  const headerRow = findHeader(rows, plan)?.row ?? findLikeliestHeader(rows)
  const questions = askForColumns({ noun, rows, headerRow }, plan)
  let step = questions.next()
  while (!step.done) step = questions.next(await askForColumn(step.value, io))
  return sheet === undefined || !step.value ? step.value : { sheet, ...step.value }
}
