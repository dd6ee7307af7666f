import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import {
  describeChange,
  describePlant,
  reportWaiting,
  styleFor,
  unknownFields,
  writeAnswer,
  writeRejected,
  writeResult,
} from '../output/output.js'
import { clockOf, type Progress, progressLine } from '../output/progress.js'
import { toJson } from '../plant/exact-json.js'
import { type FieldName, plantCount, plantOf } from '../plant/plant.js'
import { malformed, PlantsError } from '../platform/errors.js'
import { shorten } from '../platform/escape.js'
import type { Io } from '../platform/io.js'
import { grouped, must } from '../platform/values.js'
import type { ExistsPolicy } from '../stores/common/change.js'
import type { Right, Store } from '../stores/common/store.js'
import { completeAddress, idAfter, isOwn, nextIdIn, openToCompare, schemeOf } from '../stores/registry.js'
import type { FieldRules } from '../transfer/formats/chunk.js'
import {
  findImport,
  type ImportCommand,
  type ImportLock,
  keepImport,
  type Position,
  rejectedIn,
  restartHint,
  type SavedImport,
  settledIn,
  skipping,
  whileAlone,
} from '../transfer/import/checkpoint.js'
import { dryRunOf, type PlannedChange } from '../transfer/import/dry-run.js'
import { type ImportContext, Importer } from '../transfer/import/importer.js'
import {
  assertEncodings,
  assertSameFiles,
  assertSameLayouts,
  explainInput,
  greatestIdIn,
  type ImportInput,
  type ImportPlan,
  type OpenInput,
  openInput,
} from '../transfer/import/input.js'
import { maxOtherFields } from '../transfer/import/map.js'
import { Rejects } from '../transfer/import/rejects.js'
import type { GlobalOptions } from './command.js'
import type { Settings } from './settings.js'

/** maximum numbers of rejected records, and of changes of a dry run, printed as text */
const maxShown = 20

/** At a service: less than a second of requests. */
const recordsAtOnce = 500

export interface ImportOptions extends GlobalOptions {
  dryRun?: true
  atomic?: true
  format?: ImportPlan['format']
  sheet?: string
  encoding?: string
  delimiter?: string
  columns?: string[]
  map?: FieldRules['map']
  idFrom?: bigint | 'next'
  ifExists: ExistsPolicy
  maxErrors?: number
  rejects?: string
  restart?: true
  concurrency?: number
  /** milliseconds */
  retry?: number
}

interface Run {
  plan: ImportPlan
  options: ImportOptions
  /** undefined if the import cannot be resumed */
  lock: ImportLock | undefined
  progress: Progress
  /** the columns that are read by their names although `--map` names other columns */
  byName: Map<FieldName, string>
  /** in milliseconds, monotonic */
  startTime: number
  settings: Settings
  io: Io
}

type Target = Pick<Store, 'write' | 'transaction' | 'checkpoint' | 'close'>

export async function runImport(inputs: ImportInput[], options: ImportOptions, settings: Settings, io: Io) {
  assertReadable(inputs, options.rejects)
  const { format, sheet, encoding, delimiter, columns, map = {}, idFrom, ifExists, maxErrors = Infinity } = options
  const { store, showsProgress } = settings
  const plan: ImportPlan = {
    ...{ inputs, format, sheet, encoding, delimiter, ifExists, maxErrors },
    rules: { map, columns, idFrom, isPartial: ifExists === 'update' },
    maxRecords: isOwn(store) ? Infinity : recordsAtOnce,
    readsAhead: store.scheme !== 'sqlite',
    onWaiting: reportWaiting('plants', io, settings),
  }
  const progress = progressLine(io, showsProgress, 0)
  const startTime = io.now()
  const byName: Run['byName'] = new Map()
  const run = (lock?: ImportLock) => importInputs({ plan, options, lock, progress, byName, startTime, settings, io })
  const paths = inputs.map(({ path }) => path)
  const isResumable = !options.dryRun && !options.atomic && !paths.includes('-')
  await (isResumable ? whileAlone(completeAddress(store), paths, io, run) : run())
}

