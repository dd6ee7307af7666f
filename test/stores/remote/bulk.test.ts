import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { NewPlant } from '../../../src/plant/plant.js'
import { PlantRows } from '../../../src/plant/rows.js'
import { PlantsError } from '../../../src/platform/errors.js'
import { Outcome } from '../../../src/stores/conflict.js'
import { RemoteStore } from '../../../src/stores/http/store.js'
import type { Access } from '../../../src/stores/http/types.js'
import { parseAddress } from '../../../src/stores/registry.js'
import { SqliteStore } from '../../../src/stores/sqlite/store.js'
import type { Batch, CreateManyOptions, OpenOptions } from '../../../src/stores/store.js'
import { type Answer, Hostile, json } from '../../helpers/hostile.js'
import { type Deed, PlantService } from '../../helpers/plant-service.js'
import { ownService, token } from '../../helpers/remote.js'
import { closedAfterTest, fileAddress, openOptions, place } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'

interface Ways {
  access?: Partial<Access>
  opening?: Partial<OpenOptions>
}

async function open(url: string, { access = {}, opening = {} }: Ways = {}): Promise<RemoteStore> {
  const address = await parseAddress(url, 'test', place())
  if (address.kind !== 'remote') throw new Error('Only services are expected here')
  const usual = { token, userAgent: 'test', ca: undefined, proxy: undefined, observer: undefined, tokenHint: '', notify: async () => {} }
  const options = openOptions({ timeout: 20_000, access: async () => ({ ...usual, ...access }), ...opening })
  return closedAfterTest(await RemoteStore.open(address, options))
}

function plantsOf(count: number): NewPlant[] {
  return Array.from({ length: count }, (_, index) => ({ id: BigInt(index), name: `Fern ${index}`, ...(index % 3 ? { tag: 'shade' } : {}) }))
}

function batchOf(plants: NewPlant[]): Batch {
  return { rows: PlantRows.of(plants), order: undefined, outcomes: new Uint8Array(plants.length), rejections: new Map() }
}

function importOptions(options: Partial<CreateManyOptions> = {}): CreateManyOptions {
  return {
    ...{ ifExists: 'error', stopsAtReject: false, checkpoint: undefined, stop: new AbortController().signal },
    keyOf: (row) => `import-${row}`,
    beforeSend: async () => {},
    onProgress: () => {},
    ...options,
  }
}

/** How many rows went how. */
function tally({ outcomes }: Batch): Record<string, number> {
  const counts = Object.entries(Outcome).map(([name, value]) => [name, outcomes.filter((outcome) => outcome === value).length] as const)
  return Object.fromEntries(counts.filter(([, count]) => count > 0))
}

function refusalsOf({ rejections }: Batch): [number, number, string][] {
  return [...rejections].map(([row, { error, message }]) => [row, error, message])
}

/** What a promise is rejected with. */
async function errorOf(promise: Promise<unknown>): Promise<PlantsError> {
  const error = await promise.then(
    () => new Error('Nothing was thrown'),
    (reason: unknown) => reason,
  )
  if (error instanceof PlantsError) return error
  throw error
}

function fail(message: string): never {
  throw new Error(message)
}

const busy: Deed = { status: 503, body: { error: 503, message: 'Not now' }, headers: { 'Retry-After': '0' } }
const all = (count: number) => new Map(plantsOf(count).map(({ id }) => [`${id}`, 1]))

