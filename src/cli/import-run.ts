import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { describeChange, describePlant, styleFor, writeAnswer, writeRejected } from '../output/output.js'
import { progressLine } from '../output/progress.js'
import { toJson } from '../plant/exact-json.js'
import { plantCount, plantOf } from '../plant/plant.js'
import { malformed, PlantsError, systemCode } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { must } from '../platform/values.js'
import { idAfter } from '../stores/common/conflict.js'
import type { Store } from '../stores/common/store.js'
import { completeAddress, isOwn, nextIdIn, openToCompare, schemeOf } from '../stores/registry.js'
import {
  beginImport,
  findImport,
  type ImportLock,
  keepImport,
  type Position,
  readImport,
  type SavedImport,
  settledIn,
  start,
  whileAlone,
  writeJournal,
} from '../transfer/import/checkpoint.js'
import { DryRun, type PlannedChange } from '../transfer/import/dry-run.js'
import { type ImportContext, Importer } from '../transfer/import/importer.js'
import {
  assertSameFiles,
  assertSameLayout,
  greatestIdIn,
  type ImportPlan,
  type OpenInput,
  openInput,
} from '../transfer/import/inputs.js'
import { Rejects } from '../transfer/import/rejects.js'
import { unreadableInput } from '../transfer/import/source.js'
import { type ImportOptions, type Job, maxShown, writeSummary } from './import-summary.js'
import type { Settings } from './settings.js'

/** Throws `incomplete` when records were rejected. */
export async function runImport(options: ImportOptions, settings: Settings, io: Io): Promise<void> {
  const { plan, mode, rejects } = options
  assertReadable(plan, rejects)
  const progress = progressLine(io, settings.showsProgress, 0)
  const run = (lock?: ImportLock) => importInputs({ ...options, settings, io, lock, progress, startTime: io.now() })
  const isResumable = mode === 'resumable' && plan.inputs.every(({ path }) => path !== '-')
  if (!isResumable) return run()
  const paths = plan.inputs.map(({ path }) => path)
  await whileAlone(completeAddress(settings.store), paths, io, run)
}

/** Throws `malformed` for a missing input, and for a rejects file that is an input. */
function assertReadable({ inputs }: ImportPlan, rejects: string | undefined): void {
  const target = rejects !== undefined && statSync(rejects, { throwIfNoEntry: false }) && realpathSync(rejects)
  for (const { path, name } of inputs) {
    if (path === '-') continue
    try {
      if (statSync(path).isDirectory()) throw Object.assign(new Error('a directory'), { code: 'EISDIR' })
      accessSync(path, constants.R_OK)
    } catch (error) {
      throw systemCode(error) === undefined ? error : unreadableInput(name, error)
    }
    if (realpathSync(path) === target) throw malformed(`--rejects names the input ${name}`, 'Choose another file')
  }
}

async function importInputs(job: Job): Promise<void> {
  const { plan, mode, rejects, io } = job
  const first = await openInput(must(plan.inputs[0]), plan, io).catch((error: unknown) => {
    throw explained(error, undefined, job)
  })
  try {
    // before a store is made
    if (rejects !== undefined) await assertSameLayout(first, plan, io)
    if (mode === 'dryRun') await tryInputs(first, job)
    else if (mode === 'atomic') await importAll(first, job)
    else await importChunks(first, job)
  } finally {
    first.close()
  }
}

/** Each part in a transaction of its own, with its checkpoint. At a service, the checkpoint is in a journal. */
async function importChunks(first: OpenInput, job: Job): Promise<void> {
  const { plan, settings, io, lock } = job
  const store = await openForImport(job)
  try {
    const isService = store.checkpoint === undefined
    const { saved, isNew, rejectsLength } = await openImport(store, job)
    const rejects = job.rejects === undefined ? undefined : new Rejects(job.rejects, rejectsLength)
    const stateOf = (position: Position) => JSON.stringify({ ...saved, position })
    const importing = new Importer(plan, saved, {
      ...reportsOf(job, () => importing),
      ...{ write: store.write.bind(store), rejects, io },
      assertHeld: lock?.assertHeld,
      checkpoint: lock && !isService ? { id: lock.name, stateOf } : undefined,
      keep: lock && isService ? (position) => writeJournal(lock, stateOf(position)) : undefined,
      keyOf: isService ? keysOf(saved, lock) : undefined,
    })
    try {
      // Before a plant is sent with its idempotency key, or written to the rejects file.
      if (lock && isNew && (rejects || isService)) await keepImport(lock, store, saved)
      await importing.run(first)
    } catch (error) {
      if (lock && isService && !importing.isBegun) await keepImport(lock, store, undefined)
      await job.progress.clear()
      if (importing.isBegun && error instanceof PlantsError && error.type === 'malformed')
        await writeSummary(importing, job, true) // the input ends the import
      throw explained(error, importing, job)
    } finally {
      rejects?.close()
    }
    try {
      await job.progress.clear()
      await writeSummary(importing, job)
    } finally {
      // Last, so that an import that is killed before this can print its result again.
      if (lock && importing.isDone) await forgetImport(lock, store, settings)
    }
  } finally {
    await store.close()
  }
}

