import { describePlant, notFound, quoteIfNeeded, recordPrinter, styleFor, writeError } from '../../output/output.js'
import { toJson } from '../../plant/exact-json.js'
import { type NewPlant, plantCount } from '../../plant/plant.js'
import { malformed, PlantsError, systemCode } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { outputFormats } from '../../platform/values.js'
import { defaultConcurrency, type ReadableStore } from '../../stores/common/store.js'
import { isDefaultStore, openExistingStore } from '../../stores/registry.js'
import { resolveSettings, type Settings } from '../context.js'
import { defineCommand, dryRunOption, parseId } from '../define-command.js'

export const deletePlant = defineCommand({
  name: 'delete',
  description: 'Delete the plants with these ids or with a tag, and print them, so that they can be created again.',
  arguments: [{ name: '[ids...]', description: 'ids of the plants, separated by spaces' }],
  options: [
    { flags: '-t, --tag <text>', description: 'delete all plants with this tag' },
    dryRunOption('print what would be deleted, but delete nothing'),
    { flags: '-y, --yes', description: 'do not ask for confirmation' },
  ],
  formats: outputFormats,
  examples: ['plants delete 1', 'plants delete 1 2 3 --yes > deleted.ndjson', 'plants delete --tag shade --dry-run'],
  async run({ args, flags, formats }, io) {
    const { tag, dryRun = false, yes = false } = flags
    const ids = [...new Set(args.map((text) => parseId('id', text)))]
    if (ids.length > 0 === (tag !== undefined))
      throw malformed('delete takes either ids or --tag', 'Name plants by their ids, or by a tag: plants help delete')
    const settings = await resolveSettings(flags, io, { formats })
    const asks = !dryRun && !yes
    if (asks && !settings.mayAsk())
      throw malformed('Deleting requires confirmation', 'To delete without confirmation, add --yes')
    const store = await openExistingStore(settings.store, { ...settings.storeOptions, needs: ['delete'] })
    try {
      // With --yes, plants are not read first: the token needs no right to read.
      let selection: Selection = { pages: [ids.map((id) => ({ id }))], question: '', failures: [] }
      if (tag !== undefined) selection = await plantsWithTag(tag, store)
      else if (!yes || dryRun) selection = await readPlants(ids, store, settings, io)
      if (asks && selection.question !== '') await confirm(selection.question, settings, io)
      const total = await deleteAll(selection, store, dryRun, settings, io)
      if (tag !== undefined && !selection.failures.some(({ isInterruption }) => isInterruption))
        await settings.warn(`${dryRun ? 'Would delete' : 'Deleted'} ${plantCount(total)}`)
      await throwWorst(selection.failures, dryRun ? 0 : total, settings, io)
    } finally {
      await store?.close()
    }
  },
})

/** A plant is deleted only if it is still as it was read. */
type Target = NewPlant | { id: bigint }

interface Selection {
  pages: AsyncIterable<Target[]> | Target[][]
  /** empty if nothing is deleted */
  question: string
  failures: PlantsError[]
}

async function plantsWithTag(tag: string, store: ReadableStore | undefined): Promise<Selection> {
  const count = (await store?.count({ tag })) ?? 0n
  if (!store || count === 0n) return { pages: [], question: '', failures: [] }
  const question = `${plantCount(count)} with the tag ${JSON.stringify(tag)}`
  return { pages: store.list({ tag }), question, failures: [] }
}

async function readPlants(
  ids: bigint[],
  store: ReadableStore | undefined,
  settings: Pick<Settings, 'store' | 'storeFlag' | 'colors'>,
  io: Io,
): Promise<Selection> {
  const failures: PlantsError[] = []
  const found: NewPlant[] = []
  for (const id of ids) {
    const plant = await store?.get(id)
    if (plant) found.push(plant)
    else failures.push(notFound(id, settings, store !== undefined))
  }
  const style = await styleFor(settings.colors(io.stderr))
  return { pages: [found], question: found.map((plant) => describePlant(plant, style)).join(', '), failures }
}

async function confirm(
  what: string,
  { store, storeName, colors }: Pick<Settings, 'store' | 'storeName' | 'colors'>,
  io: Io,
): Promise<void> {
  const address = quoteIfNeeded(store.name)
  const place = isDefaultStore(store) ? '' : ` from ${storeName === undefined ? address : `${storeName} (${address})`}`
  const { askToConfirm } = await import('../prompts.js')
  await askToConfirm(`Delete ${what}${place}?`, nothing, colors(io.stderr), io)
}

