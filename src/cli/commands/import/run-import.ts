import { plantCount, type StoredPlant } from '../../../plant/plant.js'
import { must, PlantsError, usageError } from '../../../platform/errors.js'
import type { Io } from '../../../platform/io.js'
import { completeAddress } from '../../../stores/common/address.js'
import { type Change, idOf } from '../../../stores/common/change.js'
import { planOf } from '../../../stores/common/plan.js'
import type { OwnStore, Store, Transaction } from '../../../stores/common/store.js'
import {
  type Checkpoint,
  checkpointId,
  completeId,
  doneIn,
  newCheckpoint,
  parseCheckpoint,
} from '../../../transfer/import/checkpoint.js'
import { Importer, type ImportStart, type ImportTarget } from '../../../transfer/import/importer.js'
import {
  assertSameLayouts,
  greatestIdIn,
  hashInputs,
  type ImportPlan,
  type OpenInput,
  openInput,
} from '../../../transfer/import/input.js'
import { openJournal } from '../../../transfer/import/journal.js'
import { PlantNames } from '../../../transfer/import/names.js'
import { Rejects } from '../../../transfer/import/rejects.js'
import type { CommandContext } from '../../command-context.js'
import { greatestId, idAfter } from '../../next-id.js'
import type { ImportOptions } from './import-options.js'
import { ImportReport } from './report.js'

/** Reads what can be read twice before it opens the store. */
export async function runImport(
  plan: ImportPlan,
  options: ImportOptions,
  context: CommandContext,
): Promise<void> {
  const { io } = context
  const { rejects, dryRun } = options
  if (rejects !== undefined && !dryRun) Rejects.assertCreatable(rejects)
  const first = await openInput(must(plan.inputs[0]), plan, io)
  try {
    if (rejects !== undefined) await assertSameLayouts(first, plan, io)
    const hashes = await hashInputs(plan, io)
    const target = await openTarget(hashes !== undefined, options, context)
    try {
      await importInto(target, first, { plan, hashes, options, context })
    } finally {
      await target.close()
    }
  } finally {
    first.close()
  }
}

interface Import {
  plan: ImportPlan
  /** Of the inputs. Undefined if one can be read only once: its import is neither resumed nor remembered. */
  hashes: string[] | undefined
  options: ImportOptions
  context: CommandContext
}

async function importInto(target: OpenTarget, first: OpenInput, all: Import): Promise<void> {
  const { plan, hashes, options, context } = all
  const { io } = context
  const isResumable = hashes !== undefined && !options.atomic && !options.dryRun
  const remembered = await findRemembered(target, all)
  const start = await findStart(target, remembered, all)
  const report = new ImportReport(plan, options, isResumable, context)
  const importer = new Importer(plan, start, target, report, io)
  try {
    if (options.atomic)
      await target.transaction((transaction) => importer.run(first, (work) => work(transaction)), {
        commits: () => importer.isComplete && importer.rejected === 0,
      })
    else await importer.run(first)
  } catch (error) {
    if (error instanceof PlantsError) await importer.forgetUnlessStored()
    throw await report.failed(error, importer)
  } finally {
    start.rejects?.close()
  }
  await report.writeSummary(importer)
  if (importer.isComplete && !report.isRolledBack(importer)) {
    const to = remembered && { ...remembered, to: completeState(new Date(io.time())) }
    await importer.finish(importer.hasNumbered ? to : undefined).catch(async (error: unknown) => {
      if (!(error instanceof PlantsError)) throw error
      const what = 'The import is done, but its checkpoint may have been left'
      await context.warn(`${what}: ${error.message}`) // the same command prints the summary again
    })
  }
  report.assertComplete(importer)
}

/** The row of a complete import of the same contents that numbers plants: they would be numbered again. */
async function findRemembered(
  target: OpenTarget,
  { plan, hashes, options, context }: Import,
): Promise<{ id: string; from: string | undefined } | undefined> {
  const { idFrom, match } = plan.rules
  if (hashes === undefined || idFrom === undefined || match || options.dryRun) return undefined
  // A store of ours has the row itself, whatever its address is.
  const store = context.address.scheme === 'http' ? completeAddress(context.address) : ''
  const id = completeId(store, hashes)
  return { id, from: await target.checkpoint(id) }
}

const completeState = (time: Date) => JSON.stringify({ version: 1, complete: time.toISOString() })

function alreadyImported(state: string): PlantsError {
  const { complete } = JSON.parse(state) as { complete: string } // of `completeState`
  const when = `${complete.slice(0, 10)} at ${complete.slice(11, 16)} UTC`
  return usageError(
    `The same input was imported on ${when}, and its plants were numbered`,
    'For plants with new names alone, add --match name',
  )
}