test('10,000 plants are all in, exactly as they were, in a few connections', async () => {
  const path = join(temporaryFolder(), 'plants.db')
  const store = await open(await ownService({ host: '127.0.0.1', port: 0 }, path))
  const plants = plantsOf(10_000)
  let told = 0
  const onProgress = () => {
    told += 1
  }
  const batch = batchOf(plants)
  await store.createMany(batch, importOptions({ onProgress }))
  expect({ tally: tally(batch), told }).toEqual({ tally: { created: 10_000 }, told: 10_000 })
  const file = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))
  const found: NewPlant[] = []
  for await (const page of file.list()) found.push(...page)
  expect(found).toEqual(plants)
  const again = batchOf(plants.slice(0, 100))
  await store.createMany(again, importOptions())
  expect(tally(again)).toEqual({ created: 100 }) // their keys say that they are the same
  const others = batchOf(plants.slice(0, 100))
  await store.createMany(others, importOptions({ keyOf: (row) => `other-${row}` }))
  expect({ tally: tally(others), refusals: refusalsOf(others)[5] }).toEqual({
    tally: { taken: 100 },
    refusals: [expect.any(Number), 409, expect.stringMatching(/^A plant with id .* already exists$/)],
  })
  const skipped = batchOf(plants.slice(0, 100))
  await store.createMany(skipped, importOptions({ keyOf: (row) => `third-${row}`, ifExists: 'skip' }))
  expect({ tally: tally(skipped), refusals: skipped.rejections.size }).toEqual({ tally: { skipped: 100 }, refusals: 0 })
})

test('only what is pending is sent, in its order', async () => {
  const service = await PlantService.listen()
  const store = await open(service.url, { opening: { concurrency: 1 } })
  const batch = batchOf(plantsOf(6))
  batch.outcomes.set([Outcome.created, Outcome.pending, Outcome.refused, Outcome.pending, Outcome.pending, Outcome.skipped])
  await store.createMany(batch, importOptions())
  expect(service.posts.map(({ id, key }) => [id, key])).toEqual([
    ['1', 'import-1'],
    ['3', 'import-3'],
    ['4', 'import-4'],
  ])
  expect([...batch.outcomes]).toEqual([1, 1, 4, 1, 1, 2])
})

