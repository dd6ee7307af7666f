import { describe, expect, test } from 'vitest'
import type { NewPlant, PlantPatch } from '../../../../src/plant/plant.js'
import type { Access } from '../../../../src/stores/common/access.js'
import { Outcome } from '../../../../src/stores/common/conflict.js'
import type { OpenOptions } from '../../../../src/stores/common/store.js'
import type { RemoteStore } from '../../../../src/stores/http/remote-store.js'
import { type BulkOptions, batchOf, createAll, outcomesOf } from '../../../helpers/bulk.js'
import { Hostile, json } from '../../../helpers/hostile.js'
import { type Deed, PlantService, type Post } from '../../../helpers/plant-service.js'
import { openRemote } from '../../../helpers/remote.js'
import { gate } from '../../../helpers/service.js'
import { openOptions } from '../../../helpers/store.js'

const busy: Deed = { status: 503, body: { error: 503, message: 'Not now' }, headers: { 'Retry-After': '0' } }
const tenth = (deed: Deed) => (post: Post) => (post.index % 10 === 9 ? deed : undefined)
const from = (first: number, deed: Deed) => (post: Post) => (post.index < first ? undefined : deed)
const only = (index: number, deed: Deed) => (post: Post) => (post.index === index ? deed : undefined)
const forPlant = (id: string, deed: Deed) => (post: Post) => (post.id === id ? deed : undefined)

interface Import extends BulkOptions {
  access?: Partial<Access>
  opening?: Partial<OpenOptions>
  /** another one than that of `isKeyed` and `deed` */
  service?: PlantService
  isKeyed?: boolean
  deed?(post: Post): Deed | Promise<Deed>
  /** how many of `plantsOf` */
  plants?: number
}

/** Imports plants into a service. `made` is how often the service made each plant, by its id. */
async function imported({ service, isKeyed = true, deed, plants = 100, access = {}, opening = {}, ...rest }: Import) {
  const target = service ?? (await PlantService.listen({ isKeyed, ...(deed && { deed }) }))
  const store = await openRemote(target.url, { timeout: 20_000, ...opening }, access)
  return { service: target, store, posts: target.posts, made: target.made, ...(await sent(store, plants, rest)) }
}

/** How many rows went which way, the reasons of some, and the error that ended the import. */
async function sent(store: RemoteStore, plants: number | PlantPatch[], options: BulkOptions = {}) {
  const batch = batchOf(typeof plants === 'number' ? plantsOf(plants) : plants)
  const done = createAll(store, batch, { keyOf: (row) => `import-${row}`, ...options })
  const error = await done.then(() => undefined).catch((reason: Error) => reason)
  const tally: Record<string, number> = {}
  for (const outcome of outcomesOf(batch)) tally[outcome] = (tally[outcome] ?? 0) + 1
  const rejections = [...batch.rejections].map(([row, { error, message }]) => [row, error, message])
  return { batch, error, tally, rejections }
}

const plantsOf = (count: number): NewPlant[] =>
  Array.from({ length: count }, (_, index) => ({ id: BigInt(index), name: `Fern ${index}` }))

const complete = (count = 100) => ({
  ...{ error: undefined, tally: { created: count } },
  made: new Map(plantsOf(count).map(({ id }) => [`${id}`, 1])),
})

