/*
 * Runs `plants import` from the options to the summary.
 *
 * The inputs are opened and examined first, so that an error in the columns or the encoding of a
 * file is found before the store is opened or created. A quote that is not closed, or a row above
 * 1 MiB, is found only by the import itself. If an input has an error, a dialogue on a terminal may
 * complete the options. Then the records are written to the target that `openTarget` has opened.
 */
import {
  assertDefined,
  createInputError,
  createUsageError,
  type PlantsError,
} from '../../../errors.js'
import { needsOwnIds } from '../../../fields/options.js'
import {
  assertFilesExist,
  canBeReadTwice,
  examineInputs,
  type ImportInput,
  type ImportPlan,
  type InputReader,
  isInputError,
  openInput,
  prepareInput,
} from '../../../import/inputs.js'
import type { Matches, RecordMatcher } from '../../../import/match.js'
import { countRejectedRecords } from '../../../import/outcomes.js'
import { assertRejectsName, RejectsFile } from '../../../import/rejects.js'
import { importRecords } from '../../../import/run.js'
import { peek } from '../../../platform/generators.js'
import type { Io } from '../../../platform/io.js'
import type { Store } from '../../../stores/store.js'
import { rights } from '../../../stores/tokens.js'
import type { CommandContext } from '../../context.js'
import { type ImportTarget, openTarget } from './open-target.js'
import { ImportReport } from './report.js'
import { ImportUndo } from './undo.js'

/** @param argv the arguments of the command line, which the dialogue repeats with the answers */
export async function runImport(
  typedPlan: ImportPlan,
  context: CommandContext,
  argv: readonly string[],
): Promise<void> {
  assertMayDelete(typedPlan, context)
  const rejectsFile = await prepareRejectsFile(typedPlan, context)
  const undo = new ImportUndo(context)
  try {
    const inputs = await openInputs(typedPlan, context, argv, undo)
    const { plan, shownLines } = inputs
    if (plan.sync && !plan.dryRun) await undo.prepare()
    const report = new ImportReport(plan, context, { rejectsFile, shownLines })
    await useTarget(inputs, context, async (target) => {
      await importInputs({ ...inputs, undo }, target, report, context.io, rejectsFile)
      await report.writeSummary()
    })
    report.assertComplete()
  } finally {
    undo.discardUnneeded()
    rejectsFile?.discard()
  }
}

/** Opens the target, and closes it and the first input after their use. */
async function useTarget(
  { plan, firstReader }: ExaminedImport,
  context: CommandContext,
  use: (target: ImportTarget) => Promise<void>,
): Promise<void> {
  let target: ImportTarget | undefined
  try {
    target = await openTarget(plan, context)
    await use(target)
  } finally {
    await target?.close()
    firstReader.close()
  }
}

/** @throws {PlantsError} `usage` if plants may be deleted, and nobody has agreed or can be asked */
function assertMayDelete({ sync, yes, dryRun }: ImportPlan, context: CommandContext): void {
  if (!sync || yes || dryRun || context.mayAsk) return
  throw createUsageError(
    '--sync deletes the plants that are not in the list, and requires confirmation',
    'To see them, add --dry-run. To delete them, add --yes',
  )
}

async function importInputs(
  inputs: ExaminedImport & { undo?: ImportUndo },
  target: ImportTarget,
  report: ImportReport,
  io: Io,
  rejectsFile?: RejectsFile,
): Promise<void> {
  const { plan, firstReader, undo } = inputs
  const { maxRecords, write, transaction } = target
  const matches = await matchInputs(inputs, target, io)
  const importInto = async (writeChanges: Store['write']) => {
    const keepAndWrite = undo?.keepBefore(writeChanges, report) ?? writeChanges
    const parts = { plan, firstReader, matches, maxRecords, write: keepAndWrite, io }
    for await (const step of importRecords(parts)) {
      rejectsFile?.append(step.rejections, step.reader)
      await report.show(step)
    }
    report.isComplete = true
  }
  try {
    if (plan.atomic)
      await assertDefined(transaction)((work) => importInto(work.write), {
        shouldCommit: () => countRejectedRecords(report.counts) === 0,
      })
    else await importInto(write)
    rejectsFile?.finish()
  } catch (error) {
    const storesStdin = !plan.atomic && plan.inputs.some(({ path }) => path === '-')
    // The same command would not find these rejected records again.
    if (storesStdin || !report.mayBeRepeated(error)) rejectsFile?.finish()
    throw await report.explainFailure(error)
  }
}

