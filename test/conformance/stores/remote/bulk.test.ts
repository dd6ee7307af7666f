import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { NewPlant } from '../../../../src/plant/plant.js'
import { Outcome } from '../../../../src/stores/common/conflict.js'
import type { CreateManyOptions } from '../../../../src/stores/common/store.js'
import { SqliteStore } from '../../../../src/stores/sqlite/sqlite-store.js'
import { type Deed, PlantService } from '../../../helpers/plant-service.js'
import { ownService } from '../../../helpers/remote.js'
import {
  all,
  batchOf,
  busy,
  errorOf,
  fail,
  importOptions,
  open,
  plantsOf,
  rejectionsOf,
  tally,
} from '../../../helpers/remote-bulk.js'
import { serveStore, testToken } from '../../../helpers/service.js'
import { closedAfterTest, fileAddress, openOptions } from '../../../helpers/store.js'
import { temporaryFolder } from '../../../helpers/temporary.js'

test('3,000 plants are all in, exactly as they were, in a few connections', async () => {
  const path = join(temporaryFolder(), 'plants.db')
  const store = await open(await ownService({ host: '127.0.0.1', port: 0 }, path))
  const plants = plantsOf(3000)
  let told = 0
  const onProgress = () => {
    told += 1
  }
  const batch = batchOf(plants)
  await store.createMany(batch, importOptions({ onProgress }))
  expect({ tally: tally(batch), told }).toEqual({ tally: { created: 3000 }, told: 3000 })
  const file = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))
  const found: NewPlant[] = []
  for await (const page of file.list()) found.push(...page)
  expect(found).toEqual(plants)
  const again = batchOf(plants.slice(0, 100))
  await store.createMany(again, importOptions())
  expect(tally(again)).toEqual({ created: 100 }) // their keys say that they are the same
  const others = batchOf(plants.slice(0, 100))
  await store.createMany(others, importOptions({ keyOf: (row) => `other-${row}` }))
  expect({ tally: tally(others), rejections: rejectionsOf(others)[5] }).toEqual({
    tally: { exists: 100 },
    rejections: [expect.any(Number), 409, expect.stringMatching(/^A plant with id .* already exists$/)],
  })
  const skipped = batchOf(plants.slice(0, 100))
  await store.createMany(skipped, importOptions({ keyOf: (row) => `third-${row}`, ifExists: 'skip' }))
  expect({ tally: tally(skipped), rejections: skipped.rejections.size }).toEqual({
    tally: { skipped: 100 },
    rejections: 0,
  })
})

test('only what is pending is sent, in its order', async () => {
  const service = await PlantService.listen()
  const store = await open(service.url, { opening: { concurrency: 1 } })
  const batch = batchOf(plantsOf(6))
  batch.outcomes.set([
    Outcome.created,
    Outcome.pending,
    Outcome.rejected,
    Outcome.pending,
    Outcome.pending,
    Outcome.skipped,
  ])
  await store.createMany(batch, importOptions())
  expect(service.posts.map(({ id, key }) => [id, key])).toEqual([
    ['1', 'import-1'],
    ['3', 'import-3'],
    ['4', 'import-4'],
  ])
  const { created, rejected, skipped } = Outcome
  expect([...batch.outcomes]).toEqual([created, created, rejected, created, created, skipped])
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
    const deed = ({ index }: { index: number }): Deed =>
      index === 30 ? { status: 503, headers: { 'Retry-After': '1' } } : undefined
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
    const { clock } = openOptions()
    const now = () => clock.now() + service.posts.length * 200 // as if the service were slow
    const store = await open(service.url, { opening: { timeout: 3000, concurrency: 2, clock: { ...clock, now } } })
    await store.createMany(batch, importOptions())
    expect({ tally: tally(batch), rejections: rejectionsOf(batch) }).toEqual({
      tally: { created: 19, unknown: 1 },
      rejections: [[5, 502, expect.stringContaining('answered 500')]],
    })
  })

  test.each<[string, Deed, object]>([
    ['503', busy, { type: 'unavailable', message: 'Not now' }],
    ['503 with a long Retry-After', { status: 503, headers: { 'Retry-After': '9999' } }, { type: 'unavailable' }],
    ['a reset', 'reset', { type: 'unanswered' }],
    ['500', { status: 500 }, { type: 'unusable', status: 500 }],
    ['no answer', 'hang', { type: 'unanswered' }],
  ])('for longer than the time-out is given up, with what is not settled pending: %s', async (_, deed, error) => {
    const service = await PlantService.listen({ deed: ({ index }) => (index < 10 ? undefined : deed) })
    const batch = batchOf(plantsOf(100))
    const store = await open(service.url, { opening: { timeout: 1000 } })
    expect(await errorOf(store.createMany(batch, importOptions()))).toMatchObject(error)
    expect(tally(batch)).toEqual({ created: 10, pending: 90 })
    const created = [...batch.outcomes].flatMap((outcome, id) => (outcome === Outcome.created ? [`${id}`] : []))
    // those that came first, whichever they were
    expect([...service.made.keys()].toSorted()).toEqual(created.toSorted())
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
    expect(await errorOf(store.createMany(batch, importOptions()))).toMatchObject({
      type: 'unavailable',
      retryable: true,
    })
    expect(tally(batch)).toEqual({ pending: 10 })
  })

  test('is told of once', async () => {
    const said: string[] = []
    const service = await PlantService.listen({
      deed: ({ index }) => (index < 40 && index % 20 < 4 ? busy : undefined),
    })
    const store = await open(service.url, {
      access: { notify: async (text) => void said.push(text) },
      opening: { concurrency: 1 },
    })
    for (const _ of [1, 2]) await store.createMany(batchOf(plantsOf(100)), importOptions())
    expect(said).toEqual([expect.stringMatching(/^Not now\. Trying again for up to (20|19) s$/)])
  })
})

