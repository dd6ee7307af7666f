import { randomUUID } from 'node:crypto'
import { PlantsError } from '../errors.js'
import type { Io } from '../io.js'
import { warn, writeRefusals } from '../output.js'
import type { Settings } from '../settings/preferences.js'
import { type ManyStore, openManyStore } from '../stores/open.js'
import { Import, type ImportPlan, type ImportTools } from './import.js'
import { type Binding, Journal, journalPath, whileAlone } from './journal.js'
import { type Position, settledAt } from './position.js'
import { grouped, Progress } from './progress.js'
import { Rejects } from './rejects.js'
import { mostShown, Summary } from './summary.js'
import { refusedIn, settledIn } from './tally.js'

/** What a person asked for. */
export interface ImportOrder {
  plan: ImportPlan
  /** absolute */
  rejects: string | undefined
  /** absolute; false for none, undefined for the usual place */
  journal: string | false | undefined
  isRestart: boolean
  /** only to look whether it would work, or to do all of it at once */
  staging: 'check' | 'atomic' | undefined
  /** requests in flight, and a second */
  concurrency: number | undefined
  rate: number | undefined
}

/** Imports, goes on with an import, or checks one, and tells how that went. Throws `incomplete` when something was refused. */
export async function runImport(order: ImportOrder, settings: Settings, io: Io): Promise<void> {
  const binding = bindingOf(order, settings)
  const path = await journalPathOf(order, binding, io)
  if (path === undefined) return withStore(order, settings, { io, journal: undefined, binding })
  await whileAlone(path, io, async () => {
    const old = order.isRestart ? Journal.discard(path) : undefined
    await withStore(order, settings, { io, journal: Journal.open(path, binding), binding, old })
  })
}

interface Setting {
  io: Io
  journal: Journal | undefined
  binding: Binding
  /** the import that is begun again */
  old?: (Binding & { id: string }) | undefined
}

function bindingOf({ plan, rejects }: ImportOrder, { store }: Settings): Binding {
  const { map, idFrom } = plan.rules
  const flags = {
    '--format': plan.format,
    '--map':
      Object.entries(map)
        .map((entry) => entry.join('='))
        .join(',') || undefined,
    '--id-from': idFrom?.toString(),
    '--if-exists': plan.ifExists === 'error' ? undefined : plan.ifExists,
    '--rejects': rejects,
  }
  const given = Object.entries(flags).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))
  return { store: store.name, inputs: plan.inputs.map((input) => input.path), flags: Object.fromEntries(given) }
}

/** What comes on stdin cannot be asked for again, so nothing is kept about it that nobody asked for. */
async function journalPathOf({ journal, staging, plan }: ImportOrder, binding: Binding, io: Io): Promise<string | undefined> {
  if (journal === false || staging || (journal === undefined && plan.inputs.some(({ path }) => path === '-'))) return undefined
  const folder = io.env['PLANTS_STATE_DIR'] ? io.resolvePath(io.env['PLANTS_STATE_DIR']) : undefined
  return journal ?? journalPath(folder ?? (await io.stateFolder()), binding)
}

async function withStore(order: ImportOrder, settings: Settings, setting: Setting): Promise<void> {
  const { concurrency, rate, staging } = order
  const many = await openManyStore(settings.store, { ...settings.opening, concurrency, rate }, staging)
  try {
    await importInto(many, order, settings, setting)
  } finally {
    await many.store.close()
  }
}

async function importInto(many: ManyStore, order: ImportOrder, settings: Settings, setting: Setting): Promise<void> {
  const { io, journal, old } = setting
  if (old) await many.checkpoints?.removeCheckpoint(old.id)
  const position = await findPosition(many, journal)
  const isSameFile = old?.flags['--rejects'] === order.rejects
  const lengths = position?.rejects ?? (isSameFile || journal?.isOld ? { records: 0, reasons: 0 } : undefined)
  const rejects = order.rejects === undefined ? undefined : new Rejects(order.rejects, lengths)
  const progress = new Progress(io, io.stderr.isTerminal && settings.errors === 'text' && !settings.isVerbose)
  if (position) await warn(io, `Going on with an import that was stopped: ${grouped(settledAt(position))} plants are done`, settings)
  const summary = new Summary(io, position)
  const importing: Import = new Import(
    order.plan,
    toolsOf(many, { ...setting, rejects, progress, settings }, () => importing),
    position,
  )
  try {
    await importing.run()
    if (importing.isDone && refusedIn(importing.tally) === 0) await many.commit?.()
  } catch (error) {
    throw howToGoOn(error, setting)
  } finally {
    await progress.clear()
    rejects?.close()
  }
  if (!importing.isDone && io.signal.aborted) throw interrupted(importing, setting)
  if (importing.isDone && journal) await finish(journal, many)
  await summary.write(importing, order, settings)
}

/** Where an earlier run stopped, if there was one. */
async function findPosition({ checkpoints }: ManyStore, journal: Journal | undefined): Promise<Position | undefined> {
  if (!journal) return undefined
  const text = checkpoints ? await checkpoints.findCheckpoint(journal.id) : journal.position
  return text === undefined ? undefined : (JSON.parse(text) as Position) // which is what was kept
}

interface Surroundings extends Setting {
  rejects: Rejects | undefined
  progress: Progress
  settings: Settings
}

function toolsOf(
  { store, checkpoints }: ManyStore,
  { io, journal, rejects, progress, settings }: Surroundings,
  importing: () => Import,
): ImportTools {
  let told = 0
  return {
    ...{ store, checkpoints, journal, rejects, io },
    key: journal?.id ?? randomUUID(),
    stop: io.signal,
    tellRefused: async (refused, { name }) => {
      const all = refused.flatMap(({ line, error }) => (error ? { error: error.error, message: error.message, file: name, line } : []))
      const shown = settings.errors === 'json' ? all : all.slice(0, Math.max(0, mostShown - told))
      told += shown.length
      if (shown.length === 0) return
      await progress.clear()
      await writeRefusals(io, shown, settings)
    },
    tellProgress: (portion) => progress.show(() => importing().glimpse(portion)),
  }
}

async function finish(journal: Journal, { checkpoints }: ManyStore): Promise<void> {
  journal.remove()
  await checkpoints?.removeCheckpoint(journal.id)
}

function interrupted(importing: Import, { io, journal }: Setting): PlantsError {
  const { kind, message } = io.signal.reason as PlantsError // which is what aborts it
  return new PlantsError(kind, `${message} after ${grouped(settledIn(importing.tally))} plants`, {
    hint: goOnHint(journal),
    cause: io.signal.reason,
  })
}

function goOnHint(journal: Journal | undefined): string {
  return journal
    ? 'To go on, run the same command again'
    : 'What was created stays. To go on, run it again with --if-exists same, or skip; with files, a journal makes that unnecessary'
}

/** What was created before a failure stays, and the same command goes on. */
function howToGoOn(error: unknown, { io, journal }: Setting): unknown {
  if (!(error instanceof PlantsError) || error.kind === 'defect') return error
  const { kind, message, hint, retryable, status, requestId } = error
  const isStop = io.signal.aborted
  const parts = [isStop ? [] : (hint ?? []), goOnHint(journal)].flat()
  return new PlantsError(kind, message, { hint: parts.join('. '), ...{ retryable, error: error.error, status, requestId }, cause: error })
}
