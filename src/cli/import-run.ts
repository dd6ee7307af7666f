import { randomUUID } from 'node:crypto'
import { warn, writeRejected } from '../output/output.js'
import { PlantsError } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { isReadable, openManyStore } from '../stores/registry.js'
import type { ManyStore } from '../stores/store.js'
import { Import, type ImportContext, type ImportOptions, type ImportPlan } from '../transfer/import/import.js'
import { checkInputs } from '../transfer/import/inputs.js'
import { type Binding, Journal, journalPath, whileAlone } from '../transfer/import/journal.js'
import { type Position, readPosition, settledAt } from '../transfer/import/position.js'
import { Progress, rejectedIn } from '../transfer/import/progress.js'
import { Rejects } from '../transfer/import/rejects.js'
import { maxShown, plants, Summary } from './import-summary.js'
import type { Settings } from './settings.js'

/** Imports, resumes or checks, and prints the result. Throws `incomplete` when records were rejected. */
export async function runImport(order: ImportOptions, settings: Settings, io: Io): Promise<void> {
  const binding = bindingOf(order, settings)
  const path = await journalPathOf(order, binding, io)
  const { rejects } = order
  await checkInputs(order.plan, { '--rejects': rejects, 'PATH.reasons': rejects && `${rejects}.reasons`, '--journal': path }, io)
  if (path === undefined) return withStore(order, settings, { io, journal: undefined })
  await whileAlone(path, io, async () => {
    const old = order.isRestart ? Journal.discard(path, io, typeof order.journal !== 'string') : undefined
    await withStore(order, settings, { io, journal: Journal.open(path, io, binding), old })
  })
}

interface RunOptions {
  io: Io
  journal: Journal | undefined
  /** the import that is restarted */
  old?: (Binding & { id: string }) | undefined
}

function bindingOf({ plan, rejects }: ImportOptions, { store }: Settings): Binding {
  const { map, idFrom } = plan.rules
  const flags = {
    '--format': plan.format,
    '--map':
      Object.entries(map)
        .map((entry) => entry.join('='))
        .join(',') || undefined,
    '--id-from': idFrom?.toString(),
    '--rejects': rejects,
  }
  const given = Object.entries(flags).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  return { store: store.name, inputs: plan.inputs.map((input) => input.path), flags: Object.fromEntries(given) }
}

/** Stdin cannot be read again, so it has a journal only when one is named. */
async function journalPathOf({ journal, staging, plan }: ImportOptions, binding: Binding, io: Io): Promise<string | undefined> {
  if (journal === false || staging || (journal === undefined && plan.inputs.some(({ path }) => path === '-'))) return undefined
  const folder = io.env['PLANTS_STATE_DIR'] ? io.resolvePath(io.env['PLANTS_STATE_DIR']) : undefined
  return journal ?? journalPath(folder ?? (await io.stateFolder()), binding)
}

async function withStore(order: ImportOptions, settings: Settings, options: RunOptions): Promise<void> {
  const { rate, retry, staging } = order
  // What is sent together with a plant that is refused could not be taken back.
  const concurrency = order.plan.stopsAtReject ? 1 : order.concurrency
  const many = await openManyStore(settings.store, { ...settings.storeOptions, concurrency, rate, retry }, staging)
  try {
    await importInto(many, order, settings, options)
  } finally {
    await many.store.close()
  }
}

async function importInto(many: ManyStore, order: ImportOptions, settings: Settings, options: RunOptions): Promise<void> {
  const { io, journal, old } = options
  if (old) await many.checkpoints?.removeCheckpoint(old.id)
  const position = await findPosition(many, journal, order.plan)
  if (position) await warnResuming(position, settings, io)
  const rejects = openRejects(order, options, position)
  const progress = new Progress(io, io.stderr.isTerminal && settings.errors === 'text' && !settings.isVerbose)
  const summary = new Summary(order, settings, io, position)
  journal?.begin()
  const importing: Import = new Import(
    order.plan,
    contextOf(many, { ...options, rejects, progress, settings }, () => importing),
    position,
  )
  try {
    await carryOut(importing, many, io, order.staging !== undefined)
  } catch (error) {
    if (order.staging) throw error // nothing stays, so there is nothing to resume
    const isResumable = journal ? await canResume(many, journal) : importing.isBegun
    throw withResumeHint(error, isResumable ? resumeHint(journal, settings) : undefined)
  } finally {
    await progress.clear()
    rejects?.close()
  }
  try {
    await summary.write(importing, journal !== undefined)
  } finally {
    if (importing.isDone && journal) await finish(journal, many) // so that who is killed before it can see the result again
  }
}

