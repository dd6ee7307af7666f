/*
 * Runs `plants import` from the options to the summary.
 *
 * The inputs are opened and examined first, so that an error in a file is found before the store is
 * opened or created. If that fails on a terminal, a dialogue may complete the options. Then
 * `resume.ts` decides whether the import begins or resumes, and an `Importer` runs it. `openTarget`
 * opens the store as an `ImportTarget`, which differs between kinds of stores and dry runs.
 */
import { assertDefined, createUsageError, PlantsError } from '../../../errors.js'
import { separatePairsHint } from '../../../formats/missing-fields.js'
import { createCheckpoint, InvalidCheckpointError } from '../../../import/checkpoint.js'
import { countFinishedRecords } from '../../../import/counts.js'
import { hasImportableRecord } from '../../../import/find-importable.js'
import { formatRejectsHeader } from '../../../import/format-rejects.js'
import type { ImportStart, ImportTarget } from '../../../import/import-start.js'
import { Importer } from '../../../import/importer.js'
import { addFingerprint } from '../../../import/input-file.js'
import {
  assertFilesExist,
  canBeReadTwice,
  type ExaminedInputs,
  examineInputs,
  type ImportPlan,
  type InputReader,
  isInputError,
  openInput,
} from '../../../import/inputs.js'
import { openJournal } from '../../../import/journal.js'
import type { PlantNames } from '../../../import/map-record.js'
import type { Checkpoint } from '../../../import/parse-checkpoint.js'
import { isAtPath, prepareRejectsFile } from '../../../import/rejects-file.js'
import { decideStart, findSavedImport } from '../../../import/resume.js'
import { describeSource } from '../../../import/source.js'
import { formatPlantCount } from '../../../plant/plant.js'
import type { Io } from '../../../platform/io.js'
import { type Change, getTargetId, type Outcome } from '../../../stores/change.js'
import { findKind, hasCapability } from '../../../stores/kinds.js'
import { findNextId } from '../../../stores/next-id.js'
import { planChanges } from '../../../stores/plan.js'
import type { Transaction } from '../../../stores/store.js'
import type { CommandContext } from '../../command-context.js'
import { ImportReport } from './report.js'

/** @param argv the arguments of the command line, which the dialogue repeats with the answers */
export async function runImport(
  typedPlan: ImportPlan,
  context: CommandContext,
  argv: readonly string[],
): Promise<void> {
  const { io } = context
  assertNoPairs(typedPlan)
  const { plan, firstReader, examinedInputs } = await openInputs(typedPlan, context, argv)
  let target: ImportTarget | undefined
  try {
    target = await openTarget(examinedInputs !== undefined, plan, context)
    const start = await prepareStart(target, { examinedInputs, firstReader, plan }, context)
    const report = new ImportReport(plan, context)
    const importer = new Importer(start, report, io)
    try {
      await importAll(importer, target, firstReader, plan)
      await importer.saveThatNothingIsStored()
      // This deletes the checkpoint. If it fails, so does the import: there is no summary, and the
      // same command resumes at the end.
      if (importer.isComplete) await importer.deleteCheckpoint()
    } catch (error) {
      // The invalid checkpoint is deleted. Otherwise the command in the hint would find it again.
      const beginsAgain = plan.restart || plan.idFrom !== undefined
      if (error instanceof InvalidCheckpointError && beginsAgain) await importer.deleteCheckpoint()
      await trySaveThatNothingIsStored(importer)
      throw await report.explainFailure(error, importer)
    }
    await report.writeSummary(importer)
    report.assertComplete(importer)
  } finally {
    if (target) await closeTarget(target)
    firstReader.close()
  }
}

/** In `--map id=Nr name=Kind`, the second pair is read as the name of a file. */
function assertNoPairs({ inputs, map }: ImportPlan): void {
  const hasMap = Object.keys(map).length > 0
  if (hasMap && inputs.some(({ name }) => /^(?:id|name|tag)=/.test(name)))
    throw createUsageError('An argument looks like a pair of --map', separatePairsHint)
}

/** After a failed import, an error of the journal must not hide why the import has failed. */
async function trySaveThatNothingIsStored(importer: Importer): Promise<void> {
  try {
    await importer.saveThatNothingIsStored()
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
  }
}

/**
 * Closes the stores of a target. A direct store is both the store and the checkpoint store, so a
 * set makes sure that it is closed only once.
 */
async function closeTarget({ checkpointStore, store }: ImportTarget): Promise<void> {
  const stores = new Set<{ close?(): Promise<void> } | undefined>([checkpointStore, store])
  for (const storeToClose of stores) await storeToClose?.close?.()
}

interface Inputs {
  /** The options, with the answers of the dialogue. */
  plan: ImportPlan
  /** The hashes of the inputs; undefined if an input can be read only once. */
  examinedInputs: ExaminedInputs | undefined
  /**
   * The first input. Its format and header are a part of `describeSource`, by which an interrupted
   * import is recognized. It stays open until it is imported.
   */
  firstReader: InputReader
}

