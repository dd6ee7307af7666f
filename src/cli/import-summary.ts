import { unknownField, writeResult } from '../output/output.js'
import { clockOf } from '../output/progress.js'
import { plantCount } from '../plant/plant.js'
import { PlantsError, shellWord } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { grouped } from '../platform/values.js'
import { isOwn } from '../stores/registry.js'
import type { Import, ImportOptions } from '../transfer/import/import.js'
import { type Counters, rejectedIn, settledIn } from '../transfer/import/position.js'
import type { Settings } from './context.js'
import { flagWords, givenFlags, recordFlags } from './flag-words.js'

/** maximum number of rejected records that are printed as text */
export const maxShown = 20

/** Prints the result of an import. Throws `incomplete` for rejected records, and `unknownOutcome` if it is unknown whether some plants are stored. */
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
  const isCheck = options.staging === 'check'
  const seconds = Math.round(io.now() - start.time) / 1000
  const rate = Math.round((settledIn(counters) - start.settled) / Math.max(seconds, 0.001))
  const isUndone = options.staging === 'atomic' && rejected > 0
  const [created, updated] = isUndone ? [0, 0] : [counters.created, counters.updated]
  const counts = { updated, skipped: counters.skipped, refused: rejected, reasons: counters.refused, unknown: counters.unknown }
  const fields = { ...(isCheck ? { valid: created } : { created }), ...counts, seconds, rate }
  const time = seconds < 90 ? `${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : clockOf(seconds)
  const since = start.settled > 0 ? ' since it was resumed' : ''
  const sentence = `${plantCount(settledIn(counters))} in ${time}${since}${seconds < 1 ? '' : ` (${grouped(rate)}/s)`}`
  const rejects = rejected > 0 ? options.rejects : undefined
  const what = isCheck ? ['Checked', 'can be created'] : ['Read', 'created']
  const text = `${what[0]} ${sentence}: ${grouped(created)} ${what[1]}${listOf({ ...counters, updated })}`
  await writeResult(io, settings, { ...fields, rejects }, text)
  if (counters.unknown > 0) throw unknownOutcome(counters, options)
  if (rejected > 0) throw incomplete(importing, options, settings, hasJournal)
}

/** The counts other than of created plants, such as `, 2 skipped, 3 rejected (409: 1, 422: 2)`. */
function listOf(counters: Counters): string {
  const { updated, skipped, unknown, refused } = counters
  const reasons = Object.entries(refused).map(([error, count], _, all) => (all.length === 1 ? error : `${error}: ${grouped(count)}`))
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
  if (hidden > 0 && errors === 'text')
    await warn(hidden === 1 ? '1 more rejected record is not shown' : `${grouped(hidden)} more rejected records are not shown`)
  const fields = Object.entries(counters.otherFields)
  for (const [name, count] of fields.slice(0, maxShown))
    await warn(await unknownField(name, ` of ${plantCount(count)}`, '--map'), 'warning')
  const more = fields.length - maxShown
  if (more > 0) await warn(`ignored ${grouped(more)} more unknown ${more === 1 ? 'field' : 'fields'}`, 'warning')
  if (options.staging === 'check' && !isOwn(store)) await warn(`Only the input was checked, not which ids exist at ${store.name}`)
}

function unknownOutcome({ unknown }: Counters, { rejects }: ImportOptions): PlantsError {
  return new PlantsError('unknownOutcome', `Whether ${plantCount(unknown)} ${unknown === 1 ? 'is' : 'are'} stored is unknown`, {
    hint:
      rejects === undefined
        ? 'Check whether the plants that were named are in the store'
        : `They are in ${rejects}. Check whether they are in the store`,
  })
}

function incomplete(importing: Import, options: ImportOptions, settings: Settings, hasJournal: boolean): PlantsError {
  const { counters, isDone, isBeforeRecord } = importing
  const { staging } = options
  const count = rejectedIn(counters)
  const [only, ...others] = Object.keys(counters.refused)
  const stopped = isDone ? '' : ', and the import stopped there'
  const nothing = staging === 'atomic' ? ', so nothing was created' : ''
  const hints = {
    stoppedBefore: hasJournal ? 'Fix it, then run the same command again to resume from it' : 'Fix it. The records before it were imported',
    stoppedAfter: hasJournal ? 'Run the same command again to resume after them' : 'The records after them were not read',
    done: hintOfRejected(importing, options, settings),
  }
  const stop = isBeforeRecord ? hints.stoppedBefore : hints.stoppedAfter
  return new PlantsError('incomplete', `${plantCount(count)} ${count === 1 ? 'was' : 'were'} rejected${stopped}${nothing}`, {
    hint: isDone || staging ? hints.done : stop,
    ...(others.length === 0 && only !== undefined ? { error: parseInt(only, 10) } : {}),
  })
}

function hintOfRejected(importing: Import, options: ImportOptions, { store, storeFlag }: Settings): string {
  const { counters, format, mapper } = importing
  const { plan, rejects, staging } = options
  if (plan.rules.idFrom === undefined && rejects === undefined && mapper.textIds === settledIn(counters)) {
    const numbering = { map: { ...plan.rules.map, id: '' }, idFrom: 1n }
    const flags = recordFlags({ format: undefined, encoding: undefined, rules: numbering })
    return `To ignore these ids and number the plants, run it again with:${flagWords(flags)}`
  }
  const isError = plan.ifExists === 'error'
  const others = isError ? 'skip, same or update' : 'update'
  const choice = plan.rules.idFrom === undefined ? `--if-exists ${others}` : 'another --id-from'
  const exist = counters.refused[409] && (isError || plan.ifExists === 'same') ? `For ids that exist, use ${choice}. ` : ''
  if (staging) return `${exist}Fix the input: nothing was created`
  const policy = isError ? ` --if-exists ${isOwn(store) ? 'same' : 'skip'}` : ''
  if (rejects === undefined) return `${exist}To keep the rejected plants in a file, run it again with:${policy} --rejects rejected.txt`
  const rules = { ...plan.rules, idFrom: mapper.nextId } // the ids before it were used
  const given = givenFlags(storeFlag, { ...plan, format: format === 'json' ? format : plan.format, rules })
  return `${exist}Fix them in ${rejects}, then: plants import ${shellWord(rejects)}${given}`
}
