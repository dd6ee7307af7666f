/*
 * Runs `plants import` from the options to the summary.
 *
 * The inputs are opened and examined first, so that an error in the columns or the encoding of a
 * file is found before the store is opened or created. A quote that is not closed, or a row above
 * 1 MiB, is found only by the import itself, unless the list is matched with the store. If an input
 * has an error, a dialogue on a terminal may complete the options. Then the records are written to
 * the target that `openTarget` has opened.
 */
import { assertDefined, createUsageError, type PlantsError } from '../../../errors.js'
import { needsOwnIds } from '../../../fields/options.js'
import {
  canBeReadTwice,
  type ImportPlan,
  isInputError,
  openInput,
  prepareInputs,
} from '../../../import/inputs.js'
import { RejectsFile } from '../../../import/rejects.js'
import { peek } from '../../../platform/generators.js'
import type { Io } from '../../../platform/io.js'
import type { CommandContext } from '../../context.js'
import type { Comparison } from '../../import-dialogue/questions.js'
import type { DialogueTools } from './complete-plan.js'
import { type ExaminedImport, examinePlan, importInputs, useTarget } from './import-inputs.js'
import { compareWithStore } from './preview.js'
import { ImportReport } from './report.js'
import { ImportUndo } from './undo.js'

/** @param argv the arguments of the command line, which the dialogue repeats with the answers */
export async function runImport(
  typedPlan: ImportPlan,
  context: CommandContext,
  argv: readonly string[],
): Promise<void> {
  const rejectsFile = await prepareRejectsFile(typedPlan, context)
  const undo = new ImportUndo(context)
  const shownLines = new Set<string>()
  try {
    const inputs = await openInputs(typedPlan, { context, argv, undo, shownLines })
    const { plan } = inputs
    if (plan.sync && !plan.dryRun) await undo.prepare()
    const report = new ImportReport(plan, context, { rejectsFile, shownLines })
    await useTarget(inputs, context, async (target) => {
      await importInputs(inputs, target, { report, rejectsFile, undo, io: context.io })
      await report.writeSummary()
    })
    report.assertComplete()
  } finally {
    undo.finish()
    rejectsFile?.discard()
  }
}

/** @throws {PlantsError} `usage` if plants may be deleted, and nobody has agreed or can be asked */
function assertMayDelete({ sync, yes, dryRun }: ImportPlan, context: CommandContext): void {
  if (!sync || yes || dryRun || context.mayAsk) return
  throw createUsageError(
    '--sync deletes the plants that are not in the list, and requires confirmation',
    'Add --dry-run to see them, then --yes to delete them',
  )
}

async function prepareRejectsFile(
  { rejects, dryRun }: ImportPlan,
  context: CommandContext,
): Promise<RejectsFile | undefined> {
  if (rejects === undefined) return undefined
  if (!dryRun) return new RejectsFile(rejects)
  await context.reporter.warn(`The dry run does not write ${rejects}`)
  return undefined
}

/**
 * Opens the first input, and examines all inputs. On a terminal, a dialogue begins if that fails, if
 * the first records have no ids, if plants of the store differ from the list, or to confirm `--sync`.
 */
async function openInputs(typedPlan: ImportPlan, tools: DialogueTools): Promise<ExaminedImport> {
  const { context } = tools
  const plan = await prepareInputs(typedPlan, context.io)
  assertMayDelete(plan, context)
  const mayAsk = () => context.mayAsk && plan.inputs.every(canBeReadTwice)
  let failure: PlantsError | undefined
  let lacksIds = false
  let comparison: Comparison | undefined
  try {
    const inputs = await examinePlan(plan, context.io)
    if (!mayAsk()) return inputs
    lacksIds = needsOwnIds(plan) && !(await mayHaveIds(plan, context.io))
    if (!lacksIds) comparison = await compareWithStore(plan, context)
    const needsConfirmation = plan.sync && !plan.yes && !plan.dryRun
    if (!lacksIds && !comparison && !needsConfirmation) return inputs
    inputs.firstReader.close()
  } catch (error) {
    if (!isInputError(error) || !mayAsk()) throw error
    failure = error
  }
  const { completePlan } = await import('./complete-plan.js')
  const complete = await completePlan(plan, { failure, lacksIds, comparison }, tools)
  return examinePlan(complete, context.io)
}

/** @returns false if the first records can be read, but none of them has an id */
async function mayHaveIds(plan: ImportPlan, io: Io): Promise<boolean> {
  const reader = await openInput(assertDefined(plan.inputs[0]), plan, io)
  try {
    const { first } = await peek(reader.readChunks())
    const { ids, problems } = assertDefined(first)
    return ids.length === problems.size || ids.some((id) => typeof id === 'bigint')
  } finally {
    reader.close()
  }
}
