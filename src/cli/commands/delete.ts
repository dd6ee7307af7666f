import { usageError } from '../../errors.js'
import { describePlant, quoteIfNeeded } from '../../output/output.js'
import { plantCount, type StoredPlant } from '../../plant/plant.js'
import type { Io } from '../../platform/io.js'
import { findKind } from '../../stores/kinds.js'
import type { PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { idsMeaning, isSingle, readIds } from '../ids.js'
import { addFilters, type FilterOptions } from '../options.js'
import { changePlants } from '../outcomes.js'

interface DeleteOptions extends FilterOptions {
  ignoreMissing?: true
  dryRun?: true
  yes?: true
}

export function define(command: PlantsCommand): void {
  command
    .description('Delete plants by id, or all that match, and print what is deleted.')
    .argument('[id...]', idsMeaning)
  addFilters(command)
    .option('--ignore-missing', 'ignore ids that no plant has')
    .option('--dry-run', 'print what would be deleted, but delete nothing')
    .option('-y, --yes', 'do not ask for confirmation')
    .addExamples(
      'plants delete 1 2 3 --yes > deleted.ndjson',
      'plants delete --tag shade --search fern --dry-run',
    )
    .handler(deletePlants)
}

async function deletePlants(options: DeleteOptions, io: Io, args: string[]): Promise<void> {
  const { tag, search } = options
  const isDryRun = options.dryRun === true
  const hasFilter = tag !== undefined || search !== undefined
  if (args.length > 0 === hasFilter)
    throw usageError(
      'delete takes either ids or filters',
      'Name ids, or use --tag, --no-tag or --search',
    )
  if (search === '')
    throw usageError('--search is empty, and would match every plant', 'Give it a text')
  const context = await CommandContext.forPlants(options, io)
  const ids = await readIds(args, io)
  const asks = !isDryRun && options.yes !== true
  if (asks && (!context.mayAsk || args.includes('-')))
    throw usageError('Deleting requires confirmation', 'To delete without confirmation, add --yes')
  const store = await context.openStore()
  try {
    const shown: StoredPlant[] = []
    const matching = hasFilter ? store?.read({ tag, search, inPages: true }) : undefined
    for await (const page of matching ?? []) {
      ids.push(...page.map(({ id }) => id))
      if (asks) shown.push(...page)
    }
    // Only for a question: the token of a service needs no right to read.
    if (asks && !hasFilter) shown.push(...((await store?.get(ids))?.values() ?? []))
    if (shown.length > 0) await confirm(shown, context)

    const known = new Set(asks ? shown.map(({ id }) => id) : ids)
    const changes = Array.from(known, (id) => ({ type: 'delete' as const, id }))
    const missing = ids.filter((id) => !known.has(id))
    const ignoresMissing = options.ignoreMissing === true || hasFilter
    const how = { isDryRun, isSingle: isSingle(args) && !ignoresMissing, ignoresMissing, missing }
    const count = await changePlants('delete', changes, store, how, context)
    if (hasFilter)
      await context.warn(`${isDryRun ? 'Would delete' : 'Deleted'} ${plantCount(count)}`)
  } finally {
    await store?.close()
  }
}

async function confirm(plants: readonly StoredPlant[], context: CommandContext): Promise<void> {
  const style = await context.style(context.io.stderr)
  const what =
    plants.length > 10
      ? plantCount(plants.length)
      : plants.map((plant) => describePlant(plant, style)).join(', ')
  const { address, settings } = context
  const name = quoteIfNeeded(address.name)
  const named = settings.storeName === undefined ? name : `${settings.storeName} (${name})`
  const place = findKind(address).isDefault(address) ? '' : ` from ${named}`
  await context.confirm(`Delete ${what}${place}?`, 'Nothing was deleted')
}