/**
 * Opens the first input, and examines all inputs. If that fails on a terminal, a dialogue begins.
 */
async function openInputs(
  plan: ImportPlan,
  context: CommandContext,
  argv: readonly string[],
): Promise<Inputs> {
  try {
    return await examinePlan(plan, context.io)
  } catch (failure) {
    const mayAsk = context.mayAsk && plan.inputs.every(canBeReadTwice)
    if (!isInputError(failure) || !mayAsk) throw failure
    const { completePlan } = await import('../../import-dialogue/complete-plan.js')
    const showDryRun = (dryRun: ImportPlan) => showOutcomes(dryRun, context)
    const complete = await completePlan({ plan, failure, context, argv, showDryRun })
    return examinePlan(complete, context.io)
  }
}

async function examinePlan(typedPlan: ImportPlan, io: Io): Promise<Inputs> {
  assertFilesExist(typedPlan.inputs)
  const plan = { ...typedPlan, inputs: typedPlan.inputs.map(addFingerprint) }
  const firstReader = await openInput(assertDefined(plan.inputs[0]), plan, io)
  try {
    return { plan, firstReader, examinedInputs: await examineInputs(plan, io) }
  } catch (error) {
    firstReader.close()
    throw error
  }
}

/**
 * Shows in the dialogue what an import would do. If records would be rejected, the dry run reports
 * that and fails, but the dialogue continues.
 */
async function showOutcomes(
  { atomic: _, restart: __, rejects: ___, ...plan }: ImportPlan,
  context: CommandContext,
): Promise<void> {
  try {
    await runImport(plan, context, [])
  } catch (error) {
    if (!(error instanceof PlantsError) || error.kind !== 'incomplete') throw error
  }
}

async function importAll(
  importer: Importer,
  { checkpointStore }: ImportTarget,
  firstReader: InputReader,
  { atomic }: ImportPlan,
): Promise<void> {
  if (!atomic) return importer.run(firstReader)
  await checkpointStore.transaction((transaction) => importer.run(firstReader, transaction), {
    shouldCommit: () => !importer.isRolledBack,
  })
}

/** Begins an import, or resumes an interrupted one, as `resume.ts` decides. */
async function prepareStart(
  target: ImportTarget,
  inputs: Inputs,
  context: CommandContext,
): Promise<ImportStart> {
  const { plan, examinedInputs, firstReader } = inputs
  const hashes = plan.dryRun ? undefined : examinedInputs?.hashes
  const source = describeSource(plan, hashes, firstReader)
  const isService = target.send !== undefined
  const { address } = context
  const service = isService ? findKind(address).format(address) : ''
  const { checkpointStore } = target
  const search = { checkpointStore, plan, hashes, source, service }
  const savedImport = await findSavedImport(search)
  const decision = decideStart(savedImport, { plan, source, storeName: address.name, isService })
  if (decision.type === 'reject') throw decision.error
  const isResumed = decision.type === 'resume'
  if (isResumed) await warnOfResuming(decision.checkpoint, plan, context)
  const startCheckpoint = isResumed
    ? decision.checkpoint
    : await createFirstCheckpoint(target, source, inputs)
  if (plan.dryRun && plan.rejects !== undefined)
    await context.warn(`The dry run does not write ${plan.rejects}`)
  const checkpoint = prepareRejects(startCheckpoint, inputs)
  const names = plan.match && (await readPlantNames(target, context.io.getStopSignal()))
  return { plan, target, savedImport, checkpoint, names }
}

/**
 * Prepares the rejects file, and appends the rejected records that an interrupted run has not
 * written.
 *
 * @returns the checkpoint with the new state of the file
 */
function prepareRejects(checkpoint: Checkpoint, { plan, firstReader }: Inputs): Checkpoint {
  const { position } = checkpoint
  const path = plan.dryRun ? undefined : plan.rejects
  const rejects = prepareRejectsFile(path, position.rejects, formatRejectsHeader(firstReader))
  return { ...checkpoint, position: { ...position, rejects } }
}

async function createFirstCheckpoint(
  { store }: ImportTarget,
  source: string,
  { plan: { idFrom, restart, answers }, examinedInputs }: Inputs,
): Promise<Checkpoint> {
  const firstId = idFrom === 'next' ? await findNextId(store, examinedInputs?.greatestId) : idFrom
  return createCheckpoint({ source, firstId: firstId?.toString(), restart, answers })
}

async function warnOfResuming(
  { position: { counts, rejects } }: Checkpoint,
  plan: ImportPlan,
  context: CommandContext,
): Promise<void> {
  const finishedCount = countFinishedRecords(counts)
  if (finishedCount === 0) return
  const hasRejects = rejects !== undefined && rejects.length + rejects.rows.length > 0
  const isElsewhere = hasRejects && (plan.rejects === undefined || !isAtPath(rejects, plan.rejects))
  const location = isElsewhere ? `. Its rejected records are in ${rejects.path}` : ''
  await context.warn(
    `Resuming an interrupted import after ${formatPlantCount(finishedCount)}${location}`,
  )
}

