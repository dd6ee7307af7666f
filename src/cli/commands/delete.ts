import { describePlant, notFound, quoteIfNeeded, recordPrinter, styleFor, writeError } from '../../output/output.js'
import { toJson } from '../../plant/json.js'
import { type NewPlant, plantCount } from '../../plant/plant.js'
import { malformed, PlantsError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { outputFormats } from '../../platform/values.js'
import type { ReadableStore } from '../../stores/common/store.js'
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
    const { tag } = flags
    const mode = flags.dryRun ? 'dryRun' : flags.yes ? 'confirmed' : 'ask'
    const ids = [...new Set(args.map((text) => parseId('id', text)))]
    if (ids.length > 0 === (tag !== undefined))
      throw malformed(
        tag === undefined ? 'delete needs an id or --tag' : 'delete takes ids or --tag, but not both',
        'Name plants by their ids, or by a tag: plants help delete',
      )
    const settings = await resolveSettings(flags, io, { formats })
    const what =
      tag === undefined ? `${ids.length === 1 ? 'plant' : 'plants'} ${ids.join(', ')}` : `plants with the tag ${JSON.stringify(tag)}`
    if (mode === 'ask' && !settings.mayAsk())
      throw malformed(`Deleting ${what} requires confirmation`, 'To delete without confirmation, add --yes')
    const store = await openExistingStore(settings.store, { ...settings.storeOptions, needs: ['delete'] })
    try {
      const { print, end } = await printerOf(mode, settings, io)
      const deletion = { store, mode, settings, io, print } as const
      const failures = await (tag === undefined ? deleteByIds(ids, deletion) : deleteByTag(tag, deletion))
      await end(failures.length > 0)
      const bySeverity = counted(failures).toSorted((one, other) => one.exitCode - other.exitCode)
      const worst = bySeverity.pop()
      for (const failure of bySeverity) await writeError(io, failure, settings)
      if (worst) throw worst
    } finally {
      await store?.close()
    }
  },
})

interface Deletion {
  store: ReadableStore | undefined
  /** whether to ask for confirmation first, or to delete nothing */
  mode: 'ask' | 'confirmed' | 'dryRun'
  settings: Settings
  io: Io
  print(deleted: NewPlant[]): Promise<void>
}

/**
 * Deletes the plants that exist, even if others are missing. Does not read them first if they are not shown before, so that a token needs no
 * right to read. Returns the failures.
 */
async function deleteByIds(ids: bigint[], deletion: Deletion): Promise<PlantsError[]> {
  const { store, mode, settings, io } = deletion
  const missing = (id: bigint) => notFound(id, settings, store !== undefined)
  if (mode === 'confirmed') return (await deleteAll(ids, async (id) => store?.delete(id), missing, deletion)).failures
  const failures: PlantsError[] = []
  const found: NewPlant[] = []
  for (const id of ids) {
    const plant = await store?.get(id)
    if (plant) found.push(plant)
    else failures.push(missing(id))
  }
  if (found.length === 0) return failures
  if (mode === 'ask') {
    const style = await styleFor(settings.colors(io.stderr))
    await confirm(found.map((plant) => describePlant(plant, style)).join(', '), deletion)
  }
  return [...failures, ...(await deleteUnchanged(found, deletion)).failures]
}

async function deleteByTag(tag: string, deletion: Deletion): Promise<PlantsError[]> {
  const { store, mode, settings } = deletion
  const count = await store?.count({ tag })
  if (!store || !count) {
    await settings.warn('No plants with this tag')
    return []
  }
  if (mode === 'ask') await confirm(`${plantCount(count)} with the tag ${JSON.stringify(tag)}`, deletion)
  const failures: PlantsError[] = []
  let total = 0
  for await (const page of store.list({ tag })) {
    const deleted = await deleteUnchanged(page, deletion)
    total += deleted.count
    failures.push(...deleted.failures)
    if (failures.some(({ type }) => type !== 'conflict')) break
  }
  await settings.warn(`${verbOf(mode)} ${plantCount(total)}`)
  return failures
}

