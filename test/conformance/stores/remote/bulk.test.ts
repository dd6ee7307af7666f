import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import type { NewPlant, PlantPatch } from '../../../../src/plant/plant.js'
import { Outcome } from '../../../../src/stores/common/conflict.js'
import { SqliteStore } from '../../../../src/stores/sqlite/sqlite-store.js'
import { Hostile, json } from '../../../helpers/hostile.js'
import { type Deed, PlantService, type Post } from '../../../helpers/plant-service.js'
import { ownService } from '../../../helpers/remote.js'
import { complete, imported, open, plantsOf, sent } from '../../../helpers/remote-bulk.js'
import { serveStore, testToken } from '../../../helpers/service.js'
import { closedAfterTest, fileAddress, gathered, openOptions } from '../../../helpers/store.js'
import { temporaryFolder } from '../../../helpers/temporary.js'

const answer = (error: number, message: string, status = 400): Deed => ({ status, body: { error, message } })
const busy: Deed = { status: 503, body: { error: 503, message: 'Not now' }, headers: { 'Retry-After': '0' } }
const tenth = (deed: Deed) => (post: Post) => (post.index % 10 === 9 ? deed : undefined)
const from = (first: number, deed: Deed) => (post: Post) => (post.index < first ? undefined : deed)
const only = (index: number, deed: Deed) => (post: Post) => (post.index === index ? deed : undefined)
const forPlant = (id: string, deed: Deed) => (post: Post) => (post.id === id ? deed : undefined)

test('3,000 plants arrive at the own service, which knows them again by their keys', async () => {
  const path = join(temporaryFolder(), 'plants.db')
  const store = await open(await ownService({ host: '127.0.0.1', port: 0 }, path))
  const onProgress = vi.fn()
  for (const count of [3000, 100])
    expect(await sent(store, count, { onProgress })).toMatchObject({ tally: { created: count }, rejections: [] })
  expect(onProgress).toHaveBeenCalledTimes(3100)
  const file = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))
  expect(await gathered(file.list())).toEqual(plantsOf(3000))
  const { tally, rejections } = await sent(store, 100, { keyOf: (row) => `other-${row}` })
  expect(tally).toEqual({ exists: 100 })
  expect(rejections[5]).toEqual([expect.any(Number), 409, expect.stringMatching(/^A plant with id .* already exists$/)])
})

