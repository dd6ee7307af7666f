import { writeRows } from '../../output/output.js'
import { fieldNames, type NewPlant, plantCount } from '../../plant/plant.js'
import { malformed } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { grouped, outputFormats } from '../../platform/values.js'
import type { ListQuery, Store } from '../../stores/common/store.js'
import { isOwn, noStoreYet, openExistingStore } from '../../stores/registry.js'
import type { PlantsCommand } from '../command.js'
import { resolveSettings } from '../context.js'
import { addQuery, type QueryOptions } from '../options.js'
import { plantTable } from '../plant-table.js'
import type { Settings } from '../settings.js'

export function defineList(command: PlantsCommand, io: Io): void {
  command.description('List plants in the order of their ids: as a table on a terminal, otherwise as NDJSON.')
  addQuery(command)
    .addExamples(
      'plants list --tag shade',
      'plants list --desc --limit 10',
      'plants list --search fern --sort name --output csv',
    )
    .handler((options: QueryOptions) => list(options, io))
}

export async function list(options: QueryOptions, io: Io): Promise<void> {
  const settings = await resolveSettings(options, io, { formats: outputFormats })
  const { limit, after, tag, search, sort, desc } = options
  assertOrder(options, settings)
  const isTable = settings.output === 'text'
  const store = await openExistingStore(settings.store, settings.storeOptions)
  let shown = 0
  let last: NewPlant | undefined
  let isTruncated = false
  /** A table reads one plant beyond its limit, to know whether there are more. */
  async function* pages(): AsyncGenerator<NewPlant[]> {
    const query = { limit: limit && limit + Number(isTable), after, tag, search, sort, desc, inPages: sort === 'id' }
    for await (const page of store?.read(query) ?? []) {
      const kept = page.slice(0, limit && limit - shown)
      isTruncated = kept.length < page.length
      if (kept.length === 0) return
      yield kept
      shown += kept.length
      last = kept.at(-1)
    }
  }
  try {
    const shownPages = isTable ? (await import('../../output/text-table.js')).withFirstRows(pages(), limit) : pages()
    await writeRows(io, settings, shownPages, { text: () => plantTable(fieldNames, settings, io) })
    if (!store) await settings.warn(noStoreYet(settings.store))
    else if (isTruncated) {
      const more = sort === 'id' ? `For more: --after ${last?.id}` : 'For all, leave out --limit'
      await settings.warn(`Only ${await shareOf(store, shown, options, settings)} shown. ${more}`)
    } else if (isTable) await noteFound(shown, options, settings)
  } finally {
    await store?.close()
  }
}

/** Throws `malformed` for an order that a service does not offer. */
export function assertOrder({ sort }: QueryOptions, { store }: Settings): void {
  if (sort === 'id' || isOwn(store)) return
  const why = 'a service lists plants only in the order of their ids'
  throw malformed(`--sort ${sort} is not supported at ${store.name}: ${why}`, 'Leave it out')
}

function isFiltered({ tag, search }: Pick<ListQuery, 'tag' | 'search'>): boolean {
  return tag !== undefined || search !== undefined
}

/** Such as `10 of 153 plants`. At a service, a count would read all of them. */
async function shareOf(store: Store, shown: number, { tag, search, after }: QueryOptions, settings: Settings) {
  if (!isFiltered({ tag, search }) || after !== undefined || !isOwn(settings.store)) return plantCount(shown)
  return `${grouped(shown)} of ${plantCount(await store.count({ tag, search }))}`
}

async function noteFound(shown: number, options: QueryOptions, { warn }: Settings): Promise<void> {
  if (isFiltered(options)) await warn(shown === 0 ? 'No plants match' : `Found ${plantCount(shown)}`)
  else if (shown === 0) await warn('No plants')
}
