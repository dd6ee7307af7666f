import { outputFormats } from '../../config/option-values.js'
import { createUsageError } from '../../errors.js'
import { createStyle, describePlant } from '../../output/output.js'
import { formatPlantCount, type StoredPlant } from '../../plant/plant.js'
import type { Io } from '../../platform/io.js'
import type { Store } from '../../stores/store.js'
import { leaveOutHint, type PlantsCommand } from '../command.js'
import { type CommandContext, readStoreContext } from '../context.js'
import { idsDescription, isSingle, readIds } from '../ids.js'
import { describeStore, openStore } from '../open-store.js'
import { addFilters, type FilterOptions } from '../options.js'
import { changePlants } from '../outcomes.js'

interface DeleteOptions extends FilterOptions {
  ignoreMissing?: true
  dryRun?: true
  yes?: true
}

export function define(command: PlantsCommand): void {
  command
    .description('Delete plants by id, or all plants that match a filter, and print them.')
    .argument('[id...]', idsDescription)
  addFilters(command)
    .option('--ignore-missing', 'ignore ids that do not exist')
    .option('--dry-run', 'print what would be deleted, without deleting it')
    .option('-y, --yes', 'delete without confirmation')
    .addExamples(
      'plants delete 1 2 3 --yes > deleted.ndjson',
      'plants delete --tag shade --search fern --dry-run',
      'plants list | plants delete - --yes',
    )
    .handler(deletePlants)
}

async function deletePlants(options: DeleteOptions, io: Io, args: string[]): Promise<void> {
  assertIdsOrFilters(options, args)
  const isDryRun = options.dryRun === true
  // A plant that matched a filter may be deleted by another process before this one does it.
  const ignoresMissing = options.ignoreMissing === true || hasFilter(options)
  const context = await readStoreContext(options, io, outputFormats)
  const argumentIds = await readIds(args, io)
  const needsConfirmation = !isDryRun && options.yes !== true
  // With "-", stdin has the ids, so that it cannot have the answer.
  const canConfirm = context.mayAsk && !args.includes('-')
  if (needsConfirmation && !canConfirm)
    throw createUsageError(
      'Deleting plants requires confirmation',
      'To delete them without confirmation, add --yes',
    )
  const store = await openStore(context)
  try {
    const { ids, plantsToConfirm } = hasFilter(options)
      ? await findMatchingPlants(store, options, needsConfirmation)
      : await findPlants(store, argumentIds, needsConfirmation)
    if (plantsToConfirm.length > 0) await confirm(plantsToConfirm, context)

    // Only what was confirmed is deleted. Without a question, the store finds what is missing.
    const idsToDelete = new Set(needsConfirmation ? plantsToConfirm.map(({ id }) => id) : ids)
    const changes = Array.from(idsToDelete, (id) => ({ type: 'delete' as const, id }))
    const missingIds = ids.filter((id) => !idsToDelete.has(id))
    const changeOptions = {
      isDryRun,
      isSingle: isSingle(args) && !ignoresMissing,
      ignoresMissing,
      missingIds,
    }
    const count = await changePlants('delete', changes, store, changeOptions, context)
    if (hasFilter(options))
      await context.reporter.warn(
        `${isDryRun ? 'Would delete' : 'Deleted'} ${formatPlantCount(count)}`,
      )
  } finally {
    await store?.close()
  }
}

function hasFilter({ tag, search }: DeleteOptions): boolean {
  return tag !== undefined || search !== undefined
}

function assertIdsOrFilters(options: DeleteOptions, args: readonly string[]): void {
  const hasIds = args.length > 0
  if (hasIds && hasFilter(options))
    throw createUsageError('delete takes either ids or filters, and not both', leaveOutHint)
  if (!hasIds && !hasFilter(options))
    throw createUsageError(
      'delete needs ids or a filter',
      'Give ids, or one or more of --tag, --no-tag and --search',
    )
  if (options.search === '')
    throw createUsageError(
      '--search is empty, which would match every plant',
      'Give a text to search for',
    )
}

interface PlantsToDelete {
  ids: readonly bigint[]
  /** The plants that the question names. The list is empty if nobody is asked. */
  plantsToConfirm: readonly StoredPlant[]
}

async function findMatchingPlants(
  store: Store | undefined,
  { tag, search }: DeleteOptions,
  needsConfirmation: boolean,
): Promise<PlantsToDelete> {
  const ids: bigint[] = []
  const plantsToConfirm: StoredPlant[] = []
  for await (const page of store?.read({ tag, search, inPages: true }) ?? []) {
    // A service may ignore the limit of a page, and `push` takes only some 100,000 arguments.
    for (const plant of page) {
      ids.push(plant.id)
      if (needsConfirmation) plantsToConfirm.push(plant)
    }
  }
  return { ids, plantsToConfirm }
}

/**
 * Reads the plants only for a question. With --yes, the token for a service then needs no right to
 * read.
 */
async function findPlants(
  store: Store | undefined,
  ids: readonly bigint[],
  needsConfirmation: boolean,
): Promise<PlantsToDelete> {
  const plants = needsConfirmation ? await store?.get(ids) : undefined
  return { ids, plantsToConfirm: [...(plants?.values() ?? [])] }
}

/** A question about more plants has only their number. */
const maxPlantsInQuestion = 10

async function confirm(plants: readonly StoredPlant[], context: CommandContext): Promise<void> {
  const style = await createStyle(context, context.io.stderr)
  const names =
    plants.length > maxPlantsInQuestion
      ? formatPlantCount(plants.length)
      : plants.map((plant) => describePlant(plant, style)).join(', ')
  const store = describeStore(context)
  const origin = store === undefined ? '' : ` from ${store}`
  const { askToConfirm } = await import('../prompts.js')
  await askToConfirm(`Delete ${names}${origin}?`, 'Nothing was deleted', context.io)
}
