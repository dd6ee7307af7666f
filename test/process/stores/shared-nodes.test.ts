import { readFileSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Caller } from '../../helpers/caller.js'
import { isLinux } from '../../helpers/linux.js'
import { freshDatabase, ownServer } from '../../helpers/postgres.js'
import { plants } from '../../helpers/process.js'
import { connectTo, exchange, type RawConnection, requestBytes } from '../../helpers/raw-http.js'
import { isSoak } from '../../helpers/rounds.js'
import { type RunningService, serve, testToken } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const patience = { timeout: 30_000, interval: 20 }

test('a service says within two seconds that its database is away, and recovers without a restart', async () => {
  const database = await ownServer()
  const service = await serve(['--store', database.url, '--admin-port', '0'])
  expect(await isReady(service)).toBe(true)
  await database.stop('immediate')
  const stopped = performance.now()
  await expect.poll(() => isReady(service), patience).toBe(false)
  expect(performance.now() - stopped).toBeLessThan(2000)
  const waiting = create(service, 1)
  await database.start()
  await expect.poll(() => isReady(service), patience).toBe(true)
  expect([await waiting, await create(service, 2)]).toEqual(['200', '200'])
  expect((await service.stop()).code).toBe(0)
})

test.runIf(isSoak && isLinux)(
  '10,000 creates wait for a database that is away, again and again, and take no more memory each time (in a soak)',
  async () => {
    const database = await ownServer()
    const service = await serve(['--store', database.url, '--admin-port', '0'])
    const admin = adminOf(service)
    const pool = new Caller(service.address, 10_000)
    onTestFinished(() => pool.destroy())
    const resident: number[] = []
    for (let round = 0; round < 8; round += 1) {
      await database.stop('immediate')
      const creates = Array.from({ length: 10_000 }, (_, at) => createBy(pool, at + 10_000 * round))
      await expect.poll(() => depthAt(admin), patience).toBe(10_000)
      await database.start()
      expect(countOf(await Promise.all(creates))).toEqual({ 200: 10_000 })
      resident.push(memoryOf(service.pid))
    }
    process.stdout.write(`MiB after each round: ${resident}\n`)
    // it is collected now and then
    expect(Math.min(...resident.slice(-4))).toBeLessThan(1.3 * Math.max(...resident.slice(0, 4)))
  },
)

test('a token that is revoked is refused by all services within a second', async () => {
  const { url, env } = await freshDatabase()
  const run = (...args: string[]) => plants([...args, '--store', url], temporaryFolder(), { env })
  const token = (await run('tokens', 'create')).out.trim()
  const services = await Promise.all([1, 2, 3].map(() => serve(['--store', url], { env })))
  const callers = await Promise.all(services.map(({ place }) => connectTo(place)))
  const answers = (id: number) => Promise.all(callers.map((caller) => answerTo(caller, id, token)))
  expect((await answers(1)).toSorted()).toEqual(['200', '409', '409'])
  expect(await run('tokens', 'revoke', '1')).toMatchObject({ code: 0 })
  const revoked = performance.now()
  await expect.poll(() => answers(1), patience).toEqual(['401', '401', '401'])
  expect(performance.now() - revoked).toBeLessThan(1000)
})

describe('a service that is told to stop while its database', () => {
  test('is slow answers what it has received', async () => {
    const { url, env, hold, sql } = await freshDatabase()
    const service = await serve(['--store', url], { env: { ...env, PLANTS_SERVE_TOKEN: testToken } })
    const unlock = await hold('LOCK TABLE plant_store.plants')
    const ids = Array.from({ length: 50 }, (_, id) => id)
    const answers = ids.map((id) => create(service, id))
    await allReceived(service)
    service.kill('SIGTERM')
    await expect.poll(() => service.log.map(({ msg }) => msg), patience).toContain('draining')
    await unlock()
    expect(await Promise.all(answers)).toEqual(ids.map(() => '200'))
    expect((await service.ended).code).toBe(0)
    expect(await sql('SELECT count(*) FROM plant_store.plants')).toEqual([{ count: 50n }])
  })

  test('is locked does not wait beyond --drain-timeout', async () => {
    const { url, env, hold } = await freshDatabase()
    const service = await serve(['--store', url, '--drain-timeout', '500ms'], {
      env: { ...env, PLANTS_SERVE_TOKEN: testToken },
    })
    const unlock = await hold('LOCK TABLE plant_store.plants')
    await expectQuickEnd(service)
    await unlock()
  })

  test('is away does not wait beyond --drain-timeout', async () => {
    const database = await ownServer()
    const service = await serve(['--store', database.url, '--drain-timeout', '500ms'])
    await database.stop('immediate')
    await expectQuickEnd(service)
  })
})

async function expectQuickEnd(service: RunningService): Promise<void> {
  const answers = Promise.allSettled([1, 2, 3].map((id) => create(service, id)))
  await allReceived(service)
  const told = performance.now()
  expect((await service.stop()).code).toBe(0)
  expect(performance.now() - told).toBeLessThan(10_000)
  expect((await answers).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
}

async function createBy(pool: Caller, id: number): Promise<number> {
  const headers = { authorization: `Bearer ${testToken}`, 'content-type': 'application/json' }
  const { status } = await pool.request({
    method: 'POST',
    path: '/plants',
    headers,
    body: `{"id":${id},"name":"Fern"}`,
  })
  return status
}

function countOf(statuses: number[]): Record<number, number> {
  return Object.fromEntries(
    [...new Set(statuses)].map((status) => [status, statuses.filter((other) => other === status).length]),
  )
}

/** The memory of a process, in MiB. */
function memoryOf(pid: number | undefined): number {
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024)
}

/** The `error` value of the answer to a create, or "200". */
async function create(service: RunningService, id: number): Promise<string> {
  const { status, body } = await exchange(service, { body: `{"id":${id},"name":"Fern"}` })
  return status === 200 ? '200' : String(JSON.parse(body).error)
}

async function answerTo(caller: RawConnection, id: number, token: string): Promise<string> {
  const answer = await caller.send(requestBytes(token, { body: `{"id":${id},"name":"Fern"}` })).answer()
  return answer?.status === 200 ? '200' : String(JSON.parse(answer?.body ?? '{}').error)
}

/** What was sent before has come when this has. */
async function allReceived(service: RunningService): Promise<void> {
  expect((await exchange(service, { target: '/nope' })).status).toBe(404)
}

async function isReady(service: RunningService): Promise<boolean> {
  return (await fetch(`${adminOf(service)}/ready`)).ok
}

/** How many creates wait for the store. */
async function depthAt(admin: unknown): Promise<number> {
  const text = await (await fetch(`${admin}/metrics`)).text()
  return Number(/^plants_queue_depth (\d+)$/m.exec(text)?.[1])
}

function adminOf(service: RunningService): unknown {
  return service.log.find(({ msg }) => msg === 'listening')?.['admin']
}
