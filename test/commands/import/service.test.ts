import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { PlantsError } from '../../../src/errors.js'
import {
  buildPlantLines,
  fillChunk,
  ImportSandbox,
  writeLines,
} from '../../helpers/sandbox/import-sandbox.js'
import {
  type Behaviour,
  type Post,
  startPlantService,
} from '../../helpers/scripted-server/plant-service.js'
import { buildJsonResponse } from '../../helpers/scripted-server/scripted-server.js'
import { createGate, serveFile, token } from '../../helpers/scripted-server/service.js'

const lines = buildPlantLines(160)
const half = 40
const once = new Set(lines.map((line) => /-?\d+/.exec(line)?.[0]))
const [firstId] = once
const all = 'plants.ndjson'
const complete = { code: 0, created: lines.length }
const repeatHint = 'To continue, run the same command again\n'

/** A user of a service who has a file plants.ndjson, with an empty line in it. */
function importerAt(store: string, input = lines): ImportSandbox {
  const user = new ImportSandbox()
  Object.assign(user.env, { PLANTS_STORE: store, PLANTS_TOKEN: 's3cret-of-this-test' })
  writeLines(user.home, [...input.slice(0, half), '', ...input.slice(half)])
  return user
}

/** A service that does something else with the creates from a start on, until it is mended. */
async function illService(
  deed: (post: Post) => Behaviour | Promise<Behaviour>,
  { start = half, isKeyed = true, others = {} } = {},
) {
  let isIll = true
  const service = await startPlantService({
    isKeyed,
    others,
    behave: (post) => (isIll && post.index >= start ? deed(post) : undefined),
  })
  const user = importerAt(service.address)
  const mend = () => {
    isIll = false
  }
  return { service, user, mend }
}

describe('an import into a service', () => {
  test('creates nothing with --dry-run', async () => {
    const service = await startPlantService()
    const user = importerAt(service.address, [...lines, lines.at(-1) ?? '', 'bad'])
    const counts = { code: 6, dryRun: true, created: lines.length, rejected: { 400: 1 } }
    expect(await user.import(`${all} --dry-run`)).toMatchObject(counts)
    expect(service.receivedCreates).toEqual([])
  })

  test('needs the right to read only for --by-name, and for an id that a different plant has', async () => {
    const service = await startPlantService()
    const user = importerAt(service.address)
    expect(await user.import(`${all} --by-name`)).toMatchObject({ code: 1 })
    expect(service.receivedCreates).toEqual([])
    expect(await user.import(all)).toMatchObject(complete)
    // This service does not say that it has created the plants before.
    expect(await user.import(all)).toMatchObject(complete)
    service.changeAll()
    expect(await user.import(all)).toMatchObject({ code: 6, rejected: { 409: lines.length } })
  })

  test('sends a key that is made of the plant', async () => {
    const service = await startPlantService()
    const user = importerAt(service.address)
    user.write('list.csv', 'id,name,tag\n7,Fern,wet\n')
    await user.import('list.csv')
    const plant = '{"id":7,"name":"Fern","tag":"wet"}'
    const key = createHash('sha256').update(plant).digest('base64url')
    expect(service.receivedCreates.map((post) => post.key)).toEqual([key])
  })
})

describe('an import that ends at a service is continued by the same command, if', () => {
  test.each<[number, string, Behaviour]>([
    [1, 'answered 404', buildJsonResponse(404, {})],
    [3, 'Who?', buildJsonResponse(401, { error: 401, message: 'Who?' })],
    [5, '{"ok":true}', buildJsonResponse(200, { ok: true })],
    [5, 'answered 500: Oh', buildJsonResponse(500, { error: 500, message: 'Oh' })],
  ])('its first error has exit code %i and says: %s', async (code, words, deed) => {
    for (const start of [0, half]) {
      // With keys, what has got a 500 would be sent again until the timeout is over.
      const isKeyed = code === 3
      const { service, user, mend } = await illService(() => deed, { start, isKeyed })
      const { err, ...result } = await user.import(all)
      const unknown = code === 5 ? { unknown: expect.any(Number) } : {}
      const counts = { ...(start > 0 && { created: start }), ...unknown }
      expect(result).toEqual({ code, ...counts })
      expect(err).toContain(words)
      expect(err.includes(repeatHint)).toBe(Object.keys(counts).length > 0)
      mend()
      // Without keys, what was stored is rejected.
      const end = isKeyed ? complete : { code: expect.toBeOneOf([0, 6]) }
      expect(await user.import(all)).toMatchObject(end)
      expect(service.createdIds).toEqual(once)
    }
  })

  test('the service is unreachable', async () => {
    const service = await startPlantService()
    await service.close()
    const user = importerAt(service.address)
    expect(await user.import(`${all} --retry 0s`)).toMatchObject({ code: 4 })
    await service.listenAgain()
    expect(await user.import(all)).toMatchObject(complete)
  })

  test('the responses to the last creates of a chunk are lost', async () => {
    const { service, user, mend } = await illService(() => 'lose', { start: lines.length - 4 })
    const first = await user.import(`${all} --timeout 4s`)
    expect(first).toMatchObject({ code: 5, created: lines.length - 4, unknown: 4 })
    mend()
    expect(await user.import(all)).toMatchObject(complete)
    expect(service.createdIds).toEqual(once)
  })
})

