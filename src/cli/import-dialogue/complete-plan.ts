/*
 * The dialogue of an import. On a terminal, it asks for what an import cannot find in the files,
 * such as the column of the names. It adds the answers to the plan as the options that have the
 * same meaning, and then the import runs like any other.
 *
 * The dialogue begins only if the import could not open the files. So it asks for nothing that an
 * import finds by itself. If no answer helps, the import ends with the error that it had without
 * the dialogue.
 *
 * At its end, a dry run shows what the import would do. The dialogue then shows the command that
 * asks no questions, and asks whether to import. Nothing is stored before this last answer.
 */
import { assertDefined, type PlantsError } from '../../errors.js'
import { NoListError } from '../../formats/assert-keys.js'
import { EncodingError } from '../../formats/encoding-error.js'
import { applyAnswers, type ImportAnswers } from '../../import/answers.js'
import { type ImportPlan, isInputError, openInput } from '../../import/inputs.js'
import { sampleInput } from '../../import/sample-input.js'
import { formatPlantCount } from '../../plant/plant.js'
import type { Io } from '../../platform/io.js'
import { findNextId } from '../../stores/next-id.js'
import type { CommandContext } from '../context.js'
import { askForColumns } from './ask-columns.js'
import { askForFileEncoding } from './ask-encoding.js'
import { buildCommandLine } from './command-line.js'
import { countNames } from './count-names.js'
import { askToImport, showLines } from './questions.js'

interface DialogueOptions {
  plan: ImportPlan
  /** The error with which the import would end without the dialogue. */
  failure: PlantsError
  context: CommandContext
  /** The arguments after the name of the program. */
  argv: readonly string[]
  /** Shows what the plan would do, and returns how many plants it would create or change. */
  showOutcomes: (plan: ImportPlan) => Promise<number>
}

/**
 * Asks for what the plan lacks.
 *
 * @throws {PlantsError} `interrupted` if a person does not answer, and the failure if no answer
 * would prevent it
 */
export async function completePlan(options: DialogueOptions): Promise<ImportPlan> {
  const { plan, failure, context, argv, showOutcomes } = options
  const answers = await askForAnswers(plan, failure, context)
  const complete = applyAnswers(plan, answers)
  const count = plan.dryRun ? 0 : await showOutcomes(complete)
  const command = buildCommandLine(argv, answers)
  await showLines(['The same without questions:', `  ${command}`], context.io)
  if (count > 0) await askToImport(describeQuestion(count, context), context.io)
  return complete
}

async function askForAnswers(
  plan: ImportPlan,
  failure: PlantsError,
  context: CommandContext,
): Promise<ImportAnswers> {
  const { io } = context
  const encoding = await askForFileEncoding(plan, io)
  const answers: ImportAnswers = encoding === undefined ? {} : { encoding }
  const readablePlan = applyAnswers(plan, answers)
  const remainingFailure = encoding === undefined ? failure : await findFailure(readablePlan, io)
  if (!remainingFailure) return answers
  // No answer about columns would prevent these errors.
  if (remainingFailure instanceof NoListError || remainingFailure instanceof EncodingError)
    throw remainingFailure
  const sample = await sampleInput(assertDefined(plan.inputs[0]), readablePlan, io)
  const columnAnswers = await askForColumns(sample, readablePlan, remainingFailure, {
    io,
    countNames: (planWithNames) => countNames(planWithNames, context),
    findNextId: () => findNextIdOfStore(context),
  })
  return { ...answers, ...columnAnswers }
}

async function findNextIdOfStore(context: CommandContext): Promise<bigint> {
  const store = await (await context.createOpener()).openExisting()
  try {
    return await findNextId(store)
  } finally {
    await store?.close()
  }
}

/** Opens the first file, and closes it again: only its header is needed. */
async function findFailure(plan: ImportPlan, io: Io): Promise<PlantsError | undefined> {
  try {
    const reader = await openInput(assertDefined(plan.inputs[0]), plan, io)
    reader.close()
    return undefined
  } catch (error) {
    if (isInputError(error)) return error
    throw error
  }
}

function describeQuestion(count: number, context: CommandContext): string {
  const store = context.describeStore()
  return `Import ${formatPlantCount(count)}${store === undefined ? '' : ` into ${store}`}?`
}
