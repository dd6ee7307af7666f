import type { Reporter } from '../output/reporter.js'
import { grouped, plantCount } from '../plant/plant.js'
import { inputError, must, PlantsError } from '../platform/errors.js'
import { inCaseOfDisk } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import { CheckpointMovedError } from '../stores/common/checkpoint-state.js'
import {
  newImport,
  rejectedIn,
  type SavedImport,
  settledIn,
} from '../transfer/import/checkpoint.js'
import { Importer } from '../transfer/import/importer.js'
import {
  assertEncodings,
  assertReadable,
  assertSameLayouts,
  changedInput,
  greatestIdIn,
  type ImportInput,
  type ImportPlan,
  type OpenInput,
  openInput,
  readNames,
} from '../transfer/import/input.js'
import type { PlantNames } from '../transfer/import/names.js'
import { Rejects } from '../transfer/import/rejects.js'
import type { CommandContext } from './command-context.js'
import { type ImportOptions, isResumable, isRolledBack } from './import-options.js'
import { ImportReport, rangeOf } from './import-report.js'
import {
  assertSameFlags,
  type ImportCommand,
  isReadDifferently,
  isResumed,
  restartHint,
  savedImport,
} from './import-resume.js'
import { type OpenTarget, openTarget } from './import-target.js'
import { idAfter, nextIdIn } from './next-id.js'

/** At a service: less than a second of requests. */
const recordsAtOnce = 500

export async function runImport(
  inputs: ImportInput[],
  options: ImportOptions,
  context: CommandContext,
): Promise<void> {
  const { reporter, io } = context
  const plan = importPlan(inputs, options, context)
  assertReadable(plan, options.rejects)
  const report = new ImportReport(plan, options, context)
  const explain = (error: unknown) => {
    throw report.explained(error)
  }
  const first = await openInput(must(inputs[0]), plan, io).catch(explain)
  try {
    if (options.rejects !== undefined) await assertSameLayouts(first, plan, io)
    await assertEncodings(plan, io).catch(explain)
    const target = await openTarget(plan, report, options, context)
    try {
      const importing = await createImporter(plan, target, report, options, context)
      await importInto(target, importing, first, report, options)
      const isComplete = importing.isDone && !isRolledBack(importing, options)
      if (isComplete) await finish(importing, report, context)
      try {
        await report.writeSummary(importing)
      } finally {
        if (isComplete)
          await importing.forget().catch((error: unknown) => warnOfCheckpoint(error, reporter))
      }
      report.assertComplete(importing)
    } finally {
      await target.close()
    }
  } finally {
    first.close()
  }
}

function importPlan(
  inputs: ImportInput[],
  options: ImportOptions,
  { address }: CommandContext,
): ImportPlan {
  const { format, sheet, encoding, delimiter, maxErrors = Infinity } = options
  const { columns, map = {}, idFrom, match, ifExists } = options
  return {
    ...{ inputs, format, sheet, encoding, delimiter, ifExists, maxErrors },
    rules: { map, columns, idFrom, match, isPartial: ifExists === 'update' },
    maxRecords: address.scheme !== 'http' ? Infinity : recordsAtOnce,
    readsAhead: address.scheme !== 'sqlite',
  }
}

async function createImporter(
  plan: ImportPlan,
  target: OpenTarget,
  report: ImportReport,
  options: ImportOptions,
  context: CommandContext,
): Promise<Importer> {
  const found = await findImport(plan, target, options, context)
  const { rejects: path, dryRun } = options
  const owners = {
    saved: isResumable(plan, options) ? found.saved : undefined,
    replaced: found.replaced,
  }
  const rejects = path === undefined || dryRun ? undefined : new Rejects(path, owners)
  return new Importer(plan, found, target, rejects, report, context.io)
}

