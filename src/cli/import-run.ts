import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { describeChange, describePlant, styleFor, writeAnswer, writeRejected } from '../output/output.js'
import { progressLine } from '../output/progress.js'
import { toJson } from '../plant/exact-json.js'
import { plantCount, plantOf } from '../plant/plant.js'
import { malformed, PlantsError, systemCode } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { must } from '../platform/values.js'
import { idAfter } from '../stores/common/conflict.js'
import type { Right, Store } from '../stores/common/store.js'
import { completeAddress, isOwn, nextIdIn, openToCompare, schemeOf } from '../stores/registry.js'
import {
  findImport,
  type ImportLock,
  keepImport,
  type SavedImport,
  settledIn,
  whileAlone,
} from '../transfer/import/checkpoint.js'
import { dryRunOf, type PlannedChange } from '../transfer/import/dry-run.js'
import { type ImportContext, Importer } from '../transfer/import/importer.js'
import {
  assertSameFiles,
  assertSameLayout,
  greatestIdIn,
  type ImportPlan,
  type OpenInput,
  openInput,
  unreadableInput,
} from '../transfer/import/input.js'
import { Rejects } from '../transfer/import/rejects.js'
import { type ImportOptions, type Job, maxShown, runAgain, writeSummary } from './import-summary.js'
import type { Settings } from './settings.js'

/** Throws `incomplete` when records were rejected. */
export async function runImport(options: ImportOptions, settings: Settings, io: Io): Promise<void> {
  const { plan, mode, rejects } = options
  assertReadable(plan, rejects)
  const progress = progressLine(io, settings.showsProgress, 0)
  const run = (lock?: ImportLock) => importInputs({ ...options, settings, io, lock, progress, startTime: io.now() })
  const paths = plan.inputs.map(({ path }) => path)
  if (mode === 'resumable' && !paths.includes('-')) await whileAlone(completeAddress(settings.store), paths, io, run)
  else await run()
}

/** Throws `malformed` for a missing input, and for a rejects file that is an input. */
function assertReadable({ inputs }: ImportPlan, rejects: string | undefined): void {
  const target = rejects !== undefined && statSync(rejects, { throwIfNoEntry: false }) && realpathSync(rejects)
  for (const { path, name } of inputs) {
    if (path === '-') continue
    try {
      accessSync(path, constants.R_OK)
    } catch (error) {
      throw systemCode(error) === undefined ? error : unreadableInput(name, error)
    }
    if (realpathSync(path) === target) throw malformed(`--rejects names the input ${name}`, 'Choose another file')
  }
}

async function importInputs(job: Job): Promise<void> {
  const { plan, rejects, io } = job
  const first = await openInput(must(plan.inputs[0]), plan, io).catch((error: unknown) => {
    throw explained(error, undefined, job)
  })
  try {
    if (rejects !== undefined) await assertSameLayout(first, plan, io) // before a store is made
    const target = await openTarget(job)
    try {
      await importInto(target, first, job)
    } finally {
      await target.close()
    }
  } finally {
    first.close()
  }
}

type Target = Pick<Store, 'write' | 'transaction' | 'checkpoint' | 'close'>

async function openTarget(job: Job): Promise<Target> {
  const { plan, mode, settings } = job
  const { store: address, storeOptions, warn } = settings
  const needs: Right[] = plan.ifExists === 'update' ? ['update'] : []
  if (mode !== 'dryRun') return schemeOf(address).open(address, { ...storeOptions, needs })
  const { store, isReadable } = await openToCompare(address, storeOptions)
  if (!isReadable) await warn(`Only the input is checked, not which ids exist at ${address.name}`)
  return dryRunOf(store, isReadable, changesWriter(job))
}

