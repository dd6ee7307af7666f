import { basename } from 'node:path'
import { similarField, unknownField, writeResult } from '../output/output.js'
import { clockOf } from '../output/progress.js'
import { inWords } from '../plant/fields.js'
import { plantCount } from '../plant/plant.js'
import type { FormatName } from '../plant/records.js'
import { PlantsError, shellWord } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { grouped } from '../platform/values.js'
import { isOwn } from '../stores/registry.js'
import { canEncode } from '../transfer/formats/encoding.js'
import { type Counters, rejectedIn, settledIn } from '../transfer/import/checkpoint.js'
import type { Import, ImportOptions, ImportPlan } from '../transfer/import/importer.js'
import type { Settings } from './context.js'
import { givenFlags } from './flag-words.js'

/** maximum numbers of rejected records, and of changes of a dry run, printed as text */
export const maxShown = 20

/** Throws `incomplete` for rejected records, and `unknownOutcome` for unknown outcomes. */
export async function writeSummary(
  importing: Import,
  options: ImportOptions,
  { start, canResume }: { start: { time: number; settled: number }; canResume: boolean },
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
  const fields = {
    ...(isDryRun && { dryRun: true }),
    created,
    updated,
    skipped,
    rejected,
    reasons,
    unknown,
    seconds,
    rate,
  }
  const time = seconds < 90 ? `${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : clockOf(seconds)
  const since = start.settled > 0 ? ' since it was resumed' : ''
  const sentence = `${plantCount(settledIn(counters))} in ${time}${since}${seconds < 1 ? '' : ` (${grouped(rate)}/s)`}`
  const rejects = rejected > largeIn(counters) ? options.rejects : undefined
  const counts = Object.entries({ created, updated, skipped, rejected, unknown })
  const why = rejected > 0 ? ` (${reasonsIn(counters, importing.format)})` : ''
  const done = counts
    .filter(([name, count]) => name === 'created' || count > 0)
    .map(([name, count]) => `${grouped(count)} ${name}${name === 'rejected' ? why : ''}`)
  const text = isDryRun
    ? `Would ${inWords(intentions(counts), 'and')}${why}: checked ${sentence}`
    : `Read ${sentence}: ${done.join(', ')}`
  const hint = isAtomic && rejected === 0 ? 'All plants are in the store, only the summary was not written' : undefined
  await writeResult(io, settings, { ...fields, rejects }, text, hint)
  if (counters.unknown > 0) throw unknownOutcome(counters, options)
  if (rejected > 0) throw incomplete(importing, options, settings, canResume)
}

/** `create 1 plant`, `update 2`, `reject 1` */
function intentions(counts: [string, number][]): string[] {
  const [[name, count] = ['created', 0], ...others] = counts.filter(([, count]) => count > 0)
  const verb = (name: string) => verbs[name] ?? name
  return [`${verb(name)} ${plantCount(count)}`, ...others.map(([name, count]) => `${verb(name)} ${grouped(count)}`)]
}

const verbs: Readonly<Record<string, string>> = {
  ...{ created: 'create', updated: 'update', skipped: 'skip', rejected: 'reject' },
}

function reasonsIn(counters: Counters, format: FormatName): string {
  const reasons = Object.entries(counters.rejected).map(([error, count]) => {
    const words: Readonly<Record<string, string>> = {
      400: `not ${format === 'ndjson' ? 'JSON' : format.toUpperCase()}`,
      409: count === 1 ? 'id exists' : 'ids exist',
      413: 'too large',
      422: 'invalid',
    }
    return `${grouped(count)} ${words[error] ?? `with error ${error}`}`
  })
  return reasons.join(', ')
}

async function warnOfOmissions(importing: Import, options: ImportOptions, settings: Settings): Promise<void> {
  const { errors, output, warn } = settings
  const { counters, rejected, isEmpty } = importing
  const [input, ...others] = options.plan.inputs
  if (settledIn(counters) === 0) {
    await warn(
      others.length > 0
        ? 'the inputs contain no records'
        : `${input?.name} ${isEmpty ? 'is empty' : 'contains no records'}`,
      'warning',
    )
  }
  await warnOfNumbers(importing, options, warn)
  const hidden = rejected - maxShown
  if (hidden > 0 && errors === 'text') await warn(`Rejected records that are not shown: ${grouped(hidden)}`)
  await warnOfUnknownFields(importing, options, settings)
  const isShown = options.staging === 'dryRun' && output === 'text'
  const hiddenChanges = isShown ? counters.created + counters.updated - maxShown : 0
  if (hiddenChanges > 0) await warn(`Changes that are not shown: ${grouped(hiddenChanges)}. For all: --output ndjson`)
}

async function warnOfNumbers(
  { firstId, mapper: { nextId } }: Import,
  { staging }: ImportOptions,
  warn: Settings['warn'],
): Promise<void> {
  if (firstId === undefined || nextId === undefined || nextId === firstId) return
  const range = nextId - firstId === 1n ? String(firstId) : `${firstId} to ${nextId - 1n}`
  await warn(`Plants without an id ${staging === 'dryRun' ? 'would get' : 'got'} ${range}`)
}

async function warnOfUnknownFields(importing: Import, options: ImportOptions, settings: Settings): Promise<void> {
  const { rules, ifExists } = options.plan
  const { warn } = settings
  const fields = Object.entries(importing.counters.otherFields)
  const map: Record<string, string> = { ...rules.map }
  for (const [name, count] of fields.slice(0, maxShown)) {
    const alike = await similarField(name)
    if (alike) map[alike] ??= name
    await warn(unknownField(name, alike, ` of ${plantCount(count)}`), 'warning')
  }
  const more = fields.length - maxShown
  if (more > 0) await warn(`ignored ${grouped(more)} more unknown ${more === 1 ? 'field' : 'fields'}`, 'warning')
  if (Object.keys(map).length === Object.keys(rules.map).length) return
  // the plants are stored without these fields
  const policy = options.staging === 'dryRun' ? ifExists : 'update'
  await warn(`If so: ${repeatOf(importing, options, settings, { map, ifExists: policy })}`)
}

function unknownOutcome({ unknown }: Counters, { rejects }: ImportOptions): PlantsError {
  const which = rejects === undefined ? 'the plants that were named' : `those in ${rejects}`
  return new PlantsError(
    'unknownOutcome',
    `Whether ${plantCount(unknown)} ${unknown === 1 ? 'is' : 'are'} stored is unknown`,
    {
      hint: `Check whether ${which} are in the store`,
    },
  )
}

function incomplete(importing: Import, options: ImportOptions, settings: Settings, canResume: boolean): PlantsError {
  const { counters, isDone, isBeforeRecord } = importing
  const { staging } = options
  const count = rejectedIn(counters)
  const [only, ...others] = Object.keys(counters.rejected)
  const stopped = isDone ? '' : ', and the import stopped there'
  const nothing = staging === 'atomic' ? ', so nothing was changed' : ''
  const again = `the same command again${options.isRestart ? ' without --restart' : ''}`
  const [before, after] = canResume
    ? [`Fix it, then run ${again} to resume from it`, `Run ${again} to resume after them`]
    : ['Fix it. The records before it were imported', 'The records after them were not read']
  const stop = isBeforeRecord ? before : after
  const verb = staging === 'dryRun' ? 'would be' : count === 1 ? 'was' : 'were'
  return new PlantsError('incomplete', `${plantCount(count)} ${verb} rejected${stopped}${nothing}`, {
    hint: isDone || staging ? hintOfRejected(importing, options, settings) : stop,
    ...(others.length === 0 && only !== undefined ? { error: parseInt(only, 10) } : {}),
  })
}

function hintOfConflicts(importing: Import, { plan, staging }: ImportOptions): string {
  const { counters, repeated } = importing
  const { ifExists, rules } = plan
  const { 409: conflicts = 0 } = counters.rejected
  if (conflicts === 0 || ifExists === 'update') return ''
  const { idFrom } = rules
  // those that were created would be created again
  if (importing.hasAssignedIds) return staging && idFrom !== 'next' ? 'For ids that exist, use --id-from next. ' : ''
  const repeats = repeated > 0 ? 'Of records with the same id, the first one counts: delete the others. ' : ''
  if (repeated === conflicts) return repeats
  const other =
    idFrom === undefined ? ['skip, same or update', 'update'] : ['skip or same', 'update, without --id-from']
  return `${repeats}For ids that exist, use --if-exists ${ifExists === 'error' ? other[0] : other[1]}. `
}

/** The rejects file has no records that are too large to be read. */
function largeIn({ rejected }: Counters): number {
  return rejected[413] ?? 0
}

function withoutLarge(counters: Counters): string {
  const large = largeIn(counters)
  return large === 0 ? '' : ` (${grouped(large)} larger than 1 MiB ${large === 1 ? 'is' : 'are'} not in it)`
}

/** The command that imports the same with a change; plants that were numbered get the same ids. */
function repeatOf(
  { firstId }: Import,
  { plan, staging }: ImportOptions,
  { storeFlag }: Settings,
  {
    ifExists = plan.ifExists,
    ...change
  }: Partial<Pick<ImportPlan['rules'], 'map' | 'idFrom'> & Pick<ImportPlan, 'ifExists'>>,
): string {
  const files = plan.inputs.map(({ path, name }) => (path === '-' ? path : shellWord(name)))
  const rules = { ...plan.rules, idFrom: firstId, ...change }
  const flag = staging === undefined ? '' : staging === 'dryRun' ? ' --dry-run' : ' --atomic'
  return `plants import ${files.join(' ')}${givenFlags(storeFlag, { ...plan, rules, ifExists })}${flag}`
}

/** Whether a repeat can use `same`, which reads plants: `--id-from next` reads them, so the token has the right. */
export function canCompare({ firstId }: Import, { store }: Settings): boolean {
  return isOwn(store) || firstId !== undefined
}

function hintOfRejected(importing: Import, options: ImportOptions, settings: Settings): string {
  const { counters, mapper } = importing
  const { plan, rejects, staging } = options
  const hasNoIds = plan.rules.idFrom === undefined && mapper.withoutIds === settledIn(counters)
  if (plan.ifExists !== 'update' && rejects === undefined && hasNoIds) {
    const change = { map: { ...plan.rules.map, id: '' }, idFrom: 'next' } as const
    return `To number the plants, whatever ids they have: ${repeatOf(importing, options, settings, change)}`
  }
  const exist = hintOfConflicts(importing, options)
  if (staging === 'atomic') return `${exist}Fix the rejected records, then run the same command again`
  if (staging) return `${exist}Fix the input: nothing was changed`
  if (rejects !== undefined) return `${exist}${hintOfRejectsFile(importing, plan, rejects, settings)}`
  // with skip, records that differ from their plants would be left out of the rejects
  const policyOfRest = canCompare(importing, settings) || counters.rejected[409] ? 'same' : 'skip'
  const isNext = importing.firstId !== undefined && plan.ifExists === 'skip' // the repeat has a number instead
  const ifExists = plan.ifExists === 'error' || isNext ? policyOfRest : plan.ifExists
  const repeat = repeatOf(importing, options, settings, { ifExists })
  return `${exist}To keep the rejected plants in a file: ${repeat} --rejects ${nameOfRejects(importing, plan)}`
}

/** Not that of an input. */
function nameOfRejects({ format }: Import, { inputs }: ImportPlan): string {
  const used = inputs.map(({ path }) => basename(path))
  let name = `rejected.${format}`
  for (let number = 2; used.includes(name); number += 1) name = `rejected-${number}.${format}`
  return name
}

function hintOfRejectsFile(
  importing: Import,
  plan: ImportOptions['plan'],
  rejects: string,
  { store, storeFlag }: Settings,
): string {
  const { counters, format, mapper } = importing
  if (largeIn(counters) === rejectedIn(counters))
    return 'Records larger than 1 MiB are not in the rejects file: correct the input'
  const { idFrom } = plan.rules
  const isTaken = idFrom !== undefined && isOwn(store) && counters.rejected[409]
  // the ids before it were used
  const delimiter = importing.isSheet && plan.rules.columns ? ',' : plan.rules.delimiter
  const rules = { ...plan.rules, delimiter, idFrom: idFrom === 'next' || isTaken ? ('next' as const) : mapper.nextId }
  // otherwise the file is UTF-8
  const encoding = plan.encoding !== undefined && canEncode(plan.encoding) ? plan.encoding : undefined
  const form = { format: format === 'json' ? format : plan.format, sheet: undefined, encoding }
  const given = givenFlags(storeFlag, { ...plan, ...form, rules })
  return `Fix them in ${rejects}${withoutLarge(counters)}, then: plants import ${shellWord(rejects)}${given}`
}