function assertReadable(inputs: ImportInput[], rejects: string | undefined): void {
  const target = rejects !== undefined && statSync(rejects, { throwIfNoEntry: false }) && realpathSync(rejects)
  for (const { path, name } of inputs) {
    if (path === '-') continue
    try {
      accessSync(path, constants.R_OK)
    } catch (error) {
      throw explainInput(name, error)
    }
    if (realpathSync(path) === target) throw malformed(`--rejects names the input ${name}`, 'Choose another file')
  }
}

async function importInputs(run: Run): Promise<void> {
  const { plan, options, io } = run
  const first = await openInput(must(plan.inputs[0]), plan, io).catch((error: unknown) => {
    throw explained(error, undefined, run)
  })
  try {
    // before a store is made
    if (options.rejects !== undefined) await assertSameLayouts(first, plan, io)
    await assertEncodings(plan, io).catch((error: unknown) => {
      throw explained(error, undefined, run)
    })
    const target = await openTarget(run)
    try {
      await importInto(target, first, run)
    } finally {
      await target.close()
    }
  } finally {
    first.close()
  }
}

async function openTarget(run: Run): Promise<Target> {
  const { options, settings } = run
  const { store: address, storeOptions, warn } = settings
  if (!options.dryRun) {
    const needs: Right[] = options.ifExists === 'update' ? ['update'] : []
    return schemeOf(address).open(address, { ...storeOptions, needs })
  }
  const { store, isReadable } = await openToCompare(address, storeOptions)
  if (!isReadable) await warn(`Only the input is checked, not which ids exist at ${address.name}`)
  return dryRunOf(store, isReadable, changesWriter(run))
}

/** Each part in a transaction of its own, unless all are in one. At a service, the checkpoint is in a journal. */
async function importInto(target: Target, first: OpenInput, run: Run): Promise<void> {
  const { plan, options, lock, progress, settings, io } = run
  const isService = !isOwn(settings.store)
  const { saved, isNew, rejectsLength } = await openImport(target, run)
  const rejects =
    options.rejects !== undefined && !options.dryRun
      ? await Rejects.open(options.rejects, rejectsLength, io.signal)
      : undefined
  const importing = new Importer(plan, saved, { ...reportsOf(run), lock, isService, rejects, io })
  const rollBack = new PlantsError('incomplete', 'Some records were rejected')
  try {
    // Before a plant is sent with its idempotency key, or written to the rejects file.
    if (lock && isNew && (rejects || isService)) await keepImport(lock, target, saved)
    if (options.atomic)
      await must(target.transaction).call(target, async (write) => {
        await importing.run(first, write)
        if (importing.rejected > 0 || !importing.isDone) throw rollBack
      })
    else await importing.run(first, target.write.bind(target))
  } catch (error) {
    if (lock && isService && !importing.isBegun) await keepImport(lock, target, undefined)
    await progress.clear()
    const isEndOfInput = error instanceof PlantsError && error.type === 'malformed'
    if (isEndOfInput && isKept(importing, options)) await writeSummary(importing, run)
    if (error !== rollBack) throw explained(error, importing, run)
  } finally {
    rejects?.close()
  }

  try {
    await progress.clear()
    await writeSummary(importing, run)
    assertComplete(importing, run)
  } finally {
    // Last, so that an import that is killed before this can print its result again.
    if (lock && importing.isDone) await forgetImport(lock, target, settings)
  }
}

/** The import of an earlier run, or a new one, with the length of the rejects file if that run had the same. */
async function openImport(target: Target, run: Run) {
  const { plan, options, lock, settings, io } = run
  const { ifExists } = options
  const command: ImportCommand = { flags: readingFlags(options), ifExists }
  const found = await findImport(lock, target, command, options.restart === true)
  const { saved, isNew } = found
  const again = () => restartHint(saved, command, { isService: !isOwn(settings.store), hasOtherFile: true })
  if (isNew) saved.firstId ??= (await firstIdFor(run))?.toString()
  else await assertSameFiles(plan, saved.position, io, `Use the file as it was, or ${again()}`)
  const done = settledIn(saved.position.counts)
  if (done > 0)
    await settings.warn(`Resuming an interrupted import: ${plantCount(done)} ${done === 1 ? 'is' : 'are'} done`)
  return found
}

/** All is stored by now: a checkpoint that stays is not a failure. */
async function forgetImport(lock: ImportLock, target: Target, { warn }: Settings): Promise<void> {
  try {
    await keepImport(lock, target, undefined)
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    await warn(`The import is done, but its checkpoint may have been left: ${error.message}`)
  }
}

