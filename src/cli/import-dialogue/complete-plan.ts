/*
 * The dialogue of an import. On a terminal, it asks for what an import cannot find in the files,
 * such as the column of the names. It adds the answers to the plan as the options that have the
 * same meaning, and then the import runs like any other.
 *
 * The dialogue begins only if the import could not open the files, or found no id in the first
 * records. So it asks for nothing that an import finds by itself. If no answer helps, the import
 * ends as it would without the dialogue.
 *
 * At its end, a dry run shows what the import would do. The dialogue then shows the command that
 * asks no questions, and asks whether to import. Nothing is stored before this last answer.
 */
import type { PlantsError } from '../../errors.js'
import type { ImportPlan } from '../../import/inputs.js'
import { formatPlantCount } from '../../plant/plant.js'
import type { CommandContext } from '../context.js'
import { applyAnswers, type ImportAnswers, sampleInput } from './answers.js'
import { askForColumns } from './ask-columns.js'
import { askForFileEncoding } from './ask-encoding.js'
import { buildCommandLine } from './command-line.js'
import { askToImport, showLines } from './questions.js'

interface DialogueOptions {
  plan: ImportPlan
  /** The error with which the import would end; undefined if it would reject all records. */
  failure: PlantsError | undefined
  context: CommandContext
  /** The arguments after the name of the program. */
  argv: readonly string[]
  /** Shows what the plan would do, and returns how many plants it would create or change. */
  showOutcomes: (plan: ImportPlan) => Promise<number>
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
  const { plan, failure, context, argv, showOutcomes, prepareUndo } = options
  const answers = await askForAnswers(plan, failure, context)
  if (Object.keys(answers).length === 0) return plan
  const complete = applyAnswers(plan, answers)
  const count = plan.dryRun ? 0 : await showOutcomes(complete)
  const command = buildCommandLine(argv, answers)
  await showLines(['The same without questions:', `  ${command}`], context.io)
  if (count === 0) return complete
  await prepareUndo()
  await askToImport(describeQuestion(count, context), context.io)
  return complete
}

async function askForAnswers(
  plan: ImportPlan,
  failure: PlantsError | undefined,
  context: CommandContext,
): Promise<ImportAnswers> {
  const { io } = context
  const encoding = await askForFileEncoding(plan, io)
  const answers: ImportAnswers = encoding === undefined ? {} : { encoding }
  const readablePlan = applyAnswers(plan, answers)
  const { sample, failure: columnsFailure } = await sampleInput(readablePlan, io)
  const columnAnswers = await askForColumns(sample, readablePlan, context)
  const remainingFailure = encoding === undefined ? failure : columnsFailure
  if (!columnAnswers && remainingFailure) throw remainingFailure
  return { ...answers, ...columnAnswers }
}

function describeQuestion(count: number, context: CommandContext): string {
  const store = context.describeStore()
  return `Import ${formatPlantCount(count)}${store === undefined ? '' : ` into ${store}`}?`
}
