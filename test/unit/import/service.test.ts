import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { PlantsError } from '../../../src/errors.js'
import {
  buildPlantLines,
  ImportSandbox,
  nextChunk,
  writeLines,
} from '../../helpers/sandbox/import-sandbox.js'
import {
  type Behaviour,
  type Post,
  startPlantService,
} from '../../helpers/scripted-server/plant-service.js'
import { buildJsonResponse } from '../../helpers/scripted-server/scripted-server.js'
import { createGate, serveFile, token } from '../../helpers/scripted-server/service.js'

const lines = buildPlantLines(80)
const half = 40
const once = new Set(lines.map((line) => /-?\d+/.exec(line)?.[0]))
const all = 'plants.ndjson'
const complete = { code: 0, created: lines.length }
const resumeHint = /To resume, run the same command again\n$/

/** A user of a service who has a file plants.ndjson, of two chunks. */
function importerAt(store: string, input = lines): ImportSandbox {
  const user = new ImportSandbox()
  Object.assign(user.env, { PLANTS_STORE: store, PLANTS_TOKEN: 's3cret-of-this-test' })
  writeLines(user.home, [...input.slice(0, half), nextChunk, ...input.slice(half)])
  return user
}

/** A service that does something else with the creates of the second chunk, until it is mended. */
async function illService(
  deed: (post: Post) => Behaviour | Promise<Behaviour>,
  { start = half, isKeyed = true } = {},
) {
  let isIll = true
  const service = await startPlantService({
    isKeyed,
    behave: (post) => (isIll && post.index >= start ? deed(post) : undefined),
  })
  const user = importerAt(service.address)
  const mended = async () => {
    expect(user.journals).toHaveLength(1)
    isIll = false
    const result = await user.import(all)
    expect([service.createdIds, user.journals]).toEqual([once, []])
    return result
  }
  return { service, user, mended }
}

describe('an import into a service', () => {
  test('sends nothing with --dry-run', async () => {
    const service = await startPlantService()
    const user = importerAt(service.address, [...lines, lines.at(-1) ?? '', 'bad'])
    const counts = { code: 6, dryRun: true, created: lines.length, rejected: { 400: 1 } }
    expect(await user.import(`${all} --dry-run`)).toMatchObject(counts)
    expect([service.receivedCreates, user.journals]).toEqual([[], []])
  })

  test('needs the right to read only for an existing id, or for --id-from next', async () => {
    const service = await startPlantService()
    const user = importerAt(service.address)
    expect(await user.import(`${all} --id-from next`)).toMatchObject({ code: 1 })
    expect(service.receivedCreates).toEqual([])
    expect(await user.import(all)).toMatchObject(complete)
    expect(await user.import(all)).toMatchObject({ code: 6, rejected: { 409: lines.length } })
    expect(user.journals).toEqual([])
  })
})

describe('an import into a failing service ends, and is resumed once the service works, if', () => {
  test.each<[number, string, Behaviour]>([
    [1, 'answered 404', buildJsonResponse(404, {})],
    [3, 'Who?', buildJsonResponse(401, { error: 401, message: 'Who?' })],
    [5, '{"ok":true}', buildJsonResponse(200, { ok: true })],
    [5, 'answered 500: Oh', buildJsonResponse(500, { error: 500, message: 'Oh' })],
  ])('its first error has exit code %i and says: %s', async (code, words, deed) => {
    for (const start of [0, 60]) {
      // With keys, what has got a 500 would be sent again until the timeout is over.
      const isKeyed = code === 3
      const { user, mended } = await illService(() => deed, { start, isKeyed })
      expect(await user.import(all)).toEqual({ code, err: expect.stringContaining(words) })
      // Without keys, what was stored of a chunk that was not finished is rejected.
      const end = isKeyed ? complete : { code: expect.toBeOneOf([0, 6]) }
      expect(await mended()).toMatchObject(end)
    }
  })

  test('somebody changed the plants of its unfinished chunk, which are rejected', async () => {
    const unauthorized = buildJsonResponse(401, { error: 401, message: 'Who?' })
    const { service, user, mended } = await illService(() => unauthorized, { start: 60 })
    expect(await user.import(`${all} --concurrency 1`)).toMatchObject({ code: 3 })
    service.changeAll()
    const { code, rejected, err } = await mended()
    expect([code, rejected]).toEqual([6, { 409: 20 }])
    expect(err).toContain(
      ' exists. It may be the plant of this record, changed since it was stored',
    )
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
    const { user, mended } = await illService(() => 'lose', { start: lines.length - 4 })
    const interrupted = await user.import(`${all} --concurrency 4 --timeout 1s`)
    expect(interrupted).toEqual({ code: 5, err: expect.stringMatching(resumeHint) })
    expect(await mended()).toEqual({ ...complete, err: expect.any(String) })
  })

  test('the responses to creates with generated ids are lost', async () => {
    let isIll = true
    const service = await startPlantService({ behave: () => (isIll ? 'lose' : undefined) })
    const user = importerAt(service.address)
    writeLines(user.home, ['{"name":"Fern"}', '{"name":"Fern"}'], 'names.ndjson')
    const command = 'names.ndjson --id-from 1 --timeout 1s'
    expect(await user.import(command)).toEqual({ code: 5, err: expect.stringMatching(resumeHint) })
    isIll = false
    expect(await user.import(command)).toMatchObject({ code: 0, created: 2 })
    expect([service.createdIds, user.journals]).toEqual([new Set(['1', '2']), []])
  })

  test.each([9, 79])('the response to create %i is lost, without a key', async (lost) => {
    const deed = ({ index }: Post) => (index === lost ? 'lose' : undefined)
    const { user, mended } = await illService(deed, { start: 0, isKeyed: false })
    expect(await user.import(`${all} --concurrency 1`)).toMatchObject({ code: 5 })
    expect(await mended()).toMatchObject({ code: 6 })
  })
})