/** The import of an earlier run, or a new one, with the one that it replaces and whose rejects file it takes over. */
async function findImport(
  plan: ImportPlan,
  target: OpenTarget,
  options: ImportOptions,
  context: CommandContext,
) {
  const { reporter, io } = context
  const { id, isService, oldCheckpoint } = target
  const { ifExists, restart: isRestart = false } = options
  const command: ImportCommand = { flags: readingFlags(options), ifExists }
  const checkpoint = id === undefined ? undefined : await target.checkpoint?.(id)
  const isOld = oldCheckpoint !== undefined
  const saved = savedImport(oldCheckpoint ?? checkpoint, command, {
    isService,
    isRestart,
    isOld,
    inputs: plan.inputs.length,
  })
  const readMatches = async () => (options.match ? readNames(plan, target.store, io) : undefined)
  const interrupted = saved?.done ? undefined : saved
  if (interrupted && !isRestart && isResumed(interrupted, command, isService)) {
    assertSameFlags(interrupted, command, isService)
    await assertSameFiles(interrupted, command, plan, isService, io)
    const done = settledIn(interrupted.position.counts)
    if (done > 0)
      await reporter.warn(
        `Resuming an interrupted import: ${plantCount(done)} ${done === 1 ? 'is' : 'are'} done`,
      )
    return { saved: interrupted, checkpoint, names: await readMatches() }
  }
  if (saved?.done && !isRestart) await assertNotDone(saved, command, plan, io)
  const isSame = (flag: string) => interrupted?.flags[flag] === command.flags[flag]
  const names = await readMatches()
  // By their names, plants are found whatever their numbers are.
  const oldFirstId = isSame('--id-from') && !names ? interrupted?.firstId : undefined
  const firstId =
    oldFirstId === undefined ? await firstIdFor(plan, names, context) : BigInt(oldFirstId)
  const replaced = interrupted && isSame('--rejects') && !options.atomic ? interrupted : undefined
  return { saved: newImport(command.flags, firstId), checkpoint, replaced, names }
}

/** Throws `input` if the same import is complete: it would create its plants again. */
async function assertNotDone(
  saved: SavedImport,
  command: ImportCommand,
  plan: ImportPlan,
  io: Io,
): Promise<void> {
  const { done = '', position } = saved
  if (isReadDifferently(saved, command) || (await changedInput(plan, position, io))) return
  const input = plan.inputs.length === 1 ? must(plan.inputs[0]).name : 'The same input'
  const ids = position.numbered ? `, those without an id got ${rangeOf(position.numbered)}` : ''
  const what = `${input} was imported on ${done.slice(0, 10)} at ${done.slice(11, 16)} UTC`
  const rejected = rejectedIn(position.counts)
  const others = rejected > 0 ? `, ${grouped(rejected)} rejected` : ''
  const created = `${plantCount(position.counts.created)} created${ids}${others}`
  const hint = 'Add --match name for plants with new names alone, or --restart to create all again'
  throw inputError(`${what}: ${created}`, hint)
}

async function assertSameFiles(
  saved: SavedImport,
  command: ImportCommand,
  plan: ImportPlan,
  isService: boolean,
  io: Io,
): Promise<void> {
  const changed = await changedInput(plan, saved.position, io)
  if (!changed) return
  const hint = `Use the file as it was, or ${restartHint(saved, command, { isService, hasOtherFile: true })}`
  throw inputError(`${changed.name} is not the file that an earlier run has begun to import`, hint)
}

/** Those that determine what a record is, and its number. Others, such as --if-exists, may differ in a later run. */
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
    '--match': options.match,
    '--rejects': options.rejects && inCaseOfDisk(options.rejects),
    '--atomic': options.atomic && '',
  }
}

/** Of `--id-from next`: above all ids of the store and, if they can be read twice, of the inputs. */
async function firstIdFor(
  plan: ImportPlan,
  names: PlantNames | undefined,
  context: CommandContext,
): Promise<bigint | undefined> {
  if (plan.rules.idFrom !== 'next') return undefined
  if (names) return idAfter(names.greatestId, '--id-from')
  const greatest = await greatestIdIn(plan, context.io)
  const next = await nextIdIn(await context.opener(), '--id-from')
  return greatest !== undefined && greatest >= next ? idAfter(greatest, '--id-from') : next
}

/** Each part in a transaction of its own, unless all are in one. */
async function importInto(
  target: OpenTarget,
  importing: Importer,
  first: OpenInput,
  report: ImportReport,
  { atomic }: ImportOptions,
): Promise<void> {
  try {
    if (atomic)
      await target.transaction((transaction) => importing.run(first, (work) => work(transaction)), {
        commits: () => importing.rejected === 0 && importing.isDone,
      })
    else {
      await importing.begin()
      await importing.run(first)
    }
  } catch (error) {
    throw await report.failed(error, importing)
  } finally {
    await importing.end()
  }
}

/** Before the summary, after which a kill must not make the same command import again. */
async function finish(importing: Importer, report: ImportReport, context: CommandContext) {
  try {
    await importing.remember(new Date(context.io.time()))
  } catch (error) {
    if (error instanceof PlantsError && error.isInterruption)
      throw report.explained(error, importing)
    await warnOfCheckpoint(error, context.reporter)
  }
}

async function warnOfCheckpoint(error: unknown, reporter: Reporter): Promise<void> {
  if (!(error instanceof PlantsError)) throw error
  // Another process may have found the complete import, and printed its end, too.
  if (!error.isInterruption && !(error instanceof CheckpointMovedError))
    await reporter.warn(
      `The import is done, but its checkpoint may have been left: ${error.message}`,
    )
}