async function warnResuming(position: Position, settings: Settings, io: Io): Promise<void> {
  const done = settledAt(position)
  await warn(io, `Resuming an import that was stopped: ${plants(done)} ${done === 1 ? 'is' : 'are'} done`, settings)
}

async function carryOut(importing: Import, { commit }: ManyStore, { signal }: Io, isStaged: boolean): Promise<void> {
  await importing.run()
  if (!importing.isDone && signal.aborted) throw interrupted(importing, signal, isStaged)
  if (importing.isDone && rejectedIn(importing.counters) === 0) await commit?.()
}

/** A rejects file that is not empty must be the one of the import that is resumed or restarted. */
function openRejects({ rejects }: ImportOptions, { journal, old, io }: RunOptions, position: Position | undefined): Rejects | undefined {
  if (rejects === undefined) return undefined
  const isOurs = journal?.isOld || old?.flags['--rejects'] === rejects
  return new Rejects(rejects, position?.rejects ?? (isOurs ? { records: 0, reasons: 0 } : undefined), io)
}

/** Where an earlier run stopped, if there was one. */
async function findPosition(
  { checkpoints }: ManyStore,
  journal: Journal | undefined,
  { inputs }: ImportPlan,
): Promise<Position | undefined> {
  if (!journal) return undefined
  const text = checkpoints ? await checkpoints.findCheckpoint(journal.id) : journal.position
  const position = text === undefined ? undefined : readPosition(text, inputs.length)
  if (text === undefined || position) return position
  throw new PlantsError('malformed', `The journal ${journal.path} is damaged`, { hint: 'Begin again with --restart' })
}

interface ContextOptions extends RunOptions {
  rejects: Rejects | undefined
  progress: Progress
  settings: Settings
}

function contextOf(
  { store, checkpoints }: ManyStore,
  { io, journal, rejects, progress, settings }: ContextOptions,
  importing: () => Import,
): ImportContext {
  let shownCount = 0
  return {
    store,
    checkpoints,
    journal,
    rejects,
    io,
    key: journal?.id ?? randomUUID(),
    stop: io.signal,
    onRejected: async (rejected, { name }) => {
      if (shownCount >= maxShown && settings.errors === 'text') return
      const all = rejected.flatMap(({ line, why }) => (why ? { error: why.error, message: why.message, file: name, line } : []))
      const shown = settings.errors === 'json' ? all : all.slice(0, maxShown - shownCount)
      shownCount += shown.length
      if (shown.length === 0) return
      await progress.clear()
      await writeRejected(io, shown, settings)
    },
    onProgress: () => progress.show(() => importing().snapshot),
  }
}

async function finish(journal: Journal, { checkpoints }: ManyStore): Promise<void> {
  journal.remove()
  await checkpoints?.removeCheckpoint(journal.id)
}

function interrupted(importing: Import, signal: AbortSignal, isStaged: boolean): PlantsError {
  const { kind, message } = signal.reason as PlantsError // which is what aborts it
  const after = importing.isBegun && !isStaged ? ` after ${plants(importing.done)}` : ', nothing was changed'
  return new PlantsError(kind, `${message}${after}`, { cause: signal.reason })
}

/** Whether there is something to resume; the journal of an import that changed nothing is removed. */
async function canResume({ checkpoints }: ManyStore, journal: Journal): Promise<boolean> {
  const position = checkpoints ? await checkpoints.findCheckpoint(journal.id).catch(() => 'not known now') : journal.position
  if (position === undefined) journal.remove()
  return position !== undefined
}

function resumeHint(journal: Journal | undefined, { store }: Settings): string {
  if (journal) return 'To resume, run the same command again'
  return `What was created stays. To continue, run it again with --if-exists ${isReadable(store) ? 'same' : 'skip'}`
}

/** What was created before a failure stays. */
function withResumeHint(error: unknown, resume: string | undefined): unknown {
  if (!(error instanceof PlantsError) || error.kind === 'defect' || resume === undefined) return error
  if (error.hint?.includes('--restart')) return error // which says how
  const { kind, message, hint, retryable, status, requestId } = error
  const hints = hint === undefined ? resume : `${hint}. ${resume}`
  return new PlantsError(kind, message, { hint: hints, retryable, error: error.error, status, requestId, cause: error })
}