describe('a service in trouble', () => {
  test.each<[string, Deed]>([
    ['a reset after it is stored', 'lose'],
    ['500', { status: 500 }],
  ])('gets every plant once when every tenth request ends with %s', async (_, deed) => {
    const { posts, ...result } = await imported({ deed: tenth(deed), plants: 1000 })
    expect(result).toMatchObject(complete(1000))
    expect(posts.length).toBeGreaterThan(1100)
    expect(posts.every(({ id, key }) => key === `import-${id}`)).toBe(true)
  })

  test('is sent a plant again after the timeout of one request', async () => {
    const { posts, ...result } = await imported({ deed: only(10, 'hang'), opening: { timeout: 1000 } })
    expect(result).toMatchObject(complete())
    expect(posts).toHaveLength(101)
  })

  test('is left alone for as long as Retry-After says', async () => {
    const times: number[] = []
    const deed = ({ index }: Post): Deed => {
      times.push(performance.now())
      return index === 30 ? { status: 503, headers: { 'Retry-After': '1' } } : undefined
    }
    expect(await imported({ deed, opening: { concurrency: 8 } })).toMatchObject(complete())
    const gap = times.findIndex((time, index) => time - (times[index - 1] ?? time) >= 1000)
    expect(gap).toBeGreaterThan(30)
    expect(gap).toBeLessThanOrEqual(30 + 8) // no more than were on their way
  })

  test('that fails for one plant leaves that one unknown', async () => {
    const { clock } = openOptions()
    const service = await PlantService.listen({ deed: ({ id }) => (id === '5' ? { status: 500 } : undefined) })
    const now = () => clock.now() + service.posts.length * 200 // as if the service were slow
    const opening = { timeout: 3000, concurrency: 2, clock: { ...clock, now } }
    expect(await imported({ service, plants: 20, opening })).toMatchObject({
      tally: { created: 19, unknown: 1 },
      rejections: [[5, 502, expect.stringContaining('answered 500')]],
    })
  })

  test.each<[string, Deed, object]>([
    ['503', busy, { type: 'unavailable', message: 'Not now' }],
    ['503 with a long Retry-After', { status: 503, headers: { 'Retry-After': '9999' } }, { type: 'unavailable' }],
    ['no answer', 'hang', { type: 'unanswered' }],
  ])('is given up after the timeout: %s', async (_, deed, error) => {
    const result = await imported({ deed: from(10, deed), opening: { timeout: 1000 } })
    expect(result).toMatchObject({ error, tally: { created: 10, pending: 90 } })
    const created = [...result.batch.outcomes].flatMap((outcome, id) => (outcome === Outcome.created ? [`${id}`] : []))
    // those that came first, whichever they were
    expect([...result.made.keys()].toSorted()).toEqual(created.toSorted())
  })

  test('gets every plant once when it goes away and comes back', async () => {
    const service = await PlantService.listen({
      deed: async ({ index }) => {
        if (index !== 50) return undefined
        await service.close()
        return 'hang'
      },
    })
    expect(await imported({ service, access: { notify: () => service.comeBack() } })).toMatchObject(complete())
  })

  test('causes one warning', async () => {
    const warnings: string[] = []
    const notify = async (text: string) => void warnings.push(text)
    const deed = ({ index }: Post) => (index < 40 && index % 20 < 4 ? busy : undefined)
    const { store } = await imported({ deed, access: { notify }, opening: { concurrency: 1 } })
    await sent(store, 100)
    expect(warnings).toEqual([expect.stringMatching(/^Not now\. Trying again for up to (20|19) s$/)])
  })
})

test.each(['keyOf', 'onProgress'])('what %s throws ends the import', async (name) => {
  const fail = () => {
    throw new Error('disk full')
  }
  const result = await imported({ isKeyed: false, opening: { concurrency: 2 }, [name]: fail })
  const { created = 0 } = result.tally
  expect([result.error, created]).toEqual([new Error('disk full'), result.made.size])
  expect(created).toBeLessThanOrEqual(2)
})

test('an import that is stopped ends without an error', async () => {
  const stop = new AbortController()
  const deed = ({ index }: Post): Deed => {
    if (index === 4) stop.abort(new Error('stopped')) // sent alone, after the first ones have timed out
    return 'hang'
  }
  const opening = { concurrency: 4, timeout: 300 }
  const { posts, ...result } = await imported({ deed, plants: 10, opening, stop: stop.signal })
  expect([result.tally, posts.length]).toEqual([{ pending: 10 }, 5])
})

test('as many connections as the limit are open at once', async () => {
  const full = gate()
  const deed = async ({ index }: Post): Promise<Deed> => {
    if (index === 2) full.open()
    await (index < 3 ? full.wait() : new Promise(setImmediate))
    return undefined
  }
  const { service, ...result } = await imported({ deed, plants: 1000, opening: { concurrency: 3 } })
  expect(result).toMatchObject(complete(1000))
  expect([service.mostConnections, service.mostUnderWay]).toEqual([3, 3])
})

