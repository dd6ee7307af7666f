import { Option } from 'commander'
import { outputFormats } from '../../config/option-values.js'
import { describePlant, quoteIfNeeded } from '../../output/output.js'
import { plantCount, type StoredPlant } from '../../plant/plant.js'
import { usageError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { isDefaultStore } from '../../stores/common/address.js'
import type { Change } from '../../stores/common/change.js'
import type { Store } from '../../stores/common/store.js'
import type { PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { idsArgument, isSingle, readIds } from '../ids.js'
import { addFilters, type FilterOptions } from '../options.js'
import { changeInParts, changePrinter, inParts, printResults, sentenceOf } from '../outcomes.js'

export interface DeleteOptions extends FilterOptions {
  ignoreMissing?: true
  dryRun?: true
  yes?: true
}

export function defineDelete(command: PlantsCommand, io: Io): void {
  command
    .description(
      'Delete plants by id, or all that match, and print them, so that they can be created again.',
    )
    .argument('[id...]', idsArgument[1])
  addFilters(command)
    .addOption(
      new Option('--ignore-missing', 'ignore ids that no plant has').conflicts(['tag', 'search']),
    )
    .option('--dry-run', 'print what would be deleted, but delete nothing')
    .option('-y, --yes', 'do not ask for confirmation')
    .addExamples(
      'plants delete 1 2 3 --yes > deleted.ndjson',
      'plants delete --tag shade --search fern --dry-run',
    )
    .handler((options: DeleteOptions, ids: string[]) => deletePlants(ids, options, io))
}

export async function deletePlants(
  args: readonly string[],
  options: DeleteOptions,
  io: Io,
): Promise<void> {
  const { tag, search } = options
  const isDryRun = options.dryRun === true
  const hasFilter = tag !== undefined || search !== undefined
  if (args.length > 0 === hasFilter)
    throw usageError(
      'delete takes either ids or filters',
      'Name plants by their ids, or by --tag, --no-tag or --search: plants help delete',
    )
  if (search === '')
    throw usageError(
      '--search is empty, and would match every plant',
      'Give it a text, or leave it out',
    )
  const context = await CommandContext.from(options, io, outputFormats)
  const asks = !isDryRun && options.yes !== true
  const unconfirmed = () =>
    usageError('Deleting requires confirmation', 'To delete without confirmation, add --yes')
  if (asks && args.includes('-')) throw unconfirmed()
  const ids = await readIds(args, io)
  if (asks && !context.mayAsk) throw unconfirmed()
  const store = await context.openStore()
  try {
    const matching = hasFilter ? (store?.read({ tag, search, inPages: true }) ?? []) : undefined
    const shown = asks ? await confirmed(matching, ids, store, context) : undefined
    const pages = matching && !shown ? idsIn(matching) : inParts(shown ?? ids)
    // What came after the question stays, also where its id was given.
    const seen = new Set(shown)
    const unseen = shown ? ids.filter((id) => !seen.has(id)) : []
    const outcomes = inTurn(
      changeInParts(store, deletionsOf(pages), isDryRun, context),
      changeInParts(undefined, deletionsOf(inParts(unseen)), isDryRun, context),
    )
    const sentence = sentenceOf('Deleted', 'delete')
    const printer = await changePrinter(sentence, isSingle(args), context)
    const ignoresMissing = options.ignoreMissing === true || hasFilter
    const count = await printResults(outcomes, printer, { isDryRun, ignoresMissing }, context)
    if (hasFilter)
      await context.warn(`${isDryRun ? 'Would delete' : 'Deleted'} ${plantCount(count)}`)
  } finally {
    await store?.close()
  }
}

async function* inTurn<T>(...all: AsyncIterable<T>[]): AsyncGenerator<T> {
  for (const each of all) yield* each
}

type StoredPages = AsyncIterable<StoredPlant[]> | StoredPlant[][]

async function* deletionsOf(
  pages: Iterable<bigint[]> | AsyncIterable<bigint[]>,
): AsyncGenerator<Change[]> {
  for await (const page of pages) yield page.map((id): Change => ({ type: 'delete', id }))
}

/** With --yes, plants are not read first, so that the token of a service needs no right to read. */
async function* idsIn(pages: StoredPages): AsyncGenerator<bigint[]> {
  for await (const page of pages) yield* inParts(page.map(({ id }) => id))
}

/** The ids of the plants that the question was about. */
async function confirmed(
  matching: StoredPages | undefined,
  ids: readonly bigint[],
  store: Store | undefined,
  context: CommandContext,
): Promise<bigint[]> {
  const plants: StoredPlant[] = []
  if (matching) for await (const page of matching) plants.push(...page)
  else plants.push(...((await store?.get(ids))?.values() ?? []))
  const style = await context.style(context.io.stderr)
  const shown =
    plants.length > 10
      ? plantCount(plants.length)
      : plants.map((plant) => describePlant(plant, style)).join(', ')
  if (plants.length > 0)
    await context.confirm(`Delete ${shown}${placeOf(context)}?`, 'Nothing was deleted')
  return plants.map(({ id }) => id)
}

/** Such as ` from garden (/srv/garden.db)`; empty for the default store. */
function placeOf({ address, settings: { storeName } }: CommandContext): string {
  if (isDefaultStore(address)) return ''
  const name = quoteIfNeeded(address.name)
  return ` from ${storeName === undefined ? name : `${storeName} (${name})`}`
}
