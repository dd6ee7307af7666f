import { describe, expect, test } from 'vitest'
import { type Answer, Hostile, json } from '../../../helpers/hostile.js'
import { type Deed, PlantService, type Post } from '../../../helpers/plant-service.js'
import {
  all,
  batchOf,
  busy,
  errorOf,
  imported,
  importOptions,
  open,
  plantsOf,
  tally,
} from '../../../helpers/remote-bulk.js'

describe('a service that keeps no keys', () => {
  const isKeyed = false
  const tenth = (deed: Deed) => (post: Post) => (post.index % 10 === 9 ? deed : undefined)

  test('is not sent again what it may have stored: that is unknown', async () => {
    const { posts, batch, ...result } = await imported({ isKeyed, deed: tenth('lose') })
    expect(result).toMatchObject({ tally: { created: 90, unknown: 10 }, made: all(100) })
    expect(posts).toHaveLength(100)
    const lost = posts.filter(({ index }) => index % 10 === 9).map(({ id }) => [parseInt(id, 10), 504])
    expect(new Map([...batch.rejections].map(([row, { error }]) => [row, error]))).toEqual(new Map(lost as []))
  })

  test('is sent again what it says that it has not stored', async () => {
    const result = await imported({ isKeyed, deed: tenth(busy) })
    expect(result).toMatchObject({ tally: { created: 100 }, made: all(100) })
  })

  test('and breaks for good is given up before many are unknown', async () => {
    const deed = ({ index }: Post) => (index < 10 ? undefined : 'lose')
    const result = await imported({ isKeyed, deed, plants: 10_000, opening: { timeout: 1000 }, fails: true })
    expect(result.error).toMatchObject({ type: 'unanswered' })
    expect(result.tally['unknown']).toBe(result.posts.length - 10)
    expect(result.posts.length).toBeLessThan(100)
  })

  test('is asked nothing when the import was stopped before', async () => {
    const { posts, ...result } = await imported({ isKeyed, plants: 3, stop: AbortSignal.abort(new Error('stopped')) })
    expect([result.tally, posts]).toEqual([{ pending: 3 }, []])
  })
})

describe('whether a service keeps keys', () => {
  test('is asked once', async () => {
    const openapi = json(200, { paths: { '/plants': { post: {} } } })
    const remote = await Hostile.listen({ openapi, posts: [json(200, { name: 'Fern 0' })] })
    const store = await open(remote.url)
    for (const _ of [1, 2]) await store.createMany(batchOf(plantsOf(1)), importOptions())
    expect(remote.lines).toEqual(['GET /openapi.json', 'POST /plants', 'POST /plants'])
  })

  test('cannot be found out when nothing listens', async () => {
    const service = await PlantService.listen()
    await service.close()
    const result = await imported({ service, plants: 3, opening: { timeout: 1000 }, fails: true })
    const message = expect.stringContaining('Could not reach')
    expect(result).toMatchObject({ error: { type: 'unavailable', message }, tally: { pending: 3 } })
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
    expect([tally(batch), remote.posts]).toEqual([{ pending: 3 }, []])
  })

  test('is no without a description', async () => {
    const remote = await Hostile.listen({ posts: [(socket) => void socket.resetAndDestroy()] })
    const batch = batchOf(plantsOf(1))
    await (await open(remote.url)).createMany(batch, importOptions())
    expect(tally(batch)).toEqual({ unknown: 1 })
  })
})
