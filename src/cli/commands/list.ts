import { outputFormats } from '../../config/option-values.js'
import { quoteIfNeeded } from '../../output/output.js'
import type { Printer } from '../../output/printer.js'
import { fieldNames, grouped, idFromText, plantCount, type StoredPlant } from '../../plant/plant.js'
import { must, PlantsError, usageError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import type { Address } from '../../stores/common/address.js'
import { type ListQuery, maxSearch, pageRows } from '../../stores/common/query.js'
import { foldText } from '../../stores/common/search.js'
import type { Store } from '../../stores/common/store.js'
import type { PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { addQuery, type QueryOptions } from '../options.js'
import { paged } from '../pager.js'

export function defineList(command: PlantsCommand, io: Io): void {
  command.description(
    'List plants in the order of their ids: as a table on a terminal, otherwise as NDJSON.',
  )
  addQuery(command)
    .addExamples(
      'plants list --tag shade',
      'plants list --desc --limit 10',
      'plants list --search fern --sort name --output csv',
    )
    .handler((options: QueryOptions) => paged(options, io, (shown) => list(options, shown)))
}

export async function list(options: QueryOptions, io: Io): Promise<void> {
  const context = await CommandContext.from(options, io, outputFormats)
  const { limit, after, tag, search, sort, desc } = options
  assertOrder(options, context.address)
  const isTable = context.output === 'text'
  const store = await context.openStore()
  try {
    // A table reads one plant beyond its limit, to know whether there are more.
    const query = {
      limit: limit && limit + Number(isTable),
      after,
      tag,
      search,
      sort,
      desc,
      inPages: sort === 'id',
    }
    const printer = await context.plantPrinter(fieldNames, Math.min(limit ?? Infinity, 200))
    const shown = await printPlants(store?.read(query) ?? [], limit, printer)
    if (!store) await context.warn(context.noStoreYet())
    else if (shown.isTruncated) {
      const more = sort === 'id' ? `For more: --after ${shown.last}` : 'For all, leave out --limit'
      const share =
        context.address.scheme !== 'http'
          ? await shareOf(store, shown.count, options)
          : plantCount(shown.count)
      await context.warn(`Only ${share} shown. ${more}`)
    } else if (isTable) await noteFound(shown.count, options, store, context)
  } finally {
    await store?.close()
  }
}

async function printPlants(
  pages: AsyncIterable<StoredPlant[]> | StoredPlant[][],
  limit: number | undefined,
  printer: Printer<StoredPlant>,
) {
  const shown = { count: 0, last: 0n, isTruncated: false }
  for await (const page of pages) {
    const kept = page.slice(0, limit && limit - shown.count)
    shown.isTruncated = kept.length < page.length
    if (kept.length === 0) break
    await printer.rows(kept)
    shown.count += kept.length
    shown.last = must(kept.at(-1)).id
  }
  await printer.end()
  return shown
}

/** Throws `usage` for an order that a service does not offer. */
export function assertOrder({ sort }: QueryOptions, address: Address): void {
  if (sort === 'id' || address.scheme !== 'http') return
  const why = 'a service lists plants only in the order of their ids'
  throw usageError(`--sort ${sort} is not supported at ${address.name}: ${why}`, 'Leave it out')
}

function isFiltered({ tag, search }: Pick<ListQuery, 'tag' | 'search'>): boolean {
  return tag !== undefined || search !== undefined
}

/** Such as `10 of 153 plants`. Not for a service, of which a count would read all plants. */
async function shareOf(
  store: Store,
  shown: number,
  { tag, search, after }: QueryOptions,
): Promise<string> {
  if (!isFiltered({ tag, search }) || after !== undefined) return plantCount(shown)
  return `${grouped(shown)} of ${plantCount(await store.count({ tag, search }))}`
}

async function noteFound(
  shown: number,
  options: QueryOptions,
  store: Store,
  context: CommandContext,
): Promise<void> {
  if (!isFiltered(options)) {
    if (shown === 0) await context.warn('No plants')
  } else if (shown > 0) await context.warn(`Found ${plantCount(shown)}`)
  else
    await context.warn(
      `No plants match${(await similarTags(options, store, context)) || hintOfSearch(options, context)}`,
    )
}

/** For what other programs find: an id, and words in any order. */
function hintOfSearch({ search = '' }: QueryOptions, { storeFlag }: CommandContext): string {
  const id = idFromText(search)
  if (id !== undefined) return `. For the plant with this id: plants get ${id}${storeFlag}`
  return /\S\s+\S/.test(search) ? '. A search is one text, with its words in this order' : ''
}

/** Such as `. There is a tag Kräuter`, for `--tag kräuter`. A service gets one request, and may reject it. */
async function similarTags(
  { tag }: QueryOptions,
  store: Store,
  { address }: CommandContext,
): Promise<string> {
  if (!tag || Array.from(tag).length > maxSearch) return ''
  const folded = foldText(tag)
  const tags = new Set<string>()
  try {
    for await (const page of store.read({ search: tag, limit: pageRows, inPages: true })) {
      for (const plant of page)
        if (plant.tag !== undefined && foldText(plant.tag) === folded) tags.add(plant.tag)
      if (address.scheme === 'http') break
    }
  } catch (error) {
    if (!(error instanceof PlantsError) || error.isInterruption) throw error
  }
  if (tags.size === 0 || tags.has(tag)) return ''
  const names = [...tags].slice(0, 3).map(quoteIfNeeded)
  return `. There ${names.length === 1 ? 'is a tag' : 'are the tags'} ${names.join(', ')}`
}