/** Reads the names of all plants into memory: a query for each record would take far longer. */
async function readPlantNames({ store }: ImportTarget, signal: AbortSignal): Promise<PlantNames> {
  const names: PlantNames = new Map()
  for await (const plants of store?.read({ signal }) ?? [])
    for (const { id, name } of plants) {
      const knownId = names.get(name)
      if (Array.isArray(knownId)) knownId.push(id)
      else names.set(name, knownId === undefined ? id : [knownId, id])
    }
  return names
}

/**
 * Opens the store that gets the changes, and the store that keeps the checkpoint.
 *
 * - A direct store is both. It is created if it does not exist.
 * - A service gets the changes, and a journal of this machine keeps the checkpoint. An import that
 *   cannot be resumed needs no journal.
 * - A dry run of a direct store rolls each chunk back.
 * - A dry run without a store, or at a service, only computes the outcomes.
 *
 * @param canReadTwice whether all inputs are files, and none is a pipe
 */
function openTarget(
  canReadTwice: boolean,
  plan: ImportPlan,
  context: CommandContext,
): Promise<ImportTarget> {
  const isDirect = hasCapability(context.address, 'direct')
  if (plan.dryRun) return isDirect ? openDirectDryRun(context) : openServiceDryRun(context)
  return isDirect
    ? openDirectStore(canReadTwice, plan, context)
    : openService(canReadTwice, context)
}

/**
 * Opens a direct store, or creates it. If no record can be imported, no store is created, and the
 * outcomes are computed without a store. Only inputs that can be read again are searched for such a
 * record.
 */
async function openDirectStore(
  canReadTwice: boolean,
  plan: ImportPlan,
  context: CommandContext,
): Promise<ImportTarget> {
  const opener = await context.createDirectOpener()
  const { direct } = findKind(context.address).capabilities
  const mayStayMissing = canReadTwice && 'isCreatedOnOpen' in direct
  const existingStore = mayStayMissing ? await opener.openExisting() : undefined
  if (mayStayMissing && !existingStore && !(await hasImportableRecord(plan, context.io)))
    return { checkpointStore: createStoreWithoutCheckpoint(computeOutcomesInEmptyStore) }
  const store = existingStore ?? (await opener.openOrCreate())
  return { store, checkpointStore: store }
}

async function openService(canReadTwice: boolean, context: CommandContext): Promise<ImportTarget> {
  const store = await context.openOrCreateStore()
  const send = store.write.bind(store)
  // An import resumes only if it can read its inputs again.
  const checkpointStore = canReadTwice
    ? await openJournal(context.openContext, context.io)
    : createStoreWithoutCheckpoint(send)
  return { store, send, checkpointStore }
}

async function openDirectDryRun(context: CommandContext): Promise<ImportTarget> {
  const store = await (await context.createDirectOpener()).openExisting()
  if (!store) return { checkpointStore: createStoreWithoutCheckpoint(computeOutcomesInEmptyStore) }
  // Each chunk is rolled back at its end, and not all of them together, so that other writers do
  // not wait for the whole dry run.
  const transaction: ImportTarget['checkpointStore']['transaction'] = (work, options) =>
    store.transaction(work, { ...options, shouldCommit: () => false })
  return { store, checkpointStore: { transaction } }
}

async function openServiceDryRun(context: CommandContext): Promise<ImportTarget> {
  const name = context.address.name
  await context.warn(`The dry run checks only the input, not which ids exist at ${name}`)
  return { checkpointStore: createStoreWithoutCheckpoint(computeOutcomesAtService) }
}

/** Computes the outcomes that changes would have in a store without plants. */
async function computeOutcomesInEmptyStore(changes: readonly Change[]): Promise<Outcome[]> {
  return planChanges([], changes).outcomes
}

/**
 * Computes the outcomes that changes may have at a service, to which a dry run sends nothing. A
 * record without a name can only update a plant, so a plant with its id is assumed to exist. No
 * other plant is.
 */
async function computeOutcomesAtService(changes: readonly Change[]): Promise<Outcome[]> {
  const needsPlant = (change: Change) => change.type === 'update' && change.patch.name == null
  const updates = changes.filter(needsPlant)
  const assumedPlants = updates.map((change) => ({ plant: { id: getTargetId(change), name: '' } }))
  return planChanges(assumedPlants, changes).outcomes
}

/**
 * Creates the checkpoint store of an import that cannot be resumed. Its transactions forget the
 * checkpoint, and get the outcomes of the changes from `write`.
 */
function createStoreWithoutCheckpoint(
  write: Transaction['write'],
): ImportTarget['checkpointStore'] {
  return { transaction: (work) => work({ write, saveImportEntry: async () => undefined }) }
}
