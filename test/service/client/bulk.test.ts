import { expect, test } from 'vitest'
import type { PlantPatch } from '../../../src/plant/plant.js'
import type { Change } from '../../../src/stores/change.js'
import type { ServiceAccess } from '../../../src/stores/credentials.js'
import type { HttpStore } from '../../../src/stores/http/http-store.js'
import type { HttpOptions } from '../../../src/stores/http/transport.js'
import type { WriteOptions } from '../../../src/stores/store.js'
import { createClock, type TestClock } from '../../helpers/sandbox/clock.js'
import { buildSqliteOptions } from '../../helpers/sandbox/store.js'
import {
  type Behaviour,
  type Post,
  startPlantService,
} from '../../helpers/scripted-server/plant-service.js'
import {
  buildJsonResponse,
  buildResponse,
  ScriptedServer,
} from '../../helpers/scripted-server/scripted-server.js'
import { createGate } from '../../helpers/scripted-server/service.js'
import { openHttp } from './steps.js'

const busy = buildJsonResponse(503, { error: 503, message: 'Not now' }, { 'Retry-After': '0' })

/** Every tenth request meets the behaviour; the others are answered as usual. */
function behaveAtEveryTenth(behaviour: Behaviour) {
  return ({ index }: Post) => (index % 10 === 9 ? behaviour : undefined)
}

interface ImportOptions extends WriteOptions {
  access?: Partial<ServiceAccess>
  httpOptions?: Partial<HttpOptions>
  count?: number
}

type PlantService = Awaited<ReturnType<typeof startPlantService>>

/** Creates plants in a service with one write. */
async function importPlants(service: PlantService, options: ImportOptions = {}) {
  const { access, httpOptions, count = 100, ...writeOptions } = options
  const store = await openHttp(service.address, httpOptions, access)
  return writeAndCount(store, buildCreates(count), writeOptions)
}

function buildCreates(count: number): Change[] {
  return Array.from({ length: count }, (_, id) => ({
    type: 'create',
    plant: { id: BigInt(id), name: `Fern ${id}` },
    key: `import-${id}`,
  }))
}

/**
 * Writes changes, and counts their outcomes by type.
 *
 * @returns also which changes were rejected or are unknown, with their `error`, and why the rest
 *   was not sent
 */
async function writeAndCount(store: HttpStore, changes: Change[], options?: WriteOptions) {
  const outcomes = await store.write(changes, options)
  const counts: Record<string, number> = {}
  const failures: { index: number; error: number }[] = []
  let stopReason: unknown
  for (const [index, outcome] of outcomes.entries()) {
    counts[outcome.type] = (counts[outcome.type] ?? 0) + 1
    if (outcome.type === 'notSent') stopReason ??= outcome.problem
    else if ('problem' in outcome) failures.push({ index, error: outcome.problem.error })
  }
  return { outcomes, counts, failures, stopReason }
}

function buildRuntime({ now }: TestClock) {
  return { ...buildSqliteOptions().runtime, now }
}

/** All plants are created, and the service has each of them. */
async function expectComplete(service: PlantService, options: ImportOptions = {}) {
  const { counts, stopReason } = await importPlants(service, options)
  const { count = 100 } = options
  expect({ counts, stopReason }).toEqual({ counts: { created: count }, stopReason: undefined })
  expect(service.createdIds).toEqual(new Set(Array.from({ length: count }, (_, id) => `${id}`)))
}

test('each plant is created once while every tenth connection is reset after a plant is stored', async () => {
  const service = await startPlantService({ behave: behaveAtEveryTenth('lose') })
  await expectComplete(service, { count: 1000 })
  expect(service.receivedCreates.length).toBeGreaterThan(1100)
  expect(service.receivedCreates.every(({ id, key }) => key === `import-${id}`)).toBe(true)
})

test('a plant is sent again if the service says that it has not stored it, with keys or without', async () => {
  for (const isKeyed of [true, false])
    await expectComplete(await startPlantService({ isKeyed, behave: behaveAtEveryTenth(busy) }))
})

test('the outcome of one plant is unknown if the service fails for it until the timeout', async () => {
  const clock = createClock()
  let tries = 0
  const service = await startPlantService({
    behave: ({ id }) => {
      if (id !== '5') return undefined
      tries += 1
      if (tries === 3) clock.pass()
      return buildJsonResponse(500, {})
    },
  })
  const httpOptions = { runtime: buildRuntime(clock), concurrency: 2 }
  expect(await importPlants(service, { count: 20, httpOptions })).toMatchObject({
    counts: { created: 19, unknown: 1 },
    failures: [{ index: 5, error: 502 }],
  })
})

test.each<{ answer: string; behaviour: Behaviour; end(clock: TestClock): void; kind: string }>([
  { answer: '503', behaviour: busy, end: (clock) => clock.pass(), kind: 'unavailable' },
  { answer: 'nothing', behaviour: 'hang', end: (clock) => clock.timeOut(), kind: 'noResponse' },
])(
  'a write stops after the timeout if the service answers $answer',
  async ({ behaviour, end, kind }) => {
    const clock = createClock()
    const service = await startPlantService({
      behave: ({ index }) => {
        // By then eight requests wait for their answers.
        if (index >= 17) end(clock)
        return index < 10 ? undefined : behaviour
      },
    })
    const httpOptions = { runtime: buildRuntime(clock), concurrency: 8 }
    const { counts, stopReason, outcomes } = await importPlants(service, { httpOptions })
    expect(stopReason).toMatchObject({ kind })
    const { created, unknown = 0, notSent = 0 } = counts
    expect({ created, others: unknown + notSent }).toEqual({ created: 10, others: 90 })
    expect(unknown > 0).toBe(behaviour === 'hang')
    // These are the plants that came first, whichever they were.
    const createdIds = outcomes.flatMap(({ type }, id) => (type === 'created' ? [`${id}`] : []))
    expect([...service.createdIds].toSorted()).toEqual(createdIds.toSorted())
  },
)