async function confirm(what: string, { settings, io }: Deletion): Promise<void> {
  const { store, storeName } = settings
  const address = quoteIfNeeded(store.name)
  const place = isDefaultStore(store) ? '' : ` from ${storeName === undefined ? address : `${storeName} (${address})`}`
  const { askToConfirm } = await import('../prompts.js')
  await askToConfirm(`Delete ${what}${place}?`, 'Nothing was deleted', settings.colors(io.stderr), io)
}

/** Deletes plants that were shown or selected, except those that have changed. */
function deleteUnchanged(plants: NewPlant[], deletion: Deletion) {
  const { store, mode } = deletion
  const remove = async (plant: NewPlant) => (mode === 'dryRun' ? plant : store?.delete(plant.id, plant))
  const hint = 'This command did not delete it. Run it again'
  const explain = ({ id }: NewPlant) => new PlantsError('conflict', `The plant ${id} was changed or deleted by another process`, { hint })
  return deleteAll(plants, remove, explain, deletion)
}

/**
 * Deletes plants concurrently, so that they share commits, and prints them.
 *
 * @param remove returns the deleted plant; undefined if it was not deleted, which `explain` explains
 */
async function deleteAll<T>(
  items: T[],
  remove: (item: T) => Promise<NewPlant | undefined>,
  explain: (item: T) => PlantsError,
  deletion: Deletion,
) {
  const results = await Promise.allSettled(items.map(async (item) => (await remove(item)) ?? explain(item)))
  const deleted: NewPlant[] = []
  const failures: PlantsError[] = []
  const defects: unknown[] = []
  for (const result of results) {
    if (result.status === 'rejected') (result.reason instanceof PlantsError ? failures : defects).push(result.reason)
    else if (result.value instanceof PlantsError) failures.push(result.value)
    else deleted.push(result.value)
  }
  await deletion.print(deleted)
  if (defects.length > 0) throw defects[0]
  return { count: deleted.length, failures }
}

/** Failures without repetitions: a message that several plants share says how many. */
function counted(failures: PlantsError[]): PlantsError[] {
  const groups = new Map<string, { failure: PlantsError; count: number }>()
  for (const failure of failures) {
    const key = JSON.stringify([failure.exitCode, failure.message, failure.hint])
    groups.set(key, { failure, count: (groups.get(key)?.count ?? 0) + 1 })
  }
  return [...groups.values()].map(({ failure, count }) => {
    const { type, message, cause, ...details } = failure
    return count === 1 ? failure : new PlantsError(type, `${message} (${plantCount(count)})`, { ...details, cause })
  })
}

async function printerOf(mode: Deletion['mode'], settings: Settings, io: Io) {
  const isDryRun = mode === 'dryRun'
  const style = await styleFor(settings.colors(io.stdout))
  const isHidden = settings.isQuiet && !isDryRun
  const line = (plant: NewPlant) => `${verbOf(mode)} ${describePlant(plant, style)}\n`
  const text = async () => (plants: NewPlant[]) => (isHidden ? '' : plants.map(line).join(''))
  let hasPrinted = false
  let outcome = 'Nothing was deleted'
  const { print, end } = await recordPrinter<NewPlant>(io, settings, { text, hint: outcome })
  return {
    /** An error alone has no output: no empty list. */
    end: async (hasFailed: boolean) => (hasFailed && !hasPrinted ? undefined : end(outcome)),
    print: (plants: NewPlant[]) => {
      hasPrinted ||= plants.length > 0
      if (isDryRun) return print(plants.map((plant) => ({ dryRun: true, ...plant })))
      const [plant, ...others] = plants
      const which = plant && others.length === 0 ? toJson({ ...plant }) : plantCount(plants.length)
      if (plant) outcome = `Deleted, but not printed completely: ${which}`
      return print(plants, outcome)
    },
  }
}

function verbOf(mode: Deletion['mode']): string {
  return mode === 'dryRun' ? 'Would delete' : 'Deleted'
}
