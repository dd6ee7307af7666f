import { existsSync, mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { PlantsError } from '../../../../src/platform/errors.js'
import { ownService, token } from '../../../helpers/http-store.js'
import { allCreated, grouped, journalsOf, plantLines, rejectedIn } from '../../../helpers/import.js'
import { type Deed, PlantService, type Post } from '../../../helpers/plant-service.js'
import { gate } from '../../../helpers/service.js'
import { eachOnce, idOf, ServiceImport } from '../../../helpers/service-import.js'
import { query } from '../../../helpers/sqlite-file.js'
import { World } from '../../../helpers/world.js'

const lines = plantLines(1000)
const once = eachOnce(lines)
const complete = { code: 0, counts: allCreated(lines.length), journals: 0 }
const resuming = expect.stringMatching(
  /^plants: Resuming an interrupted import: [\d,]+ plants are done\n$/,
)
const goOn = 'To resume, run the same command again'

/** A service that does something else with the creates behind the first, until it is mended. */
async function illService(
  deed: (post: Post) => Deed | Promise<Deed>,
  { start = 500, isKeyed = true } = {},
) {
  let isIll = true
  const service = await PlantService.listen({
    isKeyed,
    deed: (post) => (isIll && post.index >= start ? deed(post) : undefined),
  })
  const mend = () => {
    isIll = false
  }
  const mended = async (run: ServiceImport) => {
    mend()
    expect(await run.import()).toMatchObject(complete)
    expect(service.made).toEqual(once)
  }
  return { service, mend, mended }
}

describe('an import into a service', () => {
  test('sends nothing with --dry-run', async () => {
    const service = await PlantService.listen()
    const run = new ServiceImport([...lines, lines[0] ?? '', 'bad'], service.url, '--dry-run')
    expect(await run.import()).toEqual({
      ...{ code: 6, journals: 0 },
      counts: { ...allCreated(lines.length), rejected: 2, reasons: { 400: 1, 409: 1 } },
      err: expect.stringContaining(
        `plants: Only the input is checked, not which ids exist at ${service.url}\n`,
      ),
    })
    expect(service.posts).toEqual([])
  })

  test('needs to read only where an id exists, or for --id-from next', async () => {
    const service = await PlantService.listen()
    const rejected = (operation: string) => ({
      code: 2,
      err: expect.stringContaining(
        `This service does not offer this: its openapi.json lists no ${operation}\n`,
      ),
    })
    const next = await new ServiceImport(lines, service.url, '--id-from next').import()
    expect([next, service.posts]).toMatchObject([{ ...rejected('GET /plants'), journals: 0 }, []])
    expect(await new ServiceImport(lines, service.url, '--if-exists same').import()).toMatchObject(
      complete,
    )
    const again = await new ServiceImport(lines, service.url, '--if-exists same').import()
    expect(again).toMatchObject(rejected('GET /plants/{id}'))
  })

  test('stops exactly at the first rejected record with --max-errors 1, and keeps that', async () => {
    const service = await PlantService.listen()
    await new ServiceImport([lines[300] ?? ''], service.url).import()
    const run = new ServiceImport(lines, service.url, '--rejects bad')
    expect(await run.import('--max-errors 1')).toMatchObject({ code: 6, journals: 1 })
    expect(service.made).toEqual(eachOnce(lines.slice(0, 301)))
    const counts = { ...allCreated(999), rejected: 1, reasons: { 409: 1 } }
    expect(await run.import()).toMatchObject({ code: 6, counts, journals: 0 })
    expect(rejectedIn(run, 'bad')).toMatchObject([
      { line: 301, record: JSON.parse(lines[300] ?? '') },
    ])
    expect(service.made).toEqual(once)
  })
})

describe('an import into an ill service ends, and is resumed when that is mended:', () => {
  const end = (code: number, err: RegExp) => ({
    code,
    counts: undefined,
    err: expect.stringMatching(err),
    journals: 1,
  })

  test.each<[number, RegExp, Deed]>([
    [1, /answered 404: /, { status: 404 }],
    [
      3,
      /Who\?.*\n {2}The token is from PLANTS_TOKEN/,
      { status: 401, body: { error: 401, message: 'Who?' } },
    ],
    [5, /answered 200 with no Plant: \{"ok":true\}/, { status: 200, body: { ok: true } }],
    [5, /answered 500: Oh/, { status: 500, body: { error: 500, message: 'Oh' } }],
  ])('exit code %i, %s', async (code, words, deed) => {
    for (const start of [0, 700]) {
      // With keys, what has got a 500 would be sent again until the timeout is over.
      const { service, mended } = await illService(() => deed, { start, isKeyed: code === 3 })
      const run = new ServiceImport(lines, service.url)
      const journals = code !== 5 && start === 0 ? 0 : 1 // nothing is stored
      expect(await run.import()).toEqual({ ...end(code, words), journals })
      await mended(run)
    }
  })

  test('it is not reached', async () => {
    const service = await PlantService.listen()
    await service.close()
    const run = new ServiceImport(lines, service.url, '--retry 0s')
    const refused = end(4, /Could not reach .*the connection was refused/)
    expect(await run.import()).toEqual({ ...refused, journals: 0 })
    await service.comeBack()
    expect(await run.import()).toMatchObject(complete)
  })
})

describe('an import that is interrupted', () => {
  const interrupt = () => {
    const stop = new AbortController()
    return {
      signal: stop.signal,
      abort: () => stop.abort(new PlantsError('interrupted', 'Interrupted')),
    }
  }

  test.each([true, false])('finishes what is under way; with keys: %s', async (isKeyed) => {
    const answers = gate()
    const { signal, abort } = interrupt()
    const { service } = await illService(() => answers.wait(), { isKeyed })
    const run = new ServiceImport(lines, service.url)
    const result = run.import('', { signal })
    await expect.poll(() => service.posts.length, { interval: 5 }).toBeGreaterThan(500)
    abort()
    answers.open()
    const err = () => `plants: Interrupted after ${grouped(service.made.size)} plants\n  ${goOn}\n`
    expect({ ...(await result), posts: service.posts.length }).toEqual({
      ...{ code: 130, counts: undefined, journals: 1 },
      ...{ err: err(), posts: service.made.size },
    })
    expect(service.made.size).toBeLessThan(lines.length)
    expect(await run.import()).toEqual({ ...complete, err: resuming })
    expect({ made: service.made, posts: service.posts.length }).toEqual({
      made: once,
      posts: lines.length,
    })
  })

  test('from stdin is continued by hand', async () => {
    const { service } = await illService(() => ({ status: 404 }))
    const options = { stdin: lines.join('\n'), env: { PLANTS_TOKEN: 's3cret' } }
    const { err } = await new World().run(`import --store ${service.url}`, options)
    expect(err).toContain(
      'The plants created so far are kept. To continue, run it again with --if-exists skip\n',
    )
  })

  test('ends at once while its service wants to be left alone', async () => {
    const { signal, abort } = interrupt()
    const { service, mended } = await illService(() => ({
      status: 503,
      headers: { 'Retry-After': '3600' },
    }))
    const run = new ServiceImport(lines, service.url, '--timeout 2h --concurrency 1')
    const result = run.import('', { signal })
    await expect.poll(() => service.posts.length, { interval: 5 }).toBeGreaterThan(500)
    abort()
    const err = expect.stringContaining('plants: Interrupted after 500 plants\n')
    expect(await result).toMatchObject({ code: 130, err, journals: 1 })
    await mended(run)
  })
})

test('plants are unknown whose responses a service without keys loses', async () => {
  const isLost = ({ index }: Post) => index % 100 === 99
  const { service } = await illService((post) => (isLost(post) ? 'lose' : undefined), {
    start: 0,
    isKeyed: false,
  })
  const run = new ServiceImport(lines, service.url, '--rejects rejects')
  const result = await run.import()
  const rows = service.posts
    .filter(isLost)
    .map(({ id }) => lines.findIndex((line) => idOf(line) === id))
  const lost = rows.toSorted((one, other) => one - other)
  const why = 'received the request, but did not answer: the connection was closed'
  const named = lost
    .map((row) => `plants: plants.ndjson:${row + 1}: ${service.url} ${why}\n`)
    .join('')
  const hint = `Check whether those in ${join(run.home, 'rejects')} are in the store`
  const err = `${named}plants: Whether 10 plants are stored is unknown\n  ${hint}\n`
  expect(result).toEqual({ code: 5, counts: { ...allCreated(990), unknown: 10 }, err, journals: 0 })
  const records = lost.map((row) => ({ line: row + 1, record: JSON.parse(lines[row] ?? '') }))
  expect(rejectedIn(run, 'rejects')).toMatchObject(records)
  expect({ made: service.made, posts: service.posts.length }).toEqual({
    made: once,
    posts: lines.length,
  })
})

test('a journal that is broken is not believed', async () => {
  const { service, mend } = await illService(() => ({ status: 404 }))
  const run = new ServiceImport(lines, service.url)
  await run.import()
  mend()
  const path = join(run.state, 'imports', journalsOf(run)[0] ?? '')
  query(path, `UPDATE imports SET state = replace(state, '"version":2', '"version":3')`)
  const damaged =
    'plants: The checkpoint of this import is damaged\n  To begin again, add --restart --if-exists skip\n'
  expect(await run.import()).toMatchObject({ code: 2, err: damaged })
  for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true })
  mkdirSync(path)
  const unusable = `plants: The journal ${path} could not be used: `
  expect(await run.import()).toMatchObject({ code: 74, err: expect.stringContaining(unusable) })
  rmSync(path, { recursive: true })
  expect(await run.import('--if-exists skip')).toMatchObject({ code: 0, journals: 0 })
})

