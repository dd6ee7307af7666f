/*
 * The dialogue of an import. On a terminal, it asks for what an import cannot find in the files,
 * such as the column of the names. It adds the answers to the plan as the options that have the
 * same meaning, and then the import runs like any other.
 *
 * It asks what to do with plants that the store has already only if they differ from the list, or
 * if the list lacks some of them. It asks for columns only if the import could not open the files,
 * or found no id in the first records. So it asks for nothing that an import finds by itself. If no
 * answer helps, the import ends as it would without the dialogue.
 *
 * At its end, a dry run shows what the import would do. The dialogue then shows the command that
 * asks no questions, and asks whether to import. Nothing is stored before this last answer.
 */
import type { PlantsError } from '../../../errors.js'
import type { ColumnAnswers } from '../../../fields/column-answers.js'
import { askForColumns } from '../../../fields/column-questions.js'
import { findHeader, findLikeliestHeader } from '../../../fields/header.js'
import type { Sample } from '../../../fields/missing-fields.js'
import {
  countFinishedRecords,
  countRejectedRecords,
  countStoredRecords,
} from '../../../import/counts.js'
import type { ImportPlan } from '../../../import/inputs.js'
import { formatPlantCount, groupDigits } from '../../../plant/plant.js'
import type { Io } from '../../../platform/io.js'
import type { CommandContext } from '../../context.js'
import {
  applyAnswers,
  buildCommandLine,
  type ImportAnswers,
  sampleInput,
} from '../../import-dialogue/answers.js'
import { askForFileEncoding } from '../../import-dialogue/ask-encoding.js'
import {
  askForColumn,
  askForPolicy,
  askForSheet,
  askToImport,
  type Comparison,
  showLines,
} from '../../import-dialogue/questions.js'
import { describeStore } from '../../open-store.js'
import { compareWithStore, showDryRun } from './preview.js'
import type { ImportReport } from './report.js'
import type { ImportUndo } from './undo.js'

/** Why the dialogue begins. */
interface DialogueReasons {
  /** The error with which the import would end. */
  failure: PlantsError | undefined
  /** Whether the import would reject the first records, because none of them has an id. */
  lacksIds: boolean
  /** How the list differs from the store, as far as that is known without the answers. */
  comparison: Comparison | undefined
}

export interface DialogueTools {
  context: CommandContext
  /** The arguments after the name of the program. */
  argv: readonly string[]
  undo: ImportUndo
  /** Gets what the dialogue prints, so that the import does not print it again. */
  shownLines: Set<string>
}

/**
 * Asks for what the plan lacks.
 *
 * @throws {PlantsError} `interrupted` if a person does not answer, and the failure if no answer
 * would prevent it
 */
export async function completePlan(
  plan: ImportPlan,
  reasons: DialogueReasons,
  { context, argv, undo, shownLines }: DialogueTools,
): Promise<ImportPlan> {
  const answers = await askForAnswers(plan, reasons, context)
  const hasAnswers = Object.keys(answers).length > 0
  if (!hasAnswers && !plan.sync) return plan
  const complete = applyAnswers(plan, answers)
  const preview = plan.dryRun ? undefined : await showDryRun(complete, context, shownLines)
  const command = buildCommandLine(argv, answers)
  if (hasAnswers) await showLines(['The same without questions:', `  ${command}`], context.io)
  if (!preview || countStoredRecords(preview.counts) + preview.counts.deleted === 0) return complete
  // What an undo needs is copied before a person is asked whether to import.
  await undo.prepare()
  if (plan.yes) return complete
  const store = describeStore(context)
  const question = `Import ${describePreview(preview)}${store === undefined ? '' : ` into ${store}`}?`
  // What deletes plants is not one Enter away.
  await askToImport(question, preview.counts.deleted > 0 ? 'no' : 'yes', context.io)
  return complete
}

async function askForAnswers(
  plan: ImportPlan,
  { failure, lacksIds, comparison: knownComparison }: DialogueReasons,
  context: CommandContext,
): Promise<ImportAnswers> {
  const mustAsk = failure !== undefined || lacksIds
  const answers = mustAsk ? await askHowToRead(plan, failure, context) : {}
  const comparison = mustAsk
    ? await compareWithStore(applyAnswers(plan, answers), context)
    : knownComparison
  return comparison ? { ...answers, ...(await askForPolicy(comparison, context.io)) } : answers
}

async function askHowToRead(
  plan: ImportPlan,
  failure: PlantsError | undefined,
  context: CommandContext,
): Promise<ImportAnswers> {
  const { io } = context
  const encoding = await askForFileEncoding(plan, io)
  const answers: ImportAnswers = encoding === undefined ? {} : { encoding }
  const readablePlan = applyAnswers(plan, answers)
  const { sample, failure: columnsFailure } = await sampleInput(readablePlan, io)
  const columnAnswers = await askForSheetAndColumns(sample, readablePlan, io)
  const remainingFailure = encoding === undefined ? failure : columnsFailure
  if (!columnAnswers && remainingFailure) throw remainingFailure
  return { ...answers, ...columnAnswers }
}

/**
 * Describes what an import would do, with all numbers: `288 of 300 plants (286 new, 2 changed; 12
 * rejected: the id is missing)`.
 */
export function describePreview({
  counts,
  rejectionReason,
}: Pick<ImportReport, 'counts' | 'rejectionReason'>): string {
  const { created, updated, deleted } = counts
  const total = countFinishedRecords(counts)
  const stored = countStoredRecords(counts)
  if (created === total && deleted === 0) return formatPlantCount(total)
  const subject = stored === total ? '' : `${groupDigits(stored)} of `
  const changes = Object.entries({ new: created, changed: updated, deleted })
    .filter(([, count]) => count > 0)
    .map(([word, count]) => `${groupDigits(count)} ${word}`)
  const rejected = countRejectedRecords(counts)
  const rejections = rejected > 0 ? [`${groupDigits(rejected)} rejected: ${rejectionReason}`] : []
  return `${subject}${formatPlantCount(total)} (${[changes.join(', '), ...rejections].join('; ')})`
}

/**
 * Asks for the sheet and the columns that the options do not name.
 *
 * @returns undefined if no answer about columns would help
 */
async function askForSheetAndColumns(
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