test('at a service without keys and without reading, the rest is imported from the line that the error names', async () => {
  const stored = createGate()
  const behave = async ({ id }: Post) => {
    if (id === '9') stored.open()
    if (Number(id) < 10) return undefined
    await stored.wait()
    return buildJsonResponse(500, { error: 500, message: 'Oh' })
  }
  const { service, user, mend } = await illService(behave, { start: 0, isKeyed: false })
  // Of a plant that exists, the import learns that this service does not let it read.
  service.createdIds.add('7')
  user.write('list.csv', 'id,name\n\n7,Aloe\n8,Fern\n9,Moss\n10,Fern\n11,Fern\n')
  const command = 'list.csv'
  const first = await user.import(`${command} --rejects bad`)
  expect(first).toMatchObject({ code: 5, created: 2, rejected: { 409: 1 } })
  expect(first.err).toContain('The import ended at list.csv:6: import the rest from there\n')
  expect(user.read('bad')).toMatch(/\n3,.*,7,Aloe\n$/)
  mend()
  user.write('rest.csv', 'id,name\n10,Fern\n11,Fern\n')
  expect(await user.import('rest.csv')).toMatchObject({ code: 0, created: 2 })
  expect(service.createdIds).toEqual(new Set(['7', '8', '9', '10', '11']))
  // The same command cannot ask what is stored.
  expect(await user.import(command)).toMatchObject({ code: 6, rejected: { 409: 5 } })
})

test('behind a record without an answer, a service has stored at most 63 records', async () => {
  const others = createGate()
  const denied = buildJsonResponse(401, { error: 401, message: 'Who?' })
  const { service, user } = await illService(
    async ({ index }) => {
      // By then, the service has received all that the import sends at once.
      if (index === 63) others.open()
      if (index > 0) return undefined
      await others.wait()
      return denied
    },
    { start: 0 },
  )
  expect(await user.import(all)).toMatchObject({ code: 3, created: 63 })
  expect(service.createdIds.size).toBe(63)
})

test('a record that may be stored decides the exit code, also behind one that was rejected', async () => {
  const denied = buildJsonResponse(401, { error: 401, message: 'Who?' })
  const broken = buildJsonResponse(500, { error: 500, message: 'Oh' })
  const secondReceived = createGate()
  const behave = async ({ id }: Post) => {
    if (id === '2') secondReceived.open()
    else await secondReceived.wait()
    return id === '2' ? broken : denied
  }
  const { user } = await illService(behave, { start: 0, isKeyed: false })
  user.write('list.csv', 'id,name\n1,Fern\n2,Moss\n')
  const { err, ...result } = await user.import('list.csv')
  expect(result).toEqual({ code: 5, unknown: 1 })
  expect(err).toContain('answered 500: Oh')
})

test.each([
  ['with keys', 503, true, { created: 2 }],
  ['that can be read', 500, false, { created: 1, skipped: 1 }],
])(
  'an import that ended at a service %s leaves no rejects file, and the same command ends well',
  async (_, status, isKeyed, counts) => {
    const [stored = '', next = ''] = lines
    const others = isKeyed ? {} : { [`GET /plants/${firstId}`]: [buildJsonResponse(200, stored)] }
    const failure = buildJsonResponse(status, { error: status, message: 'Oh' })
    const { user, mend } = await illService(() => failure, { start: 1, isKeyed, others })
    user.write('list', `{"id":1,"name":1}\n${fillChunk(stored)}${next}\n`)
    const command = 'list --retry 0s --rejects bad'
    const first = await user.import(command)
    expect(first).toMatchObject({ created: 1, rejected: { 422: 1 } })
    expect(first.err).toContain(repeatHint)
    expect(user.has('bad')).toBe(false)
    mend()
    expect(await user.import(command)).toMatchObject({ code: 6, ...counts, rejected: { 422: 1 } })
    expect(user.readRejected('bad')).toHaveLength(1)
  },
)