test('an import that lost a response stores the rest, also if plants cannot be read', async () => {
  const ids = lines.slice(0, 3)
  const service = await startPlantService({
    isKeyed: false,
    behave: ({ index }) => (index === 2 ? 'lose' : undefined),
  })
  const user = importerAt(service.address)
  writeLines(user.home, ids, 'list.ndjson')
  const command = 'list.ndjson --concurrency 1'
  expect(await user.import(command)).toEqual({ code: 5, err: expect.stringMatching(resumeHint) })
  // This service lets nobody read, so its plants cannot be compared with the records.
  const { code, err } = await user.import(command)
  expect([code, err]).toEqual([6, expect.stringContaining('add --if-exists skip')])
  expect(await user.import(`${command} --if-exists skip`)).toEqual({ code: 0, skipped: 3, err: '' })
  expect(service.createdIds.size).toBe(ids.length)
})

test('an import rejects a record if somebody changed its plant before the response arrived', async () => {
  const service = await startPlantService({
    behave: ({ index }) => {
      if (index === 5) service.changeAll()
      return index === 4 ? 'lose' : undefined
    },
  })
  const user = importerAt(service.address)
  const { code, rejected, err } = await user.import(`${all} --concurrency 1`)
  expect([code, rejected]).toEqual([6, { 409: 1 }])
  expect(err).toContain(' exists. It may be the plant of this record, changed since it was stored')
})

describe('an import that is interrupted', () => {
  const interrupted = {
    code: 130,
    err: expect.stringContaining(`Interrupted after ${half} plants\n`),
  }

  async function interrupt(
    deed: () => Behaviour | Promise<Behaviour>,
    isKeyed: boolean,
    flags: string,
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
    'finishes the requests that it has sent (with keys: %s)',
    async (isKeyed) => {
      const answers = createGate()
      const { service, result, mended } = await interrupt(
        () => answers.wait(),
        isKeyed,
        '--concurrency 8',
      )
      answers.open()
      expect(await result).toEqual(interrupted)
      const unfinished = service.receivedCreates.length - half
      expect(service.createdIds.size).toBe(service.receivedCreates.length)
      expect(service.createdIds.size).toBeLessThan(lines.length)
      // They come again, with their keys if there are any.
      const rejected = { created: lines.length - unfinished, rejected: { 409: unfinished } }
      expect(await mended()).toMatchObject(isKeyed ? complete : rejected)
      expect(service.receivedCreates).toHaveLength(lines.length + unfinished)
    },
  )

  test('ends at once while it waits for Retry-After', async () => {
    const busy = buildJsonResponse(503, {}, { 'Retry-After': '3600' })
    const flags = '--timeout 2h --concurrency 1'
    const { result, mended } = await interrupt(() => busy, true, flags)
    expect(await result).toEqual(interrupted)
    expect(await mended()).toMatchObject(complete)
  })
})

test('the error about an unusable journal names its path', async () => {
  const service = await startPlantService()
  const user = importerAt(service.address)
  const path = join(user.state, 'imports.db')
  mkdirSync(path, { recursive: true })
  const err = expect.stringMatching(`plants: ${path} is a directory\n`)
  expect(await user.import(all)).toEqual({ code: 74, err })
  rmSync(path, { recursive: true })
  expect(await user.import(all)).toMatchObject(complete)
})

test('an import that generated ids in a service is recorded on this machine', async () => {
  const user = new ImportSandbox()
  const store = await serveFile(join(user.home, 'service.db'))
  Object.assign(user.env, { PLANTS_STORE: store, PLANTS_TOKEN: token })
  const command = `${user.write('list.csv', 'name\nFern\n')} --id-from next`
  expect(await user.import(command)).toMatchObject({ code: 0, created: 1 })
  expect(await user.import(`${command} --if-exists skip`)).toMatchObject({ code: 2 })
  expect(await user.import(`${command} --restart`)).toMatchObject({ code: 0, created: 1 })
})

test('an import one of whose first creates was denied is not resumed after its file changed', async () => {
  const denied = buildJsonResponse(401, { error: 401, message: 'Who?' })
  const { user } = await illService(() => denied, { start: 1 })
  expect(await user.import(all)).toMatchObject({ code: 3 })
  user.write(all, '{"id":900,"name":"Yew"}\n')
  // A create of a chunk without a result is stored, although none counts.
  const err = expect.stringContaining(`This import was interrupted, and ${all} has changed since`)
  expect(await user.import(all)).toEqual({ code: 2, err })
})

