import { unknownField, writeResult } from '../output/output.js'
import { clockOf, type Progress } from '../output/progress.js'
import { plantCount } from '../plant/plant.js'
import { PlantsError } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { grouped } from '../platform/values.js'
import { type ImportLock, rejectedIn, settledIn } from '../transfer/import/checkpoint.js'
import type { Importer } from '../transfer/import/importer.js'
import type { ImportPlan } from '../transfer/import/input.js'
import type { Settings } from './settings.js'

export interface ImportOptions {
  plan: ImportPlan
  /** absolute */
  rejects: string | undefined
  isRestart: boolean
  /** `atomic`: all plants or none */
  mode: 'resumable' | 'atomic' | 'dryRun'
  /** of a dry run: every change is printed, as a JSON object on a line */
  showsAll: boolean
}

export interface Job extends ImportOptions {
  settings: Settings
  io: Io
  /** undefined if the import cannot be resumed */
  lock: ImportLock | undefined
  progress: Progress
  startTime: number
}

/** maximum numbers of rejected records, and of changes of a dry run, printed as text */
export const maxShown = 20

/** Throws `incomplete` for rejected records, and `unknownOutcome` for unknown outcomes, unless the input `isBroken`. */
export async function writeSummary(importing: Importer, job: Job, isBroken = false): Promise<void> {
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

/** Where it stopped. */
export function runAgain({ isRestart }: Job): string {
  return `run the same command again${isRestart ? ' without --restart' : ''}`
}

function incomplete(importing: Importer, job: Job): PlantsError {
  const { mode, lock } = job
  const { counts } = importing.position
  const count = rejectedIn(counts)
  const [only, ...others] = Object.keys(counts.rejected)
  const verb = mode === 'dryRun' ? 'would be' : count === 1 ? 'was' : 'were'
  const stopped = importing.isDone ? '' : ', and the import stopped there'
  const undone = mode === 'atomic' ? ', so nothing was changed' : ''
  const rest = lock ? `To resume after them, ${runAgain(job)}` : 'The records after them were not read'
  return new PlantsError('incomplete', `${plantCount(count)} ${verb} rejected${stopped}${undone}`, {
    hint: importing.isDone ? hintOf(importing, job) : rest,
    ...(others.length === 0 && only !== undefined ? { error: parseInt(only, 10) } : {}),
  })
}

/** One for each cause. */
function hintOf({ position }: Importer, { plan, mode, rejects }: Job): string {
  const { 409: conflicts = 0, ...others } = position.counts.rejected
  const { idFrom } = plan.rules
  const hints: string[] = []
  if (conflicts > 0 && idFrom === undefined) hints.push('For ids that exist, use --if-exists skip, same or update')
  if (conflicts > 0 && typeof idFrom === 'bigint') hints.push('For ids that exist, use --id-from next')
  if (hints.length > 0 && Object.keys(others).length === 0) return hints.join()
  if (mode !== 'resumable') hints.push('Correct the input: nothing was changed')
  else if (rejects === undefined) hints.push('To keep the rejected records in a file, add --rejects FILE')
  else hints.push(`Correct them in ${rejects}, and import that with the same options, but another --rejects`)
  return hints.join('. ')
}