test('an import rejects a record if somebody changed its plant before the response arrived', async () => {
  const service = await startPlantService({
    behave: ({ index }) => {
      if (index === 5) service.changeAll()
      return index === 4 ? 'lose' : undefined
    },
  })
  const user = importerAt(service.address)
  const { code, rejected, err } = await user.import(all)
  expect([code, rejected]).toEqual([6, { 409: 1 }])
  expect(err).toContain(' exists. It may be the plant of this record, changed since it was stored')
})

describe('an import into a service that is interrupted', () => {
  async function interrupt(
    deed: () => Behaviour | Promise<Behaviour>,
    isKeyed: boolean,
    flags = '',
  ) {
    const stop = new AbortController()
    const ill = await illService(deed, { isKeyed })
    const result = ill.user.import(`${all} ${flags}`, undefined, { signal: stop.signal })
    await expect
      .poll(() => ill.service.receivedCreates.length, { interval: 5 })
      .toBeGreaterThan(half)
    stop.abort(new PlantsError('interrupted', 'Interrupted'))
    return { ...ill, result }
  }

  test.each([true, false])(
    'finishes and counts the requests that it has sent (with keys: %s)',
    async (isKeyed) => {
      const answers = createGate()
      const { service, user, result } = await interrupt(() => answers.wait(), isKeyed)
      answers.open()
      const { code, created = 0, err } = await result
      expect([code, err]).toEqual([
        130,
        expect.stringContaining(`Interrupted after ${created} plants\n`),
      ])
      expect(created).toBe(service.receivedCreates.length)
      expect(service.createdIds.size).toBe(created)
      expect(created).toBeLessThan(lines.length)
      const rejected = { created: lines.length - created, rejected: { 409: created } }
      expect(await user.import(all)).toMatchObject(isKeyed ? complete : rejected)
      expect(service.createdIds).toEqual(once)
    },
  )

  test('ends at once while it waits for Retry-After', async () => {
    const busy = buildJsonResponse(503, {}, { 'Retry-After': '3600' })
    const flags = '--timeout 2h'
    const { user, mend, result } = await interrupt(() => busy, true, flags)
    expect(await result).toMatchObject({
      code: 130,
      created: half,
      err: expect.stringContaining(`Interrupted after ${half} plants\n`),
    })
    mend()
    expect(await user.import(all)).toMatchObject(complete)
  })
})

test('an import of two files that have the same plant creates it once, and skips it once', async () => {
  const user = new ImportSandbox()
  const store = await serveFile(join(user.home, 'service.db'))
  Object.assign(user.env, { PLANTS_STORE: store, PLANTS_TOKEN: token })
  for (const file of ['one', 'two']) user.write(file, '{"id":1,"name":"Fern"}\n')
  expect(await user.import('one two')).toMatchObject({ code: 0, created: 1, skipped: 1 })
})

test('an import names the record that created a plant, and not an equal one behind it', async () => {
  const user = new ImportSandbox()
  const store = await serveFile(join(user.home, 'service.db'))
  Object.assign(user.env, { PLANTS_STORE: store, PLANTS_TOKEN: token })
  const result = await user.import('', 'id,name\n1,Fern\n1,Fern\n1,Moss\n')
  expect(result).toMatchObject({ created: 1, skipped: 1, rejected: { 409: 1 } })
  expect(result.err).toContain('stdin:4: The id 1 also occurs in line 2, with a different plant')
})

test('an import of one record whose outcome is unknown proposes no option of create', async () => {
  const service = await startPlantService({ behave: () => buildJsonResponse(501, {}) })
  const user = importerAt(service.address)
  user.write('one', '{"id":1,"name":"Fern"}\n')
  const { code, err } = await user.run('import one --timeout 1s')
  expect(code).toBe(5)
  expect(err).toContain(repeatHint)
  expect(err).not.toContain('--idempotency-key')
})

test.each([
  ['a redirect', 301, { location: 'https://other.example/plants' }],
  ['405', 405, {}],
])(
  'an import whose first answer is %s proposes to change the address, and not the same command',
  async (_, status, headers) => {
    const service = await startPlantService({
      behave: () => buildJsonResponse(status, {}, headers),
    })
    const { code, err } = await importerAt(service.address).run(`import ${all}`)
    expect(code).not.toBe(0)
    expect(err).toContain('address')
    expect(err).not.toContain('run the same command again')
  },
)