/** All is stored by now: it is no failure if the checkpoint stays. */
async function forgetImport(lock: ImportLock, store: Store, { warn }: Settings): Promise<void> {
  try {
    await keepImport(lock, store, undefined)
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    await warn(`The import is done, but its checkpoint may have been left: ${error.message}`)
  }
}

function keysOf({ id }: SavedImport, lock: ImportLock | undefined): (input: number, record: number) => string {
  return (input, record) => {
    lock?.assertHeld()
    return `${id}-${input}-${record}`
  }
}

/** All in one transaction. */
async function importAll(first: OpenInput, job: Job): Promise<void> {
  const { plan, io } = job
  const firstId = await firstIdFor(job)
  const store = await openForImport(job)
  const rollBack = new PlantsError('incomplete', 'Some records were rejected')
  let importing: Importer | undefined
  let rejects: Rejects | undefined
  try {
    rejects = job.rejects === undefined ? undefined : new Rejects(job.rejects, undefined)
    await must(store.transaction).call(store, async (write) => {
      const context = { ...reportsOf(job, () => importing), write, rejects, io }
      importing = new Importer(plan, { position: start, firstId }, context)
      await importing.run(first)
      if (importing.rejected > 0 || !importing.isDone) throw rollBack
    })
  } catch (error) {
    if (error !== rollBack) throw explained(error, importing, job)
  } finally {
    await job.progress.clear()
    rejects?.close()
    await store.close()
  }
  if (importing) await writeSummary(importing, job)
}

/** Only reads. */
async function tryInputs(first: OpenInput, job: Job): Promise<void> {
  const { plan, settings, io } = job
  const firstId = await firstIdFor(job)
  const { store, isReadable } = await openToCompare(settings.store, settings.storeOptions)
  const dryRun = new DryRun({ store, isReadable, onPlanned: changesWriter(job) })
  const importing: Importer = new Importer(
    plan,
    { position: start, firstId },
    {
      ...reportsOf(job, () => importing),
      ...{ write: dryRun.write.bind(dryRun), rejects: undefined, io },
    },
  )
  try {
    if (!isReadable) await settings.warn(`Only the input is checked, not which ids exist at ${settings.store.name}`)
    await importing.run(first)
  } catch (error) {
    throw explained(error, importing, job)
  } finally {
    await job.progress.clear()
    dryRun.close()
    await store?.close()
  }
  await writeSummary(importing, job)
}

function openForImport({ plan, settings: { store, storeOptions } }: Job): Promise<Store> {
  return schemeOf(store).open(store, { ...storeOptions, needs: plan.ifExists === 'update' ? ['update'] : [] })
}

/** The import of an earlier run, or a new one, with the length of the rejects file if that run had the same. */
async function openImport(store: Store, job: Job) {
  const { plan, isRestart, settings, io, lock } = job
  const flags = readingFlags(job)
  const found = lock && !isRestart ? await findImport(lock, store, flags) : undefined
  if (found) {
    await assertSameFiles(plan, found.position, io)
    const done = settledIn(found.position.counts)
    if (done > 0)
      await settings.warn(`Resuming an interrupted import: ${plantCount(done)} ${done === 1 ? 'is' : 'are'} done`)
    return { saved: found, isNew: false, rejectsLength: found.position.rejects ?? 0 }
  }
  const earlier = lock && isRestart ? await readImport(lock, store) : undefined
  const firstId = earlier?.firstId ?? (await firstIdFor(job))?.toString()
  const saved: SavedImport = { ...beginImport(flags), ...(firstId !== undefined && { firstId }) }
  const isSameFile = earlier?.flags['--rejects'] === flags['--rejects']
  return { saved, isNew: true, rejectsLength: earlier && isSameFile ? 0 : undefined }
}

