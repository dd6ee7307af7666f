import { describe, expect, test } from 'vitest'
import type { PlantPatch } from '../../../../src/plant/plant.js'
import type { Change } from '../../../../src/stores/change.js'
import type { ServiceAccess } from '../../../../src/stores/credentials.js'
import type { HttpOptions } from '../../../../src/stores/http/http-options.js'
import type { HttpStore } from '../../../../src/stores/http/http-store.js'
import type { WriteOptions } from '../../../../src/stores/store.js'
import { createClock, type TestClock } from '../../../helpers/sandbox/clock.js'
import { buildSqliteOptions } from '../../../helpers/sandbox/store.js'
import {
  type Behaviour,
  type Post,
  startPlantService,
} from '../../../helpers/scripted-server/plant-service.js'
import {
  buildJsonResponse,
  buildResponse,
  ScriptedServer,
} from '../../../helpers/scripted-server/scripted-server.js'
import { createGate } from '../../../helpers/scripted-server/service.js'
import { openHttp } from './steps.js'

const busy = buildJsonResponse(503, { error: 503, message: 'Not now' }, { 'Retry-After': '0' })
const tenth = (behave: Behaviour) => (post: Post) => (post.index % 10 === 9 ? behave : undefined)
const from = (first: number, behave: Behaviour) => (post: Post) =>
  post.index < first ? undefined : behave
const forPlant = (id: string, behave: Behaviour) => (post: Post) =>
  post.id === id ? behave : undefined

interface Import extends WriteOptions {
  access?: Partial<ServiceAccess>
  opening?: Partial<HttpOptions>
  service?: Awaited<ReturnType<typeof startPlantService>>
  isKeyed?: boolean
  behave?(post: Post): Behaviour | Promise<Behaviour>
  count?: number
}

/** Creates plants in a service with one write. */
async function imported({ isKeyed = true, behave, count = 100, ...options }: Import) {
  const { access = {}, opening = {}, service: given, ...rest } = options
  const service = given ?? (await startPlantService({ isKeyed, behave }))
  const store = await openHttp(service.address, opening, access)
  const { receivedCreates: posts, createdIds: made } = service
  return { service, posts, made, ...(await sent(store, creations(count), rest)) }
}

function creations(count: number): Change[] {
  return Array.from({ length: count }, (_, id) => ({
    type: 'create',
    plant: { id: BigInt(id), name: `Fern ${id}` },
    key: `import-${id}`,
  }))
}

/**
 * How many changes went which way, which were rejected with which `error`, and why the rest was not
 * sent.
 */
async function sent(store: HttpStore, changes: Change[], options?: WriteOptions) {
  const outcomes = await store.write(changes, options)
  const tally: Record<string, number> = {}
  const rejections: [index: number, error: number][] = []
  let error: unknown
  for (const [index, outcome] of outcomes.entries()) {
    tally[outcome.type] = (tally[outcome.type] ?? 0) + 1
    if (outcome.type === 'notSent') error ??= outcome.error
    else if ('error' in outcome) rejections.push([index, outcome.error.error])
  }
  return { outcomes, error, tally, rejections }
}

const runtimeOf = ({ now }: TestClock) => ({ ...buildSqliteOptions().runtime, now })

/** All are created, and the service has made each once. */
const complete = (count = 100) => ({
  ...{ error: undefined, tally: { created: count } },
  made: new Set(Array.from({ length: count }, (_, id) => `${id}`)),
})

describe('a service in trouble', () => {
  test('gets every plant once when every tenth connection is reset after a plant is stored', async () => {
    const { posts, ...result } = await imported({ behave: tenth('lose'), count: 1000 })
    expect(result).toMatchObject(complete(1000))
    expect(posts.length).toBeGreaterThan(1100)
    expect(posts.every(({ id, key }) => key === `import-${id}`)).toBe(true)
  })

  test('is sent again what it says that it has not stored, with keys or without', async () => {
    for (const isKeyed of [true, false])
      expect(await imported({ isKeyed, behave: tenth(busy) })).toMatchObject(complete())
  })

  test('that fails for one plant leaves that one unknown', async () => {
    const time = createClock()
    let tries = 0
    const behave = ({ id }: Post): Behaviour => {
      if (id !== '5') return undefined
      tries += 1
      if (tries === 3) time.pass()
      return buildJsonResponse(500, {})
    }
    const opening = { runtime: runtimeOf(time), concurrency: 2 }
    const expected = { tally: { created: 19, unknown: 1 }, rejections: [[5, 502]] }
    expect(await imported({ behave, count: 20, opening })).toMatchObject(expected)
  })

  test.each<[string, Behaviour, (time: TestClock) => void, string]>([
    ['503', busy, (time) => time.pass(), 'unavailable'],
    ['no answer', 'hang', (time) => time.timeOut(), 'noResponse'],
  ])('is given up after the timeout: %s', async (_, answer, end, kind) => {
    const time = createClock()
    const behave = ({ index }: Post): Behaviour => {
      if (index >= 17) end(time) // eight are in flight
      return index < 10 ? undefined : answer
    }
    const opening = { runtime: runtimeOf(time), concurrency: 8 }
    const { tally, error, outcomes, made } = await imported({ behave, opening })
    const { unknown = 0, notSent = 0 } = tally
    expect(error).toMatchObject({ kind })
    expect([tally['created'], unknown + notSent, unknown > 0]).toEqual([10, 90, answer === 'hang'])
    const created = outcomes.flatMap(({ type }, id) => (type === 'created' ? [`${id}`] : []))
    // those that came first, whichever they were
    expect([...made.keys()].toSorted()).toEqual(created.toSorted())
  })

  test('gets every plant once when it goes away and comes back', async () => {
    const service = await startPlantService({
      behave: async ({ index }) => {
        if (index !== 50) return undefined
        await service.close()
        return 'hang'
      },
    })
    const access = { notify: () => service.listenAgain() }
    expect(await imported({ service, access })).toMatchObject(complete())
  })
})

