import { accessSync, constants, realpathSync, statSync } from 'node:fs'
import { describeChange, describePlant, type Style, styleFor, writeAnswer, writeRejected } from '../output/output.js'
import { type Progress, progressLine } from '../output/progress.js'
import { toJson } from '../plant/exact-json.js'
import { plantCount, plantOf } from '../plant/plant.js'
import { malformed, PlantsError, systemCode } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { idAfter } from '../stores/common/conflict.js'
import type { ManyStore, PlannedChange, Right } from '../stores/common/store.js'
import { nextIdIn, openManyStore } from '../stores/registry.js'
import { RecordMapper } from '../transfer/formats/record-mapper.js'
import {
  beginImport,
  Checkpoints,
  type ImportLock,
  noCounters,
  settledIn,
  whileAlone,
} from '../transfer/import/checkpoint.js'
import {
  greatestIdIn,
  Import,
  type ImportContext,
  type ImportOptions,
  type OpenInput,
  openInput,
} from '../transfer/import/importer.js'
import { Rejects } from '../transfer/import/rejects.js'
import { unreadableInput } from '../transfer/import/source.js'
import type { Settings } from './context.js'
import { recordFlags } from './flag-words.js'
import { canCompare, maxShown, writeSummary } from './import-summary.js'

interface Run {
  options: ImportOptions
  settings: Settings
  io: Io
  /** undefined if the import cannot be resumed */
  lock: ImportLock | undefined
}

/** Throws `incomplete` when records were rejected. */
export async function runImport(options: ImportOptions, settings: Settings, io: Io): Promise<void> {
  const { plan, staging } = options
  assertDistinct(options)
  const run = { options, settings, io, lock: undefined }
  if (staging || plan.inputs.some(({ path }) => path === '-')) return importWith(run) // stdin cannot be read again
  const paths = plan.inputs.map(({ path }) => path)
  await whileAlone(settings.store.name, paths, io, (lock) => importWith({ ...run, lock }))
}

/** Throws `malformed` for a missing input, and for a rejects file that is an input. */
function assertDistinct({ plan, rejects }: ImportOptions): void {
  const inputs = plan.inputs.filter(({ path }) => path !== '-')
  const files = new Map(inputs.map(({ path, name }) => [realPath(path, name), `the input ${name}`]))
  const outputs = rejects === undefined ? [] : [rejects, `${rejects}.reasons`]
  for (const [index, path] of outputs.entries()) {
    const input = statSync(path, { throwIfNoEntry: false }) && files.get(realpathSync(path))
    if (input !== undefined)
      throw malformed(`${index === 0 ? '--rejects' : path} names ${input}`, 'Choose another file')
  }
}

function realPath(path: string, name: string): string {
  try {
    if (statSync(path).isDirectory()) throw Object.assign(new Error('a directory'), { code: 'EISDIR' })
    accessSync(path, constants.R_OK)
    return realpathSync(path)
  } catch (error) {
    throw systemCode(error) === undefined ? error : unreadableInput(name, error)
  }
}

async function importWith(run: Run): Promise<void> {
  const { options, settings, io } = run
  const { concurrency, retry, staging, plan } = options
  const mapper = new RecordMapper(plan.rules)
  const [input] = plan.inputs
  if (!input) return
  // before a store is made
  const first = await openInput(input, plan, mapper, io).catch((error: unknown) => {
    throw isInterruption(error, io) ? interrupted(undefined, run) : error
  })
  try {
    const needs: readonly Right[] = plan.ifExists === 'update' ? ['update'] : []
    const writing = staging === 'dryRun' ? {} : { needs }
    const many = await openManyStore(
      settings.store,
      { ...settings.storeOptions, ...writing, concurrency, retry },
      staging,
    )
    try {
      await importInto(many, first, mapper, run)
    } finally {
      await many.store.close()
    }
  } finally {
    first.close()
  }
}

async function importInto(many: ManyStore, first: OpenInput, mapper: RecordMapper, run: Run): Promise<void> {
  const { options, settings, io, lock } = run
  const checkpoints = lock && new Checkpoints(lock, many.checkpoints, io.trusts)
  const { saved, rejects } = await openCheckpoint(checkpoints, run)
  if (many.isUnread) await settings.warn(`Only the input is checked, not which ids exist at ${settings.store.name}`)
  const progress = progressLine(io, settings.showsProgress, 0)
  const start = { time: io.now(), settled: settledIn(saved.position?.counters ?? noCounters) }
  const importing: Import = new Import(options.plan, mapper, {
    ...{ store: many.store, keepsCheckpoints: many.checkpoints !== undefined, checkpoints, saved, rejects, io },
    onRejected: rejectedWriter(progress, settings, io),
    onResume: () => settings.warn(`Resuming an interrupted import: ${plantsAre(start.settled)} done`),
    onAssumedEncoding: (input, encoding) =>
      settings.warn(`${input} is not UTF-8, and is read as ${encoding}. For another encoding: --encoding NAME`),
    onProgress: () => progress.show(() => importing.snapshot),
    onPlanned: changesWriter(progress, run),
  })
  try {
    // Before a plant is sent with its idempotency key, or written to the rejects file.
    if (!saved.position && (rejects || !many.checkpoints)) await checkpoints?.keep(saved)
    await importing.run(first)
    if (importing.isDone && importing.rejected === 0) await many.commit?.()
  } catch (error) {
    if (!importing.isBegun && !mayHaveCreated(error, many)) await checkpoints?.remove()
    throw failureOf(error, importing, run)
  } finally {
    await progress.clear()
    rejects?.close()
  }
  try {
    await writeSummary(importing, options, { start, canResume: lock !== undefined }, settings, io)
  } finally {
    // Last, so that an import that is killed before this can print its result again.
    if (importing.isDone) await checkpoints?.remove()
  }
}