/** Adds to the failures, and returns the number of deleted plants. */
async function deleteAll(
  { pages, failures }: Selection,
  store: ReadableStore | undefined,
  dryRun: boolean,
  settings: Pick<Settings, 'store' | 'storeFlag' | 'output' | 'isQuiet' | 'colors'>,
  io: Io,
): Promise<number> {
  const { output, isQuiet, colors } = settings
  const style = await styleFor(colors(io.stdout))
  const line = (plant: NewPlant) => `${dryRun ? 'Would delete' : 'Deleted'} ${describePlant(plant, style)}\n`
  const text = async () => (plants: NewPlant[]) => (isQuiet && !dryRun ? '' : plants.map(line).join(''))
  const { print, end } = await recordPrinter<NewPlant>(io, { output }, { text })
  let total = 0
  let outcome = nothing
  try {
    for await (const some of parts(pages)) {
      io.signal.throwIfAborted()
      const removals = some.map((target) => ('name' in target && dryRun ? target : remove(target, store, settings)))
      const results = await Promise.allSettled(removals) // at once, so that they share commits
      const deleted = results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
      failures.push(...results.flatMap((result) => (result.status === 'rejected' ? plantsError(result.reason) : [])))
      total += deleted.length
      if (!dryRun) outcome = outcomeOf(total, deleted)
      if (deleted.length > 0)
        await print(dryRun ? deleted.map((plant) => ({ dryRun: true, ...plant })) : deleted, outcome)
      if (failures.some(({ type }) => type !== 'conflict' && type !== 'notFound')) break
    }
    if (total > 0 || failures.length === 0) await end(outcome) // no empty list for an error alone
  } catch (error) {
    failures.push(plantsError(error, outcome))
  }
  return total
}

const nothing = 'Nothing was deleted'

/** A closed pipe is no failure elsewhere, but here it would hide what was deleted. */
function plantsError(error: unknown, outcome = nothing): PlantsError {
  if (error instanceof PlantsError) return error
  if (systemCode(error) !== 'EPIPE' || outcome === nothing) throw error
  return new PlantsError('unwritable', 'The output was closed', { hint: `${outcome}. No more were deleted` })
}

/** If this is not printed, one plant can still be created again. */
function outcomeOf(total: number, [first]: NewPlant[]): string {
  if (total === 0) return nothing
  const what = total === 1 && first ? toJson({ ...first }) : plantCount(total)
  return `Deleted, but not printed completely: ${what}`
}

/** As many at once as requests may be in flight, so that the time-out of none begins while it waits for others. */
async function* parts(pages: Selection['pages']): AsyncGenerator<Target[]> {
  for await (const page of pages) {
    for (let from = 0; from < page.length; from += defaultConcurrency) yield page.slice(from, from + defaultConcurrency)
  }
}

async function remove(
  target: Target,
  store: ReadableStore | undefined,
  settings: Pick<Settings, 'store' | 'storeFlag'>,
): Promise<NewPlant> {
  const deleted = await store?.delete(target.id, 'name' in target ? target : undefined)
  if (deleted) return deleted
  const hint = 'This command did not delete it. Run it again'
  if ('name' in target)
    throw new PlantsError('conflict', `The plant ${target.id} was changed or deleted by another process`, { hint })
  throw notFound(target.id, settings, store !== undefined)
}

/** A message that several plants share is printed once, and says how many. */
async function throwWorst(
  failures: PlantsError[],
  total: number,
  settings: Pick<Settings, 'errors' | 'colors'>,
  io: Io,
): Promise<void> {
  const groups = new Map<string, PlantsError[]>()
  for (const failure of failures) {
    const key = JSON.stringify([failure.exitCode, ...(failure.isInterruption ? [] : [failure.message, failure.hint])])
    groups.set(key, [...(groups.get(key) ?? []), failure])
  }
  const different = [...groups.values()].flatMap(([first, ...others]) => {
    if (!first) return []
    const { type, message, cause, ...details } = first
    if (first.isInterruption) {
      const what = (io.signal.reason as PlantsError).message // the signal is only aborted with a PlantsError
      const hints = [first, ...others].flatMap(({ hint }) => hint ?? [])
      const hint = hints.length > 1 ? `Whether ${plantCount(hints.length)} more were deleted is unknown` : hints[0]
      return new PlantsError(type, `${what} after deleting ${plantCount(total)}`, { ...details, hint, cause: first })
    }
    if (others.length === 0) return first
    return new PlantsError(type, `${message} (${plantCount(others.length + 1)})`, { ...details, cause })
  })
  const bySeverity = different.toSorted((one, other) => one.exitCode - other.exitCode)
  const worst = bySeverity.pop()
  for (const failure of bySeverity) await writeError(io, failure, settings)
  if (worst) throw worst
}