/** Finds the plants that the records stand for, before anything is written. */
async function matchInputs(
  inputs: ExaminedImport,
  { store }: ImportTarget,
  io: Io,
): Promise<Matches | undefined> {
  const { plan, matcher } = inputs
  if (plan.sync && matcher?.recordCount === 0)
    throw createInputError(
      'The list has no records, and --sync would delete every plant',
      'To delete all plants: plants list | plants delete - --yes',
    )
  if (plan.sync && !plan.dryRun) await store?.check?.(rights)
  const matches = await matcher?.match(store?.read({ signal: io.getStopSignal() }) ?? [])
  // The names of the whole list need much memory.
  inputs.matcher = undefined
  return matches
}

async function prepareRejectsFile(
  { rejects, dryRun }: ImportPlan,
  context: CommandContext,
): Promise<RejectsFile | undefined> {
  if (rejects === undefined) return undefined
  if (!dryRun) return new RejectsFile(rejects)
  await context.warn(`The dry run does not write ${rejects}`)
  return undefined
}

interface ExaminedImport {
  /** The options, with the answers of the dialogue. */
  plan: ImportPlan
  /** The records that are to be matched; undefined without `--by-name` and `--sync`. */
  matcher: RecordMatcher | undefined
  /** The first input. It stays open until it is imported. */
  firstReader: InputReader
  /** The rejected records and the warnings that the dialogue has printed. */
  shownLines?: Set<string>
}

/**
 * Opens the first input, and examines all inputs. If that fails on a terminal, or the first records
 * have no ids, a dialogue begins.
 */
async function openInputs(
  typedPlan: ImportPlan,
  context: CommandContext,
  argv: readonly string[],
  undo: ImportUndo,
): Promise<ExaminedImport> {
  const plan = await prepareInputs(typedPlan, context.io)
  const mayAsk = () => context.mayAsk && plan.inputs.every(canBeReadTwice)
  let failure: PlantsError | undefined
  let lacksIds = false
  try {
    const inputs = await examinePlan(plan, context.io)
    if (!mayAsk()) return inputs
    lacksIds = needsOwnIds(plan) && !(await mayHaveIds(plan, context.io))
    const needsConfirmation = plan.sync && !plan.yes && !plan.dryRun
    if (!lacksIds && !needsConfirmation) return inputs
    inputs.firstReader.close()
  } catch (error) {
    if (!isInputError(error) || !mayAsk()) throw error
    failure = error
  }
  const { completePlan } = await import('../../import-dialogue/complete-plan.js')
  const shownLines = new Set<string>()
  const showOutcomes = (complete: ImportPlan) => showDryRun(complete, context, shownLines)
  const prepareUndo = () => undo.prepare()
  const options = { plan, failure, lacksIds, context, argv, showOutcomes, prepareUndo }
  const complete = await completePlan(options)
  return { ...(await examinePlan(complete, context.io)), shownLines }
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

async function prepareInputs(plan: ImportPlan, io: Io): Promise<ImportPlan> {
  assertFilesExist(plan.inputs)
  const inputs: ImportInput[] = []
  for (const input of plan.inputs) inputs.push(await prepareInput(input, plan, io))
  return { ...plan, inputs }
}

async function examinePlan(plan: ImportPlan, io: Io): Promise<ExaminedImport> {
  const firstReader = await openInput(assertDefined(plan.inputs[0]), plan, io)
  try {
    if (plan.rejects !== undefined) assertRejectsName(plan.rejects, firstReader)
    return { plan, firstReader, matcher: await examineInputs(plan, firstReader, io) }
  } catch (error) {
    firstReader.close()
    throw error
  }
}

/**
 * Shows in the dialogue what an import would do.
 *
 * @returns the report, which has the numbers of the last question
 */
async function showDryRun(
  { atomic: _, rejects: __, ...plan }: ImportPlan,
  context: CommandContext,
  shownLines: Set<string>,
): Promise<ImportReport> {
  const inputs = await examinePlan({ ...plan, dryRun: true }, context.io)
  const report = new ImportReport(inputs.plan, context, { shownLines, isPreview: true })
  await useTarget(inputs, context, async (target) => {
    await importInputs(inputs, target, report, context.io)
    await report.endPreview()
  })
  return report
}
