/*
 * Runs `plants import` from the options to the summary.
 *
 * The inputs are opened and examined first, so that an error in the columns or the encoding of a
 * file is found before the store is opened or created. A quote that is not closed, or a row above
 * 1 MiB, is found only by the import itself. If an input has an error, a dialogue on a terminal may
 * complete the options. Then the records are written to the target that `openTarget` has opened.
 */
import { assertDefined, type PlantsError } from '../../../errors.js'
import { needsOwnIds } from '../../../fields/options.js'
import {
  addFingerprint,
  assertFilesExist,
  canBeReadTwice,
  examineInputs,
  type ImportInput,
  type ImportPlan,
  type InputReader,
  isInputError,
  keepPipe,
  openInput,
} from '../../../import/inputs.js'
import type { RecordMatcher } from '../../../import/match.js'
import { countRejectedRecords, countStoredRecords } from '../../../import/outcomes.js'
import { assertRejectsName, RejectsFile } from '../../../import/rejects.js'
import { importRecords } from '../../../import/run.js'
import { peek } from '../../../platform/generators.js'
import type { Io } from '../../../platform/io.js'
import type { Store } from '../../../stores/store.js'
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
  const rejectsFile = await prepareRejectsFile(typedPlan, context)
  const undo = new ImportUndo(context)
  try {
    const inputs = await openInputs(typedPlan, context, argv, undo)
    const { plan, shownLines } = inputs
    const report = new ImportReport(plan, context, { rejectsFile, shownLines })
    await useTarget(inputs, context, async (target) => {
      await importInputs({ ...inputs, undo }, target, report, context.io, rejectsFile)
      await report.writeSummary()
    })
    report.assertNoRejections()
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

async function importInputs(
  { plan, firstReader, matcher, undo }: ExaminedImport & { undo?: ImportUndo },
  { store, maxRecords, write, transaction }: ImportTarget,
  report: ImportReport,
  io: Io,
  rejectsFile?: RejectsFile,
): Promise<void> {
  const plants = store?.read({ signal: io.getStopSignal() }) ?? []
  const matches = await matcher?.match(plants)
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
  /** The records that are to be matched; undefined without `--by-name`. */
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
  plan: ImportPlan,
  context: CommandContext,
  argv: readonly string[],
  undo: ImportUndo,
): Promise<ExaminedImport> {
  const mayAsk = () => context.mayAsk && plan.inputs.every(canBeReadTwice)
  let failure: PlantsError | undefined
  try {
    const inputs = await examinePlan(plan, context.io)
    if (!needsOwnIds(plan) || !mayAsk()) return inputs
    if (await mayHaveIds(inputs.plan, context.io)) return inputs
    inputs.firstReader.close()
  } catch (error) {
    if (!isInputError(error) || !mayAsk()) throw error
    failure = error
  }
  const { completePlan } = await import('../../import-dialogue/complete-plan.js')
  const shownLines = new Set<string>()
  const showOutcomes = (complete: ImportPlan) => showDryRun(complete, context, shownLines)
  const prepareUndo = () => undo.prepare()
  const complete = await completePlan({ plan, failure, context, argv, showOutcomes, prepareUndo })
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

async function examinePlan(typedPlan: ImportPlan, io: Io): Promise<ExaminedImport> {
  assertFilesExist(typedPlan.inputs)
  const inputs: ImportInput[] = []
  for (const input of typedPlan.inputs.map(addFingerprint))
    inputs.push(typedPlan.byName ? await keepPipe(input, io) : input)
  const plan = { ...typedPlan, inputs }
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
 * @returns how many plants the import would create or change
 */
async function showDryRun(
  { atomic: _, rejects: __, ...plan }: ImportPlan,
  context: CommandContext,
  shownLines: Set<string>,
): Promise<number> {
  const inputs = await examinePlan({ ...plan, dryRun: true }, context.io)
  const report = new ImportReport(inputs.plan, context, { shownLines, isPreview: true })
  await useTarget(inputs, context, async (target) => {
    await importInputs(inputs, target, report, context.io)
    await report.endPreview()
  })
  return countStoredRecords(report.counts)
}
