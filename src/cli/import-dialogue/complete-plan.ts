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
import type { PlantsError } from '../../errors.js'
import { countStoredRecords } from '../../import/counts.js'
import type { ImportPlan } from '../../import/inputs.js'
import type { CommandContext } from '../context.js'
import { describeStore } from '../open-store.js'
import { applyAnswers, type ImportAnswers, sampleInput } from './answers.js'
import { askForSheetAndColumns } from './ask-columns.js'
import { askForFileEncoding } from './ask-encoding.js'
import { askForPolicy, type Comparison } from './ask-policy.js'
import { buildCommandLine } from './command-line.js'
import { describePreview, type ImportPreview } from './describe-preview.js'
import { askToImport, showLines } from './questions.js'

interface DialogueOptions {
  plan: ImportPlan
  /** The error with which the import would end. */
  failure: PlantsError | undefined
  /** Whether the import would reject the first records, because none of them has an id. */
  lacksIds: boolean
  context: CommandContext
  /** The arguments after the name of the program. */
  argv: readonly string[]
  /** How the list differs from the store, as far as that is known without the answers. */
  comparison: Comparison | undefined
  compare: (plan: ImportPlan) => Promise<Comparison | undefined>
  /** Shows what the plan would do. */
  showOutcomes: (plan: ImportPlan) => Promise<ImportPreview>
  /** Copies what the store has, before a person is asked whether to import. */
  prepareUndo: () => Promise<void>
}

/**
 * Asks for what the plan lacks.
 *
 * @throws {PlantsError} `interrupted` if a person does not answer, and the failure if no answer
 * would prevent it
 */
export async function completePlan(options: DialogueOptions): Promise<ImportPlan> {
  const { plan, context, argv, showOutcomes, prepareUndo } = options
  const answers = await askForAnswers(options)
  const hasAnswers = Object.keys(answers).length > 0
  if (!hasAnswers && !plan.sync) return plan
  const complete = applyAnswers(plan, answers)
  const preview = plan.dryRun ? undefined : await showOutcomes(complete)
  const command = buildCommandLine(argv, answers)
  if (hasAnswers) await showLines(['The same without questions:', `  ${command}`], context.io)
  if (!preview || !mayChangeStore(preview)) return complete
  await prepareUndo()
  if (!plan.yes) await askLastQuestion(preview, context)
  return complete
}

function mayChangeStore({ counts }: ImportPreview): boolean {
  return countStoredRecords(counts) + counts.deleted > 0
}

async function askLastQuestion(preview: ImportPreview, context: CommandContext): Promise<void> {
  const store = describeStore(context)
  const question = `Import ${describePreview(preview)}${store === undefined ? '' : ` into ${store}`}?`
  // What deletes plants is not one Enter away.
  await askToImport(question, preview.counts.deleted > 0 ? 'no' : 'yes', context.io)
}

async function askForAnswers(options: DialogueOptions): Promise<ImportAnswers> {
  const { plan, failure, lacksIds, context, compare } = options
  const mustAsk = failure !== undefined || lacksIds
  const answers = mustAsk ? await askHowToRead(plan, failure, context) : {}
  const comparison = mustAsk ? await compare(applyAnswers(plan, answers)) : options.comparison
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
