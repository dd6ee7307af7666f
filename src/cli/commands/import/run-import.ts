import { hostname } from 'node:os'
import { must, PlantsError, usageError } from '../../../errors.js'
import {
  type Checkpoint,
  doneIn,
  idOfCheckpoint,
  newCheckpoint,
  parseCheckpoint,
} from '../../../import/checkpoint.js'
import { Importer, type ImportStart, type ImportTarget } from '../../../import/importer.js'
import {
  type ExaminedInputs,
  examineInputs,
  type ImportPlan,
  type OpenInput,
  openInput,
} from '../../../import/inputs.js'
import { openJournal } from '../../../import/journal.js'
import type { PlantNames } from '../../../import/map-record.js'
import { headerOf, openRejects } from '../../../import/rejects-file.js'
import { plantCount } from '../../../plant/plant.js'
import { type Change, idOf, type Outcome } from '../../../stores/change.js'
import { findKind, hasCapability } from '../../../stores/kinds.js'
import { nextId } from '../../../stores/next-id.js'
import { planOf } from '../../../stores/plan.js'
import type { CheckpointChange, Transaction } from '../../../stores/store.js'
import type { CommandContext } from '../../command-context.js'
import { ImportReport } from './report.js'

export async function runImport(plan: ImportPlan, context: CommandContext): Promise<void> {
  const { io } = context
  const first = await openInput(must(plan.inputs[0]), plan, io)
  let target: ImportTarget | undefined
  try {
    const examined = await examineInputs(plan, io)
    target = await openTarget(examined !== undefined, plan, context)
    const start = await findStart(target, examined, first, plan, context)
    const report = new ImportReport(plan, context)
    const importer = new Importer(start, report.writeChunk.bind(report), io)
    try {
      if (plan.atomic)
        await target.own.transaction((transaction) => importer.run(first, transaction), {
          commits: () => !importer.isRolledBack,
        })
      else await importer.run(first)
    } catch (error) {
      throw await report.failed(error, importer)
    }
    await report.writeSummary(importer)
    if (importer.isComplete) await importer.finish()
    report.assertComplete(importer)
  } finally {
    await target?.own.close?.()
    if (target?.store !== target?.own) await target?.store?.close()
    first.close()
  }
}

/**
 * - The same contents and options resume an interrupted import. Others are refused, unless nothing of it is stored.
 * - A file whose plants another import has numbered is not numbered again, unless by name.
 * - `--restart` resumes what was begun with it; otherwise, nothing is refused or resumed.
 */
async function findStart(
  target: ImportTarget,
  examined: ExaminedInputs | undefined,
  input: OpenInput,
  plan: ImportPlan,
  context: CommandContext,
): Promise<ImportStart> {
  const { atomic, dryRun, restart, match, idFrom, rejects } = plan
  const hashes = dryRun ? undefined : examined?.hashes
  const source = sourceOf(plan, hashes, input)
  const place = await findCheckpoint(target, hashes, source, plan, context)
  const { id, saved, found, numbered } = place
  const interrupted = restart && !found?.restart ? undefined : found
  const isSame = interrupted?.version === 1 && interrupted.source === source && !atomic
  const resumed = isSame ? interrupted : undefined
  if (interrupted && !resumed && !restart) assertNothingStored(interrupted, target, plan)
  if (!restart && !match && numbered.some(({ from }) => from && !(resumed && from === id)))
    throw usageError(
      'The same input was imported before, and its plants were numbered',
      `For plants with new names alone, ${resumed ? 'import each other file with' : 'add'} --match name`,
    )

  const done = resumed ? doneIn(resumed.position.counts) : 0
  const left = resumed?.position.rejects
  const isElsewhere = left && left.path !== rejects && left.length + left.rows.length > 0
  const where = isElsewhere ? `, whose rejected records are in ${left.path}` : ''
  if (done > 0)
    await context.warn(`Resuming an interrupted import after ${plantCount(done)}${where}`)
  const isNext = idFrom === 'next' && !resumed
  const first = isNext ? await nextId(target.store, examined?.greatestId) : idFrom
  const checkpoint = resumed ?? newCheckpoint({ source, firstId: first?.toString(), restart })
  checkpoint.position.rejects = openRejects(dryRun ? undefined : rejects, left, headerOf(input))
  const names = match && (await namesIn(target, context.io.handleSignals()))
  const checkpointId = atomic ? undefined : id
  return { plan, target, checkpointId, saved, checkpoint, names, numbered }
}