describe('a service in trouble', () => {
  test('that answers 503 for a while gets everything all the same, once', async () => {
    const service = await PlantService.listen({ deed: ({ index }) => (index > 20 && index < 35 ? busy : undefined) })
    const batch = batchOf(plantsOf(500))
    await (await open(service.url)).createMany(batch, importOptions())
    expect({ tally: tally(batch), made: service.made }).toEqual({ tally: { created: 500 }, made: all(500) })
  })

  test.each<[string, Deed]>([
    ['before the plant is stored', 'reset'],
    ['after the plant is stored', 'lose'],
    ['by an answer of 500', { status: 500 }],
    ['by an answer of a proxy', { status: 502, headers: { 'Content-Type': 'text/html' } }],
  ])('that ends every tenth request %s gets everything once, with keys', async (_, deed) => {
    const service = await PlantService.listen({ deed: ({ index }) => (index % 10 === 9 ? deed : undefined) })
    const batch = batchOf(plantsOf(1000))
    await (await open(service.url)).createMany(batch, importOptions())
    expect({ tally: tally(batch), made: service.made }).toEqual({ tally: { created: 1000 }, made: all(1000) })
    expect(service.posts.length).toBeGreaterThan(1100)
    expect(service.posts.every(({ id, key }) => key === `import-${id}`)).toBe(true)
  })

  test('that does not answer one request is asked again under its key when the time-out is over', async () => {
    const service = await PlantService.listen({ deed: ({ index }) => (index === 10 ? 'hang' : undefined) })
    const batch = batchOf(plantsOf(100))
    await (await open(service.url, { opening: { timeout: 1000 } })).createMany(batch, importOptions())
    expect({ tally: tally(batch), made: service.made, posts: service.posts.length }).toEqual({
      tally: { created: 100 },
      made: all(100),
      posts: 101,
    })
  })

  test('is left alone for as long as Retry-After says', async () => {
    const deed = ({ index }: { index: number }): Deed => (index === 30 ? { status: 503, headers: { 'Retry-After': '1' } } : undefined)
    const service = await PlantService.listen({ deed })
    const batch = batchOf(plantsOf(100))
    await (await open(service.url, { opening: { concurrency: 8 } })).createMany(batch, importOptions())
    expect(tally(batch)).toEqual({ created: 100 })
    const times = service.posts.map(({ time }) => time)
    const gap = times.findIndex((time, index) => time - (times[index - 1] ?? time) >= 1000)
    expect(gap).toBeGreaterThan(30)
    expect(gap).toBeLessThanOrEqual(30 + 8) // no more than were on their way
  })

  test('that fails for one plant alone leaves that one unknown, and does not stop the others', async () => {
    const service = await PlantService.listen({ deed: ({ id }) => (id === '5' ? { status: 500 } : undefined) })
    const batch = batchOf(plantsOf(20))
    const store = await open(service.url, { opening: { timeout: 1500, rate: 10 } })
    await store.createMany(batch, importOptions())
    expect({ tally: tally(batch), refusals: refusalsOf(batch) }).toEqual({
      tally: { created: 19, unknown: 1 },
      refusals: [[5, 502, expect.stringContaining('answered 500')]],
    })
  })

  test.each<[string, Deed, object]>([
    ['503', busy, { kind: 'unavailable', message: 'Not now' }],
    ['503 with a long Retry-After', { status: 503, headers: { 'Retry-After': '9999' } }, { kind: 'unavailable' }],
    ['a reset', 'reset', { kind: 'unanswered' }],
    ['500', { status: 500 }, { kind: 'unusable', status: 500 }],
    ['no answer', 'hang', { kind: 'unanswered' }],
  ])('for longer than the time-out is given up, with what is not settled pending: %s', async (_, deed, error) => {
    const service = await PlantService.listen({ deed: ({ index }) => (index < 10 ? undefined : deed) })
    const batch = batchOf(plantsOf(100))
    const store = await open(service.url, { opening: { timeout: 1000 } })
    expect(await errorOf(store.createMany(batch, importOptions()))).toMatchObject(error)
    expect(tally(batch)).toEqual({ created: 10, pending: 90 })
    const created = [...batch.outcomes].flatMap((outcome, id) => (outcome === Outcome.created ? [`${id}`] : []))
    expect([...service.made.keys()].toSorted()).toEqual(created.toSorted()) // those that came first, whichever they were
  })

  test('that goes away and comes back gets everything once', async () => {
    const service = await PlantService.listen({
      deed: async ({ index }) => {
        if (index !== 100) return undefined
        await service.close()
        return 'hang'
      },
    })
    const batch = batchOf(plantsOf(500))
    const notify = () => service.comeBack()
    await (await open(service.url, { access: { notify } })).createMany(batch, importOptions())
    expect({ tally: tally(batch), made: service.made }).toEqual({ tally: { created: 500 }, made: all(500) })
  })

  test('that is not there is given up after the time-out, and nothing is said to be sent', async () => {
    const service = await PlantService.listen()
    const store = await open(service.url, { opening: { timeout: 1000 } })
    await store.createMany(batchOf(plantsOf(1)), importOptions())
    await service.close()
    const batch = batchOf(plantsOf(10))
    expect(await errorOf(store.createMany(batch, importOptions()))).toMatchObject({ kind: 'unavailable', retryable: true })
    expect(tally(batch)).toEqual({ pending: 10 })
  })

  test('is told of once', async () => {
    const said: string[] = []
    const service = await PlantService.listen({ deed: ({ index }) => (index < 40 && index % 20 < 4 ? busy : undefined) })
    const store = await open(service.url, { access: { notify: async (text) => void said.push(text) }, opening: { concurrency: 1 } })
    for (const _ of [1, 2]) await store.createMany(batchOf(plantsOf(100)), importOptions())
    expect(said).toEqual([expect.stringMatching(/^Not now\. Trying again for up to (20|19) s$/)])
  })
})