/** Those that determine what a record is, and its number. Others, such as --if-exists, may differ when it is resumed. */
function readingFlags(options: ImportOptions): SavedImport['flags'] {
  const map = Object.entries(options.map ?? {}).map((entry) => entry.join('='))
  return {
    '--format': options.format,
    '--sheet': options.sheet,
    '--encoding': options.encoding,
    '--delimiter': options.delimiter,
    '--columns': options.columns?.join(),
    '--map': map.length > 0 ? map.join() : undefined,
    '--id-from': options.idFrom?.toString(),
    '--rejects': options.rejects,
  }
}

/** Of `--id-from next`: above all ids of the store and, if they can be read twice, of the inputs. */
async function firstIdFor({ plan, settings, io }: Run): Promise<bigint | undefined> {
  if (plan.rules.idFrom !== 'next') return undefined
  const greatest = await greatestIdIn(plan, io)
  const next = await nextIdIn(settings.store, settings.storeOptions, '--id-from')
  return greatest !== undefined && greatest >= next ? idAfter(greatest, '--id-from') : next
}

function reportsOf({
  plan,
  progress,
  byName,
  settings,
  io,
}: Run): Pick<ImportContext, 'onOpened' | 'onRejected' | 'onProgress'> {
  let remaining = settings.errors === 'json' ? Infinity : maxShown
  return {
    onOpened: async ({ header, skipped }, input) => {
      const { map } = plan.rules
      const isMapped = Object.values(map).some((source) => source !== '')
      for (const [field, column] of header?.columns ?? [])
        if (isMapped && map[field] === undefined) byName.set(field, must(header?.names[column]))
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
        const [file] = plan.inputs.length === 1 ? position.files : []
        const part = file?.size ? Math.min(1, file.bytes / file.size) : undefined
        return { done: settledIn(position.counts), rejected, part }
      }),
  }
}

/** Of a dry run: all changes as NDJSON, or the first ones as text. */
function changesWriter({ options, progress, settings, io }: Run): (changes: PlannedChange[]) => Promise<void> {
  const isText = settings.output === 'text'
  let remaining = options.output === 'ndjson' ? Infinity : isText && !settings.isQuiet ? maxShown : 0
  return async (changes) => {
    const shown = changes.slice(0, remaining)
    remaining -= shown.length
    if (shown.length === 0) return
    const style = await styleFor(settings.colors(io.stdout))
    const lines = shown.map(({ before, after }) => {
      if (isText) {
        const what = before ? `update ${describeChange(before, after, style)}` : `create ${describePlant(after, style)}`
        return `Would ${what}\n`
      }
      const old = before && { before: plantOf(before) }
      return `${toJson({ dryRun: true, id: after.id, ...old, after: plantOf(after) })}\n`
    })
    await progress.clear()
    await writeAnswer(io, lines.join(''))
  }
}

