import { readFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { Caller } from '../../helpers/caller.js'
import { isLinux } from '../../helpers/linux.js'
import { freshDatabase, ownServer } from '../../helpers/postgres.js'
import { exchange } from '../../helpers/raw-http.js'
import { isSoak } from '../../helpers/rounds.js'
import { type RunningService, serve, testToken } from '../../helpers/service.js'

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
    const headers = { authorization: `Bearer ${testToken}`, 'content-type': 'application/json' }
    const resident: number[] = []
    for (let round = 0; round < 8; round += 1) {
      await database.stop('immediate')
      const creates = Array.from({ length: 10_000 }, (_, at) => {
        const body = `{"id":${at + 10_000 * round},"name":"Fern"}`
        return pool.request({ method: 'POST', path: '/plants', headers, body })
      })
      await expect.poll(() => depthAt(admin), patience).toBe(10_000)
      await database.start()
      expect(new Set((await Promise.all(creates)).map(({ status }) => status))).toEqual(new Set([200]))
      resident.push(memoryOf(service.pid))
    }
    process.stdout.write(`MiB after each round: ${resident}\n`)
    // it is collected now and then
    expect(Math.min(...resident.slice(-4))).toBeLessThan(1.3 * Math.max(...resident.slice(0, 4)))
  },
)

test.each(['locked', 'away'])(
  'a service that is told to stop while its database is %s does not wait beyond --drain-timeout',
  async (how) => {
    const database = how === 'away' ? await ownServer() : undefined
    const { url, env, hold } = database ?? (await freshDatabase())
    const service = await serve(['--store', url, '--drain-timeout', '500ms'], {
      env: { ...env, PLANTS_SERVE_TOKEN: testToken },
    })
    const unlock = database ? await database.stop('immediate') : await hold('LOCK TABLE plant_store.plants')
    const answers = Promise.allSettled([1, 2, 3].map((id) => create(service, id)))
    expect((await exchange(service, { target: '/nope' })).status).toBe(404) // what was sent before it has come
    const told = performance.now()
    expect((await service.stop()).code).toBe(0)
    expect(performance.now() - told).toBeLessThan(10_000)
    expect((await answers).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    await unlock?.()
  },
)

/** The memory of a process, in MiB. */
function memoryOf(pid: number | undefined): number {
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024)
}

/** The `error` value of the answer to a create, or "200". */
async function create(service: Pick<RunningService, 'place' | 'token'>, id: number): Promise<string> {
  const { status, body } = await exchange(service, { body: `{"id":${id},"name":"Fern"}` })
  return status === 200 ? '200' : String(JSON.parse(body).error)
}

async function isReady(service: RunningService): Promise<boolean> {
  return (await fetch(`${adminOf(service)}/ready`)).ok
}

async function depthAt(admin: unknown): Promise<number> {
  const text = await (await fetch(`${admin}/metrics`)).text()
  return Number(/^plants_queue_depth (\d+)$/m.exec(text)?.[1])
}

function adminOf(service: RunningService): unknown {
  return service.log.find(({ msg }) => msg === 'listening')?.['admin']
}