describe('a service that keeps no keys', () => {
  const unkeyed = (deed?: (post: { index: number }) => Deed) => PlantService.listen({ isKeyed: false, ...(deed && { deed }) })

  test('is sent a row when beforeSend has resolved, and not before', async () => {
    const service = await unkeyed()
    const early: number[] = []
    const noted = new Set<number>()
    const beforeSend = async (row: number) => {
      await new Promise((resolve) => setImmediate(resolve))
      if (service.posts.some(({ id }) => id === `${row}`)) early.push(row)
      noted.add(row)
    }
    const batch = batchOf(plantsOf(100))
    await (await open(service.url)).createMany(batch, importOptions({ beforeSend }))
    expect({ tally: tally(batch), early, noted: noted.size }).toEqual({ tally: { created: 100 }, early: [], noted: 100 })
  })

  test('is not sent again what it may have stored: that is unknown', async () => {
    const service = await unkeyed(({ index }) => (index % 10 === 9 ? 'lose' : undefined))
    const batch = batchOf(plantsOf(100))
    await (await open(service.url)).createMany(batch, importOptions())
    expect({ tally: tally(batch), made: service.made, posts: service.posts.length }).toEqual({
      tally: { created: 90, unknown: 10 },
      made: all(100),
      posts: 100,
    })
    const lost = service.posts.filter(({ index }) => index % 10 === 9).map(({ id }) => parseInt(id, 10))
    expect([...batch.rejections.keys()].toSorted((a, b) => a - b)).toEqual(lost.toSorted((a, b) => a - b))
    expect([...batch.rejections.values()].every(({ error }) => error === 504)).toBe(true)
  })

  test('is sent again what it says that it has not stored', async () => {
    const service = await unkeyed(({ index }) => (index % 10 === 9 ? busy : undefined))
    const batch = batchOf(plantsOf(30))
    await (await open(service.url)).createMany(batch, importOptions())
    expect({ tally: tally(batch), made: service.made }).toEqual({ tally: { created: 30 }, made: all(30) })
  })

  test('is sent nothing that waited for beforeSend when another row was refused meanwhile', async () => {
    const service = await unkeyed(({ index }) => (index === 0 ? { status: 422 } : undefined))
    let settled = () => {}
    const refusal = new Promise<void>((resolve) => {
      settled = resolve
    })
    const beforeSend = async (row: number) => (row === 1 ? refusal : undefined)
    const batch = batchOf(plantsOf(10))
    await (await open(service.url)).createMany(batch, importOptions({ beforeSend, stopsAtReject: true, onProgress: () => settled() }))
    expect({ tally: tally(batch), posts: service.posts.length }).toEqual({ tally: { refused: 1, pending: 9 }, posts: 1 })
  })

  test('and breaks for good is given up before many are unknown', async () => {
    const service = await unkeyed(({ index }) => (index < 10 ? undefined : 'lose'))
    const batch = batchOf(plantsOf(10_000))
    const store = await open(service.url, { opening: { timeout: 1000 } })
    expect(await errorOf(store.createMany(batch, importOptions()))).toMatchObject({ kind: 'unanswered' })
    expect(tally(batch)['unknown']).toBe(service.posts.length - 10)
    expect(service.posts.length).toBeLessThan(100)
  })

  test('is asked nothing when it is told to stop at once', async () => {
    const service = await unkeyed()
    const batch = batchOf(plantsOf(3))
    await (await open(service.url)).createMany(batch, importOptions({ stop: AbortSignal.abort(new Error('stopped')) }))
    expect({ tally: tally(batch), posts: service.posts }).toEqual({ tally: { pending: 3 }, posts: [] })
  })
})

