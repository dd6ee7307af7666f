import { describe, expect, test } from 'vitest'
import { type Answer, Hostile, json } from '../../../helpers/hostile.js'
import { type Deed, PlantService } from '../../../helpers/plant-service.js'
import { all, batchOf, busy, errorOf, importOptions, open, plantsOf, tally } from '../../../helpers/remote-bulk.js'

describe('a service that keeps no keys', () => {
  const unkeyed = (deed?: (post: { index: number }) => Deed) =>
    PlantService.listen({ isKeyed: false, ...(deed && { deed }) })

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

  test('and breaks for good is given up before many are unknown', async () => {
    const service = await unkeyed(({ index }) => (index < 10 ? undefined : 'lose'))
    const batch = batchOf(plantsOf(10_000))
    const store = await open(service.url, { opening: { timeout: 1000 } })
    expect(await errorOf(store.createMany(batch, importOptions()))).toMatchObject({ type: 'unanswered' })
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

describe('whether a service keeps keys', () => {
  test.each([true, false])('is what its description says, and is asked once: %s', async (isKeyed) => {
    const parameters = isKeyed ? [{ name: 'Idempotency-Key', in: 'header' }] : []
    const openapi = json(200, { paths: { '/plants': { post: { parameters } } } })
    const remote = await Hostile.listen({ openapi, posts: [json(200, { name: 'Fern 0' })] })
    const store = await open(remote.url)
    for (const _ of [1, 2]) await store.createMany(batchOf(plantsOf(1)), importOptions())
    expect(remote.lines).toEqual(['GET /openapi.json', 'POST /plants', 'POST /plants'])
  })

  test('cannot be found out where nobody is', async () => {
    const service = await PlantService.listen()
    await service.close()
    const store = await open(service.url, { opening: { timeout: 1000 } })
    const batch = batchOf(plantsOf(3))
    expect(await errorOf(store.createMany(batch, importOptions()))).toMatchObject({
      type: 'unavailable',
      message: expect.stringContaining('Could not reach'),
    })
    expect(tally(batch)).toEqual({ pending: 3 })
  })

  test.each<[string, Answer, string]>([
    ['answers 503', json(503, { error: 503, message: 'Not now' }), 'Not now'],
    ['resets', (socket) => void socket.resetAndDestroy(), 'received the request, but did not answer'],
  ])('cannot be found out from a service that %s, and then nothing is sent', async (_, openapi, message) => {
    const remote = await Hostile.listen({ openapi })
    const store = await open(remote.url, { opening: { timeout: 1000 } })
    const batch = batchOf(plantsOf(3))
    const error = await errorOf(store.createMany(batch, importOptions()))
    expect(error).toMatchObject({ type: 'unavailable', retryable: true, message: expect.stringContaining(message) })
    expect({ tally: tally(batch), posts: remote.posts }).toEqual({ tally: { pending: 3 }, posts: [] })
  })

  test('is no where there is no description', async () => {
    const remote = await Hostile.listen({ posts: [(socket) => void socket.resetAndDestroy()] })
    const batch = batchOf(plantsOf(1))
    await (await open(remote.url)).createMany(batch, importOptions())
    expect(tally(batch)).toEqual({ unknown: 1 })
  })
})