function plantsAre(count: number): string {
  return `${plantCount(count)} ${count === 1 ? 'is' : 'are'}`
}

async function openCheckpoint(checkpoints: Checkpoints | undefined, { options, settings, io }: Run) {
  const { plan, rejects, isRestart } = options
  const flags: Record<string, string> = { ...recordFlags(plan), ...(rejects !== undefined && { '--rejects': rejects }) }
  const begun = { saved: beginImport(flags), isOurs: false }
  const { saved, isOurs } = (await checkpoints?.open(plan.inputs.length, flags, isRestart)) ?? begun
  const start = isOurs ? (saved.position?.rejects ?? { records: 0, reasons: 0 }) : undefined
  const firstId =
    plan.rules.idFrom === 'next' ? (saved.firstId ?? String(await firstIdFor(options, settings, io))) : undefined
  return {
    saved: { ...saved, firstId },
    rejects: rejects === undefined ? undefined : new Rejects(rejects, start, io.trusts),
  }
}

/** Above all ids of the store and, if they can be read twice, of the inputs. */
async function firstIdFor({ plan }: ImportOptions, { store, storeOptions }: Settings, io: Io): Promise<bigint> {
  const greatest = await greatestIdIn(plan, io)
  const next = await nextIdIn(store, storeOptions, '--id-from')
  return greatest !== undefined && greatest >= next ? idAfter(greatest, '--id-from') : next
}

function rejectedWriter(progress: Progress, settings: Settings, io: Io): ImportContext['onRejected'] {
  let remaining = settings.isQuiet ? 0 : settings.errors === 'json' ? Infinity : maxShown
  return async (rejected, file) => {
    const shown = rejected
      .slice(0, remaining)
      .map(({ line, element, error, message }) => ({ error, message, file, line, element }))
    remaining -= shown.length
    if (shown.length === 0) return
    await progress.clear()
    await writeRejected(io, shown, settings)
  }
}

/** Writes what a dry run would change: as text, the first of them. */
function changesWriter(progress: Progress, { options, settings, io }: Run): ImportContext['onPlanned'] {
  const { output, isQuiet, colors } = settings
  if (options.staging !== 'dryRun') return undefined
  let remaining = options.showsAll ? Infinity : output === 'text' && !isQuiet ? maxShown : 0
  return async (changes) => {
    const shown = changes.slice(0, remaining)
    remaining -= shown.length
    if (shown.length === 0) return
    const style = await styleFor(colors(io.stdout))
    const lines = shown.map((change) => (output === 'text' ? changeLine(change, style) : changeJson(change)))
    await progress.clear()
    await writeAnswer(io, lines.join(''))
  }
}

function changeJson({ before, after }: PlannedChange): string {
  const old = before && { before: plantOf(before) }
  return `${toJson({ dryRun: true, id: after.id, ...old, after: plantOf(after) })}\n`
}

function changeLine({ before, after }: PlannedChange, style: Style): string {
  return `Would ${before ? `update ${describeChange(before, after, style)}` : `create ${describePlant(after, style)}`}\n`
}

function isInterruption(error: unknown, { signal }: Io): boolean {
  return signal.aborted && error instanceof PlantsError && error.type === (signal.reason as PlantsError).type
}

/** Whether the transaction of the first chunk may be on disk, or the store cannot be used now. */
function mayHaveCreated(error: unknown, { checkpoints }: ManyStore): boolean {
  return checkpoints !== undefined && !(error instanceof PlantsError && error.type === 'unwritable')
}

function interrupted(importing: Import | undefined, { options: { staging }, io: { signal } }: Run): PlantsError {
  const { type, message } = signal.reason as PlantsError // the signal is only aborted with a PlantsError
  const after =
    importing?.isBegun && !staging ? ` after ${plantCount(settledIn(importing.counters))}` : ', nothing was changed'
  return new PlantsError(type, `${message}${after}`, { cause: signal.reason })
}

/** Adds to an error what was done, and how to resume. */
function failureOf(reason: unknown, importing: Import, run: Run): unknown {
  const { options, settings, lock } = run
  const error = isInterruption(reason, run.io) ? interrupted(importing, run) : reason
  if (!(error instanceof PlantsError) || error.type === 'defect' || options.staging) return error
  if (!importing.isBegun && !(lock && error.type === 'unknownOutcome')) return error
  if (error.hint?.includes('--restart')) return error // its hint explains how to continue
  const policy = options.plan.ifExists === 'update' ? 'update' : canCompare(importing, settings) ? 'same' : 'skip'
  const ids = importing.firstId === undefined ? '' : ` --id-from ${importing.firstId}` // the same again
  const again = `The plants created so far are kept. To continue, run it again with${ids} --if-exists ${policy}`
  const restart = options.isRestart ? ' without --restart' : ''
  const resume = lock ? `To resume, run the same command again${restart}` : again
  const hint = error.hint === undefined ? resume : `${error.hint}. ${resume}`
  return new PlantsError(error.type, error.message, { ...error, hint, cause: error })
}