describe('an import of which a service has stored nothing', () => {
  const denied = buildJsonResponse(403, { error: 403, message: 'No' })
  const command = 'list.csv --id-from 100 --rejects bad.csv'

  test.each([
    'list.csv --id-from 500',
    'list.csv --id-from 500 --rejects other.csv',
    'list.csv --map id= --id-from 500',
  ])('is not in the way of the import: %s', async (otherCommand) => {
    let isDenied = true
    const service = await startPlantService({ behave: () => (isDenied ? denied : undefined) })
    const user = importerAt(service.address)
    user.write('list.csv', 'id,name\nx,Bad\n,Fern\n,Ash\n')
    expect(await user.import(command)).toMatchObject({ code: 3 })
    isDenied = false
    expect(await user.import(otherCommand)).toMatchObject({
      created: otherCommand.includes('=') ? 3 : 2,
    })
    expect(user.journals).toEqual([])
  })

  test('is resumed by the same command, with its rejects file', async () => {
    let isDenied = true
    const service = await startPlantService({ behave: () => (isDenied ? denied : undefined) })
    const user = importerAt(service.address)
    user.write('list.csv', `id,name\nx,${'B'.repeat(300_000)}\n,Fern\n,Ash\n`)
    expect(await user.import(command)).toMatchObject({ code: 3 })
    isDenied = false
    expect(await user.import(command)).toMatchObject({ code: 6, created: 2 })
    expect(user.read('bad.csv').split('\n')).toHaveLength(3)
    expect(await user.import('list.csv --id-from 500')).toMatchObject({ code: 2 })
  })

  test('is not remembered if its ids exist', async () => {
    const service = await startPlantService()
    const user = importerAt(service.address)
    user.write('list.csv', 'name\nFern\n')
    service.createdIds.add('5')
    expect(await user.import('list.csv --id-from 5')).toMatchObject({ code: 6 })
    expect(await user.import('list.csv --id-from 6')).toMatchObject({ code: 0, created: 1 })
  })
})

test('an import of two files that have the same plant creates it once, and skips it once', async () => {
  const user = new ImportSandbox()
  const store = await serveFile(join(user.home, 'service.db'))
  Object.assign(user.env, { PLANTS_STORE: store, PLANTS_TOKEN: token })
  for (const file of ['one', 'two']) user.write(file, '{"id":1,"name":"Fern"}\n')
  expect(await user.import('one two')).toMatchObject({ code: 0, created: 1, skipped: 1 })
})

test('an import of one record whose outcome is unknown proposes no option of create', async () => {
  const service = await startPlantService({ behave: () => buildJsonResponse(501, {}) })
  const user = importerAt(service.address)
  user.write('one', '{"id":1,"name":"Fern"}\n')
  const { code, err } = await user.run('import one --timeout 1s')
  expect(code).toBe(5)
  expect(err).toContain('To resume, run the same command again')
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

describe('an import is not begun with other options', () => {
  const denied = buildJsonResponse(403, { error: 403, message: 'No' })

  test.each([
    ['equal', buildJsonResponse(200, { id: 100, name: 'Fern' })],
    ['not readable', buildJsonResponse(401, { error: 401, message: 'Who?' })],
  ])('if a create got no response, and then its plant is %s', async (_, response) => {
    const service = await startPlantService({
      behave: ({ index }) => {
        // The service forgets the key before the create is repeated.
        if (index === 1) service.changeAll()
        if (index === 0) return 'lose'
        return index > 1 ? denied : undefined
      },
      others: { 'GET /plants/100': [response] },
    })
    const user = importerAt(service.address)
    user.write('list.csv', 'name\nFern\nAsh\n')
    expect(await user.import('list.csv --id-from 100 --concurrency 1')).toMatchObject({ code: 3 })
    expect(await user.import('list.csv --id-from 500')).toMatchObject({ code: 2 })
    expect(service.createdIds).toEqual(new Set(['100']))
  })

  test('if another process has resumed it while its create was denied', async () => {
    const [denial, creation] = [createGate(), createGate()]
    const service = await startPlantService({
      behave: async ({ index }) => {
        if (index === 0) await denial.wait()
        if (index === 1) await creation.wait()
        return index === 0 ? denied : undefined
      },
    })
    const user = importerAt(service.address)
    user.write('list.csv', 'name\nFern\n')
    const firstRun = user.import('list.csv --id-from 100')
    await expect.poll(() => denial.waiting, { interval: 5 }).toBe(1)
    const secondRun = user.import('list.csv --id-from 100')
    await expect.poll(() => creation.waiting, { interval: 5 }).toBe(1)
    denial.open()
    expect(await firstRun).toMatchObject({ code: 3 })
    creation.open()
    expect(await secondRun).toMatchObject({ code: 0, created: 1 })
    expect(await user.import('list.csv --id-from 500')).toMatchObject({ code: 2 })
    expect(service.createdIds).toEqual(new Set(['100']))
  })
})
