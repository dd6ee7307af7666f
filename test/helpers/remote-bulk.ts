import type { NewPlant, PlantPatch } from '../../src/plant/plant.js'
import { PlantsError } from '../../src/platform/errors.js'
import type { Access } from '../../src/stores/common/access.js'
import { Outcome } from '../../src/stores/common/conflict.js'
import type { Batch, CreateManyOptions, OpenOptions } from '../../src/stores/common/store.js'
import { RemoteStore } from '../../src/stores/http/remote-store.js'
import { parseAddress } from '../../src/stores/registry.js'
import { batchOf } from './bulk.js'
import { type Deed, PlantService, type Post } from './plant-service.js'
import { usualAccess } from './remote.js'
import { closedAfterTest, openOptions, place } from './store.js'

export { batchOf }

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

type Import = Ways &
  Partial<CreateManyOptions> & {
    /** another one than that of `isKeyed` and `deed` */
    service?: PlantService
    isKeyed?: boolean
    deed?(post: Post): Deed | Promise<Deed>
    /** 100 of `plantsOf`, unless this says how many, or which */
    plants?: number | PlantPatch[]
    /** expects an error */
    fails?: boolean
  }

/** Imports plants into a service. `made` is how often the service made each plant, by its id. */
export async function imported({ service, isKeyed = true, deed, plants = 100, fails, ...rest }: Import) {
  const { access = {}, opening = {}, ...options } = rest
  const target = service ?? (await PlantService.listen({ isKeyed, ...(deed && { deed }) }))
  const batch = batchOf(typeof plants === 'number' ? plantsOf(plants) : plants)
  const store = await open(target.url, { access, opening })
  const done = store.createMany(batch, importOptions(options))
  const error = fails ? await errorOf(done) : await done
  const { posts, made } = target
  return { service: target, store, batch, error, posts, made, tally: tally(batch), rejections: rejectionsOf(batch) }
}

/** What becomes of an import in which each plant is created once. */
export const complete = (count = 100) => ({ tally: { created: count }, made: all(count) })

export function plantsOf(count: number): NewPlant[] {
  return Array.from({ length: count }, (_, index) => ({
    id: BigInt(index),
    name: `Fern ${index}`,
    ...(index % 3 ? { tag: 'shade' } : {}),
  }))
}

export function importOptions(options: Partial<CreateManyOptions> = {}): CreateManyOptions {
  return {
    ...{ ifExists: 'error', stopsAtReject: false, checkpoint: undefined, stop: new AbortController().signal },
    keyOf: (row) => `import-${row}`,
    onProgress: () => {},
    ...options,
  }
}

/** How many rows went how. */
export function tally({ outcomes }: Batch): Record<string, number> {
  const counts = Object.entries(Outcome).map(
    ([name, value]) => [name, outcomes.filter((outcome) => outcome === value).length] as const,
  )
  return Object.fromEntries(counts.filter(([, count]) => count > 0))
}

export function rejectionsOf({ rejections }: Batch): [number, number, string][] {
  return [...rejections].map(([row, { error, message }]) => [row, error, message])
}

/** What a promise is rejected with. */
export async function errorOf(promise: Promise<unknown>): Promise<PlantsError> {
  const error = await promise.then(
    () => new Error('Nothing was thrown'),
    (reason: unknown) => reason,
  )
  if (error instanceof PlantsError) return error
  throw error
}

export function fail(message: string): never {
  throw new Error(message)
}

export const busy: Deed = { status: 503, body: { error: 503, message: 'Not now' }, headers: { 'Retry-After': '0' } }
export const all = (count: number) => new Map(plantsOf(count).map(({ id }) => [`${id}`, 1]))