test('each plant is created once when the service closes and listens again', async () => {
  const service = await startPlantService({
    behave: async ({ index }) => {
      if (index !== 50) return undefined
      await service.close()
      return 'hang'
    },
  })
  await expectComplete(service, { access: { notify: () => service.listenAgain() } })
})

test('a write opens as many connections as the limit', async () => {
  const full = createGate()
  const service = await startPlantService({
    behave: async ({ index }) => {
      if (index === 2) full.open()
      await (index < 3 ? full.wait() : new Promise(setImmediate))
      return undefined
    },
  })
  await expectComplete(service, { httpOptions: { concurrency: 3 } })
  expect(service.connections).toBe(3)
})

const conflict = buildJsonResponse(400, { error: 409, message: 'Had that' })
const notFound = buildJsonResponse(404, { error: 404, message: 'No plant has id 1' })
const changed = buildJsonResponse(200, { id: 1, name: 'Bracken', tag: 'theirs' })
const bracken = { id: 1n, name: 'Bracken' }
const untagged = { id: 1n, tag: null }
const postBracken = 'POST /plants {"id":1,"name":"Bracken"}'
const patchBracken = 'PATCH /plants/1 {"name":"Bracken"}'
const patchTag = 'PATCH /plants/1 {"tag":null}'
const updated = { counts: { updated: 1 }, failures: [] }

function buildRejected(error: number) {
  return { counts: { rejected: 1 }, failures: [{ index: 0, error }] }
}

interface UpdateCase {
  title: string
  patch: PlantPatch
  posts: Buffer[]
  patches: Buffer[]
  requests: string[]
  expected: object
}

test.each<UpdateCase>([
  {
    title: 'is a PATCH after a POST that is a conflict',
    patch: bracken,
    posts: [conflict],
    patches: [changed],
    requests: [postBracken, patchBracken],
    expected: updated,
  },
  {
    title: 'is rejected if the plant is deleted between',
    patch: bracken,
    posts: [conflict],
    patches: [notFound],
    requests: [postBracken, patchBracken],
    expected: buildRejected(404),
  },
  {
    title: 'without a name is only a PATCH',
    patch: untagged,
    posts: [],
    patches: [changed],
    requests: [patchTag],
    expected: updated,
  },
  {
    title: 'without a name cannot create a plant',
    patch: untagged,
    posts: [],
    patches: [notFound],
    requests: [patchTag],
    expected: buildRejected(422),
  },
])('an update that may create $title', async ({ patch, posts, patches, requests, expected }) => {
  const service = await ScriptedServer.listen({ posts, others: { 'PATCH /plants/1': patches } })
  const change: Change = { type: 'update', patch, ifMissing: 'create' }
  const store = await openHttp(service.url)
  expect(await writeAndCount(store, [change])).toMatchObject(expected)
  expect(service.requests.map(({ line, body }) => `${line} ${body}`)).toEqual(requests)
})

test.each<{ answer: string; response: Buffer; error: number }>([
  {
    answer: '400',
    response: buildJsonResponse(400, { error: 17, message: 'No ferns' }),
    error: 17,
  },
  { answer: '422 without an Error', response: buildJsonResponse(422, {}), error: 422 },
])(
  'the other plants are created if the answer for one plant is $answer',
  async ({ response, error }) => {
    const service = await startPlantService({
      behave: ({ id }) => (id === '5' ? response : undefined),
    })
    expect(await importPlants(service)).toMatchObject({
      counts: { created: 99, rejected: 1 },
      failures: [{ index: 5, error }],
    })
  },
)

test.each([404, 409])('a write stops after a status %i without an Error', async (status) => {
  const response = buildJsonResponse(status, {})
  const service = await startPlantService({
    behave: ({ index }) => (index < 3 ? undefined : response),
  })
  const options = { count: 10, httpOptions: { concurrency: 1 } }
  const { counts, stopReason } = await importPlants(service, options)
  expect(counts).toEqual({ created: 3, notSent: 7 })
  expect(stopReason).toMatchObject({ kind: 'rejected', status })
})

test('a write asks once whether a service has idempotency keys, and stops after an unknown outcome', async () => {
  const service = await ScriptedServer.listen({
    posts: [(socket) => void socket.resetAndDestroy()],
    openapi: buildResponse(404),
  })
  const store = await openHttp(service.url, { concurrency: 1 })
  const { counts, stopReason } = await writeAndCount(store, buildCreates(10))
  expect(counts).toEqual({ unknown: 1, notSent: 9 })
  expect(stopReason).toMatchObject({ kind: 'noResponse' })
  expect(service.lines).toEqual(['POST /plants', 'GET /openapi.json'])
})
