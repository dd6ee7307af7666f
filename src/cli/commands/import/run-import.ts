import { hostname } from 'node:os'
import { plantCount } from '../../../plant/plant.js'
import { must, usageError } from '../../../platform/errors.js'
import { completeAddress } from '../../../stores/common/address.js'
import { type Change, idOf } from '../../../stores/common/change.js'
import { doneState } from '../../../stores/common/checkpoint-state.js'
import { planOf } from '../../../stores/common/plan.js'
import type { OwnStore, Store, Transaction } from '../../../stores/common/store.js'
import {
  checkpointId,
  doneIn,
  newCheckpoint,
  parseCheckpoint,
} from '../../../transfer/import/checkpoint.js'
import { Importer, type ImportStart, type ImportTarget } from '../../../transfer/import/importer.js'
import {
  type ExaminedInputs,
  examineInputs,
  type ImportPlan,
  type OpenInput,
  openInput,
} from '../../../transfer/import/input.js'
import { openJournal } from '../../../transfer/import/journal.js'
import { PlantNames } from '../../../transfer/import/names.js'
import { Rejects } from '../../../transfer/import/rejects.js'
import type { CommandContext } from '../../command-context.js'
import { greatestId, idAfter } from '../../next-id.js'
import type { ImportOptions } from './import.js'
import { ImportReport } from './report.js'

/** Reads what can be read twice before it opens the store. */
export async function runImport(
  plan: ImportPlan,
  options: ImportOptions,
  context: CommandContext,
): Promise<void> {
  const first = await openInput(must(plan.inputs[0]), plan, context.io)
  try {
    const examined = await examineInputs(plan, context.io)
    const target = await openTarget(examined !== undefined, options, context)
    try {
      await importInto(target, first, { plan, examined, options, context })
    } finally {
      await target.close()
    }
  } finally {
    first.close()
  }
}

interface Import {
  plan: ImportPlan
  /** Undefined if an input can be read only once: its import is neither resumed nor remembered. */
  examined: ExaminedInputs | undefined
  options: ImportOptions
  context: CommandContext
}

async function importInto(target: OpenTarget, first: OpenInput, all: Import): Promise<void> {
  const { plan, examined, options, context } = all
  const { atomic, dryRun } = options
  const remembered = await findRemembered(target, all)
  const start = await findStart(target, remembered?.from, all)
  const isResumable = examined !== undefined && !atomic && !dryRun
  const report = new ImportReport(plan, options, isResumable, context)
  const importer = new Importer(start, report.writeChunk.bind(report), context.io)
  try {
    if (atomic)
      await target.transaction((transaction) => importer.run(first, transaction), {
        commits: () => importer.isComplete && importer.rejected === 0,
      })
    else await importer.run(first)
  } catch (error) {
    throw await report.failed(error, importer)
  } finally {
    start.rejects?.close()
  }
  await report.writeSummary(importer)
  if (importer.isComplete && !report.isRolledBack(importer)) {
    const to = doneState(new Date(context.io.time()))
    await importer.finish(remembered && importer.hasNumbered ? { ...remembered, to } : undefined)
  }
  report.assertComplete(importer)
}

/** The row of a complete import of the same contents that numbers plants: they would be numbered again. */
async function findRemembered(
  target: OpenTarget,
  { plan, examined, options, context }: Import,
): Promise<{ id: string; from: string | undefined } | undefined> {
  const { idFrom, match } = plan.rules
  if (!examined || idFrom === undefined || match || options.dryRun) return undefined
  // A store of ours has the row itself, whatever its address is.
  const store = context.address.scheme === 'http' ? completeAddress(context.address) : ''
  const id = checkpointId('complete', store, ...examined.hashes)
  return { id, from: await target.checkpoint(id) }
}

/**
 * The import that was interrupted, or a new one.
 *
 * @param complete the state of a complete import that would number its plants again
 */
async function findStart(
  target: OpenTarget,
  complete: string | undefined,
  { plan, examined, options, context }: Import,
): Promise<ImportStart> {
  const { io, address, reporter } = context
  const { atomic, dryRun, restart, match, rejects: path } = options
  const words = [hostname(), completeAddress(address), ...plan.inputs.map((input) => input.path)]
  const id = examined && !dryRun ? checkpointId(...words) : undefined
  const saved = id === undefined ? undefined : await target.checkpoint(id)
  const source = sourceOf(plan, examined?.hashes)
  const interrupted = saved === undefined || restart ? undefined : parseCheckpoint(saved)
  const done = interrupted ? doneIn(interrupted.position.counts) : 0
  const isSame = interrupted?.source === source && !atomic
  if (interrupted && !isSame && (done > 0 || target.send)) {
    const isNumbered = interrupted.firstId !== undefined || plan.rules.idFrom !== undefined
    const anew = ', or begin anew with --restart: what is stored and equal is skipped'
    throw usageError(
      'An interrupted import was begun with other options, or a file has changed since',
      `Use the same options and files${isNumbered ? '' : anew}`,
    )
  }
  if (!isSame && !restart && complete !== undefined)
    throw usageError(
      'The same input was imported before, and its plants were numbered',
      'For plants with new names alone, add --match name',
    )
  if (done > 0) await reporter.warn(`Resuming an interrupted import after ${plantCount(done)}`)
  const { store } = target
  const checkpoint = isSame
    ? interrupted
    : newCheckpoint(source, await firstIdFor(plan, store, examined?.greatestId))
  const { position } = checkpoint
  const rejects = path === undefined || dryRun ? undefined : new Rejects(path, position.rejects)
  position.rejects = rejects?.start
  const names = match && (await PlantNames.of(store?.read({ signal: io.handleSignals() })))
  return {
    ...{ plan, target, saved, checkpoint, names, rejects },
    checkpointId: atomic ? undefined : id,
  }
}

/** What an import is: the contents of its files, and the options that say what a record is. */
function sourceOf(plan: ImportPlan, hashes: readonly string[] | undefined): string {
  const { format, sheet, encoding, delimiter, rules } = plan
  const { map, columns, match } = rules
  const idFrom = rules.idFrom?.toString()
  return JSON.stringify({ hashes, format, sheet, encoding, delimiter, map, columns, idFrom, match })
}

/** `next` is above all ids of the store and, if they can be read twice, of the inputs. */
async function firstIdFor(
  { rules }: ImportPlan,
  store: OpenTarget['store'],
  ofInputs: bigint | undefined,
): Promise<bigint | undefined> {
  if (rules.idFrom !== 'next') return rules.idFrom
  const ofStore = store && (await greatestId(store))
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
  const send = service.write.bind(service)
  try {
    const journal = isResumable ? await openJournal(context.sqliteOptions, io) : undefined
    const close = async () => {
      await service.close()
      await journal?.close()
    }
    const checkpoints = journal ? ownTarget(journal, false) : withoutCheckpoints(send)
    return { ...checkpoints, store: service, send, close }
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

/** A dry run of a store that is not there yet, or of a service, which is not asked: it may have any plant. */
function plannedTarget(isService: boolean): OpenTarget {
  const isOfStored = (change: Change) => change.type === 'update' && change.patch.name == null
  return withoutCheckpoints(async (changes) => {
    const stored = changes.filter((change) => isService && isOfStored(change)).map(idOf)
    return planOf(
      stored.map((id) => ({ plant: { id, name: '' } })),
      changes,
    ).outcomes
  })
}

function withoutCheckpoints(write: Transaction['write']): OpenTarget {
  return {
    store: undefined,
    transaction: (work) => work({ write, saveCheckpoint: async () => undefined }),
    checkpoint: async () => undefined,
    close: async () => undefined,
  }
}
