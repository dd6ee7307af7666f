import { describe, expect, test } from 'vitest'
import type { NewPlant, PlantPatch } from '../../../../src/plant/plant.js'
import type { Runtime } from '../../../../src/platform/runtime.js'
import type { Change } from '../../../../src/stores/common/change.js'
import type { WriteOptions } from '../../../../src/stores/common/store.js'
import type { Access, HttpOptions } from '../../../../src/stores/http/http-options.js'
import type { HttpStore } from '../../../../src/stores/http/http-store.js'
import { Hostile, http, json } from '../../../helpers/hostile.js'
import { openHttp } from '../../../helpers/http-store.js'
import { type Deed, PlantService, type Post } from '../../../helpers/plant-service.js'
import { gate } from '../../../helpers/service.js'
import { openOptions } from '../../../helpers/store.js'
import { settableTime, type Time } from '../../../helpers/time.js'

const busy: Deed = {
  status: 503,
  body: { error: 503, message: 'Not now' },
  headers: { 'Retry-After': '0' },
}
const tenth = (deed: Deed) => (post: Post) => (post.index % 10 === 9 ? deed : undefined)
const from = (first: number, deed: Deed) => (post: Post) => (post.index < first ? undefined : deed)
const forPlant = (id: string, deed: Deed) => (post: Post) => (post.id === id ? deed : undefined)

interface Import extends WriteOptions {
  access?: Partial<Access>
  opening?: Partial<HttpOptions>
  /** another one than that of `isKeyed` and `deed` */
  service?: PlantService
  isKeyed?: boolean
  deed?(post: Post): Deed | Promise<Deed>
  /** how many of `plantsOf` */
  plants?: number
}

/** Creates plants in a service with one write. `made` is how often the service made each plant, by its id. */
async function imported({
  service,
  isKeyed = true,
  deed,
  plants = 100,
  access = {},
  opening = {},
  ...rest
}: Import) {
  const target = service ?? (await PlantService.listen({ isKeyed, ...(deed && { deed }) }))
  const store = await openHttp(target.url, opening, access)
  const changes = creations(plants)
  return {
    service: target,
    store,
    posts: target.posts,
    made: target.made,
    ...(await sent(store, changes, rest)),
  }
}

function clockOf({ now }: Time): Runtime {
  return { ...openOptions().runtime, now }
}

function creations(count: number): Change[] {
  return plantsOf(count).map((plant) => ({ type: 'create', plant, key: `import-${plant.id}` }))
}

/** How many changes went which way, why some were rejected, and why the rest was not sent. */
async function sent(store: HttpStore, changes: Change[], options?: WriteOptions) {
  const outcomes = await store.write(changes, options)
  const tally: Record<string, number> = {}
  for (const { type } of outcomes) tally[type] = (tally[type] ?? 0) + 1
  const problems = outcomes.flatMap((outcome, index) =>
    'error' in outcome ? [{ ...outcome, index }] : [],
  )
  const error = problems.find(({ type }) => type === 'unsent')?.error
  const rejections = problems
    .filter(({ type }) => type !== 'unsent')
    .map(({ index, error: { error: value, message } }) => [index, value, message])
  return { outcomes, error, tally, rejections }
}

const plantsOf = (count: number): NewPlant[] =>
  Array.from({ length: count }, (_, index) => ({ id: BigInt(index), name: `Fern ${index}` }))

const complete = (count = 100) => ({
  ...{ error: undefined, tally: { created: count } },
  made: new Map(plantsOf(count).map(({ id }) => [`${id}`, 1])),
})

describe('a service in trouble', () => {
  test('gets every plant once when every tenth connection is reset after a plant is stored', async () => {
    const { posts, ...result } = await imported({ deed: tenth('lose'), plants: 1000 })
    expect(result).toMatchObject(complete(1000))
    expect(posts.length).toBeGreaterThan(1100)
    expect(posts.every(({ id, key }) => key === `import-${id}`)).toBe(true)
  })

  test('that fails for one plant leaves that one unknown', async () => {
    const time = settableTime()
    let tries = 0
    const deed = ({ id }: Post): Deed => {
      if (id !== '5') return undefined
      tries += 1
      if (tries === 3) time.pass()
      return { status: 500 }
    }
    expect(
      await imported({ deed, plants: 20, opening: { runtime: clockOf(time), concurrency: 2 } }),
    ).toMatchObject({
      tally: { created: 19, unknown: 1 },
      rejections: [[5, 502, expect.stringContaining('answered 500')]],
    })
  })

  test.each<[string, Deed, (time: Time) => void, object, number]>([
    ['503', busy, (time) => time.pass(), { kind: 'unavailable', message: 'Not now' }, 0],
    ['no answer', 'hang', (time) => time.timeOut(), { kind: 'unanswered' }, 1],
  ])('is given up after the timeout: %s', async (_, deed, end, error, least) => {
    const time = settableTime()
    const passing = ({ index }: Post): Deed => {
      if (index >= 17) end(time) // eight are in flight
      return index < 10 ? undefined : deed
    }
    const result = await imported({
      deed: passing,
      opening: { runtime: clockOf(time), concurrency: 8 },
    })
    const { created: done, unknown = 0, unsent = 0 } = result.tally
    expect(result).toMatchObject({ error })
    expect([done, unknown + unsent, unknown >= least, least > 0 || unknown === 0]).toEqual([
      10,
      90,
      true,
      true,
    ])
    const created = result.outcomes.flatMap(({ type }, id) => (type === 'created' ? [`${id}`] : []))
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
    expect(await imported({ service, access: { notify: () => service.comeBack() } })).toMatchObject(
      complete(),
    )
  })
})

