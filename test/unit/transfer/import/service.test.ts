import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { PlantsError } from '../../../../src/platform/errors.js'
import { ownService, token } from '../../../helpers/http-store.js'
import { allCreated, plantLines, rejectedIn } from '../../../helpers/import.js'
import { type Deed, PlantService, type Post } from '../../../helpers/plant-service.js'
import { gate } from '../../../helpers/service.js'
import { eachOnce, ServiceImport } from '../../../helpers/service-import.js'
import { World } from '../../../helpers/world.js'

const lines = plantLines(1000)
const once = eachOnce(lines)
const complete = { code: 0, counts: allCreated(lines.length), journals: 0 }
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
    // Without keys, what was stored of a chunk that was not finished is rejected.
    const end = isKeyed ? complete : { code: expect.toBeOneOf([0, 6]), journals: 0 }
    expect(await run.import()).toMatchObject(end)
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
      counts: { ...allCreated(lines.length + 1), rejected: 1, reasons: { 400: 1 } },
      err: expect.stringContaining(
        `plants: Only the input is checked, not which ids exist at ${service.url}\n`,
      ),
    })
    expect(service.posts).toEqual([])
  })

  test('needs to read only where an id exists, or for --id-from next', async () => {
    const service = await PlantService.listen()
    const next = await new ServiceImport(lines, service.url, '--id-from next').import()
    const err = expect.stringContaining(
      '\n  This service does not offer this, or the address is wrong',
    )
    expect([next, service.posts]).toMatchObject([{ code: 1, err, journals: 0 }, []])
    expect(await new ServiceImport(lines, service.url).import()).toMatchObject(complete)
    const again = await new ServiceImport(lines, service.url).import()
    const counts = { ...allCreated(0), rejected: lines.length, reasons: { 409: lines.length } }
    expect(again).toMatchObject({ code: 6, counts, journals: 0 })
  })

  test('stops after the chunk with --max-errors rejected records, and keeps that', async () => {
    const service = await PlantService.listen()
    await new ServiceImport([lines[300] ?? ''], service.url).import()
    const run = new ServiceImport(lines, service.url, '--rejects bad')
    expect(await run.import('--max-errors 1')).toMatchObject({ code: 6, journals: 1 })
    expect(service.made).toEqual(eachOnce(lines.slice(0, 500)))
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
      expect(await run.import()).toEqual(end(code, words))
      await mended(run)
    }
  })

  test('it is not reached', async () => {
    const service = await PlantService.listen()
    await service.close()
    const run = new ServiceImport(lines, service.url, '--retry 0s')
    const refused = end(4, /Could not reach .*the connection was refused/)
    expect(await run.import()).toEqual(refused)
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
    const { code, err, journals } = await result
    expect([code, err, journals]).toEqual([
      130,
      `plants: Interrupted after 500 plants\n  ${goOn}\n`,
      1,
    ])
    const unfinished = service.posts.length - 500
    expect(service.made.size).toBe(service.posts.length)
    expect(service.made.size).toBeLessThan(lines.length)
    // They come again, with their keys if there are any.
    const rejected = isKeyed ? 0 : unfinished
    const reasons = isKeyed ? undefined : { 409: rejected }
    const counts = { ...allCreated(lines.length - rejected), rejected, reasons }
    expect(await run.import()).toMatchObject({ counts, journals: 0 })
    expect([service.made, service.posts.length]).toEqual([once, lines.length + unfinished])
  })

  test('from stdin is continued by hand', async () => {
    const { service } = await illService(() => ({ status: 404 }))
    const options = { stdin: lines.join('\n'), env: { PLANTS_TOKEN: 's3cret' } }
    const { err } = await new World().run(`import --store ${service.url}`, options)
    expect(err).toContain('To go on, run it again: what is stored and equal is skipped\n')
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

test('a lost response of a service without keys ends an import, which is then resumed', async () => {
  const isLost = ({ index }: Post) => index % 100 === 99
  const { service, mend } = await illService((post) => (isLost(post) ? 'lose' : undefined), {
    start: 0,
    isKeyed: false,
  })
  const run = new ServiceImport(lines, service.url)
  const { code, err, journals } = await run.import()
  const why = 'received the request, but did not answer: the connection was closed'
  expect([code, journals]).toEqual([5, 1])
  expect(err).toContain(`${service.url} ${why}\n`)
  expect(err).toMatch(/\n {2}To resume, run the same command again\n$/)
  mend()
  expect(await run.import()).toMatchObject({ code: 5, journals: 0 }) // of the first chunk
  expect(service.made).toEqual(once)
})

test('a journal that cannot be used is named', async () => {
  const { service, mend } = await illService(() => ({ status: 404 }))
  const run = new ServiceImport(lines, service.url)
  await run.import()
  mend()
  const path = join(run.state, 'imports.db')
  for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true })
  mkdirSync(path)
  const unusable = `plants: The journal ${path} could not be used: `
  expect(await run.import()).toMatchObject({ code: 74, err: expect.stringContaining(unusable) })
  rmSync(path, { recursive: true })
  expect(await run.import('--if-exists skip')).toMatchObject({ code: 0, journals: 0 })
})

test('a complete import that numbered its plants is remembered on this machine', async () => {
  const user = new World()
  const store = await ownService({ host: '127.0.0.1', port: 0 }, join(user.home, 'service.db'))
  const importOf = (name: string, flags = '') =>
    user.run(`import ${name} --id-from next --store ${store}${flags}`, {
      env: { PLANTS_TOKEN: token },
    })
  const list = user.write('list.csv', 'name\nFern\n')
  expect((await importOf(list)).code).toBe(0)
  expect(await importOf(list, ' --if-exists skip')).toMatchObject({
    code: 2,
    err: expect.stringMatching(/^plants: The same input was imported before, and its plants were/),
  })
  expect((await importOf(list, ' --restart')).code).toBe(0)
})