async function writeSummary(importing: Importer, run: Run): Promise<void> {
  const { options, startTime, settings, io } = run
  const total = importing.position.counts
  const { skipped, unknown, rejected: reasons } = total
  const rejected = rejectedIn(total)
  const { created, updated } = isRolledBack(importing, options) ? { created: 0, updated: 0 } : total
  const settled = settledIn(total)
  const ofRun = settled - importing.settledBefore
  const seconds = Math.round(io.now() - startTime) / 1000
  const rate = Math.round(ofRun / Math.max(seconds, 0.001))

  await warnOfRest(importing, run)
  const why = Object.entries(reasons).map(([error, n]) => `${grouped(n)} ${words[error] ?? `with error ${error}`}`)
  const done = Object.entries({ created, updated, skipped, rejected, unknown })
    .filter(([name, count]) => name === 'created' || count > 0)
    .map(([name, count]) => `${grouped(count)} ${name}${name === 'rejected' ? ` (${why.join(', ')})` : ''}`)
  const time = seconds < 90 ? `${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : clockOf(seconds)
  const since = ofRun < settled ? ' since it was resumed' : ''
  const took = `${plantCount(settled)} in ${time}${since}${seconds < 1 ? '' : ` (${grouped(rate)}/s)`}`
  const text = `${options.dryRun ? 'Dry run of' : 'Read'} ${took}: ${done.join(', ')}`
  const rejects = rejected > 0 && !options.dryRun ? options.rejects : undefined
  const fields = { created, updated, skipped, rejected, reasons, unknown, seconds, rate, rejects }
  const hint = isRolledBack(importing, options) ? 'Nothing was stored' : undefined
  await writeResult(io, settings, { ...(options.dryRun && { dryRun: true }), ...fields }, text, hint)
}

/** What the records had, and what was not printed. */
async function warnOfRest(importing: Importer, { plan, options, byName, settings }: Run): Promise<void> {
  const { warn, errors } = settings
  const { counts, numbered } = importing.position
  const input = plan.inputs.length === 1 ? must(plan.inputs[0]).name : 'the input'
  if (settledIn(counts) === 0) await warn(`${input} contains no records`, 'warning')
  if (options.idFrom === 'next' && numbered && !isRolledBack(importing, options))
    await warn(`Plants without an id ${options.dryRun ? 'would get' : 'got'} ${rangeOf(numbered)}`)
  if (options.dryRun && options.rejects !== undefined && importing.rejected > 0)
    await warn('A dry run writes no rejects file')
  if (importing.rejected > maxShown && errors === 'text')
    await warn(`Only the first ${maxShown} rejected records are shown`)
  const columns = columnsWarning(importing.otherFields, byName)
  if (columns !== undefined) await warn(columns, 'warning')
  if (options.dryRun && settings.output === 'text' && counts.created + counts.updated > maxShown)
    await warn(`Only the first ${maxShown} changes are shown. For all: --output ndjson`)
}

/** Those between them may be the ids of other plants. */
function rangeOf({ first, last, count }: NonNullable<Position['numbered']>): string {
  if (first === last) return first
  const isWhole = BigInt(last) - BigInt(first) + 1n === BigInt(count)
  return `${isWhole ? '' : `${grouped(count)} of the ids `}${first} to ${last}`
}

/** What was ignored, and what was taken although `--map` names other columns. */
function columnsWarning(others: ReadonlyMap<string, number>, byName: Run['byName']): string | undefined {
  const [first = 0, ...more] = others.values()
  const atLeast = others.size === maxOtherFields ? ', at least' : ''
  const of = more.length > 0 ? atLeast : ` of ${plantCount(first)}`
  const ignored = others.size > 0 && unknownFields([...others.keys()], of)
  const taken = [...byName]
    .map(([field, column]) => `the ${field} from ${JSON.stringify(shorten(column))}`)
    .join(' and ')
  const took = taken && `took ${taken} by name${byName.has('tag') ? '. To ignore the tag: --map tag=' : ''}`
  if (!ignored) return byName.has('tag') ? took : undefined
  return took ? `${ignored}, and ${took}` : ignored
}

const words: Readonly<Record<string, string>> = {
  ...{ 400: 'malformed', 409: 'with an existing id', 413: 'too large', 422: 'invalid' },
}

/** Throws `unknownOutcome` or `incomplete` unless all records are settled well. */
function assertComplete(importing: Importer, run: Run): void {
  const { dryRun, atomic, rejects } = run.options
  const { counts } = importing.position
  if (counts.unknown > 0) {
    const which = rejects === undefined ? 'they' : `those in ${rejects}`
    const what = `Whether ${plantCount(counts.unknown)} ${counts.unknown === 1 ? 'is' : 'are'} stored is unknown`
    throw new PlantsError('unknownOutcome', what, { hint: `Check whether ${which} are in the store` })
  }
  const rejected = rejectedIn(counts)
  if (rejected === 0) return
  const [only = '', ...others] = Object.keys(counts.rejected)
  const verb = dryRun ? 'would be' : rejected === 1 ? 'was' : 'were'
  const stopped = importing.isDone ? '' : ', and the import stopped there'
  const undone = atomic ? ', so nothing was changed' : ''
  throw new PlantsError('incomplete', `${plantCount(rejected)} ${verb} rejected${stopped}${undone}`, {
    hint: importing.isDone ? hintOfRejected(importing, run) : hintOfStop(importing, run),
    ...(others.length === 0 && { error: parseInt(only, 10) }),
  })
}

/** With --max-errors. */
function hintOfStop(importing: Importer, { options, lock, settings }: Run): string {
  if (lock) return `To resume after them, ${runAgain(options)}`
  const unread = 'The records after them were not read'
  if (!isKept(importing, options)) return unread
  const repeated = repetition(importing.firstId, options, settings)
  return `${unread}. To continue, run it again without --max-errors${repeated && `, with${repeated}`}`
}

function hintOfRejected(importing: Importer, run: Run): string {
  const { dryRun, atomic, idFrom, rejects } = run.options
  const conflict = hintOfConflict(importing, run)
  if (conflict !== undefined) return conflict
  if (dryRun || atomic) return 'Correct the input: nothing was changed'
  if (rejects === undefined) {
    const isStored = hasStored(importing, run.options)
    return `To keep the rejected records in a file, ${isStored ? repeat(importing, run) : 'add'} --rejects FILE`
  }
  const next = idFrom === undefined || idFrom === 'next' ? '' : '--id-from next and '
  return `Correct them in ${rejects}, and import that with the same options, but ${next}another --rejects`
}

/** A record that was numbered may be rejected because an earlier run has stored it: with --if-exists same, it is not. */
function hintOfConflict(importing: Importer, run: Run): string | undefined {
  const { dryRun, restart, idFrom, ifExists, rejects } = run.options
  const { created, updated, skipped, rejected } = importing.position.counts
  const isConflict = Object.keys(rejected).join() === '409'
  if (idFrom === undefined) {
    const policies = { error: 'skip, same or update', same: 'skip or update', skip: undefined, update: undefined }
    const others = isConflict ? policies[ifExists] : undefined
    return others && `For ids that exist, use --if-exists ${others}`
  }
  const another = rejects === undefined || dryRun ? '' : ' and another --rejects'
  if (ifExists === 'error' && rejected['409'])
    return `To skip what is stored already, ${repeat(importing, run)}${another}`
  const isNew = created + updated + skipped === 0 && !restart
  return isConflict && isNew && idFrom !== 'next' ? `For ids that exist, use --id-from next${another}` : undefined
}

function repeat(importing: Importer, { options, settings }: Run): string {
  const firstId = hasStored(importing, options) ? importing.firstId : undefined
  return `use${repetition(firstId, options, settings)}`
}

function hasStored({ position }: Importer, { dryRun, atomic }: ImportOptions): boolean {
  return !dryRun && !atomic && position.counts.created + position.counts.updated > 0
}

/** The options that make the same input skip what is stored, with the same numbers. */
function repetition(firstId: bigint | undefined, { ifExists }: ImportOptions, { store }: Settings): string {
  return `${firstId === undefined ? '' : ` --id-from ${firstId}`}${skipping(ifExists, !isOwn(store))}`
}

/** Adds to an error what was done, and how to resume. */
function explained(error: unknown, importing: Importer | undefined, { options, lock, settings, io }: Run): unknown {
  if (!(error instanceof PlantsError) || error.type === 'defect') return error
  const kept = importing && isKept(importing, options) ? importing : undefined
  if (error.type === 'malformed' && (lock || !kept)) return error // the same command would fail again
  const done = kept ? ` after ${plantCount(settledIn(kept.position.counts))}` : ', nothing was changed'
  const reason = error.isInterruption ? (io.signal.reason as PlantsError | undefined) : undefined // what aborts it
  const message = reason ? reason.message + done : error.message
  let hint: string | undefined
  if (lock && (kept || error.type === 'unknownOutcome')) hint = `To resume, ${runAgain(options)}`
  else if (kept) {
    const repeated = repetition(kept.firstId, options, settings)
    hint = `The plants created so far are kept. To continue, run it again${repeated && ` with${repeated}`}`
  }
  const hints = [error.hint, hint].filter((text) => text !== undefined)
  return new PlantsError(error.type, message, { ...error, hint: hints.join('. ') || undefined, cause: error })
}

/** Whether what was stored stays when the import ends early. */
function isKept({ isBegun }: Importer, { dryRun, atomic }: ImportOptions): boolean {
  return isBegun && !dryRun && !atomic
}

function isRolledBack({ rejected, isDone }: Importer, { atomic }: ImportOptions): boolean {
  return atomic === true && (rejected > 0 || !isDone)
}

function runAgain({ restart }: ImportOptions): string {
  return `run the same command again${restart ? ' without --restart' : ''}`
}