describe('what a service says of a plant', () => {
  test.each<[string, Deed, [number, string]]>([
    ['400 with an error of 422', { status: 400, body: { error: 422, message: 'No ferns' } }, [422, 'No ferns']],
    ['400 with an error of its own', { status: 400, body: { error: 17, message: 'No ferns' } }, [17, 'No ferns']],
    ['413', { status: 413, body: { error: 413, message: 'Too long' } }, [413, 'Too long']],
    ['422', { status: 422 }, [422, 'answered 422']],
    ['409 in its own words', { status: 409, body: { error: 409, message: 'Had that' } }, [409, 'Had that']],
  ])('is noted, and the others go on: %s', async (_, deed, [error, message]) => {
    const service = await PlantService.listen({ deed: ({ id }) => (id === '5' ? deed : undefined) })
    const batch = batchOf(plantsOf(20))
    await (await open(service.url)).createMany(batch, importOptions())
    expect({ tally: tally(batch), refusals: refusalsOf(batch) }).toEqual({
      tally: { created: 19, [error === 409 ? 'taken' : 'refused']: 1 },
      refusals: [[5, error, expect.stringContaining(message)]],
    })
  })

  test('ends an import that stops at a refusal, when what is on its way is settled', async () => {
    const service = await PlantService.listen({ deed: ({ id }) => (id === '5' ? { status: 422 } : undefined) })
    const batch = batchOf(plantsOf(1000))
    const store = await open(service.url, { opening: { concurrency: 4 } })
    await store.createMany(batch, importOptions({ stopsAtReject: true }))
    const { refused, created = 0, pending = 0 } = tally(batch)
    expect(refused).toBe(1)
    expect(created).toBeLessThan(5 + 4)
    expect(created + pending).toBe(999)
    expect(service.made.size).toBe(created)
  })

  test('is told once when it is another plant than it was given', async () => {
    const said: string[] = []
    const service = await PlantService.listen({ deed: () => ({ status: 200, body: { name: 'Moss' } }) })
    const batch = batchOf(plantsOf(3))
    const store = await open(service.url, { access: { notify: async (text) => void said.push(text) }, opening: { concurrency: 1 } })
    await store.createMany(batch, importOptions())
    expect({ tally: tally(batch), said }).toEqual({
      tally: { created: 3 },
      said: ['The store answers with other plants than it is given, such as {"name":"Moss"} instead of {"name":"Fern 0"}, for the plant 0'],
    })
  })
})

describe('a service that is not what it should be ends an import, when what is on its way is settled:', () => {
  test.each<[string, Deed, object]>([
    ['a redirect', { status: 307, headers: { Location: 'https://example.com/plants' } }, { kind: 'unavailable', status: 307 }],
    ['404', { status: 404 }, { kind: 'refused', status: 404 }],
    ['405', { status: 405 }, { kind: 'refused', status: 405 }],
    ['400 for the media type', { status: 400, body: { error: 415, message: 'JSON?' } }, { kind: 'refused', message: 'JSON?' }],
    ['200 without a plant', { status: 200, body: { ok: true } }, { kind: 'unusable', status: 200 }],
    ['401', { status: 401, body: { error: 401, message: 'Who?' } }, { kind: 'unauthorized', message: 'Who?' }],
    ['403', { status: 403 }, { kind: 'unauthorized', status: 403 }],
  ])('%s', async (_, deed, error) => {
    const service = await PlantService.listen({ deed: ({ index }) => (index === 50 ? deed : undefined) })
    const batch = batchOf(plantsOf(1000))
    const store = await open(service.url, { opening: { concurrency: 8 } })
    expect(await errorOf(store.createMany(batch, importOptions()))).toMatchObject(error)
    const { created = 0, pending = 0 } = tally(batch)
    expect({ created, all: created + pending, refusals: batch.rejections.size }).toEqual({
      created: service.made.size,
      all: 1000,
      refusals: 0,
    })
    expect(service.posts.length).toBeLessThanOrEqual(50 + 8)
    await store.createMany(batch, importOptions())
    expect({ tally: tally(batch), made: service.made }).toEqual({ tally: { created: 1000 }, made: all(1000) })
  })

  test('without keys, a plant that such an answer came for is unknown', async () => {
    const service = await PlantService.listen({ isKeyed: false, deed: ({ id }) => (id === '2' ? { status: 200, body: {} } : undefined) })
    const batch = batchOf(plantsOf(5))
    const store = await open(service.url, { opening: { concurrency: 1 } })
    await errorOf(store.createMany(batch, importOptions()))
    expect([...batch.outcomes]).toEqual([Outcome.created, Outcome.created, Outcome.unknown, Outcome.pending, Outcome.pending])
  })
})