/** By the paths of the files, or, with the same options, by the contents of one that was numbered. */
async function findCheckpoint(
  { send, own }: ImportTarget,
  hashes: readonly string[] | undefined,
  source: string,
  { inputs, idFrom, restart }: ImportPlan,
  { address }: CommandContext,
) {
  const store = findKind(address).format(address)
  const ofPaths = hashes && idOfCheckpoint(hostname(), store, ...inputs.map(({ path }) => path))
  const numbered: CheckpointChange[] = []
  for (const hash of (idFrom !== undefined && hashes) || []) {
    // A store has the row itself, whatever its address is.
    const id = idOfCheckpoint('numbered', send ? store : '', hash)
    numbered.push({ id, from: await own.checkpoint?.(id), to: ofPaths })
  }
  for (const id of [ofPaths, ...numbered.map(({ from }) => from)]) {
    const saved = id && (await own.checkpoint?.(id))
    const found = saved ? parseCheckpoint(saved) : undefined
    if (saved && !found) {
      if (!restart) throw createInvalidCheckpointError(address.name)
      return { id, saved, numbered }
    }
    if (!found || (id !== ofPaths && found.source !== source)) continue
    for (const file of numbered) file.to = id
    return { id, saved, found, numbered }
  }
  return { id: ofPaths, numbered }
}

function createInvalidCheckpointError(store: string): PlantsError {
  const message = `${store} has a checkpoint of this import that plants did not write`
  return new PlantsError('inaccessible', message, { hint: 'Begin again with --restart' })
}

function assertNothingStored(
  found: Checkpoint,
  target: ImportTarget,
  { idFrom }: ImportPlan,
): void {
  if (found.version !== 1)
    throw usageError('Another version of plants began this import', 'Finish it with that version')
  if (doneIn(found.position.counts) === 0 && !target.send) return
  const isNumbered = (found.firstId ?? idFrom) !== undefined
  const anew = ', or begin anew with --restart: what is stored and equal is skipped'
  throw usageError(
    'An interrupted import was begun with other options, or a file has changed since',
    `Use the same options and files${isNumbered ? '' : anew}`,
  )
}

/** The contents of its files, the options that say what a record is, and what is found by others. */
function sourceOf(plan: ImportPlan, hashes: readonly string[] | undefined, first: OpenInput) {
  const { format, sheet, encoding, delimiter, map, columns, match } = plan
  const idFrom = plan.idFrom?.toString()
  const options = { format, sheet, encoding, delimiter, map, columns, idFrom, match }
  return JSON.stringify({ hashes, ...options, found: [first.format, headerOf(first)] })
}

async function namesIn({ store }: ImportTarget, signal: AbortSignal): Promise<PlantNames> {
  const names: PlantNames = new Map()
  for await (const plants of store?.read({ signal }) ?? [])
    for (const { id, name } of plants) {
      const known = names.get(name)
      if (Array.isArray(known)) known.push(id)
      else names.set(name, known === undefined ? id : [known, id])
    }
  return names
}

async function openTarget(
  isResumable: boolean,
  { dryRun }: ImportPlan,
  context: CommandContext,
): Promise<ImportTarget> {
  const { address, io } = context
  const isService = !hasCapability(address, 'direct')
  const opener = isService ? undefined : await context.createDirectOpener()
  const ownStore = await (dryRun ? opener?.openExisting() : opener?.open())
  if (ownStore && !dryRun) return { store: ownStore, own: ownStore }
  if (ownStore) {
    // Each chunk is rolled back, so that no writer waits for long.
    const transaction: ImportTarget['own']['transaction'] = (work, options) =>
      ownStore.transaction(work, { ...options, commits: () => false })
    return { store: ownStore, own: { transaction } }
  }
  if (isService && dryRun)
    await context.warn(`Only the input is checked, not which ids exist at ${address.name}`)
  if (dryRun) return { own: withoutCheckpoints((changes) => planned(changes, isService)) }
  const store = await context.openOrCreateStore()
  const send = store.write.bind(store)
  const own = isResumable ? openJournal(context.openContext, io) : withoutCheckpoints(send)
  return { store, send, own: await own }
}

/** Of a dry run without a store or at a service, which may have any plant. */
async function planned(changes: readonly Change[], isService: boolean): Promise<Outcome[]> {
  const isOfStored = (change: Change) => change.type === 'update' && change.patch.name == null
  const stored = isService ? changes.filter(isOfStored) : []
  const plants = stored.map((change) => ({ plant: { id: idOf(change), name: '' } }))
  return planOf(plants, changes).outcomes
}

function withoutCheckpoints(write: Transaction['write']): ImportTarget['own'] {
  return { transaction: (work) => work({ write, saveCheckpoint: async () => undefined }) }
}
