import { expect, test } from 'vitest'
import { allCreated, plantLines, rejectedIn } from '../../helpers/import.js'
import { type Deed, PlantService } from '../../helpers/plant-service.js'
import { gate } from '../../helpers/service.js'
import { eachOnce, ServiceImport } from '../../helpers/service-import.js'

const lines = plantLines(1000)
const allOnce = eachOnce(lines)
const complete = { code: 0, counts: allCreated(lines.length), journals: 0 }
const soon = { interval: 5 }

/** An import whose requests have no response behind the first 500, before they are let go. */
async function stuckImport() {
  const answers = gate()
  const service = await PlantService.listen({
    deed: ({ index }) => (index < 500 ? undefined : answers.wait()),
  })
  const run = new ServiceImport(lines, service.url, '--concurrency 4 --timeout 1h')
  const child = run.startImport()
  await expect.poll(() => service.posts.length, soon).toBe(504)
  return { answers, service, run, child }
}

test('two signals end an import at once, and it can be resumed', async () => {
  const { answers, service, run, child } = await stuckImport()
  const isOver = () => !child.kill('SIGINT') || child.exitCode !== null || child.signalCode !== null
  await expect.poll(isOver, { interval: 150 }).toBe(true)
  const { code, journals } = await run.ended(child)
  expect([code, journals]).toEqual([expect.toBeOneOf([130, 'SIGINT']), 1])
  answers.open()
  expect(await run.import()).toMatchObject(complete)
  expect(service.made).toEqual(allOnce)
})

test('after kill -9, it goes on at once', async () => {
  const { answers, service, run, child } = await stuckImport()
  child.kill('SIGKILL')
  await child
  answers.open()
  expect(await run.import()).toMatchObject(complete)
  expect(service.made).toEqual(allOnce)
})

test('after kill -9, what a service without keys has stored unconfirmed is rejected, line by line', async () => {
  let deed: Deed = 'keep'
  const service = await PlantService.listen({
    isKeyed: false,
    deed: ({ index }) => (index < 500 ? undefined : deed),
  })
  const run = new ServiceImport(lines, service.url, '--rejects rejects')
  const child = run.startImport()
  await expect.poll(() => service.posts.length, soon).toBeGreaterThan(503)
  child.kill('SIGKILL')
  await child
  // What it had written before it died still comes.
  await expect.poll(() => service.connections, soon).toBe(0)
  deed = undefined
  const result = await run.import()
  const all = rejectedIn(run, 'rejects')
  const rejected = all.length
  const counts = { ...allCreated(lines.length - rejected), rejected, reasons: { 409: rejected } }
  expect(result).toMatchObject({ code: 6, journals: 0, counts })
  expect(service.made).toEqual(allOnce)
  const reason = expect.stringMatching(/^A plant with id -?\d+ already exists$/)
  expect(all).toEqual(
    all.map(({ line }) => ({ line, reason, record: JSON.parse(lines[line - 1] ?? '') })),
  )
})

test('Ctrl-C while the service is down says that no plant is done', async () => {
  const service = await PlantService.listen()
  await service.close()
  const run = new ServiceImport(lines, service.url)
  const child = run.startImport('--verbose --retry 1h')
  let isStopped = false // a second signal would end the process at once
  child.stderr?.on('data', (chunk: Buffer) => {
    if (!isStopped && chunk.includes('* failed')) isStopped = child.kill('SIGINT')
  })
  const { code, err, journals } = await run.ended(child)
  const last = err.slice(err.lastIndexOf('plants: '))
  const resume = 'To resume, run the same command again'
  expect([code, last, journals]).toEqual([
    130,
    `plants: Interrupted after 0 plants\n  ${resume}\n`,
    1,
  ])
})