test('the journal of an earlier version is refused, and goes with --restart', async () => {
  const { service, mend } = await illService(() => ({ status: 404 }))
  const run = new ServiceImport(lines, service.url)
  await run.import()
  mend()
  const [name = ''] = journalsOf(run)
  const path = join(run.state, 'imports', name)
  const [saved] = query(path, 'SELECT state FROM imports')
  for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true })
  const old = path.replace(/db$/, 'json')
  for (const [state, created] of [
    [saved?.['state'], 500],
    ['{"version":1,"position":{"counters":{"created":7,"updated":0}}}', 7],
  ]) {
    writeFileSync(old, `${state}\n`)
    const err = `plants: An older version of plants began this import: ${created} created, 0 updated\n  To begin again, add --restart --if-exists skip\n`
    expect(await run.import()).toMatchObject({ code: 2, err })
  }
  const [created, skipped] = [500, 500]
  const counts = { ...allCreated(created), skipped }
  expect(await run.import('--restart --if-exists skip')).toMatchObject({
    code: 0,
    counts,
    journals: 0,
  })
  expect([existsSync(old), service.made]).toEqual([false, once])
})

test('the newest 100 complete imports that numbered their plants are remembered on this machine', async () => {
  const user = new World()
  const store = await ownService({ host: '127.0.0.1', port: 0 }, join(user.home, 'service.db'))
  const importOf = (name = '', flags = '') =>
    user.run(`import ${name} --id-from next --store ${store}${flags}`, {
      env: { PLANTS_TOKEN: token },
    })
  const [first, second] = ['first', 'second'].map((name) =>
    user.write(`${name}.csv`, 'name\nFern\n'),
  )
  expect((await importOf(first)).code).toBe(0)
  const folder = join(user.state, 'imports')
  const [journal = ''] = journalsIn(folder)
  for (let copy = 0; copy < 100; copy += 1) {
    const path = join(folder, `copy${copy}.db`)
    query(join(folder, journal), `VACUUM INTO '${path}'`)
    query(path, `UPDATE imports SET id = 'copy${copy}'`)
    utimesSync(path, copy, copy)
  }
  writeFileSync(join(folder, 'copy0.db'), 'of somebody else')
  utimesSync(join(folder, 'copy0.db'), 0, 0)
  expect(await importOf(second)).toMatchObject({
    code: 0,
    err: expect.not.stringContaining('copy0'),
  })
  expect([
    journalsIn(folder).length,
    ...[0, 1, 2].map((copy) => existsSync(join(folder, `copy${copy}.db`))),
  ]).toEqual([101, true, false, true])
  const known =
    /^plants: .*first.csv was imported on .*: 1 plant created, those without an id got 1\n/
  expect(await importOf(first)).toMatchObject({ code: 2, err: expect.stringMatching(known) })
  expect((await importOf(first, ' --restart')).code).toBe(0)
})

function journalsIn(folder: string): string[] {
  return readdirSync(folder).filter((name) => name.endsWith('.db'))
}
