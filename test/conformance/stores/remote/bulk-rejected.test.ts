import { describe, expect, test } from 'vitest'
import { PlantsError } from '../../../../src/platform/errors.js'
import { Outcome } from '../../../../src/stores/common/conflict.js'
import { type Deed, PlantService } from '../../../helpers/plant-service.js'
import { token } from '../../../helpers/remote.js'
import {
  all,
  batchOf,
  errorOf,
  importOptions,
  open,
  plantsOf,
  rejectionsOf,
  tally,
} from '../../../helpers/remote-bulk.js'

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
    expect({ tally: tally(batch), rejections: rejectionsOf(batch) }).toEqual({
      tally: { created: 19, [error === 409 ? 'exists' : 'rejected']: 1 },
      rejections: [[5, error, expect.stringContaining(message)]],
    })
  })

  test('ends an import that stops at a rejected record, when what is on its way is settled', async () => {
    const service = await PlantService.listen({ deed: ({ id }) => (id === '5' ? { status: 422 } : undefined) })
    const batch = batchOf(plantsOf(1000))
    const store = await open(service.url, { opening: { concurrency: 4 } })
    await store.createMany(batch, importOptions({ stopsAtReject: true }))
    const { rejected, created = 0, pending = 0 } = tally(batch)
    expect(rejected).toBe(1)
    expect(created).toBeLessThan(5 + 4)
    expect(created + pending).toBe(999)
    expect(service.made.size).toBe(created)
  })

  test('is told once when it is another plant than it was given', async () => {
    const said: string[] = []
    const service = await PlantService.listen({ deed: () => ({ status: 200, body: { name: 'Moss' } }) })
    const batch = batchOf(plantsOf(3))
    const store = await open(service.url, {
      access: { notify: async (text) => void said.push(text) },
      opening: { concurrency: 1 },
    })
    await store.createMany(batch, importOptions())
    expect({ tally: tally(batch), said }).toEqual({
      tally: { created: 3 },
      said: [
        'The store returns plants that differ from those that were sent, such as {"name":"Moss"} instead of {"name":"Fern 0"} for plant 0',
      ],
    })
  })
})

describe('a service that is not what it should be ends an import, when what is on its way is settled:', () => {
  test.each<[string, Deed, object]>([
    [
      'a redirect',
      { status: 307, headers: { Location: 'https://example.com/plants' } },
      { type: 'unavailable', status: 307 },
    ],
    ['404', { status: 404 }, { type: 'rejected', status: 404 }],
    ['405', { status: 405 }, { type: 'rejected', status: 405 }],
    [
      '400 for the media type',
      { status: 400, body: { error: 415, message: 'JSON?' } },
      { type: 'rejected', message: 'JSON?' },
    ],
    ['200 without a plant', { status: 200, body: { ok: true } }, { type: 'unusable', status: 200 }],
    ['401', { status: 401, body: { error: 401, message: 'Who?' } }, { type: 'unauthorized', message: 'Who?' }],
    ['403', { status: 403 }, { type: 'unauthorized', status: 403 }],
  ])('%s', async (_, deed, error) => {
    const service = await PlantService.listen({ deed: ({ index }) => (index === 50 ? deed : undefined) })
    const batch = batchOf(plantsOf(1000))
    const store = await open(service.url, { opening: { concurrency: 8 } })
    expect(await errorOf(store.createMany(batch, importOptions()))).toMatchObject(error)
    const { created = 0, pending = 0 } = tally(batch)
    expect({ created, all: created + pending, rejections: batch.rejections.size }).toEqual({
      created: service.made.size,
      all: 1000,
      rejections: 0,
    })
    expect(service.posts.length).toBeLessThanOrEqual(50 + 8)
    await store.createMany(batch, importOptions())
    expect({ tally: tally(batch), made: service.made }).toEqual({ tally: { created: 1000 }, made: all(1000) })
  })

  test('without keys, a plant that such an answer came for is unknown', async () => {
    const service = await PlantService.listen({
      isKeyed: false,
      deed: ({ id }) => (id === '2' ? { status: 200, body: {} } : undefined),
    })
    const batch = batchOf(plantsOf(5))
    const store = await open(service.url, { opening: { concurrency: 1 } })
    await errorOf(store.createMany(batch, importOptions()))
    expect([...batch.outcomes]).toEqual([
      Outcome.created,
      Outcome.created,
      Outcome.unknown,
      Outcome.pending,
      Outcome.pending,
    ])
  })
})

describe('a token that is rejected on the way', () => {
  const accepts = (word: (index: number) => string) => (post: { index: number; authorization: string | undefined }) =>
    post.authorization === `Bearer ${word(post.index)}`
      ? undefined
      : { status: 401, body: { error: 401, message: 'Who?' } }

  test('is renewed once, and what it was rejected with is sent again', async () => {
    let runs = 0
    const renew = async () => {
      runs += 1
      return 'newer'
    }
    const service = await PlantService.listen({ deed: accepts((index) => (index < 100 ? token : 'newer')) })
    const batch = batchOf(plantsOf(500))
    const store = await open(service.url, { access: { renew } })
    await store.createMany(batch, importOptions())
    expect({ tally: tally(batch), made: service.made, runs }).toEqual({
      tally: { created: 500 },
      made: all(500),
      runs: 1,
    })
    const next = batchOf([{ id: 500n, name: 'Moss' }])
    await store.createMany(next, importOptions({ keyOf: () => 'next' }))
    expect({ tally: tally(next), runs }).toEqual({ tally: { created: 1 }, runs: 1 })
  })

  test.each<[string, () => Promise<string | undefined>, object]>([
    [
      'when the new one is rejected as well',
      async () => `other-${Math.random()}`,
      { type: 'unauthorized', message: 'Who?' },
    ],
    ['when the new one is the old one', async () => token, { type: 'unauthorized', message: 'Who?' }],
    ['when there is no new one', async () => undefined, { type: 'unauthorized', message: 'Who?' }],
    [
      'when there is no new one, for a reason',
      () => Promise.reject(new PlantsError('unauthorized', 'The safe is locked')),
      { type: 'unauthorized', message: 'The safe is locked' },
    ],
  ])('ends the import %s', async (_, renew, error) => {
    const service = await PlantService.listen({ deed: accepts((index) => (index < 100 ? token : 'never')) })
    const batch = batchOf(plantsOf(500))
    const store = await open(service.url, { access: { renew } })
    expect(await errorOf(store.createMany(batch, importOptions()))).toMatchObject(error)
    expect(tally(batch)).toEqual({ created: 100, pending: 400 })
  })
})
