import { hostname } from 'node:os'
import { plantCount } from '../../../plant/plant.js'
import { must, usageError } from '../../../platform/errors.js'
import { type Address, completeAddress } from '../../../stores/common/address.js'
import { type Change, idOf, type Outcome } from '../../../stores/common/change.js'
import { planOf } from '../../../stores/common/plan.js'
import {
  CheckpointMovedError,
  type OwnStore,
  type Store,
  type Transaction,
} from '../../../stores/common/store.js'
import {
  doneIn,
  idOfCheckpoint,
  newCheckpoint,
  parseCheckpoint,
} from '../../../transfer/import/checkpoint.js'
import { Importer, type ImportStart, type ImportTarget } from '../../../transfer/import/importer.js'
import { type ExaminedInputs, examineInputs, openInput } from '../../../transfer/import/input.js'
import { openJournal } from '../../../transfer/import/journal.js'
import type { PlantNames } from '../../../transfer/import/map.js'
import { Rejects } from '../../../transfer/import/rejects.js'
import type { CommandContext } from '../../command-context.js'
import { nextId } from '../../next-id.js'
import { ImportReport, type ImportRun } from './report.js'

/** Reads what can be read twice before it opens the store. */
export async function runImport(run: ImportRun, context: CommandContext): Promise<void> {
  const { io } = context
  const first = await openInput(must(run.inputs[0]), run, io)
  let target: OpenTarget | undefined
  let start: ImportStart | undefined
  let isShared = false // its rejects file, with a run that goes on
  try {
    const examined = await examineInputs(run, io)
    target = await openTarget(examined !== undefined, run, context)
    start = await findStart(target, examined, run, context)
    const isResumable = start.checkpointId !== undefined
    isShared = isResumable
    const report = new ImportReport(run, isResumable, context)
    const importer = new Importer(start, report.writeChunk.bind(report), io)
    try {
      if (run.atomic)
        await target.own.transaction((transaction) => importer.run(first, transaction), {
          commits: () => !report.isRolledBack(importer),
        })
      else await importer.run(first)
    } catch (error) {
      const isElsewhere = error instanceof CheckpointMovedError
      isShared &&= isElsewhere || doneIn(importer.position.counts) > 0
      throw await report.failed(error, importer)
    }
    await report.writeSummary(importer)
    if (importer.isComplete && !report.isRolledBack(importer)) {
      isShared = false
      await importer.finish(new Date(io.time()))
    }
    report.assertComplete(importer)
  } finally {
    start?.rejects?.close(isShared)
    await target?.own.close()
    if (target?.send) await target.store?.close()
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
  const { atomic, dryRun, restart, match, idFrom, rejects: path } = run
  const words = [hostname(), completeAddress(address), ...run.inputs.map((input) => input.path)]
  const id = examined && !dryRun ? idOfCheckpoint(...words) : undefined
  const saved = id && (await target.own.checkpoint(id))
  const source = sourceOf(run, examined?.hashes)
  const interrupted = saved && !restart ? parseCheckpoint(saved) : undefined
  const done = interrupted ? doneIn(interrupted.position.counts) : 0
  const isSame = interrupted?.source === source && !atomic
  if (interrupted && !isSame && (done > 0 || target.send)) {
    const isNumbered = interrupted.firstId !== undefined || idFrom !== undefined
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
  const firstId = async () =>
    idFrom === 'next' ? nextId(target.store, examined?.greatestId) : idFrom
  const checkpoint = isSame ? interrupted : newCheckpoint(source, await firstId())
  const names = match && (await namesIn(target, io.handleSignals()))
  const { importId, position } = checkpoint
  const hasRejects = path !== undefined && !dryRun
  const rejects = hasRejects ? new Rejects(path, id ?? importId, position.rejects) : undefined
  position.rejects = rejects?.start
  const checkpointId = atomic ? undefined : id
  return { plan: run, target, checkpointId, saved, checkpoint, names, rejects, complete }
}

/** The complete import of the same contents, if this one would number its plants again. */
async function findComplete(
  target: OpenTarget,
  examined: ExaminedInputs | undefined,
  { idFrom, match, dryRun }: ImportRun,
  address: Address,
) {
  if (!examined || dryRun || idFrom === undefined || match) return undefined
  // A store of ours has the row itself, whatever its address is.
  const store = address.scheme === 'http' ? completeAddress(address) : ''
  const id = idOfCheckpoint('complete', store, ...examined.hashes)
  return { id, from: await target.own.checkpoint(id) }
}

/** What an import is: the contents of its files, and the options that say what a record is. A new one belongs here. */
function sourceOf(run: ImportRun, hashes: readonly string[] | undefined): string {
  const { format, sheet, encoding, delimiter, map, columns, match } = run
  const idFrom = run.idFrom?.toString()
  return JSON.stringify({ hashes, format, sheet, encoding, delimiter, map, columns, idFrom, match })
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
  own: ImportTarget['own'] & Pick<OwnStore, 'checkpoint' | 'close'>
  /** Undefined if there is none yet, and for a dry run at a service. */
  store?: Pick<Store, 'read' | 'close'>
}

async function openTarget(
  isResumable: boolean,
  { dryRun }: ImportRun,
  context: CommandContext,
): Promise<OpenTarget> {
  const { address, io } = context
  const isService = address.scheme === 'http'
  const opener = isService ? undefined : await context.ownOpener()
  const ownStore = await (dryRun ? opener?.openExisting() : opener?.open())
  if (ownStore) return { store: ownStore, own: dryRun ? rolledBack(ownStore) : ownStore }
  if (isService && dryRun)
    await context.warn(`Only the input is checked, not which ids exist at ${address.name}`)
  if (dryRun) return { own: withoutCheckpoints((changes) => planned(changes, isService)) }
  const store = await context.openOrCreateStore()
  const send = store.write.bind(store)
  const own = isResumable ? openJournal(context.sqliteOptions, io) : withoutCheckpoints(send)
  return { store, send, own: await own }
}

/** Each chunk, so that no writer waits for long. */
function rolledBack(store: OwnStore): OpenTarget['own'] {
  return {
    transaction: (work, options) => store.transaction(work, { ...options, commits: () => false }),
    checkpoint: store.checkpoint.bind(store),
    close: store.close.bind(store),
  }
}

/** Of a dry run of a store that is not there yet, or of a service, which may have any plant. */
async function planned(changes: readonly Change[], isService: boolean): Promise<Outcome[]> {
  const isOfStored = (change: Change) => change.type === 'update' && change.patch.name == null
  const ids = isService ? changes.filter(isOfStored).map(idOf) : []
  const stored = ids.map((id) => ({ plant: { id, name: '' } }))
  return planOf(stored, changes).outcomes
}

function withoutCheckpoints(write: Transaction['write']): OpenTarget['own'] {
  return {
    transaction: (work) => work({ write, saveCheckpoint: async () => undefined }),
    checkpoint: async () => undefined,
    close: async () => undefined,
  }
}
