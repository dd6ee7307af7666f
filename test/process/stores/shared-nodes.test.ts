import { readFileSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { toJson } from '../../../src/plant/exact-json.js'
import { newPlant } from '../../helpers/any-plant.js'
import { Caller } from '../../helpers/caller.js'
import { fc } from '../../helpers/fast-check.js'
import { isLinux } from '../../helpers/linux.js'
import { hasPgBouncer, pgbouncer } from '../../helpers/pgbouncer.js'
import { type Database, freshDatabase, ownServer } from '../../helpers/postgres.js'
import { exchange } from '../../helpers/raw-http.js'
import { isSoak, rounds } from '../../helpers/rounds.js'
import { type RunningService, serve, testToken } from '../../helpers/service.js'
import { World } from '../../helpers/world.js'

const patience = { timeout: 30_000, interval: 20 }

const count = isSoak ? 10 : 5

test(`${count} services that start at the same moment on an empty database make one schema, and none fails`, {
  repeats: Math.min(10, rounds(1)) - 1,
}, async () => {
  const { url, env, sql } = await freshDatabase()
  const ids = Array.from({ length: count }, (_, id) => id)
  const options = { env: { PLANTS_SERVE_TOKEN: testToken, ...env } }
  const services = await Promise.all(ids.map(() => serve(['--store', url, '--log-level', 'warn'], options)))
  expect(await Promise.all(services.map(create))).toEqual(ids.map(() => '200'))
  expect(await sql('SELECT version FROM plant_store.schema_version')).toEqual([{ version: 3 }])
  expect(await sql('SELECT id FROM plant_store.plants ORDER BY id')).toEqual(ids.map((id) => ({ id: BigInt(id) })))
  const ends = await Promise.all(services.map((service) => service.stop()))
  expect(ends).toEqual(services.map(({ address }) => ({ code: 0, out: `${address}\n`, err: '' })))
})

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

  test.each(['locked', 'away'])('is %s does not wait beyond --drain-timeout', async (how) => {
    const database = how === 'away' ? await ownServer() : undefined
    const { url, env, hold } = database ?? (await freshDatabase())
    const service = await serve(['--store', url, '--drain-timeout', '500ms'], {
      env: { ...env, PLANTS_SERVE_TOKEN: testToken },
    })
    const unlock = database ? await database.stop('immediate') : await hold('LOCK TABLE plant_store.plants')
    const answers = Promise.allSettled([1, 2, 3].map((id) => create(service, id)))
    await allReceived(service)
    const told = performance.now()
    expect((await service.stop()).code).toBe(0)
    expect(performance.now() - told).toBeLessThan(10_000)
    expect((await answers).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    await unlock?.()
  })
})

test.each(isSoak ? ['ndjson', 'csv', 'json', 'tsv'] : ['ndjson', 'csv'])(
  'plants go to a database and back as they were, as %s',
  async (format) => expectRoundTrip(await freshDatabase(), format),
)

test.runIf(hasPgBouncer)(
  'through PgBouncer plants go to a database and back, a token is made, and served',
  async () => {
    const database = await pgbouncer(await freshDatabase())
    await expectRoundTrip(database, 'ndjson')
    const token = await tokenOf(database)
    const service = await serve(['--store', database.url], { env: database.env })
    const ids = [1n, 2n, 3n].map((id) => id + 2n ** 60n)
    expect(await Promise.all(ids.map((id) => create({ ...service, token }, id)))).toEqual(ids.map(() => '200'))
    expect((await service.stop()).code).toBe(0)
  },
)

/** That what a file holds comes back, byte by byte, from a database that it was put into, and from another file. */
async function expectRoundTrip({ url, env }: Pick<Database, 'url' | 'env'>, format: string): Promise<void> {
  const world = new World()
  const run = async (line: string, stdin?: string) => {
    const { code, out, err } = await world.run(line, { env, ...(stdin !== undefined && { stdin }) })
    expect({ code, err }).toMatchObject({ code: 0 })
    return out
  }
  const plants = fc.sample(newPlant(), Math.min(rounds(300), 100_000))
  const extremes = [-(2n ** 63n), -1n, 0n, 2n ** 63n - 1n].map((id) => ({ id, name: '', tag: '' }))
  const byId = new Map([...plants, ...extremes].map((plant) => [plant.id, plant]))
  await run('import', [...byId.values()].map((plant) => `${toJson(plant)}\n`).join(''))
  const first = await run(`export --output ${format}`)
  let given = first
  for (const store of [url, './target.db']) {
    await run(`import --store ${store} --format ${format}`, given)
    given = await run(`export --store ${store} --output ${format}`)
    expect(given === first).toBe(true)
  }
  expect(first.length).toBeGreaterThan(10 * byId.size)
}

async function tokenOf({ url, env }: Pick<Database, 'url' | 'env'>): Promise<string> {
  const made = await new World().run(`tokens create --store ${url}`, { env, mayShowSecrets: true })
  return made.out.trim()
}

/** The memory of a process, in MiB. */
function memoryOf(pid: number | undefined): number {
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024)
}

/** The `error` value of the answer to a create, or "200". */
async function create(service: Pick<RunningService, 'place' | 'token'>, id: number | bigint): Promise<string> {
  const { status, body } = await exchange(service, { body: `{"id":${id},"name":"Fern"}` })
  return status === 200 ? '200' : String(JSON.parse(body).error)
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