describe('a service in trouble', () => {
  test('gets every plant once after answering 503 for a while', async () => {
    const deed = ({ index }: Post) => (index > 20 && index < 35 ? busy : undefined)
    expect(await imported({ deed })).toMatchObject(complete())
  })

  test.each<[string, Deed]>([
    ['a reset after it is stored', 'lose'],
    ['500', { status: 500 }],
  ])('gets every plant once, by its key, when every tenth request ends with %s', async (_, deed) => {
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
    const deed = only(30, { status: 503, headers: { 'Retry-After': '1' } })
    const { posts, ...result } = await imported({ deed, opening: { concurrency: 8 } })
    expect(result).toMatchObject(complete())
    const gap = posts.findIndex(({ time }, index) => time - (posts[index - 1]?.time ?? time) >= 1000)
    expect(gap).toBeGreaterThan(30)
    expect(gap).toBeLessThanOrEqual(30 + 8) // no more than were on their way
  })

  test('that fails for one plant leaves that one unknown, and gets the others', async () => {
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
  ])('is given up after the timeout, with the rest pending: %s', async (_, deed, error) => {
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

  test('that is away is given up after the timeout, with nothing sent', async () => {
    const { service, store } = await imported({ plants: 1, opening: { timeout: 1000 } })
    await service.close()
    const error = { type: 'unavailable', retryable: true }
    expect(await sent(store, 10)).toMatchObject({ error, tally: { pending: 10 } })
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

test('an import that is stopped ends without an error of a service that does not answer', async () => {
  const stop = new AbortController()
  const deed = ({ index }: Post): Deed => {
    if (index === 4) stop.abort(new Error('stopped')) // sent alone, after the first ones have timed out
    return 'hang'
  }
  const opening = { concurrency: 4, timeout: 300 }
  const { posts, ...result } = await imported({ deed, plants: 10, opening, stop: stop.signal })
  expect([result.tally, posts.length]).toEqual([{ pending: 10 }, 5])
})

test('as many connections and requests as the limit are open at once, and no more', async () => {
  let isFull = () => {}
  const full = new Promise<void>((resolve) => {
    isFull = resolve
  })
  const deed = async ({ index }: Post): Promise<Deed> => {
    if (index === 2) isFull()
    await (index < 3 ? full : new Promise(setImmediate))
    return undefined
  }
  const { service, ...result } = await imported({ deed, plants: 1000, opening: { concurrency: 3 } })
  expect(result).toMatchObject(complete(1000))
  expect([service.mostConnections, service.mostUnderWay]).toEqual([3, 3])
})

describe('a plant that others change between its read and its replace', () => {
  const fern: NewPlant = { id: 1n, name: 'Fern', tag: 'shade' }
  const bracken = { id: 1n, name: 'Bracken' }
  type Methods = Partial<Pick<SqliteStore, 'get' | 'replace'>>

  /** Updates plants at a service on a file with plant 1, with other methods in place of some of the store's. */
  async function updated(methods: (file: SqliteStore) => Methods, plants: PlantPatch[]) {
    const file = await SqliteStore.open(fileAddress(join(temporaryFolder(), 'plants.db')), openOptions())
    await file.create(fern)
    const usual: Methods = { get: (id) => file.get(id), replace: (plant, only) => file.replace(plant, only) }
    const create: SqliteStore['create'] = (plant) => file.create(plant)
    const served = { create, close: () => file.close(), ...usual, ...methods(file) }
    const { address } = await serveStore(served as Parameters<typeof serveStore>[0])
    const store = await open(address, { access: { token: testToken }, opening: { timeout: 500 } })
    const { tally, rejections } = await sent(store, plants, { ifExists: 'update' })
    return { tally, rejections, plant: await file.get(1n) }
  }

  /** Changes a plant after each read of it, which is before it is replaced. */
  const changedBy = (change: (reads: number) => NewPlant | undefined) => (file: SqliteStore) => {
    let reads = 0
    const get: SqliteStore['get'] = async (id) => {
      const plant = await file.get(id)
      if (plant) reads += 1
      const changed = plant && change(reads)
      if (changed) await file.replace(changed)
      return plant
    }
    return { get }
  }

  test('keeps what they have changed', async () => {
    const once = changedBy((reads) => (reads === 1 ? { ...fern, tag: 'theirs' } : undefined))
    const message = 'Invalid plant: name must be a string, but is missing, and no plant has id 2'
    expect(await updated(once, [bracken, { id: 2n, tag: 'x' }])).toEqual({
      tally: { updated: 1, rejected: 1 },
      rejections: [[1, 422, message]],
      plant: { ...bracken, tag: 'theirs' },
    })
  })

  test('is rejected after the timeout if that never ends', async () => {
    let changes = 0
    const always = changedBy((reads) => {
      changes = reads
      return { ...fern, tag: `theirs ${reads}` }
    })
    const message = expect.stringMatching(/^Plant 1 was not updated: others changed it during each of \d+ tries$/)
    expect(await updated(always, [bracken, { id: 2n, name: 'Moss' }])).toEqual({
      tally: { created: 1, rejected: 1 },
      rejections: [[0, 409, message]],
      plant: { ...fern, tag: `theirs ${changes}` },
    })
  })

  test('counts as updated when the response to its replace was lost', async () => {
    let replaces = 0
    const lost = (file: SqliteStore): Methods => ({
      replace: async (plant, only) => {
        const replaced = await file.replace(plant, only)
        replaces += 1
        if (replaces === 1) throw new Error('The response is lost')
        return replaced
      },
    })
    const plant = { ...bracken, tag: 'shade' }
    expect(await updated(lost, [bracken])).toEqual({ tally: { updated: 1 }, rejections: [], plant })
    expect(replaces).toBe(1)
  })
})

describe('an answer about one plant', () => {
  test.each<[string, Deed, string, number, string]>([
    ['400 with an unknown error', answer(17, 'No ferns'), 'rejected', 17, 'No ferns'],
    ['413', answer(413, 'Too long', 413), 'rejected', 413, 'Too long'],
    ['422 without an Error', { status: 422 }, 'rejected', 422, 'answered 422'],
    ['400 with an error of 409', answer(409, 'Had that'), 'exists', 409, 'Had that'],
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
    expect(result.tally['unknown']).toBe(result.posts.length - 10)
    expect(result.posts.length).toBeLessThan(100)
  })
})

describe('whether a service keeps keys', () => {
  test('is asked once', async () => {
    const openapi = json(200, { paths: { '/plants': { post: {} } } })
    const remote = await Hostile.listen({ openapi, posts: [json(200, { name: 'Fern 0' })] })
    const store = await open(remote.url)
    for (const _ of [1, 2]) await sent(store, 1)
    expect(remote.lines).toEqual(['GET /openapi.json', 'POST /plants', 'POST /plants'])
  })

  test('cannot be found out from a service that answers 503, and then nothing is sent', async () => {
    const remote = await Hostile.listen({ openapi: json(503, { error: 503, message: 'Not now' }) })
    const result = await sent(await open(remote.url, { opening: { timeout: 1000 } }), 3)
    const error = { type: 'unavailable', retryable: true, message: 'Not now' }
    expect(result).toMatchObject({ error, tally: { pending: 3 } })
    expect(remote.posts).toEqual([])
  })

  test('is no without a description', async () => {
    const remote = await Hostile.listen({ posts: [(socket) => void socket.resetAndDestroy()] })
    expect(await sent(await open(remote.url), 1)).toMatchObject({ tally: { unknown: 1 } })
  })
})
