/* Examines the inputs of an import, and writes their records to a target. */
import { assertDefined, createInputError } from '../../../errors.js'
import { countRejectedRecords } from '../../../import/counts.js'
import {
  canBeReadTwice,
  examineInputs,
  type ImportPlan,
  type InputReader,
  openInput,
} from '../../../import/inputs.js'
import type { Matches, RecordMatcher } from '../../../import/match.js'
import { assertRejectsName, type RejectsFile } from '../../../import/rejects.js'
import { importRecords } from '../../../import/run.js'
import type { Io } from '../../../platform/io.js'
import type { Outcome } from '../../../stores/change.js'
import type { Store } from '../../../stores/store.js'
import { rights } from '../../../stores/tokens.js'
import type { CommandContext } from '../../context.js'
import { type ImportTarget, openTarget } from './open-target.js'
import type { ImportReport } from './report.js'
import type { ImportUndo } from './undo.js'

export interface ExaminedImport {
  /** The options, with the answers of the dialogue. */
  plan: ImportPlan
  /** The records that are to be matched; undefined without `--by-name` and `--sync`. */
  matcher: RecordMatcher | undefined
  /** The first input. It stays open until it is imported. */
  firstReader: InputReader
}

export async function examinePlan(plan: ImportPlan, io: Io): Promise<ExaminedImport> {
  const firstReader = await openInput(assertDefined(plan.inputs[0]), plan, io)
  try {
    if (plan.rejects !== undefined) assertRejectsName(plan.rejects, firstReader)
    return { plan, firstReader, matcher: await examineInputs(plan, firstReader, io) }
  } catch (error) {
    firstReader.close()
    throw error
  }
}

/** Opens the target, and closes it and the first input after their use. */
export async function useTarget(
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

interface ImportTools {
  report: ImportReport
  io: Io
  rejectsFile?: RejectsFile | undefined
  undo?: ImportUndo
}

export async function importInputs(
  inputs: ExaminedImport,
  target: ImportTarget,
  { report, rejectsFile, undo, io }: ImportTools,
): Promise<void> {
  const { plan, firstReader } = inputs
  const { maxRecords, write, transaction } = target
  const matches = await matchInputs(inputs, target, io)
  const storeCount = await countToFindMissing(inputs, target)
  const changedIds = new Set<bigint>()
  const importInto = async (writeChanges: Store['write']) => {
    const keepAndWrite = undo?.keepBefore(writeChanges, report) ?? writeChanges
    const parts = { plan, firstReader, matches, maxRecords, write: keepAndWrite, io }
    for await (const step of importRecords(parts)) {
      rejectsFile?.append(step.rejections, step.reader)
      await report.show(step)
      if (storeCount !== undefined && !matches) addIds(step.outcomes, changedIds)
    }
    report.isComplete = true
    if (storeCount === undefined) return
    const updatedCount = changedIds.size - report.counts.created
    report.noteMissing(matches?.missingCount ?? storeCount - updatedCount, storeCount)
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

function addIds(outcomes: readonly Outcome[], ids: Set<bigint>): void {
  for (const outcome of outcomes) if ('plant' in outcome) ids.add(outcome.plant.id)
}

/** @returns undefined unless the import says how many plants of the store the list lacks */
async function countToFindMissing(
  { plan, firstReader }: ExaminedImport,
  { store, isDirect }: ImportTarget,
): Promise<number | undefined> {
  const { ifExists, sync, inputs } = plan
  const mayBeWhole = isDirect && !firstReader.isRejects && inputs.every(canBeReadTwice)
  if (ifExists !== 'update' || sync || !mayBeWhole) return undefined
  return store && Number(await store.count())
}

/** Finds the plants that the records stand for, before anything is written. */
export async function matchInputs(
  inputs: ExaminedImport,
  { store }: ImportTarget,
  io: Io,
): Promise<Matches | undefined> {
  const { plan, matcher } = inputs
  if (plan.sync && matcher?.recordCount === 0)
    throw createInputError(
      'The list has no records, and --sync would delete every plant',
      'Import a file that has the whole list',
    )
  if (plan.sync && !plan.dryRun) await store?.check?.(rights)
  const matches = await matcher?.match(store?.read({ signal: io.getStopSignal() }) ?? [])
  // The names of the whole list need much memory.
  inputs.matcher = undefined
  return matches
}
