import { describe, expect, test } from 'vitest'
import { allCreated, plantLines } from '../../helpers/import.js'
import { PlantService } from '../../helpers/plant-service.js'
import { eachOnce, Gate, idOf, RemoteImport } from '../../helpers/remote-import.js'

const lines = plantLines(1000)
const once = eachOnce(lines)

describe('a service that keeps no keys', () => {
  test('rejects what it has of a chunk that was interrupted by kill -9, line by line', async () => {
    const { service, run } = await killedImport('--rejects', 'rejects')
    const result = await run.run()
    const reasons = run.reasons('rejects')
    const rejected = reasons.length
    expect(result).toMatchObject({
      ...{ code: 6, journals: 0 },
      counts: { ...allCreated(lines.length - rejected), rejected, reasons: { 409: rejected } },
    })
    expect(service.made).toEqual(once)
    expect(run.read('rejects')).toBe(reasons.map(({ line }) => `${lines[line - 1]}\n`).join(''))
    for (const { error, message } of reasons)
      expect({ error, message }).toEqual({
        error: 409,
        message: expect.stringMatching(/^A plant with id -?\d+ already exists$/),
      })
  })

  test('and loses answers, makes the fate of those plants unknown, and they are named', async () => {
    const service = await PlantService.listen({
      isKeyed: false,
      deed: ({ index }) => (index % 100 === 99 ? 'lose' : undefined),
    })
    const run = new RemoteImport(lines, service.url, '--rejects', 'rejects')
    const result = await run.run()
    const lost = service.posts
      .filter(({ index }) => index % 100 === 99)
      .map(({ id }) => lines.findIndex((line) => idOf(line) === id))
    const indices = lost.toSorted((one, other) => one - other)
    const text = 'received the request, but did not answer: the connection was reset'
    const told = indices.map((index) => `plants: plants.ndjson:${index + 1}: ${service.url} ${text}\n`).join('')
    const end = `plants: Whether 10 plants are stored is unknown\n  Check whether those in ${run.folder}/rejects are in the store\n`
    expect(result).toEqual({ code: 5, counts: { ...allCreated(990), unknown: 10 }, err: told + end, journals: 0 })
    expect(run.read('rejects')).toBe(indices.map((index) => `${lines[index]}\n`).join(''))
    expect({ made: service.made, posts: service.posts.length }).toEqual({ made: once, posts: lines.length })
  })

  test('and is interrupted makes nothing unknown', async () => {
    const { service, run } = await interruptedImport([])
    expect(await run.run()).toMatchObject({ code: 0, counts: allCreated(lines.length), journals: 0 })
    expect({ made: service.made, posts: service.posts.length }).toEqual({ made: once, posts: lines.length })
  })

  test('has what was on its way there when the import is killed, and --if-exists skip goes on with that', async () => {
    const { service, run } = await killedImport()
    const result = await run.run('--if-exists', 'skip')
    const { created, skipped } = { created: 0, skipped: 0, ...result.counts }
    expect(result).toMatchObject({ code: 0, counts: { created, skipped, rejected: 0, unknown: 0 }, journals: 0 })
    expect({ all: created + skipped, hasSkipped: skipped > 3 }).toEqual({ all: lines.length, hasSkipped: true })
    expect(service.made).toEqual(once)
  })

  test('rejects what was there before, which is not unknown', async () => {
    const service = await PlantService.listen({ isKeyed: false })
    await new RemoteImport(lines.slice(0, 3), service.url).run()
    expect(await new RemoteImport(lines, service.url).run()).toMatchObject({
      ...{ code: 6, counts: { ...allCreated(997), rejected: 3, reasons: { 409: 3 } }, journals: 0 },
      err: expect.stringMatching(
        /^(plants: plants\.ndjson:[123]: A plant with id -\d+ already exists\n){3}plants: 3 plants were rejected\n/,
      ),
    })
  })

  test('rejects what was there before an import that was interrupted, and goes on: it is not unknown', async () => {
    const { run } = await interruptedImport([lines[10] ?? '', lines[990] ?? ''])
    const counts = { ...allCreated(998), rejected: 2, reasons: { 409: 2 } }
    expect(await run.run()).toMatchObject({ code: 6, counts, journals: 0 })
  })
})

/** An import that was interrupted when plants were on their way, into a service that had some before. */
async function interruptedImport(before: readonly string[]) {
  const gate = new Gate()
  const service = await PlantService.listen({
    isKeyed: false,
    deed: ({ index }) => (index < 500 ? undefined : gate.opening),
  })
  if (before.length > 0) await new RemoteImport(before, service.url).run()
  const run = new RemoteImport(lines, service.url)
  const child = run.start()
  await expect.poll(() => service.posts.length, { interval: 5 }).toBeGreaterThan(500)
  child.kill('SIGINT')
  gate.open()
  expect((await child).exitCode).toBe(130)
  return { service, run }
}

/** An import that was killed when it had sent plants that were stored, and not answered. */
async function killedImport(...flags: string[]) {
  let isKilled = false
  const service = await PlantService.listen({
    isKeyed: false,
    deed: ({ index }) => (index < 500 || isKilled ? undefined : 'keep'),
  })
  const run = new RemoteImport(lines, service.url, ...flags)
  const child = run.start()
  await expect.poll(() => service.posts.length, { interval: 5 }).toBeGreaterThan(503)
  child.kill('SIGKILL')
  await child
  // What it had written before it died still comes.
  await expect.poll(() => service.connections, { interval: 5 }).toBe(0)
  isKilled = true
  return { service, run }
}
