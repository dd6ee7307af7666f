import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import {
  describeChange,
  describePlant,
  styleFor,
  unknownField,
  writeAnswer,
  writeRejected,
  writeResult,
} from '../output/output.js'
import { clockOf, type Progress, progressLine } from '../output/progress.js'
import { toJson } from '../plant/exact-json.js'
import { plantCount, plantOf } from '../plant/plant.js'
import { malformed, PlantsError, systemCode } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { grouped, must } from '../platform/values.js'
import type { Right, Store } from '../stores/common/store.js'
import { completeAddress, idAfter, isOwn, nextIdIn, openToCompare, schemeOf } from '../stores/registry.js'
import {
  findImport,
  type ImportLock,
  keepImport,
  rejectedIn,
  type SavedImport,
  settledIn,
  whileAlone,
} from '../transfer/import/checkpoint.js'
import { dryRunOf, type PlannedChange } from '../transfer/import/dry-run.js'
import { type ImportContext, Importer } from '../transfer/import/importer.js'
import {
  assertSameFiles,
  assertSameLayouts,
  greatestIdIn,
  type ImportPlan,
  type OpenInput,
  openInput,
  unreadableInput,
} from '../transfer/import/input.js'
import { Rejects } from '../transfer/import/rejects.js'
import type { Settings } from './settings.js'

interface ImportRequest {
  plan: ImportPlan
  /** absolute */
  rejects: string | undefined
  isRestart: boolean
  /** `atomic`: all plants or none */
  mode: 'resumable' | 'atomic' | 'dryRun'
  /** every change of a dry run is printed, as JSON */
  showsAll: boolean
}

interface Job extends ImportRequest {
  settings: Settings
  io: Io
  /** undefined if the import cannot be resumed */
  lock: ImportLock | undefined
  progress: Progress
  startTime: number
}