describe('a token that is refused on the way', () => {
  const accepts = (word: (index: number) => string) => (post: { index: number; authorization: string | undefined }) =>
    post.authorization === `Bearer ${word(post.index)}` ? undefined : { status: 401, body: { error: 401, message: 'Who?' } }

  test('is renewed once, and what it was refused with is sent again', async () => {
    let runs = 0
    const renew = async () => {
      runs += 1
      return 'newer'
    }
    const service = await PlantService.listen({ deed: accepts((index) => (index < 100 ? token : 'newer')) })
    const batch = batchOf(plantsOf(500))
    const store = await open(service.url, { access: { renew } })
    await store.createMany(batch, importOptions())
    expect({ tally: tally(batch), made: service.made, runs }).toEqual({ tally: { created: 500 }, made: all(500), runs: 1 })
    const next = batchOf([{ id: 500n, name: 'Moss' }])
    await store.createMany(next, importOptions({ keyOf: () => 'next' }))
    expect({ tally: tally(next), runs }).toEqual({ tally: { created: 1 }, runs: 1 })
  })

  test.each<[string, () => Promise<string | undefined>, object]>([
    ['when the new one is refused as well', async () => `other-${Math.random()}`, { kind: 'unauthorized', message: 'Who?' }],
    ['when the new one is the old one', async () => token, { kind: 'unauthorized', message: 'Who?' }],
    ['when there is no new one', async () => undefined, { kind: 'unauthorized', message: 'Who?' }],
    [
      'when there is no new one, for a reason',
      () => Promise.reject(new PlantsError('unauthorized', 'The safe is locked')),
      { kind: 'unauthorized', message: 'The safe is locked' },
    ],
  ])('ends the import %s', async (_, renew, error) => {
    const service = await PlantService.listen({ deed: accepts((index) => (index < 100 ? token : 'never')) })
    const batch = batchOf(plantsOf(500))
    const store = await open(service.url, { access: { renew } })
    expect(await errorOf(store.createMany(batch, importOptions()))).toMatchObject(error)
    expect(tally(batch)).toEqual({ created: 100, pending: 400 })
  })
})

describe('limits', () => {
  test('an import that is told to stop begins nothing more, and settles what is on its way', async () => {
    const controller = new AbortController()
    const service = await PlantService.listen({ deed: ({ index }) => void (index === 100 && controller.abort(new Error('stopped'))) })
    const batch = batchOf(plantsOf(1000))
    await (await open(service.url, { opening: { concurrency: 8 } })).createMany(batch, importOptions({ stop: controller.signal }))
    const { created = 0, pending = 0 } = tally(batch)
    expect({ made: service.made.size, posts: service.posts.length, all: created + pending }).toEqual({
      made: created,
      posts: created,
      all: 1000,
    })
    expect(created).toBeGreaterThan(100)
    expect(created).toBeLessThanOrEqual(101 + 8)
  })

  test('an import that is told to stop does not send again', async () => {
    const controller = new AbortController()
    const deed = () => {
      controller.abort(new Error('stopped'))
      return busy
    }
    const service = await PlantService.listen({ deed })
    const batch = batchOf(plantsOf(10))
    await (await open(service.url, { opening: { concurrency: 4 } })).createMany(batch, importOptions({ stop: controller.signal }))
    expect({ tally: tally(batch), isFew: service.posts.length <= 4 }).toEqual({ tally: { pending: 10 }, isFew: true })
  })

  test('no more connections and requests at once than the ceiling, and as many', async () => {
    let isFull = () => {}
    const full = new Promise<void>((resolve) => {
      isFull = resolve
    })
    const deed = async ({ index }: { index: number }): Promise<Deed> => {
      if (index === 2) isFull()
      await (index < 3 ? full : new Promise(setImmediate))
      return undefined
    }
    const service = await PlantService.listen({ deed })
    const batch = batchOf(plantsOf(1000))
    await (await open(service.url, { opening: { concurrency: 3 } })).createMany(batch, importOptions())
    const { mostConnections, mostUnderWay } = service
    expect({ tally: tally(batch), mostConnections, mostUnderWay }).toEqual({
      tally: { created: 1000 },
      mostConnections: 3,
      mostUnderWay: 3,
    })
  })

  test('no more requests in a second than the rate', async () => {
    const service = await PlantService.listen()
    const batch = batchOf(plantsOf(100))
    await (await open(service.url, { opening: { rate: 100 } })).createMany(batch, importOptions())
    expect(tally(batch)).toEqual({ created: 100 })
    const times = service.posts.map(({ time }) => time)
    expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeGreaterThan(940)
  })
})