test('as many connections as the limit are open at once', async () => {
  const full = createGate()
  const behave = async ({ index }: Post): Promise<Behaviour> => {
    if (index === 2) full.open()
    await (index < 3 ? full.wait() : new Promise(setImmediate))
    return undefined
  }
  const { service, ...result } = await imported({ behave, opening: { concurrency: 3 } })
  expect(result).toMatchObject(complete())
  expect(service.connections).toBe(3)
})

const taken = buildJsonResponse(400, { error: 409, message: 'Had that' })
const missing = buildJsonResponse(404, { error: 404, message: 'No plant has id 1' })
const changed = buildJsonResponse(200, { id: 1, name: 'Bracken', tag: 'theirs' })
const bracken = { id: 1n, name: 'Bracken' }
const untagged = { id: 1n, tag: null }
const post = 'POST /plants {"id":1,"name":"Bracken"}'
const patch = 'PATCH /plants/1 {"name":"Bracken"}'
const patchTag = 'PATCH /plants/1 {"tag":null}'
const updated = { tally: { updated: 1 }, rejections: [] }
const rejected = (error: number) => ({ tally: { rejected: 1 }, rejections: [[0, error]] })

test.each<[string, PlantPatch, posts: Buffer[], patches: Buffer[], object, unknown[]]>([
  ['is changed after 409', bracken, [taken], [changed], updated, [post, patch]],
  ['may be gone by then', bracken, [taken], [missing], rejected(404), [post, patch]],
  ['is only changed without a name', untagged, [], [changed], updated, [patchTag]],
  ['needs a name to be created', untagged, [], [missing], rejected(422), [patchTag]],
])('a plant of an import that updates %s', async (_, given, posts, patches, expected, requests) => {
  const service = await ScriptedServer.listen({ posts, others: { 'PATCH /plants/1': patches } })
  const change: Change = { type: 'update', patch: given, ifMissing: 'create' }
  expect(await sent(await openHttp(service.url), [change])).toMatchObject(expected)
  expect(service.requests.map(({ line, body }) => `${line} ${body}`)).toEqual(requests)
})

test.each<[string, Behaviour, number]>([
  ['400', buildJsonResponse(400, { error: 17, message: 'No ferns' }), 17],
  ['422 without an Error', buildJsonResponse(422, {}), 422],
])('an answer about one plant is recorded, and the others go on: %s', async (_, behave, error) => {
  const expected = { tally: { created: 99, rejected: 1 }, rejections: [[5, error]] }
  expect(await imported({ behave: forPlant('5', behave) })).toMatchObject(expected)
})

test.each([404, 409])('the status %i without an Error ends all', async (status) => {
  const behave = from(3, buildJsonResponse(status, {}))
  const { tally, error } = await imported({ behave, count: 10, opening: { concurrency: 1 } })
  expect(tally).toEqual({ created: 3, notSent: 7 })
  expect(error).toMatchObject({ kind: 'rejected', status })
})

test('a service is asked once whether it keeps keys, and given up after an unknown outcome', async () => {
  const service = await ScriptedServer.listen({
    posts: [(socket) => void socket.resetAndDestroy()],
    openapi: buildResponse(404),
  })
  const store = await openHttp(service.url, { concurrency: 1 })
  const { tally, error } = await sent(store, creations(10))
  expect(tally).toEqual({ unknown: 1, notSent: 9 })
  expect(error).toMatchObject({ kind: 'noResponse' })
  expect(service.lines).toEqual(['POST /plants', 'GET /openapi.json'])
})