export async function runImport(options: ImportRequest, settings: Settings, io: Io): Promise<void> {
  const { plan, mode, rejects } = options
  assertReadable(plan, rejects)
  const progress = progressLine(io, settings.showsProgress, 0)
  const run = (lock?: ImportLock) => importInputs({ ...options, settings, io, lock, progress, startTime: io.now() })
  const paths = plan.inputs.map(({ path }) => path)
  if (mode === 'resumable' && !paths.includes('-')) await whileAlone(completeAddress(settings.store), paths, io, run)
  else await run()
}

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
    if (rejects !== undefined) await assertSameLayouts(first, plan, io) // before a store is made
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
      await must(target.transaction).call(target, async (write) => {
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
  let remaining = settings.errors === 'json' ? Infinity : maxShown
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

/** As text, of the first changes. */
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

/** maximum numbers of rejected records, and of changes of a dry run, printed as text */
const maxShown = 20

/** Throws `incomplete` for rejected records, and `unknownOutcome` for unknown outcomes, unless the input `isBroken`. */
async function writeSummary(importing: Importer, job: Job, isBroken = false): Promise<void> {
  const { mode, settings, io } = job
  const { counts } = importing.position
  const rejected = rejectedIn(counts)
  const [isDryRun, isAtomic] = [mode === 'dryRun', mode === 'atomic']
  const { skipped, unknown, rejected: reasons } = counts
  const [created, updated] = isAtomic && rejected > 0 ? [0, 0] : [counts.created, counts.updated]
  const all = Object.entries({ created, updated, skipped, rejected, unknown })
  const settled = settledIn(counts)
  const ofRun = settled - importing.settledBefore
  const seconds = Math.round(io.now() - job.startTime) / 1000
  const rate = Math.round(ofRun / Math.max(seconds, 0.001))

  const why = rejected > 0 ? ` (${reasonsIn(reasons)})` : ''
  const time = seconds < 90 ? `${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : clockOf(seconds)
  const since = ofRun < settled ? ' since it was resumed' : ''
  const took = `${plantCount(settled)} in ${time}${since}${seconds < 1 ? '' : ` (${grouped(rate)}/s)`}`
  const done = all
    .filter(([name, count]) => name === 'created' || count > 0)
    .map(([name, count]) => `${grouped(count)} ${name}${name === 'rejected' ? why : ''}`)
  const text = `${isDryRun ? 'Dry run of' : 'Read'} ${took}: ${done.join(', ')}`
  const rejects = rejected > 0 && !isDryRun ? job.rejects : undefined
  const fields = { created, updated, skipped, rejected, reasons, unknown, seconds, rate, rejects }
  const isStored = isAtomic && rejected === 0
  const hint = isStored ? 'All plants are in the store, only the summary was not written' : undefined
  await warnOfOmissions(importing, job)
  await writeResult(io, settings, { ...(isDryRun && { dryRun: true }), ...fields }, text, hint)
  if (isBroken) return
  if (unknown > 0) throw unknownOutcome(unknown, job)
  if (rejected > 0) throw incomplete(importing, job)
}

function reasonsIn(rejected: Readonly<Record<string, number>>): string {
  const reasons = Object.entries(rejected)
  return reasons.map(([error, n]) => `${grouped(n)} ${words[error] ?? `with error ${error}`}`).join(', ')
}

const words: Readonly<Record<string, string>> = {
  ...{ 400: 'malformed', 409: 'with an existing id', 413: 'too large', 422: 'invalid' },
}

async function warnOfOmissions(importing: Importer, { plan, mode, settings }: Job): Promise<void> {
  const { errors, output, warn } = settings
  const { firstId, position, rejected, otherFields } = importing
  const { counts, nextId } = position
  const names = plan.inputs.length === 1 ? `${plan.inputs[0]?.name} contains` : 'the inputs contain'
  if (settledIn(counts) === 0) await warn(`${names} no records`, 'warning')
  if (firstId !== undefined && nextId !== undefined && BigInt(nextId) > firstId) {
    const last = BigInt(nextId) - 1n
    const range = last === firstId ? String(firstId) : `${firstId} to ${last}`
    await warn(`Plants without an id ${mode === 'dryRun' ? 'would get' : 'got'} ${range}`)
  }
  if (rejected > maxShown && errors === 'text')
    await warn(`Rejected records that are not shown: ${grouped(rejected - maxShown)}`)
  const fields = [...otherFields]
  for (const [name, count] of fields.slice(0, maxShown))
    await warn(unknownField(name, ` of ${plantCount(count)}`), 'warning')
  const more = fields.length - maxShown
  if (more > 0) await warn(`ignored ${grouped(more)} more unknown ${more === 1 ? 'field' : 'fields'}`, 'warning')
  const hidden = mode === 'dryRun' && output === 'text' ? counts.created + counts.updated - maxShown : 0
  if (hidden > 0) await warn(`Changes that are not shown: ${grouped(hidden)}. For all: --output ndjson`)
}

function unknownOutcome(unknown: number, { rejects }: Job): PlantsError {
  const which = rejects === undefined ? 'they' : `those in ${rejects}`
  const what = `Whether ${plantCount(unknown)} ${unknown === 1 ? 'is' : 'are'} stored is unknown`
  return new PlantsError('unknownOutcome', what, { hint: `Check whether ${which} are in the store` })
}

function runAgain({ isRestart }: Job): string {
  return `run the same command again${isRestart ? ' without --restart' : ''}`
}

function incomplete(importing: Importer, job: Job): PlantsError {
  const { mode, lock } = job
  const { counts } = importing.position
  const count = rejectedIn(counts)
  const [only = '', ...others] = Object.keys(counts.rejected)
  const verb = mode === 'dryRun' ? 'would be' : count === 1 ? 'was' : 'were'
  const stopped = importing.isDone ? '' : ', and the import stopped there'
  const undone = mode === 'atomic' ? ', so nothing was changed' : ''
  const rest = lock ? `To resume after them, ${runAgain(job)}` : 'The records after them were not read'
  return new PlantsError('incomplete', `${plantCount(count)} ${verb} rejected${stopped}${undone}`, {
    hint: importing.isDone ? hintOf(importing, job) : rest,
    ...(others.length === 0 && { error: parseInt(only, 10) }),
  })
}

function hintOf({ position }: Importer, { plan, mode, rejects }: Job): string {
  const { 409: conflicts = 0, ...others } = position.counts.rejected
  const { idFrom } = plan.rules
  const hints: string[] = []
  if (conflicts > 0 && idFrom === undefined) hints.push('For ids that exist, use --if-exists skip, same or update')
  if (conflicts > 0 && typeof idFrom === 'bigint') hints.push('For ids that exist, use --id-from next')
  if (hints.length > 0 && Object.keys(others).length === 0) return hints.join('. ')
  if (mode !== 'resumable') hints.push('Correct the input: nothing was changed')
  else if (rejects === undefined) hints.push('To keep the rejected records in a file, add --rejects FILE')
  else hints.push(`Correct them in ${rejects}, and import that with the same options, but another --rejects`)
  return hints.join('. ')
}