/** Each part in a transaction of its own, unless all are in one. At a service, the checkpoint is in a journal. */
async function importInto(target: Target, first: OpenInput, job: Job): Promise<void> {
  const { plan, mode, settings, io, lock, progress } = job
  const isService = !isOwn(settings.store)
  const { saved, isNew, rejectsLength } = await openImport(target, job)
  const rejects = job.rejects && mode !== 'dryRun' ? new Rejects(job.rejects, rejectsLength) : undefined
  const importing = new Importer(plan, saved, { ...reportsOf(job), lock, isService, rejects, io })
  const rollBack = new PlantsError('incomplete', 'Some records were rejected')
  try {
    // Before a plant is sent with its idempotency key, or written to the rejects file.
    if (lock && isNew && (rejects || isService)) await keepImport(lock, target, saved)
    if (mode !== 'atomic') await importing.run(first, target.write.bind(target))
    else
      await target.transaction?.(async (write) => {
        await importing.run(first, write)
        if (importing.rejected > 0 || !importing.isDone) throw rollBack
      })
  } catch (error) {
    if (lock && isService && !importing.isBegun) await keepImport(lock, target, undefined)
    await progress.clear()
    const isBroken = error instanceof PlantsError && error.type === 'malformed' // the input ends the import
    if (isBroken && mode === 'resumable' && importing.isBegun) await writeSummary(importing, job, true)
    if (error !== rollBack) throw explained(error, importing, job)
  } finally {
    rejects?.close()
  }
  try {
    await progress.clear()
    await writeSummary(importing, job)
  } finally {
    // Last, so that an import that is killed before this can print its result again.
    if (lock && importing.isDone) await forgetImport(lock, target, settings)
  }
}

/** All is stored by now: it is no failure if the checkpoint stays. */
async function forgetImport(lock: ImportLock, target: Target, { warn }: Settings): Promise<void> {
  try {
    await keepImport(lock, target, undefined)
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    await warn(`The import is done, but its checkpoint may have been left: ${error.message}`)
  }
}

/** The import of an earlier run, or a new one, with the length of the rejects file if that run had the same. */
async function openImport(target: Target, job: Job) {
  const { plan, isRestart, settings, io, lock } = job
  const found = await findImport(lock, target, readingFlags(job), isRestart)
  const { saved, isNew } = found
  if (isNew) saved.firstId ??= (await firstIdFor(job))?.toString()
  else await assertSameFiles(plan, saved.position, io)
  const done = settledIn(saved.position.counts)
  if (done > 0)
    await settings.warn(`Resuming an interrupted import: ${plantCount(done)} ${done === 1 ? 'is' : 'are'} done`)
  return found
}

/** Those that determine what a record is, and its number. Others, such as --if-exists, may differ when it is resumed. */
function readingFlags({ plan, rejects }: Job): SavedImport['flags'] {
  const { format, sheet, encoding, delimiter, rules } = plan
  const map = Object.entries(rules.map).map((entry) => entry.join('='))
  return {
    ...{ '--format': format, '--sheet': sheet, '--encoding': encoding, '--delimiter': delimiter },
    '--columns': rules.columns?.join(),
    '--map': map.length > 0 ? map.join() : undefined,
    '--id-from': rules.idFrom?.toString(),
    '--rejects': rejects,
  }
}

/** Of `--id-from next`: above all ids of the store and, if they can be read twice, of the inputs. */
async function firstIdFor({ plan, settings, io }: Job): Promise<bigint | undefined> {
  if (plan.rules.idFrom !== 'next') return undefined
  const greatest = await greatestIdIn(plan, io)
  const next = await nextIdIn(settings.store, settings.storeOptions, '--id-from')
  return greatest !== undefined && greatest >= next ? idAfter(greatest, '--id-from') : next
}

type Reports = Pick<ImportContext, 'onOpened' | 'onRejected' | 'onProgress'>

function reportsOf(job: Job): Reports {
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
    onProgress: ({ position, rejected }) =>
      progress.show(() => {
        const [file] = job.plan.inputs.length === 1 ? position.files : []
        const part = file?.size ? Math.min(1, file.bytes / file.size) : undefined
        return { done: settledIn(position.counts), rejected, part }
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
  const { mode, lock, io, plan, settings } = job
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
  const policy = plan.ifExists === 'update' ? 'update' : isOwn(settings.store) ? 'same' : 'skip'
  const again = `The plants created so far are kept. To continue, run it again with${ids} --if-exists ${policy}`
  const resume = lock ? `To resume, ${runAgain(job)}` : again
  const hint = error.hint === undefined ? resume : `${error.hint}. ${resume}`
  return new PlantsError(error.type, error.message, { ...error, hint, cause: error })
}