test('a write that is stopped waits for what is in flight, and ends without an error', async () => {
  const stop = new AbortController()
  const time = settableTime()
  const deed = ({ index }: Post): Deed => {
    if (index === 3) {
      stop.abort(new Error('stopped'))
      time.timeOut()
    }
    return 'hang'
  }
  const opening = { concurrency: 4, runtime: clockOf(time) }
  const { posts, ...result } = await imported({ deed, plants: 10, opening, signal: stop.signal })
  expect([result.tally, posts.length]).toEqual([{ unknown: 4, unsent: 6 }, 4])
  expect(result.error).toMatchObject({ message: 'stopped' })
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

describe('a plant of an import that updates', () => {
  const openapi = json(200, {
    paths: { '/plants': { post: {} }, '/plants/{plantId}': { patch: {} } },
  })
  const taken = json(400, { error: 409, message: 'Had that' })
  const missing = json(404, { error: 404, message: 'No plant has id 1' })

  async function updated(patch: PlantPatch, posts: Buffer[], patches: Buffer[]) {
    const service = await Hostile.listen({ openapi, posts, others: { 'PATCH /plants/1': patches } })
    const change: Change = { type: 'update', patch, ifMissing: 'create' }
    const { tally, rejections } = await sent(await openHttp(service.url), [change])
    return {
      tally,
      rejections,
      requests: service.requests.map(({ line, body }) => `${line} ${body}`.trim()),
    }
  }

  test('is created, or after 409 changed', async () => {
    const [post, patch] = [
      'POST /plants {"id":1,"name":"Bracken"}',
      'PATCH /plants/1 {"name":"Bracken"}',
    ]
    const whole = { id: 1n, name: 'Bracken' }
    const changed = json(200, { id: 1, name: 'Bracken', tag: 'theirs' })
    expect(await updated(whole, [taken], [changed])).toEqual({
      tally: { updated: 1 },
      rejections: [],
      requests: [post, patch],
    })
    expect(await updated(whole, [taken], [missing])).toMatchObject({
      rejections: [[0, 404, 'No plant has id 1']],
      requests: [post, patch],
    })
  })

  test('is only changed without a name', async () => {
    const requests = ['PATCH /plants/1 {"tag":null}']
    const changed = json(200, { id: 1, name: 'Fern' })
    expect(await updated({ id: 1n, tag: null }, [], [changed])).toMatchObject({
      tally: { updated: 1 },
      requests,
    })
    const message =
      'Invalid plant: name must be a string of Unicode text without U+0000, but is missing, and no plant has id 1'
    expect(await updated({ id: 1n, tag: null }, [], [missing])).toMatchObject({
      requests,
      rejections: [[0, 422, message]],
    })
  })
})

describe('an answer about one plant', () => {
  test.each<[string, Deed, number, string]>([
    ['400', { status: 400, body: { error: 17, message: 'No ferns' } }, 17, 'No ferns'],
    ['422 without an Error', { status: 422 }, 422, 'answered 422'],
  ])('is recorded, and the others go on: %s', async (_, deed, error, message) => {
    expect(await imported({ deed: forPlant('5', deed) })).toMatchObject({
      tally: { created: 99, rejected: 1 },
      rejections: [[5, error, expect.stringContaining(message)]],
    })
  })

  test.each([404, 409])('is no answer with the status %i, which ends all', async (status) => {
    const { tally, error } = await imported({
      deed: from(3, { status }),
      plants: 10,
      opening: { concurrency: 1 },
    })
    expect([tally, error]).toMatchObject([
      { created: 3, unsent: 7 },
      { kind: 'rejected', status },
    ])
  })
})

describe('a service that keeps no keys', () => {
  const isKeyed = false

  test('is sent again what it says that it has not stored', async () => {
    expect(await imported({ isKeyed, deed: tenth(busy) })).toMatchObject(complete())
  })
})

test('a service is asked once whether it keeps keys, and given up after an unknown outcome', async () => {
  const service = await Hostile.listen({
    posts: [(socket) => void socket.resetAndDestroy()],
    openapi: http(404),
  })
  const { tally, error } = await sent(
    await openHttp(service.url, { concurrency: 1 }),
    creations(10),
  )
  expect([tally, error]).toMatchObject([{ unknown: 1, unsent: 9 }, { kind: 'unanswered' }])
  expect(service.lines).toEqual(['POST /plants', 'GET /openapi.json'])
})
