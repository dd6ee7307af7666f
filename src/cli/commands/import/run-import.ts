import { hostname } from 'node:os'
import { plantCount } from '../../../plant/plant.js'
import { must, PlantsError, usageError } from '../../../platform/errors.js'
import { type Address, completeAddress } from '../../../stores/common/address.js'
import { type Change, idOf } from '../../../stores/common/change.js'
import { planOf } from '../../../stores/common/plan.js'
import {
  CheckpointMovedError,
  type OwnStore,
  type Store,
  type Transaction,
} from '../../../stores/common/store.js'
import {
  checkpointId,
  doneIn,
  newCheckpoint,
  parseCheckpoint,
} from '../../../transfer/import/checkpoint.js'
import { Importer, type ImportStart, type ImportTarget } from '../../../transfer/import/importer.js'
import { type ExaminedInputs, examineInputs, openInput } from '../../../transfer/import/input.js'
import { openJournal } from '../../../transfer/import/journal.js'
import type { PlantNames } from '../../../transfer/import/map.js'
import { Rejects } from '../../../transfer/import/rejects.js'
import type { CommandContext } from '../../command-context.js'
import { greatestId, idAfter } from '../../next-id.js'
import type { ImportRun } from './import-options.js'
import { ImportReport } from './report.js'

/** Reads what can be read twice before it opens the store. */
export async function runImport(run: ImportRun, context: CommandContext): Promise<void> {
  const { io } = context
  const { atomic } = run
  const first = await openInput(must(run.inputs[0]), run, io)
  let target: OpenTarget | undefined
  let start: ImportStart | undefined
  let goesOn = false
  try {
    const examined = await examineInputs(run, io)
    target = await openTarget(examined !== undefined, run, context)
    start = await findStart(target, examined, run, context)
    goesOn = start.checkpointId !== undefined
    const report = new ImportReport(run, goesOn, context)
    const importer = new Importer(start, report.writeChunk.bind(report), io)
    try {
      if (atomic)
        await target.transaction((transaction) => importer.run(first, transaction), {
          commits: () => !report.isRolledBack(importer),
        })
      else await importer.run(first)
    } catch (error) {
      const isElsewhere = error instanceof CheckpointMovedError
      goesOn &&= isElsewhere || doneIn(importer.position.counts) > 0
      throw await report.failed(error, importer)
    }
    await report.writeSummary(importer)
    if (importer.isComplete && !report.isRolledBack(importer)) {
      goesOn = false
      await importer.finish(new Date(io.time())).catch(async (error: unknown) => {
        if (!(error instanceof PlantsError)) throw error
        const what = 'The import is done, but its checkpoint may have been left'
        await context.warn(`${what}: ${error.message}`)
      })
    }
    report.assertComplete(importer)
  } finally {
    start?.rejects?.close(goesOn)
    await target?.close()
    first.close()
  }
}

/** The import that was interrupted, or a new one. What can be read only once is neither resumed nor remembered. */
async function findStart(
  target: OpenTarget,
  examined: ExaminedInputs | undefined,
  run: ImportRun,
  { io, address, reporter }: CommandContext,
): Promise<ImportStart> {
  const { atomic, dryRun, restart, match, rejects: path } = run
  const words = [hostname(), completeAddress(address), ...run.inputs.map((input) => input.path)]
  const id = examined && !dryRun ? checkpointId(...words) : undefined
  const saved = id === undefined ? undefined : await target.checkpoint(id)
  const source = sourceOf(run, examined?.hashes)
  const interrupted = saved === undefined || restart ? undefined : parseCheckpoint(saved)
  const done = interrupted ? doneIn(interrupted.position.counts) : 0
  const isSame = interrupted?.source === source && !atomic
  if (interrupted && !isSame && (done > 0 || target.send)) {
    const isNumbered = interrupted.firstId !== undefined || run.idFrom !== undefined
    const anew = ', or begin anew with --restart: what is stored and equal is skipped'
    throw usageError(
      'An interrupted import was begun with other options, or a file has changed since',
      `Use the same options and files${isNumbered ? '' : anew}`,
    )
  }

  const complete = await findComplete(target, examined, run, address)
  if (!isSame && !restart && complete?.from !== undefined)
    throw usageError(
      'The same input was imported before, and its plants were numbered',
      'For plants with new names alone, add --match name',
    )
  if (done > 0) await reporter.warn(`Resuming an interrupted import after ${plantCount(done)}`)
  const checkpoint = isSame
    ? interrupted
    : newCheckpoint(source, await firstIdFor(run, target, examined))
  const names = match && (await namesIn(target, io.handleSignals()))
  const { position } = checkpoint
  const rejects =
    path === undefined || dryRun
      ? undefined
      : new Rejects(path, id ?? crypto.randomUUID(), position.rejects)
  position.rejects = rejects?.start
  return {
    ...{ plan: run, target, saved, checkpoint, names, rejects, complete },
    checkpointId: atomic ? undefined : id,
  }
}

/** Of the same contents, if this import numbers plants: they would be numbered again. */
async function findComplete(
  target: OpenTarget,
  examined: ExaminedInputs | undefined,
  { idFrom, match, dryRun }: ImportRun,
  address: Address,
) {
  if (!examined || dryRun || idFrom === undefined || match) return undefined
  // A store of ours has the row itself, whatever its address is.
  const store = address.scheme === 'http' ? completeAddress(address) : ''
  const id = checkpointId('complete', store, ...examined.hashes)
  return { id, from: await target.checkpoint(id) }
}

/** What an import is: the contents of its files, and the options that say what a record is. */
function sourceOf(run: ImportRun, hashes: readonly string[] | undefined): string {
  const { format, sheet, encoding, delimiter, map, columns, match } = run
  const idFrom = run.idFrom?.toString()
  return JSON.stringify({ hashes, format, sheet, encoding, delimiter, map, columns, idFrom, match })
}

/** `next` is above all ids of the store and, if they can be read twice, of the inputs. */
async function firstIdFor(
  { idFrom }: ImportRun,
  { store }: OpenTarget,
  examined: ExaminedInputs | undefined,
): Promise<bigint | undefined> {
  if (idFrom !== 'next') return idFrom
  const ids = [store && (await greatestId(store)), examined?.greatestId]
  const [greatest] = ids.filter((id) => id !== undefined).toSorted((a, b) => (a > b ? -1 : 1))
  return idAfter(greatest)
}

async function namesIn({ store }: OpenTarget, signal: AbortSignal): Promise<PlantNames> {
  const names: PlantNames = new Map()
  for await (const plants of store?.read({ signal }) ?? [])
    for (const { id, name } of plants) {
      const known = names.get(name)
      if (Array.isArray(known)) known.push(id)
      else names.set(name, known === undefined ? id : [known, id])
    }
  return names
}

interface OpenTarget extends ImportTarget {
  /** Undefined if there is none yet, and for a dry run at a service. */
  store: Pick<Store, 'read'> | undefined
  checkpoint: OwnStore['checkpoint']
  close(): Promise<void>
}

async function openTarget(
  isResumable: boolean,
  { dryRun }: ImportRun,
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

/** For a dry run of a store that is not there yet, or of a service, which may have any plant. */
function plannedTarget(isService: boolean): OpenTarget {
  const isOfStored = (change: Change) => change.type === 'update' && change.patch.name == null
  return withoutCheckpoints(async (changes) => {
    const ids = isService ? changes.filter(isOfStored).map(idOf) : []
    const stored = ids.map((id) => ({ plant: { id, name: '' } }))
    return planOf(stored, changes).outcomes
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