/** Those that determine what a record is, and its number. Others, such as --if-exists, may differ when it is resumed. */
function readingFlags({ plan, rejects }: Job): Record<string, string> {
  const { format, sheet, encoding, delimiter, rules } = plan
  const map = Object.entries(rules.map).map((entry) => entry.join('='))
  const flags = {
    ...{ '--format': format, '--sheet': sheet, '--encoding': encoding, '--delimiter': delimiter },
    '--columns': rules.columns?.join(),
    '--map': map.length > 0 ? map.join() : undefined,
    '--id-from': rules.idFrom?.toString(),
    '--rejects': rejects,
  }
  return Object.fromEntries(
    Object.entries(flags).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}

/** Of `--id-from next`: above all ids of the store and, if they can be read twice, of the inputs. */
async function firstIdFor({ plan, settings, io }: Job): Promise<bigint | undefined> {
  if (plan.rules.idFrom !== 'next') return undefined
  const greatest = await greatestIdIn(plan, io)
  const next = await nextIdIn(settings.store, settings.storeOptions, '--id-from')
  return greatest !== undefined && greatest >= next ? idAfter(greatest, '--id-from') : next
}

type Reports = Pick<ImportContext, 'onOpened' | 'onRejected' | 'onProgress'>

function reportsOf(job: Job, importing: () => Importer | undefined): Reports {
  const { settings, io, progress } = job
  let remaining = settings.isQuiet ? 0 : settings.errors === 'json' ? Infinity : maxShown
  return {
    onOpened: async ({ skipped }, input) => {
      if (!skipped) return
      const rows = skipped.rows === 1 ? '1 row' : `${skipped.rows} rows`
      await settings.warn(`Skipped ${rows} above the header of ${input} in line ${skipped.header}`)
    },
    onRejected: async (rejected, file) => {
      const shown = rejected.slice(0, remaining)
      remaining -= shown.length
      if (shown.length === 0) return
      await progress.clear()
      const records = shown.map(({ line, element, error, message }) => ({ error, message, file, line, element }))
      await writeRejected(io, records, settings)
    },
    onProgress: () =>
      progress.show(() => {
        const { position, rejected = 0 } = importing() ?? {}
        const [file] = job.plan.inputs.length === 1 ? (position?.files ?? []) : []
        const part = file?.size ? Math.min(1, file.bytes / file.size) : undefined
        return { ...(position && { done: settledIn(position.counts) }), rejected, part }
      }),
  }
}

/** Writes what a dry run would change: as text, the first of them. */
function changesWriter(job: Job): (changes: PlannedChange[]) => Promise<void> {
  const { settings, io, progress, showsAll } = job
  const { output, isQuiet, colors } = settings
  let remaining = showsAll ? Infinity : output === 'text' && !isQuiet ? maxShown : 0
  return async (changes) => {
    const shown = changes.slice(0, remaining)
    remaining -= shown.length
    if (shown.length === 0) return
    const style = await styleFor(colors(io.stdout))
    const lines = shown.map(({ before, after }) => {
      if (output !== 'text') {
        const old = before && { before: plantOf(before) }
        return `${toJson({ dryRun: true, id: after.id, ...old, after: plantOf(after) })}\n`
      }
      const what = before ? `update ${describeChange(before, after, style)}` : `create ${describePlant(after, style)}`
      return `Would ${what}\n`
    })
    await progress.clear()
    await writeAnswer(io, lines.join(''))
  }
}

/** Adds to an error what was done, and how to resume. */
function explained(reason: unknown, importing: Importer | undefined, job: Job): unknown {
  const { mode, lock, io, isRestart, plan, settings } = job
  let error = reason
  const isBegun = mode === 'resumable' && importing?.isBegun === true
  if (io.signal.aborted && reason instanceof PlantsError && reason.isInterruption) {
    const { type, message } = io.signal.reason as PlantsError // the signal is only aborted with a PlantsError
    const done = isBegun ? ` after ${plantCount(settledIn(importing.position.counts))}` : ', nothing was changed'
    error = new PlantsError(type, message + done, { cause: reason })
  }
  if (!(error instanceof PlantsError) || error.type === 'defect' || error.hint?.includes('--restart')) return error
  const isUnknown = lock !== undefined && error.type === 'unknownOutcome'
  if ((!isBegun && !isUnknown) || error.type === 'malformed') return error
  const ids = importing?.firstId === undefined ? '' : ` --id-from ${importing.firstId}` // the same again
  const canCompare = isOwn(settings.store) || importing?.firstId !== undefined // it reads plants
  const policy = plan.ifExists === 'update' ? 'update' : canCompare ? 'same' : 'skip'
  const again = `The plants created so far are kept. To continue, run it again with${ids} --if-exists ${policy}`
  const resume = lock ? `To resume, run the same command again${isRestart ? ' without --restart' : ''}` : again
  const hint = error.hint === undefined ? resume : `${error.hint}. ${resume}`
  return new PlantsError(error.type, error.message, { ...error, hint, cause: error })
}
