import { notFound, quoteIfNeeded, styleFor, writeAnswer, writeResult, writeRows } from '../../output/output.js'
import { fieldNames, type NewPlant, plantCount, type TextName } from '../../plant/plant.js'
import type { Column, PlantRecord } from '../../plant/records.js'
import { malformed } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { commonFormats, grouped, outputFormats } from '../../platform/values.js'
import type { ListQuery, Store } from '../../stores/common/store.js'
import { isOwn, noStoreYet, openExistingStore } from '../../stores/registry.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { resolveSettings } from '../context.js'
import { addFilters, addQuery, type FilterOptions, idsArgument, type QueryOptions, singleId } from '../options.js'
import type { Settings } from '../settings.js'

export function defineGet(command: PlantsCommand, io: Io): void {
  command
    .description('Show plants by id; several as a list.')
    .argument(...idsArgument)
    .addExamples('plants get 1', 'plants get 1 2 3 --output json')
    .handler((options: GlobalOptions, ids: string[]) => get(ids, options, io))
}

export async function get(args: readonly string[], options: GlobalOptions, io: Io): Promise<void> {
  const id = singleId(args)
  const many = id === undefined ? await import('../many.js') : undefined
  const ids = await many?.readIds(args, io)
  const settings = await resolveSettings(options, io, { formats: outputFormats })
  const store = await openExistingStore(settings.store, settings.storeOptions)
  const perform = async (wanted: bigint) => {
    const plant = (await store?.get([wanted]))?.get(wanted)
    if (plant) return plant
    throw notFound(wanted, settings, store)
  }
  try {
    if (id !== undefined) await showPlant(await perform(id), settings, io)
    if (many && ids)
      await many.performAll([ids], { perform, text: () => plantTable(fieldNames, settings, io) }, settings, io)
  } finally {
    await store?.close()
  }
}

async function showPlant(plant: NewPlant, { output, colors }: Settings, io: Io) {
  const { faint, strong } = await styleFor(colors(io.stdout))
  const { id, name, tag } = plant
  const line = (field: string, text: string) => `${faint(field)}${' '.repeat(4 - field.length)}  ${text}`
  const lines = [line('id', String(id)), line('name', strong(quoteIfNeeded(name)))]
  if (tag !== undefined) lines.push(line('tag', quoteIfNeeded(tag)))
  await writeResult(io, { output }, plant, lines.join('\n'), 'Run it again')
}

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

async function plantTable(fields: readonly Column[], { colors }: Settings, { stdout }: Io) {
  const { tableOf } = await import('../../output/text-table.js')
  const titles = fields.map((name) => name.toUpperCase())
  const cellsOf = (plant: PlantRecord) =>
    fields.map((name) => (plant[name] === undefined ? '' : quoteIfNeeded(String(plant[name]))))
  return tableOf(titles, cellsOf, await styleFor(colors(stdout)), stdout)
}

export interface CountOptions extends FilterOptions {
  by?: TextName
}

export function defineCount(command: PlantsCommand, io: Io): void {
  command
    .description('Print the number of plants; with --output json or ndjson as a JSON number.')
    .choice('--by <field>', 'count the plants of each text, the most frequent first', ['name', 'tag'])
  addFilters(command)
    .addExamples('plants count --tag shade', 'plants count --by tag', 'plants count --by name --output csv')
    .handler((options: CountOptions) => count(options, io))
}

export async function count(options: CountOptions, io: Io): Promise<void> {
  const { tag, search, by } = options
  const settings = await resolveSettings(options, io, { formats: by === undefined ? commonFormats : outputFormats })
  const store = await openExistingStore(settings.store, settings.storeOptions)
  try {
    if (by === undefined) {
      const plants = (await store?.count({ tag, search })) ?? 0n
      return await writeAnswer(io, settings.output === 'text' ? `${plantCount(plants)}\n` : `${plants}\n`)
    }
    const fields = [by, 'count'] as const
    async function* rows(field: TextName): AsyncGenerator<PlantRecord[]> {
      for await (const page of store?.countBy(field, { tag, search }) ?? [])
        yield page.map(({ text, count }) => ({ [field]: text, count }))
    }
    await writeRows(io, settings, rows(by), { fields, text: () => plantTable(fields, settings, io) })
  } finally {
    await store?.close()
  }
}
