import { randomUUID } from 'node:crypto'
import { writeRejected } from '../output/output.js'
import { type Progress, progressLine } from '../output/progress.js'
import { plantCount } from '../plant/plant.js'
import { malformed, PlantsError } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import type { ManyStore, Right } from '../stores/common/store.js'
import { isOwn, openManyStore } from '../stores/registry.js'
import { Import, type ImportContext, type ImportOptions } from '../transfer/import/import.js'
import { checkInputs, formatsOf } from '../transfer/import/inputs.js'
import { type Binding, discardJournal, type Journal, journalPath, openJournal, type Saved, whileAlone } from '../transfer/import/journal.js'
import {
  type Checkpoints,
  checkpointsIn,
  type Position,
  readPosition,
  rejectedIn,
  settledAt,
  settledIn,
} from '../transfer/import/position.js'
import { openRejects, type Rejects } from '../transfer/import/rejects.js'
import type { Settings } from './context.js'
import { recordFlags } from './flag-words.js'
import { maxShown, writeSummary } from './import-summary.js'

/** Imports, resumes or checks, and prints the result. Throws `incomplete` when records were rejected. */
export async function runImport(options: ImportOptions, settings: Settings, io: Io): Promise<void> {
  const { plan, rejects } = options
  const flags = recordFlags(plan)
  if (rejects !== undefined) flags['--rejects'] = rejects
  const binding = { store: settings.store.name, inputs: plan.inputs.map((input) => input.path), flags }
  const path = await journalPathOf(options, binding, io)
  await checkInputs(plan, { '--rejects': rejects, 'PATH.reasons': rejects && `${rejects}.reasons`, '--journal': path }, io)
  if (path === undefined) return importWith({ options, settings, io, journal: undefined, restarted: undefined })
  await whileAlone(path, io, async (lock) => {
    const restarted = options.isRestart ? discardJournal(path, io.trusts, typeof options.journal !== 'string') : undefined
    await importWith({ options, settings, io, journal: openJournal(path, io.trusts, binding, lock), restarted })
  })
}

interface Run {
  options: ImportOptions
  settings: Settings
  io: Io
  journal: Journal | undefined
  restarted: Saved | undefined
}

/** The path of the journal, if there is one. Stdin cannot be read again, so it has a journal only with `--journal`. */
async function journalPathOf({ journal, staging, plan }: ImportOptions, binding: Binding, io: Io): Promise<string | undefined> {
  if (journal === false || staging || (journal === undefined && plan.inputs.some(({ path }) => path === '-'))) return undefined
  const folder = io.env['PLANTS_STATE_DIR'] ? io.resolvePath(io.env['PLANTS_STATE_DIR']) : undefined
  return journal ?? journalPath(folder ?? (await io.stateFolder()), binding)
}

async function importWith(run: Run): Promise<void> {
  const { options, settings, io, journal, restarted } = run
  const { concurrency, retry, staging, plan } = options
  if (plan.inputs.length === 1 && !journal?.isOld) await formatsOf(plan, io) // before a store is made
  const needs: readonly Right[] = plan.ifExists === 'update' ? ['update'] : []
  const writing = staging === 'dryRun' ? {} : { needs } // a dry run writes nothing
  const many = await openManyStore(settings.store, { ...settings.storeOptions, ...writing, concurrency, retry }, staging)
  const checkpoints = checkpointsIn(many.checkpoints, journal, io)
  try {
    if (restarted) await many.checkpoints?.removeCheckpoint(restarted.id)
    await importInto(many, checkpoints, run)
  } finally {
    await many.store.close()
  }
}

async function importInto(many: ManyStore, checkpoints: Checkpoints, run: Run): Promise<void> {
  const { options, settings, io, journal } = run
  const position = await findPosition(checkpoints, run)
  const rejects = rejectsFor(position, run)
  const progress = progressLine(io, settings.showsProgress, 0)
  const start = { time: io.now(), settled: position ? settledIn(position.counters) : 0 }
  journal?.begin()
  const importing: Import = new Import(
    options.plan,
    {
      store: many.store,
      checkpoints,
      rejects,
      io,
      key: journal?.id ?? randomUUID(),
      onRejected: rejectedWriter(progress, settings, io),
      onResume: async (resumed) => {
        const done = settledAt(resumed)
        await settings.warn(`Resuming an interrupted import: ${plantCount(done)} ${done === 1 ? 'is' : 'are'} done`)
      },
      onProgress: () => progress.show(() => importing.snapshot),
    },
    position,
  )
  try {
    await importing.run()
    if (!importing.isDone && io.signal.aborted) throw interrupted(importing, run)
    rejects?.finish()
    if (importing.isDone && rejectedIn(importing.counters) === 0) await many.commit?.()
  } catch (error) {
    if (options.staging) throw isInterruption(error, io) ? interrupted(importing, run) : error // there is nothing to resume
    throw await withResumeHint(error, importing, checkpoints, run)
  } finally {
    await progress.clear()
    rejects?.close()
  }
  try {
    await writeSummary(importing, options, { start, hasJournal: journal !== undefined }, settings, io)
  } finally {
    // Last, so that an import that is killed before this can print its result again.
    if (importing.isDone) await checkpoints.remove()
  }
}