test.each<[string, Partial<CreateManyOptions>]>([
  ['beforeSend', { beforeSend: () => Promise.reject(new Error('disk full')) }],
  ['keyOf', { keyOf: () => fail('disk full') }],
  ['onProgress', { onProgress: () => fail('disk full') }],
])('what %s throws ends the import', async (_, options) => {
  const service = await PlantService.listen({ isKeyed: false })
  const batch = batchOf(plantsOf(100))
  const store = await open(service.url, { opening: { concurrency: 2 } })
  await expect(store.createMany(batch, importOptions(options))).rejects.toThrow('disk full')
  expect(tally(batch)['created'] ?? 0).toBe(service.made.size)
  expect(service.made.size).toBeLessThanOrEqual(2)
})

describe('whether a service keeps keys', () => {
  test.each([true, false])('is what its description says, and is asked once: %s', async (isKeyed) => {
    const service = await PlantService.listen({ isKeyed })
    const store = await open(service.url)
    expect([await store.supportsIdempotencyKeys(), await store.supportsIdempotencyKeys()]).toEqual([isKeyed, isKeyed])
    await service.close()
    expect(await store.supportsIdempotencyKeys()).toBe(isKeyed)
  })

  test('cannot be found out where nobody is', async () => {
    const service = await PlantService.listen()
    await service.close()
    const store = await open(service.url, { opening: { timeout: 1000 } })
    const batch = batchOf(plantsOf(3))
    expect(await errorOf(store.supportsIdempotencyKeys())).toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('Could not reach'),
    })
    expect(await errorOf(store.createMany(batch, importOptions()))).toMatchObject({ kind: 'unavailable' })
    expect(tally(batch)).toEqual({ pending: 3 })
  })

  test.each<[string, Answer, string]>([
    ['answers 503', json(503, { error: 503, message: 'Not now' }), 'Not now'],
    ['resets', (socket) => void socket.resetAndDestroy(), 'got the question whether it keeps idempotency keys, but did not answer'],
  ])('cannot be found out from a service that %s, and then nothing is sent', async (_, openapi, message) => {
    const remote = await Hostile.listen({ openapi })
    const store = await open(remote.url, { opening: { timeout: 1000 } })
    const batch = batchOf(plantsOf(3))
    const error = await errorOf(store.createMany(batch, importOptions()))
    expect(error).toMatchObject({ kind: 'unavailable', retryable: true, message: expect.stringContaining(message) })
    expect({ tally: tally(batch), posts: remote.posts }).toEqual({ tally: { pending: 3 }, posts: [] })
  })

  test('is no where there is no description', async () => {
    const remote = await Hostile.listen({})
    expect(await (await open(remote.url)).supportsIdempotencyKeys()).toBe(false)
  })
})
