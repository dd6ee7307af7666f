import { unknownField, writeResult } from '../output/output.js'
import { clockOf } from '../output/progress.js'
import { plantCount } from '../plant/plant.js'
import type { FormatName } from '../plant/records.js'
import { PlantsError, shellWord } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { grouped } from '../platform/values.js'
import { isOwn } from '../stores/registry.js'
import { canEncode } from '../transfer/formats/encoding.js'
import type { Import, ImportOptions } from '../transfer/import/import.js'
import { type Counters, rejectedIn, settledIn } from '../transfer/import/position.js'
import type { Settings } from './context.js'
import { givenFlags } from './flag-words.js'

/** maximum number of rejected records that are printed as text */
export const maxShown = 20

/** Throws `incomplete` for rejected records, and `unknownOutcome` if it is unknown whether some plants are stored. */
export async function writeSummary(
  importing: Import,
  options: ImportOptions,
  { start, hasJournal }: { start: { time: number; settled: number }; hasJournal: boolean },
  settings: Settings,
  io: Io,
): Promise<void> {
  await warnOfOmissions(importing, options, settings)
  const { counters } = importing
  const rejected = rejectedIn(counters)
  const [isDryRun, isAtomic] = [options.staging === 'dryRun', options.staging === 'atomic']
  const seconds = Math.round(io.now() - start.time) / 1000
  const rate = Math.round((settledIn(counters) - start.settled) / Math.max(seconds, 0.001))
  const [created, updated] = isAtomic && rejected > 0 ? [0, 0] : [counters.created, counters.updated]
  const { skipped, unknown, rejected: reasons } = counters
  const fields = { ...(isDryRun && { dryRun: true }), created, updated, skipped, rejected, reasons, unknown, seconds, rate }
  const time = seconds < 90 ? `${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : clockOf(seconds)
  const since = start.settled > 0 ? ' since it was resumed' : ''
  const sentence = `${plantCount(settledIn(counters))} in ${time}${since}${seconds < 1 ? '' : ` (${grouped(rate)}/s)`}`
  const rejects = rejected > 0 ? options.rejects : undefined
  const [done, planted] = isDryRun ? ['Checked', 'can be created'] : ['Read', 'created']
  const text = `${done} ${sentence}: ${grouped(created)} ${planted}${listOf({ ...counters, updated }, importing.format)}`
  const hint = isAtomic && rejected === 0 ? 'All plants are in the store, only the summary was not written' : undefined
  await writeResult(io, settings, { ...fields, rejects }, text, hint)
  if (counters.unknown > 0) throw unknownOutcome(counters, options)
  if (rejected > 0) throw incomplete(importing, options, settings, hasJournal)
}

/** The counts other than of created plants, such as `, 2 skipped, 3 rejected (1 id exists, 2 not CSV)`. */
function listOf(counters: Counters, format: FormatName): string {
  const { updated, skipped, unknown } = counters
  const reasons = Object.entries(counters.rejected).map(([error, count]) => {
    const words: Readonly<Record<string, string>> = {
      400: `not ${format === 'ndjson' ? 'JSON' : format.toUpperCase()}`,
      409: count === 1 ? 'id exists' : 'ids exist',
      413: 'too large',
      422: 'invalid',
    }
    return `${grouped(count)} ${words[error] ?? `with error ${error}`}`
  })
  return [
    updated > 0 ? `, ${grouped(updated)} updated` : '',
    skipped > 0 ? `, ${grouped(skipped)} skipped` : '',
    reasons.length > 0 ? `, ${grouped(rejectedIn(counters))} rejected (${reasons.join(', ')})` : '',
    unknown > 0 ? `, ${grouped(unknown)} unknown` : '',
  ].join('')
}

async function warnOfOmissions({ counters, rejected }: Import, options: ImportOptions, { store, errors, warn }: Settings): Promise<void> {
  const { inputs } = options.plan
  if (settledIn(counters) === 0)
    await warn(inputs.length === 1 ? `${inputs[0]?.name} contains no records` : 'the inputs contain no records', 'warning')
  const hidden = rejected - maxShown
  if (hidden > 0 && errors === 'text') await warn(`Rejected records that are not shown: ${grouped(hidden)}`)
  const fields = Object.entries(counters.otherFields)
  for (const [name, count] of fields.slice(0, maxShown))
    await warn(await unknownField(name, ` of ${plantCount(count)}`, '--map'), 'warning')
  const more = fields.length - maxShown
  if (more > 0) await warn(`ignored ${grouped(more)} more unknown ${more === 1 ? 'field' : 'fields'}`, 'warning')
  if (options.staging === 'dryRun' && !isOwn(store)) await warn(`Only the input was checked, not which ids exist at ${store.name}`)
}

function unknownOutcome({ unknown }: Counters, { rejects }: ImportOptions): PlantsError {
  const which = rejects === undefined ? 'the plants that were named' : `those in ${rejects}`
  return new PlantsError('unknownOutcome', `Whether ${plantCount(unknown)} ${unknown === 1 ? 'is' : 'are'} stored is unknown`, {
    hint: `Check whether ${which} are in the store`,
  })
}

function incomplete(importing: Import, options: ImportOptions, settings: Settings, hasJournal: boolean): PlantsError {
  const { counters, isDone, isBeforeRecord } = importing
  const { staging } = options
  const count = rejectedIn(counters)
  const [only, ...others] = Object.keys(counters.rejected)
  const stopped = isDone ? '' : ', and the import stopped there'
  const nothing = staging === 'atomic' ? ', so nothing was created' : ''
  const [before, after] = hasJournal
    ? ['Fix it, then run the same command again to resume from it', 'Run the same command again to resume after them']
    : ['Fix it. The records before it were imported', 'The records after them were not read']
  const stop = isBeforeRecord ? before : after
  return new PlantsError('incomplete', `${plantCount(count)} ${count === 1 ? 'was' : 'were'} rejected${stopped}${nothing}`, {
    hint: isDone || staging ? hintOfRejected(importing, options, settings) : stop,
    ...(others.length === 0 && only !== undefined ? { error: parseInt(only, 10) } : {}),
  })
}

function hintOfRejected(importing: Import, options: ImportOptions, settings: Settings): string {
  const { counters, format, mapper } = importing
  const { plan, rejects, staging } = options
  const { store, storeFlag } = settings
  const hasNoIds = plan.rules.idFrom === undefined && mapper.textIds === settledIn(counters)
  if (plan.ifExists !== 'update' && rejects === undefined && hasNoIds)
    return 'To ignore these ids and number the plants, see --map and --id-from in: plants help import'
  const isError = plan.ifExists === 'error'
  const exist = isError || plan.ifExists === 'same' ? hintOfConflicts(importing, isError) : ''
  if (staging === 'atomic') return `${exist}Fix the rejected records, then run the same command again`
  if (staging) return `${exist}Fix the input: nothing was created`
  const policy = isError ? ` --if-exists ${isOwn(store) ? 'same' : 'skip'}` : ''
  if (rejects === undefined) return `${exist}To keep the rejected plants in a file, run it again with:${policy} --rejects rejected.txt`
  const rules = { ...plan.rules, idFrom: mapper.nextId } // the ids before it were used
  const encoding = plan.encoding !== undefined && canEncode(plan.encoding) ? plan.encoding : undefined // otherwise the file is UTF-8
  const given = givenFlags(storeFlag, { ...plan, encoding, format: format === 'json' ? format : plan.format, rules })
  return `${exist}Fix them in ${rejects}, then: plants import ${shellWord(rejects)}${given}`
}

/** What to do about ids that exist, with a space after it; nothing if there are none. */
function hintOfConflicts({ conflicts }: Import, isError: boolean): string {
  return [
    conflicts.repeated > 0 ? 'For ids that are in the input twice, keep one of the records. ' : '',
    conflicts.assigned > 0 ? 'For assigned ids that exist, use another --id-from, unless the input was imported before. ' : '',
    conflicts.existing > 0 ? `For ids that exist, use --if-exists ${isError ? 'skip, same or update' : 'update'}. ` : '',
  ].join('')
}
