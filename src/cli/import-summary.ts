import { unknownField, writeResult } from '../output/output.js'
import { clockOf, type Progress } from '../output/progress.js'
import { inWords } from '../plant/fields.js'
import { plantCount } from '../plant/plant.js'
import { PlantsError } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { grouped } from '../platform/values.js'
import { type ImportLock, rejectedIn, settledIn } from '../transfer/import/checkpoint.js'
import type { Importer } from '../transfer/import/importer.js'
import type { ImportPlan } from '../transfer/import/inputs.js'
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
  const text = isDryRun ? `Would ${intentions(all)}${why}: checked ${took}` : `Read ${took}: ${done.join(', ')}`
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

/** `create 1 plant, update 2 and reject 1` */
function intentions(all: [string, number][]): string {
  const [[name, count] = ['created', 0], ...others] = all.filter(([, count]) => count > 0)
  const verb = (name: string) => verbs[name] ?? name
  const rest = others.map(([name, count]) => `${verb(name)} ${grouped(count)}`)
  return inWords([`${verb(name)} ${plantCount(count)}`, ...rest], 'and')
}

const verbs: Readonly<Record<string, string>> = {
  ...{ created: 'create', updated: 'update', skipped: 'skip', rejected: 'reject' },
}

function reasonsIn(rejected: Readonly<Record<string, number>>): string {
  const words: Readonly<Record<string, (count: number) => string>> = {
    400: () => 'malformed',
    409: (count) => (count === 1 ? 'id exists' : 'ids exist'),
    413: () => 'too large',
    422: () => 'invalid',
  }
  const reasons = Object.entries(rejected)
  return reasons.map(([error, n]) => `${grouped(n)} ${words[error]?.(n) ?? `with error ${error}`}`).join(', ')
}

async function warnOfOmissions(importing: Importer, { plan, mode, settings }: Job): Promise<void> {
  const { errors, output, warn } = settings
  const { firstId, isEmpty, position, rejected } = importing
  const { counts, otherFields, nextId } = position
  if (settledIn(counts) === 0) {
    const [input, ...others] = plan.inputs
    const one = `${input?.name} ${isEmpty ? 'is empty' : 'contains no records'}`
    await warn(others.length > 0 ? 'the inputs contain no records' : one, 'warning')
  }
  if (firstId !== undefined && nextId !== undefined && BigInt(nextId) > firstId) {
    const last = BigInt(nextId) - 1n
    const range = last === firstId ? String(firstId) : `${firstId} to ${last}`
    await warn(`Plants without an id ${mode === 'dryRun' ? 'would get' : 'got'} ${range}`)
  }
  if (rejected > maxShown && errors === 'text')
    await warn(`Rejected records that are not shown: ${grouped(rejected - maxShown)}`)
  const fields = Object.entries(otherFields)
  for (const [name, count] of fields.slice(0, maxShown))
    await warn(unknownField(name, ` of ${plantCount(count)}`), 'warning')
  const more = fields.length - maxShown
  if (more > 0) await warn(`ignored ${grouped(more)} more unknown ${more === 1 ? 'field' : 'fields'}`, 'warning')
  const hidden = mode === 'dryRun' && output === 'text' ? counts.created + counts.updated - maxShown : 0
  if (hidden > 0) await warn(`Changes that are not shown: ${grouped(hidden)}. For all: --output ndjson`)
}

function unknownOutcome(unknown: number, { rejects }: Job): PlantsError {
  const which = rejects === undefined ? 'the plants that were named' : `those in ${rejects}`
  const what = `Whether ${plantCount(unknown)} ${unknown === 1 ? 'is' : 'are'} stored is unknown`
  return new PlantsError('unknownOutcome', what, { hint: `Check whether ${which} are in the store` })
}

function incomplete(importing: Importer, job: Job): PlantsError {
  const { mode, lock, isRestart } = job
  const { counts } = importing.position
  const count = rejectedIn(counts)
  const [only, ...others] = Object.keys(counts.rejected)
  const verb = mode === 'dryRun' ? 'would be' : count === 1 ? 'was' : 'were'
  const stopped = importing.isDone ? '' : ', and the import stopped there'
  const undone = mode === 'atomic' ? ', so nothing was changed' : ''
  const again = `Run the same command again${isRestart ? ' without --restart' : ''} to resume after them`
  const rest = lock ? again : 'The records after them were not read'
  return new PlantsError('incomplete', `${plantCount(count)} ${verb} rejected${stopped}${undone}`, {
    hint: importing.isDone ? hintOf(importing, job) : rest,
    ...(others.length === 0 && only !== undefined ? { error: parseInt(only, 10) } : {}),
  })
}

/** One for each cause. */
function hintOf(importing: Importer, { plan, mode, rejects }: Job): string {
  const { position, repeated, withoutIds } = importing
  const { 409: conflicts = 0, ...others } = position.counts.rejected
  const { ifExists, rules } = plan
  const hints: string[] = []
  if (repeated > 0) hints.push('Of records with the same id, the first one counts: delete the others')
  if (conflicts > repeated && rules.idFrom === undefined)
    hints.push(`For ids that exist, use --if-exists ${ifExists === 'error' ? 'skip, same or update' : 'update'}`)
  if (conflicts > repeated && rules.idFrom !== undefined && rules.idFrom !== 'next')
    hints.push('For ids that exist, use --id-from next')
  const isWithoutIds = withoutIds > 0 && withoutIds === settledIn(position.counts)
  if (isWithoutIds) hints.push('To number the plants, whatever ids they have, add --map id= --id-from next')
  if (hints.length > 0 && (Object.keys(others).length === 0 || isWithoutIds)) return hints.join('. ')
  if (mode !== 'resumable') hints.push('Correct the input: nothing was changed')
  else if (rejects !== undefined)
    hints.push(`Correct them in ${rejects}, and import that with the same options, but another --rejects`)
  else hints.push('To keep the rejected records in a file, add --rejects FILE')
  return hints.join('. ')
}