describe('a plant that others change between its read and its replace', () => {
  const item = { get: {}, put: {} }
  const openapi = json(200, { paths: { '/plants': { get: {}, post: {} }, '/plants/{plantId}': item } })
  const taken = json(400, { error: 409, message: 'Had that' })
  const changed = json(412, { error: 412, message: 'Changed' })
  const read = (tag: string) => json(200, { id: 1, name: 'Fern', tag }, { ETag: `"${tag}"` })

  async function updated(gets: Buffer[], puts: Buffer[]) {
    const others = { 'GET /plants/1': gets, 'PUT /plants/1': puts }
    const remote = await Hostile.listen({ openapi, posts: [taken], others })
    const { tally, rejections } = await sent(await openRemote(remote.url), [{ id: 1n, name: 'Bracken' }], {
      ifExists: 'update',
    })
    const replaces = remote.requests.filter(({ line }) => line.startsWith('PUT'))
    return { tally, rejections, replaces: replaces.map(({ headers, body }) => `${headers['if-match']} ${body}`) }
  }

  test('keeps what they have changed', async () => {
    const result = await updated([read('shade'), read('theirs')], [changed, read('theirs')])
    const replaces = ['shade', 'theirs'].map((tag) => `"${tag}" {"name":"Bracken","tag":"${tag}"}`)
    expect(result).toEqual({ tally: { updated: 1 }, rejections: [], replaces })
  })

  test('is rejected after some tries if that never ends', async () => {
    const { tally, rejections } = await updated([read('theirs')], [changed])
    const message = 'Plant 1 was not updated: others changed it during each of 5 tries'
    expect({ tally, rejections }).toEqual({ tally: { rejected: 1 }, rejections: [[0, 409, message]] })
  })
})

describe('an answer about one plant', () => {
  test.each<[string, Deed, string, number, string]>([
    ['400', { status: 400, body: { error: 17, message: 'No ferns' } }, 'rejected', 17, 'No ferns'],
    ['422 without an Error', { status: 422 }, 'rejected', 422, 'answered 422'],
    ['409', { status: 400, body: { error: 409, message: 'Had that' } }, 'exists', 409, 'Had that'],
  ])('is recorded, and the others go on: %s', async (_, deed, outcome, error, message) => {
    expect(await imported({ deed: forPlant('5', deed) })).toMatchObject({
      tally: { created: 99, [outcome]: 1 },
      rejections: [[5, error, expect.stringContaining(message)]],
    })
  })

  test('with another plant causes one warning', async () => {
    const warnings: string[] = []
    const access = { notify: async (text: string) => void warnings.push(text) }
    const deed = (): Deed => ({ status: 200, body: { name: 'Moss' } })
    const { tally } = await imported({ deed, plants: 3, access, opening: { concurrency: 1 } })
    expect(tally).toEqual({ created: 3 })
    const instead = '{"name":"Moss"} instead of {"name":"Fern 0"} for plant 0'
    expect(warnings).toEqual([`The store returns plants that differ from those that were sent, such as ${instead}`])
  })
})

describe('a service that keeps no keys', () => {
  const isKeyed = false

  test('is sent again what it says that it has not stored', async () => {
    expect(await imported({ isKeyed, deed: tenth(busy) })).toMatchObject(complete())
  })

  test('and gives no plant leaves that unknown', async () => {
    const deed = forPlant('2', { status: 200, body: {} })
    const result = await imported({ isKeyed, deed, plants: 5, opening: { concurrency: 1 } })
    expect(result.tally).toEqual({ created: 2, unknown: 1, pending: 2 })
  })

  test('and breaks for good is given up before many are unknown', async () => {
    const result = await imported({ isKeyed, deed: from(10, 'lose'), plants: 10_000, opening: { timeout: 1000 } })
    expect(result.error).toMatchObject({ type: 'unanswered' })
    const { created, unknown } = result.tally
    expect(created).toBe(10)
    expect(unknown).toBeGreaterThanOrEqual(result.posts.length - 10) // some are reset before they are read
    expect(unknown).toBeLessThan(100)
  })
})

test('nothing is sent to a service that cannot say whether it keeps keys', async () => {
  const remote = await Hostile.listen({ openapi: json(503, { error: 503, message: 'Not now' }) })
  const result = await sent(await openRemote(remote.url, { timeout: 1000 }), 3)
  const error = { type: 'unavailable', retryable: true, message: 'Not now' }
  expect(result).toMatchObject({ error, tally: { pending: 3 } })
  expect(remote.posts).toEqual([])
})