/** The position at which an earlier run stopped, if there was one. */
async function findPosition(checkpoints: Checkpoints, { options, journal }: Run): Promise<Position | undefined> {
  const text = await checkpoints.find()
  if (text === undefined) return undefined
  const position = readPosition(text, options.plan.inputs.length)
  if (!position) throw malformed(`The journal ${journal?.path} is damaged`, 'Start again with --restart')
  return position
}

/** A rejects file that is not empty must belong to the import that is resumed or restarted. */
function rejectsFor(position: Position | undefined, { options: { rejects }, journal, restarted, io }: Run): Rejects | undefined {
  if (rejects === undefined) return undefined
  const isSameImport = journal?.isOld || restarted?.flags['--rejects'] === rejects
  return openRejects(rejects, position?.rejects ?? (isSameImport ? { records: 0, reasons: 0 } : undefined), io.trusts)
}

/** Prints rejected records: all as JSON, at most `maxShown` as text. */
function rejectedWriter(progress: Progress, settings: Settings, io: Io): ImportContext['onRejected'] {
  let remaining = settings.isQuiet ? 0 : settings.errors === 'json' ? Infinity : maxShown
  return async (rejected, file) => {
    if (remaining === 0) return
    const all = rejected.flatMap(({ line, element, why }) => (why ? { error: why.error, message: why.message, file, line, element } : []))
    const shown = all.slice(0, remaining)
    remaining -= shown.length
    if (shown.length === 0) return
    await progress.clear()
    await writeRejected(io, shown, settings)
  }
}

function isInterruption(error: unknown, { signal }: Io): boolean {
  return signal.aborted && error instanceof PlantsError && error.type === (signal.reason as PlantsError).type
}

function interrupted(importing: Import, { options, io: { signal } }: Run): PlantsError {
  const { type, message } = signal.reason as PlantsError // the signal is only aborted with a PlantsError
  const nothing = `, nothing was ${options.staging === 'atomic' ? 'created' : 'changed'}`
  const after = importing.isBegun && !options.staging ? ` after ${plantCount(importing.done)}` : nothing
  return new PlantsError(type, `${message}${after}`, { cause: signal.reason })
}

/** Whether there may be a position to resume from. An unavailable store is not queried again, because that would time out again. */
async function mayResume(error: unknown, importing: Import, checkpoints: Checkpoints): Promise<boolean> {
  const type = error instanceof PlantsError ? error.type : undefined
  if (type === 'unavailable' || type === 'unknownOutcome') return importing.isBegun || type === 'unknownOutcome'
  return checkpoints.find().then(
    (text) => text !== undefined,
    () => true,
  )
}

/** Adds to the hint of an error how to resume. Removes the journal of an import that changed nothing. */
async function withResumeHint(error: unknown, importing: Import, checkpoints: Checkpoints, { options, journal, settings }: Run) {
  const isKept = await mayResume(error, importing, checkpoints)
  if (journal && !isKept) journal.remove()
  if (!(journal ? isKept : importing.isBegun)) return error
  if (!(error instanceof PlantsError) || error.type === 'defect') return error
  if (error.hint?.includes('--restart')) return error // the hint already explains how to continue
  const policy = options.plan.ifExists === 'update' ? 'update' : isOwn(settings.store) ? 'same' : 'skip'
  const again = `The plants created so far are kept. To continue, run it again with --if-exists ${policy}`
  const resume = journal ? 'To resume, run the same command again' : again
  const hint = error.hint === undefined ? resume : `${error.hint}. ${resume}`
  return new PlantsError(error.type, error.message, { ...error, hint, cause: error })
}