/** The import that was interrupted, or a new one. */
async function findStart(
  target: OpenTarget,
  remembered: { from: string | undefined } | undefined,
  { plan, hashes, options, context }: Import,
): Promise<ImportStart> {
  const { io, address, reporter } = context
  const { atomic, dryRun, restart, match, rejects: rejectsPath } = options
  const paths = plan.inputs.map(({ path }) => path)
  const id =
    hashes === undefined || dryRun ? undefined : checkpointId(completeAddress(address), paths)
  const saved = id === undefined ? undefined : await target.checkpoint(id)
  const source = sourceOf(plan, hashes)
  const interrupted = saved === undefined || restart ? undefined : parseCheckpoint(saved)
  if (interrupted && (atomic || interrupted.source !== source))
    throw changedSince(interrupted, plan)
  if (!interrupted && !restart && remembered?.from !== undefined)
    throw alreadyImported(remembered.from)
  const done = interrupted ? doneIn(interrupted.position.counts) : 0
  if (done > 0)
    await reporter.warn(
      `Resuming an interrupted import: ${plantCount(done)} ${done === 1 ? 'is' : 'are'} done`,
    )
  const checkpoint = interrupted ?? newCheckpoint(source, await firstIdFor(plan, target, io))
  const { position } = checkpoint
  const rejects =
    rejectsPath === undefined || dryRun
      ? undefined
      : new Rejects(rejectsPath, id ?? crypto.randomUUID(), position.rejects)
  if (rejects) position.rejects = rejects.start
  const pages = target.store?.read({ signal: io.handleSignals() }) ?? noPages()
  const names = match && (await PlantNames.of(pages))
  return { checkpointId: atomic ? undefined : id, saved, checkpoint, names, rejects }
}

/** What an import is: the contents of its files, and the options that say what a record is. */
function sourceOf(plan: ImportPlan, hashes: readonly string[] | undefined): string {
  const { format, sheet, encoding, delimiter, rules } = plan
  const { map, columns, match } = rules
  const idFrom = rules.idFrom?.toString()
  return JSON.stringify({ hashes, format, sheet, encoding, delimiter, map, columns, idFrom, match })
}

function changedSince({ firstId }: Checkpoint, { rules }: ImportPlan): PlantsError {
  const isNumbered = firstId !== undefined || rules.idFrom !== undefined
  const same = 'Use the same options and files'
  return usageError(
    'An interrupted import was begun with other options, or a file has changed since',
    isNumbered
      ? same
      : `${same}, or begin anew with --restart: what is stored and equal is skipped`,
  )
}

/** `next` is above all ids of the store and, if they can be read twice, of the inputs. */
async function firstIdFor(
  plan: ImportPlan,
  { store }: OpenTarget,
  io: Io,
): Promise<bigint | undefined> {
  const { idFrom } = plan.rules
  if (idFrom !== 'next') return idFrom
  const ofStore = store && (await greatestId(store))
  const ofInputs = await greatestIdIn(plan, io)
  const isOfStore = ofInputs === undefined || (ofStore !== undefined && ofStore > ofInputs)
  return idAfter(isOfStore ? ofStore : ofInputs, '--id-from')
}

interface OpenTarget extends ImportTarget {
  /** Undefined if there is none yet, and for a dry run at a service. */
  store: Pick<Store, 'read'> | undefined
  checkpoint: OwnStore['checkpoint']
  close(): Promise<void>
}

/** The store, or a service with the journal of its imports. */
async function openTarget(
  isResumable: boolean,
  { dryRun }: ImportOptions,
  context: CommandContext,
): Promise<OpenTarget> {
  const { address, io } = context
  if (address.scheme !== 'http') {
    const opener = await context.ownOpener()
    const store = await (dryRun ? opener.openExisting() : opener.open())
    return store ? ownTarget(store, dryRun === true) : plannedTarget(false)
  }
  if (dryRun) {
    await context.warn(`Only the input is checked, not which ids exist at ${address.name}`)
    return plannedTarget(true)
  }
  const service = await context.openOrCreateStore()
  try {
    const journal = isResumable ? await openJournal(context.sqliteOptions, io) : undefined
    const close = async () => {
      await service.close()
      await journal?.close()
    }
    const { transaction, checkpoint } = journal
      ? {
          transaction: journal.transaction.bind(journal),
          checkpoint: journal.checkpoint.bind(journal),
        }
      : withoutCheckpoints(service.write.bind(service))
    return { store: service, send: service.write.bind(service), transaction, checkpoint, close }
  } catch (error) {
    await service.close()
    throw error
  }
}

/** In a dry run, each chunk is rolled back, so that no writer waits for long. */
function ownTarget(store: OwnStore, dryRun: boolean): OpenTarget {
  return {
    store,
    transaction: (work, options) =>
      store.transaction(work, dryRun ? { ...options, commits: () => false } : options),
    checkpoint: store.checkpoint.bind(store),
    close: store.close.bind(store),
  }
}

/** A dry run of a store that is not there yet, or of a service, which may have any plant and is not asked. */
function plannedTarget(mayHavePlants: boolean): OpenTarget {
  const write: Transaction['write'] = async (changes) => {
    const isOfStored = (change: Change) => change.type === 'update' && change.patch.name == null
    const stored = mayHavePlants
      ? changes.filter(isOfStored).map((change) => ({ plant: { id: idOf(change), name: '' } }))
      : []
    return planOf(stored, changes).outcomes
  }
  return { store: undefined, ...withoutCheckpoints(write), close: async () => undefined }
}

function withoutCheckpoints(
  write: Transaction['write'],
): Pick<OpenTarget, 'transaction' | 'checkpoint'> {
  return {
    transaction: (work) => work({ write, saveCheckpoint: async () => undefined }),
    checkpoint: async () => undefined,
  }
}

async function* noPages(): AsyncGenerator<StoredPlant[]> {}
