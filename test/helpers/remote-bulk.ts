import type { NewPlant, PlantPatch } from '../../src/plant/plant.js'
import type { Access } from '../../src/stores/common/access.js'
import type { Batch, OpenOptions } from '../../src/stores/common/store.js'
import { RemoteStore } from '../../src/stores/http/remote-store.js'
import { parseAddress } from '../../src/stores/registry.js'
import { type BulkOptions, batchOf, createAll, outcomesOf } from './bulk.js'
import { type Deed, PlantService, type Post } from './plant-service.js'
import { usualAccess } from './remote.js'
import { closedAfterTest, openOptions, place } from './store.js'

interface Ways {
  access?: Partial<Access>
  opening?: Partial<OpenOptions>
}

export async function open(url: string, { access = {}, opening = {} }: Ways = {}): Promise<RemoteStore> {
  const address = await parseAddress(url, 'test', place())
  if (address.scheme !== 'remote') throw new Error('Only services are expected here')
  const options = openOptions({ timeout: 20_000, access: async () => ({ ...usualAccess, ...access }), ...opening })
  return closedAfterTest(await RemoteStore.open(address, options))
}

interface Import extends Ways, BulkOptions {
  /** another one than that of `isKeyed` and `deed` */
  service?: PlantService
  isKeyed?: boolean
  deed?(post: Post): Deed | Promise<Deed>
  /** how many of `plantsOf` */
  plants?: number
}

/** Imports plants into a service. `made` is how often the service made each plant, by its id. */
export async function imported({
  service,
  isKeyed = true,
  deed,
  plants = 100,
  access = {},
  opening = {},
  ...rest
}: Import) {
  const target = service ?? (await PlantService.listen({ isKeyed, ...(deed && { deed }) }))
  const store = await open(target.url, { access, opening })
  return { service: target, store, posts: target.posts, made: target.made, ...(await sent(store, plants, rest)) }
}

/** Imports plants, and tells how: how many rows went which way, the reasons of some, and the error that ended it. */
export async function sent(store: RemoteStore, plants: number | PlantPatch[] | Batch, options: BulkOptions = {}) {
  const rows = typeof plants === 'number' ? plantsOf(plants) : plants
  const batch = Array.isArray(rows) ? batchOf(rows) : rows
  const done = createAll(store, batch, { keyOf: (row) => `import-${row}`, ...options })
  const error = await done.then(
    () => undefined,
    (reason: Error) => reason,
  )
  const tally: Record<string, number> = {}
  for (const outcome of outcomesOf(batch)) tally[outcome] = (tally[outcome] ?? 0) + 1
  const rejections = [...batch.rejections].map(([row, { error, message }]) => [row, error, message])
  return { batch, error, tally, rejections }
}

export function plantsOf(count: number): NewPlant[] {
  const tagOf = (index: number) => (index % 3 ? { tag: 'shade' } : {})
  return Array.from({ length: count }, (_, index) => ({ id: BigInt(index), name: `Fern ${index}`, ...tagOf(index) }))
}

export const all = (count: number) => new Map(plantsOf(count).map(({ id }) => [`${id}`, 1]))

/** What becomes of an import in which each plant is created once. */
export const complete = (count = 100) => ({ error: undefined, tally: { created: count }, made: all(count) })
