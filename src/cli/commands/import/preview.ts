/* Finds out for the dialogue how a list differs from the store, and what an import would do. */
import { PlantsError } from '../../../errors.js'
import { type Counts, countRejectedRecords, createCounts } from '../../../import/counts.js'
import type { ImportPlan } from '../../../import/inputs.js'
import { importRecords } from '../../../import/run.js'
import type { Io } from '../../../platform/io.js'
import { isReadRejected } from '../../../stores/change.js'
import type { CommandContext } from '../../context.js'
import type { Comparison } from '../../import-dialogue/questions.js'
import {
  type ExaminedImport,
  examinePlan,
  importInputs,
  matchInputs,
  useTarget,
} from './import-inputs.js'
import { type ImportTarget, openTarget } from './open-target.js'
import { ImportReport } from './report.js'

/**
 * @returns undefined if nothing differs, if the store has no plants or cannot be read, or if no
 *   question about its plants is open
 */
export async function compareWithStore(
  { atomic: _, rejects, ...typedPlan }: ImportPlan,
  context: CommandContext,
): Promise<Comparison | undefined> {
  const { io } = context
  if (typedPlan.hasPolicy || typedPlan.dryRun) return undefined
  const plan: ImportPlan = { ...typedPlan, ifExists: 'update', dryRun: true }
  const target = await openTarget(plan, context)
  try {
    const storeCount = await countPlants(target)
    if (storeCount === 0) return undefined
    const inputs = await examineWhole(plan, storeCount, io)
    const counts = await countChanges(inputs, target, io)
    const missing = counts.deleted + counts.missing
    const isWhole =
      inputs.plan.sync === true &&
      rejects === undefined &&
      countRejectedRecords(counts) === 0 &&
      missing > 0 &&
      missing * 2 <= storeCount
    if (counts.updated === 0 && !isWhole) return undefined
    const differing = counts.updated
    return { equal: counts.skipped, differing, missing: isWhole ? missing : undefined }
  } finally {
    await target.close()
  }
}

async function countPlants({ store }: ImportTarget): Promise<number> {
  try {
    return Number((await store?.count()) ?? 0)
  } catch (error) {
    if (!isReadRejected(error)) throw error
    return 0
  }
}

/** Examines the inputs as a list of the whole store, or as a part of it if it has too few records. */
async function examineWhole(plan: ImportPlan, storeCount: number, io: Io): Promise<ExaminedImport> {
  try {
    const inputs = await examinePlan({ ...plan, sync: true }, io)
    const recordCount = inputs.matcher?.recordCount ?? 0
    if (storeCount <= 2 * recordCount) return inputs
    inputs.firstReader.close()
  } catch (error) {
    // It is a part of a list, or its sheet or its header is not certain.
    if (!(error instanceof PlantsError) || error.kind !== 'usage') throw error
  }
  return examinePlan(plan, io)
}

async function countChanges(
  inputs: ExaminedImport,
  target: ImportTarget,
  io: Io,
): Promise<Readonly<Counts>> {
  const { plan, firstReader } = inputs
  try {
    const matches = await matchInputs(inputs, target, io)
    const { maxRecords, write } = target
    let counts: Readonly<Counts> = createCounts()
    for await (const step of importRecords({ plan, firstReader, matches, maxRecords, write, io }))
      counts = step.counts
    return counts
  } finally {
    firstReader.close()
  }
}

/**
 * Shows in the dialogue what an import would do.
 *
 * @returns the report, which has the numbers of the last question
 */
export async function showDryRun(
  { atomic: _, rejects: __, ...plan }: ImportPlan,
  context: CommandContext,
  shownLines: Set<string>,
): Promise<ImportReport> {
  const inputs = await examinePlan({ ...plan, dryRun: true }, context.io)
  const report = new ImportReport(inputs.plan, context, { shownLines, isPreview: true })
  await useTarget(inputs, context, async (target) => {
    await importInputs(inputs, target, { report, io: context.io })
    await report.endPreview()
  })
  return report
}
