/*
 * Runs `plants import` from the options to the summary.
 *
 * The inputs are opened and examined first, so that an error in a file is found before the store is
 * opened or created. If that fails on a terminal, a dialogue may complete the options. Then an
 * `Importer` writes the records to the target that `openTarget` has opened.
 */
import { assertDefined, type PlantsError } from '../../../errors.js'
import { Chunk, peek } from '../../../formats/chunk.js'
import { needsOwnIds } from '../../../formats/columns.js'
import { countStoredRecords } from '../../../import/counts.js'
import { assertRejectsName } from '../../../import/format-rejects.js'
import { Importer } from '../../../import/importer.js'
import { addFingerprint } from '../../../import/input-file.js'
import {
  assertFilesExist,
  canBeReadTwice,
  examineInputs,
  type ImportPlan,
  type InputReader,
  isInputError,
  openInput,
} from '../../../import/inputs.js'
import { PlantNames } from '../../../import/names.js'
import { RejectsFile } from '../../../import/rejects-file.js'
import type { Io } from '../../../platform/io.js'
import type { CommandContext } from '../../context.js'
import { type ImportTarget, openTarget } from './open-target.js'
import { ImportReport } from './report.js'

/** @param argv the arguments of the command line, which the dialogue repeats with the answers */
export async function runImport(
  typedPlan: ImportPlan,
  context: CommandContext,
  argv: readonly string[],
): Promise<void> {
  const rejectsFile = await prepareRejectsFile(typedPlan, context)
  try {
    const inputs = await openInputs(typedPlan, context, argv)
    const report = new ImportReport(inputs.plan, context, rejectsFile, inputs.shownLines)
    const writeEnd = (importer: Importer) => report.writeSummary(importer)
    report.assertComplete(await importInputs(inputs, context, report, writeEnd, rejectsFile))
  } finally {
    rejectsFile?.discard()
  }
}

/** @param writeEnd is called before the store is closed, which may take long */
async function importInputs(
  { plan, firstReader, greatestId }: Inputs,
  context: CommandContext,
  listener: ImportReport,
  writeEnd: (importer: Importer) => Promise<void>,
  rejectsFile?: RejectsFile,
): Promise<Importer> {
  const { io } = context
  let target: ImportTarget | undefined
  try {
    if (plan.rejects !== undefined) assertRejectsName(plan.rejects, firstReader)
    target = await openTarget(plan, context)
    const { store, maxRecords } = target
    const names = plan.byName && (await PlantNames.read(store, greatestId, io.getStopSignal()))
    const importer = new Importer({ plan, names, rejectsFile, maxRecords, listener, io })
    try {
      await importAll(importer, target, firstReader, plan)
      rejectsFile?.finish()
    } catch (error) {
      const storesStdin = !plan.atomic && plan.inputs.some(({ path }) => path === '-')
      // The same command would not find these rejected records again.
      if (storesStdin || !listener.mayBeRepeated(error)) rejectsFile?.finish()
      throw await listener.explainFailure(error, importer)
    }
    await writeEnd(importer)
    return importer
  } finally {
    await target?.close()
    firstReader.close()
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

interface Inputs {
  /** The options, with the answers of the dialogue. */
  plan: ImportPlan
  /** The greatest id in the files, which `--by-name` needs. */
  greatestId: bigint | undefined
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
): Promise<Inputs> {
  const mayAsk = () => context.mayAsk && plan.inputs.every(canBeReadTwice)
  let failure: PlantsError | undefined
  try {
    const inputs = await examinePlan(plan, context.io)
    if (!needsOwnIds(plan) || !mayAsk()) return inputs
    const firstReader = await findIds(inputs.firstReader)
    if (firstReader) return { ...inputs, firstReader }
  } catch (error) {
    if (!isInputError(error) || !mayAsk()) throw error
    failure = error
  }
  const { completePlan } = await import('../../import-dialogue/complete-plan.js')
  const shownLines = new Set<string>()
  const showOutcomes = (complete: ImportPlan) => showDryRun(complete, context, shownLines)
  const complete = await completePlan({ plan, failure, context, argv, showOutcomes })
  return { ...(await examinePlan(complete, context.io)), shownLines }
}

/** @returns undefined if the first records can be read, but none of them has an id */
async function findIds(reader: InputReader): Promise<InputReader | undefined> {
  let hasIds = false
  try {
    const { first, all } = await peek(reader.chunks)
    const { ids, problems } = first ?? new Chunk()
    hasIds = ids.length === problems.size || ids.some((id) => typeof id === 'bigint')
    return hasIds ? { ...reader, chunks: all } : undefined
  } finally {
    if (!hasIds) reader.close()
  }
}

async function examinePlan(typedPlan: ImportPlan, io: Io): Promise<Inputs> {
  assertFilesExist(typedPlan.inputs)
  const plan = { ...typedPlan, inputs: typedPlan.inputs.map(addFingerprint) }
  const firstReader = await openInput(assertDefined(plan.inputs[0]), plan, io)
  try {
    return { plan, firstReader, greatestId: await examineInputs(plan, firstReader, io) }
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
  const report = new ImportReport(inputs.plan, context, undefined, shownLines)
  const writeEnd = (importer: Importer) => report.writeWarnings(importer)
  const importer = await importInputs(inputs, context, report, writeEnd)
  return countStoredRecords(importer.counts)
}

async function importAll(
  importer: Importer,
  { write, transaction }: ImportTarget,
  firstReader: InputReader,
  { atomic }: ImportPlan,
): Promise<void> {
  if (!atomic) return importer.run(firstReader, write)
  await assertDefined(transaction)((work) => importer.run(firstReader, work.write), {
    shouldCommit: () => !importer.isRolledBack,
  })
}