test.each<[string, Partial<CreateManyOptions>]>([
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

describe('a plant that others change between its read and its replace', () => {
  const fern: NewPlant = { id: 1n, name: 'Fern', tag: 'shade' }

  /** A service on a file, with other methods in place of some of the store's. */
  async function serviceOf(methods: (file: SqliteStore) => Partial<SqliteStore>) {
    const file = await SqliteStore.open(fileAddress(join(temporaryFolder(), 'plants.db')), openOptions())
    const { create, get = (id) => file.get(id), replace = (plant, only) => file.replace(plant, only) } = methods(file)
    const store = {
      create: create ?? ((plant) => file.create(plant)),
      get,
      replace,
      close: () => file.close(),
    } as const
    return { file, url: (await serveStore(store)).address }
  }

  /** Changes a plant after each read of it, which is before it is replaced. */
  function changedBy(file: SqliteStore, change: (reads: number) => NewPlant | undefined): Partial<SqliteStore> {
    let reads = 0
    return {
      get: async (id) => {
        const plant = await file.get(id)
        reads += plant ? 1 : 0
        const changed = plant && change(reads)
        if (changed) await file.replace(changed)
        return plant
      },
    }
  }

  test('keeps what they have changed', async () => {
    const { file, url } = await serviceOf((store) =>
      changedBy(store, (reads) => (reads === 1 ? { ...fern, tag: 'theirs' } : undefined)),
    )
    await file.create(fern)
    const store = await open(url, { access: { token: testToken } })
    const batch = batchOf([
      { id: 1n, name: 'Bracken' },
      { id: 2n, tag: 'x' },
    ])
    await store.createMany(batch, importOptions({ ifExists: 'update' }))
    expect(rejectionsOf(batch)).toEqual([
      [1, 422, 'Invalid plant: name must be a string, but is missing, and no plant has id 2'],
    ])
    expect({ tally: tally(batch), plant: await file.get(1n) }).toEqual({
      tally: { updated: 1, rejected: 1 },
      plant: { id: 1n, name: 'Bracken', tag: 'theirs' },
    })
  })

  test('is rejected after the timeout if that never ends', async () => {
    let changes = 0
    const { file, url } = await serviceOf((store) =>
      changedBy(store, (reads) => {
        changes = reads
        return { ...fern, tag: `theirs ${reads}` }
      }),
    )
    await file.create(fern)
    const store = await open(url, { access: { token: testToken }, opening: { timeout: 500 } })
    const batch = batchOf([
      { id: 1n, name: 'Bracken' },
      { id: 2n, name: 'Moss' },
    ])
    await store.createMany(batch, importOptions({ ifExists: 'update' }))
    expect(rejectionsOf(batch)).toEqual([
      [0, 409, expect.stringMatching(/^Plant 1 was not updated: others changed it during each of \d+ tries$/)],
    ])
    expect({ tally: tally(batch), plant: await file.get(1n) }).toEqual({
      tally: { created: 1, rejected: 1 },
      plant: { id: 1n, name: 'Fern', tag: `theirs ${changes}` },
    })
  })

  test('counts as updated when the response to its replace was lost', async () => {
    let replaces = 0
    const { file, url } = await serviceOf((store) => ({
      replace: async (plant, only) => {
        const replaced = await store.replace(plant, only)
        replaces += 1
        if (replaces === 1) throw new Error('The response is lost')
        return replaced
      },
    }))
    await file.create(fern)
    const store = await open(url, { access: { token: testToken } })
    const batch = batchOf([{ id: 1n, name: 'Bracken' }])
    await store.createMany(batch, importOptions({ ifExists: 'update' }))
    expect({ tally: tally(batch), plant: await file.get(1n), replaces }).toEqual({
      tally: { updated: 1 },
      plant: { id: 1n, name: 'Bracken', tag: 'shade' },
      replaces: 1,
    })
  })
})
