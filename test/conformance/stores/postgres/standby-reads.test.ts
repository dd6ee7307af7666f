import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { PostgresStore } from '../../../../src/stores/postgres/store.js'
import {
  type Database,
  openShared,
  partitionPlants,
  startServerWithStandby,
} from '../../../helpers/postgres/database.js'
import { buildPlantLine } from '../../../helpers/sandbox/import-sandbox.js'
import { parseObjects, Sandbox } from '../../../helpers/sandbox/sandbox.js'
import { createPlant, gather } from '../../../helpers/sandbox/store.js'
import { exchangeOnce } from '../../../helpers/scripted-server/raw-http.js'
import { type RunningService, serve } from '../../../helpers/scripted-server/service.js'
import { configure, settled } from './steps.js'

// A standby has the plants of its primary, a moment later, and accepts no change.

const often = { interval: 5 }
const any = 'target_session_attrs=any'
const fern = { id: 1n, name: 'Fern', tag: 'shade' }
const moss = { id: 2n, name: 'Moss' }
const useWritable =
  'Use target_session_attrs=read-write in an address with the server that accepts writes, or promote this one'

type Servers = Awaited<ReturnType<typeof startServerWithStandby>>

/** A primary and its standby, both of which have two plants, and a token for each service. */
async function startServers() {
  const servers = await startServerWithStandby()
  const { primary, standby } = servers
  const store = await openShared(primary)
  for (const each of [fern, moss]) await createPlant(store, each)
  const { out } = await new Sandbox().run('tokens create --allow create,read,update,delete', {
    env: { PLANTS_STORE: primary.url },
  })
  await standby.catchUp()
  return { ...servers, token: out.trim() }
}

const hostOf = ({ url }: Pick<Database, 'url'>) => new URL(url).host

/** The address of both servers, the first of which is tried first. */
function bothOf(first: Pick<Database, 'url'>, second: Pick<Database, 'url'>): string {
  return second.url.replace('@', `@${hostOf(first)},`)
}

test.each(['the address', 'the variable'])(
  'commands read from a standby if %s allows it',
  async (where) => {
    const { standby } = await startServers()
    const isOfAddress = where === 'the address'
    const env = isOfAddress
      ? { PLANTS_STORE: `${standby.url}?${any}` }
      : { PLANTS_STORE: standby.url, PGTARGETSESSIONATTRS: 'any' }
    const lines = [
      'get 1 2',
      'list',
      'list --search FE',
      'list --tag shade --sort name',
      'count',
      'count --by tag',
      'export -o csv -',
      'tokens list',
      'create --id 1 --name Fern --dry-run --store ./other.db',
    ]
    for (const line of lines) {
      const { code, err } = await new Sandbox().run(line, { env })
      expect({ line, code, err }).toEqual({ line, code: 0, err: '' })
    }
    const { out } = await new Sandbox().run('list', { env })
    expect(parseObjects(out)).toEqual([
      { id: 1, name: 'Fern', tag: 'shade' },
      { id: 2, name: 'Moss' },
    ])
  },
)

test('a change at a standby fails at once, with a hint', async () => {
  const { primary, standby } = await startServers()
  const lines = [
    'create --id 3 --name Oak',
    'create --id next --name Oak',
    'create --id 1 --name Fern --tag shade --idempotency-key fern',
    'create --id 3 --name Oak --dry-run',
    'update 1 --name Oak',
    'delete 1 --yes',
    'delete --tag shade --yes',
    'tokens create',
    'tokens revoke 1',
    `stores init ${standby.url}?${any}`,
  ]
  const env = { PLANTS_STORE: `${standby.url}?${any}`, PLANTS_TIMEOUT: '1h' }
  for (const line of lines) {
    const { code, out, err } = await new Sandbox().run(line, { env })
    expect({ line, code, out }).toEqual({ line, code: 4, out: '' })
    expect(err).toContain(`The server ${hostOf(standby)} is read-only`)
    expect(err).toContain(useWritable)
  }
  const readWrite = `${bothOf(standby, primary)}?target_session_attrs=read-write`
  const followed = { ...env, PLANTS_STORE: readWrite }
  expect(await new Sandbox().run('create --id 3 --name Oak', { env: followed })).toMatchObject({
    code: 0,
  })
})

test('an address with several servers uses the first that answers', async () => {
  const { primary, standby } = await startServers()
  const open = (first: Database, second: Database) =>
    openShared({ ...first, url: bothOf(first, second) }, { parameters: any })
  const [atStandby, atPrimary] = [await open(standby, primary), await open(primary, standby)]
  const onStandby = { name: hostOf(standby), isReadOnly: true }
  const onPrimary = { name: hostOf(primary), isReadOnly: false }
  const findServers = () => Promise.all([atStandby, atPrimary].map((store) => store.findServer()))
  expect(await findServers()).toEqual([onStandby, onPrimary])
  await standby.stop('fast')
  expect(await findServers()).toEqual([onPrimary, onPrimary])
})

test('a service at a server that is read-only by a setting is ready to read', async () => {
  const { primary } = await startServers()
  await configure(primary, 'default_transaction_read_only = on')
  const store = await openShared(primary, { parameters: any })
  await expect.poll(async () => (await store.findServer()).isReadOnly, often).toBe(true)
  const readOnly = `unavailable: The server ${hostOf(primary)} is read-only`
  const calls = [store.check(['read']), store.check(), store.write([]), createPlant(store, fern)]
  expect(await settled(calls)).toEqual([undefined, readOnly, readOnly, readOnly])
})

test('an import stores at the primary, even if the address and the variable allow a standby', async () => {
  const { primary, standby } = await startServers()
  const user = new Sandbox()
  user.write('plants.ndjson', `${buildPlantLine(3)}${buildPlantLine(4)}`)
  const env = {
    PLANTS_STORE: `${bothOf(standby, primary)}?${any}`,
    PGTARGETSESSIONATTRS: 'any',
  }
  const lines = [
    'import plants.ndjson --dry-run',
    'import plants.ndjson --atomic',
    'import plants.ndjson --match name',
    'import plants.ndjson --if-exists update',
  ]
  for (const line of lines) {
    const { code, err } = await user.run(line, { env })
    expect({ line, code, err }).toEqual({ line, code: 0, err: '' })
  }
  const stored = await primary.sql('SELECT id FROM plant_store.plants ORDER BY id')
  expect(stored).toEqual([{ id: 1n }, { id: 2n }, { id: 3n }, { id: 4n }])
})

test('doctor names the server that it uses, and says whether that is read-only', async () => {
  const { primary, standby } = await startServers()
  const examine = async (url: string) => {
    const { code, out } = await new Sandbox().run('doctor', { env: { PLANTS_STORE: url } })
    const { state, message } = parseObjects(out).at(-1) ?? {}
    return { code, state, message }
  }
  const name = (first: Database, second: Database) =>
    `postgres://${hostOf(first)},${hostOf(second)}/plants`
  expect(await examine(`${bothOf(standby, primary)}?${any}`)).toEqual({
    ...{ code: 0, state: 'ok' },
    message: `${name(standby, primary)}: The server ${hostOf(standby)} is used, which is read-only`,
  })
  expect(await examine(bothOf(standby, primary))).toEqual({
    ...{ code: 0, state: 'ok' },
    message: `${name(standby, primary)}: The server ${hostOf(primary)} is used`,
  })
  expect(await examine(primary.url)).toMatchObject({
    message: `postgres://${hostOf(primary)}/plants`,
  })
})

/** The reads that must survive a conflict with recovery: streams, and what is read at once. */
const reads: [what: string, read: (store: PostgresStore) => Promise<unknown>, found: unknown][] = [
  ['a list of one snapshot', (store) => gather(store.read()), [fern, moss]],
  ['a list in pages', (store) => gather(store.read({ inPages: true })), [fern, moss]],
  ['a count by tag', async (store) => (await store.countBy('tag')).get('shade'), 1n],
  ['a count', (store) => store.count(), 2n],
]

test.each(reads)(
  '%s is repeated when it conflicts with the recovery of the standby',
  async (_, read, found) => {
    const { primary, standby } = await startServers()
    await partitionPlants(primary)
    await configure(standby, 'max_standby_streaming_delay = 0')
    await standby.catchUp()
    const store = await openShared(standby, { parameters: any })
    // The statement locks one partition after the other. It waits for the last one, and so keeps the
    // first one locked, which the primary locks next.
    const unlockLast = await holdLock(primary, 'plants_3')
    await standby.catchUp()
    const running = read(store)
    const waiting =
      "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active'"
    await expect.poll(() => standby.admin(waiting), often).toHaveLength(1)
    const unlockFirst = await holdLock(primary, 'plants_0')
    await expect.poll(() => countConflicts(standby), often).toBe(1n)
    await unlockFirst()
    await unlockLast()
    expect(await running).toEqual(found)
  },
)

test('a list that has yielded plants is not repeated after its connection is ended', async () => {
  const { primary, standby } = await startServers()
  const long = "repeat('x', 1000)"
  const rows = `SELECT id, ${long} FROM generate_series(10, 30000) id`
  await primary.sql(`INSERT INTO plant_store.plants (id, name) ${rows}`)
  await standby.catchUp()
  const store = await openShared(standby, { parameters: any })
  const blocks = store.read()[Symbol.asyncIterator]()
  const { value: block } = await blocks.next()
  expect(block?.[0]).toEqual(fern)
  const waitMs = 60_000
  const end = `SELECT pg_terminate_backend(pid, ${waitMs}) AS ended FROM pg_stat_activity
    WHERE wait_event = 'ClientWrite'`
  await expect.poll(() => standby.admin(end), often).toEqual([{ ended: true }])
  const readRest = async () => {
    while (!(await blocks.next()).done);
  }
  expect(await settled([readRest()])).toEqual([expect.stringMatching(/^unavailable: /)])
})

/** Locks a table for a statement that changes it; gives what unlocks it. Standbys lock it, too. */
async function holdLock(primary: Database, table: string): Promise<() => Promise<void>> {
  const unlock = await primary.hold(`LOCK TABLE plant_store.${table} IN ACCESS EXCLUSIVE MODE`)
  // What is in the log is sent to standbys with the next commit.
  await primary.admin(`SELECT pg_logical_emit_message(true, '', '')`)
  return unlock
}

async function countConflicts(standby: Database): Promise<unknown> {
  const [row] = await standby.admin(
    'SELECT confl_lock AS count FROM pg_stat_database_conflicts WHERE datname = current_database()',
  )
  return row?.['count']
}

async function explainReadiness({ log }: RunningService): Promise<unknown> {
  const address = log.find(({ msg }) => msg === 'listening')?.['admin']
  const response = await fetch(`${address}/ready`)
  const { message } = (await response.json()) as { message?: string } // an Error, if it is not ready
  return message ?? response.status
}

function serveStandby({ standby, token }: Servers & { token: string }, ...args: string[]) {
  const store = `${standby.url}?${any}`
  return serve(['--store', store, '--admin-port', '0', ...args], { env: {}, token })
}

const list = { method: 'GET', target: '/plants' }
/** A create has no other status for what its client did wrong. */
const notOffered = '400 (403) This service does not create plants'
const create = { body: '{"id":9,"name":"Oak"}' }

test('a service next to a standby offers only reads, and says why', async () => {
  const servers = await startServers()
  const server = hostOf(servers.standby)
  const services = [await serveStandby(servers), await serveStandby(servers, '--allow', 'read')]
  const missing = `The server ${server} is read-only, so the service does not offer to create, update or delete plants. Restart the service when the server accepts writes`
  for (const [index, service] of services.entries()) {
    expect(service.log).toContainEqual(expect.objectContaining({ rights: ['read'] }))
    expect(service.log.filter(({ msg }) => msg === missing)).toHaveLength(index === 0 ? 1 : 0)
    expect(service.log.filter(({ level }) => level === 'warn')).toEqual([])
    expect(await explainReadiness(service)).toBe(200)
    expect((await exchangeOnce(service, list)).status).toBe(200)
    expect((await exchangeOnce(service, create)).text).toBe(notOffered)
  }
  await new Sandbox().run('tokens revoke 1', { env: { PLANTS_STORE: servers.primary.url } })
  for (const service of services)
    await expect.poll(async () => (await exchangeOnce(service, list)).status, often).toBe(401)
})

test('the services of docs/database-nodes.md create at the primary, and read from the standby', async () => {
  const { primary, standby, token } = await startServers()
  const page = readFileSync('docs/database-nodes.md', 'utf8')
  const lines = Array.from(page.matchAll(/^plants serve (--allow .*)$/gm), ([, args = '']) =>
    args
      .replace('primary.example.com', hostOf(primary))
      .replace('standby.example.com', hostOf(standby))
      .replaceAll("'", '')
      .split(' '),
  )
  expect(lines).toHaveLength(2)
  const [creator, reader] = await Promise.all(lines.map((args) => serve(args, { env: {}, token })))
  if (!creator || !reader) throw new Error('The page has two services')
  expect((await exchangeOnce(creator, create)).text).toBe('200 {"name":"Oak"}')
  const read = async () => (await exchangeOnce(reader, { ...list, target: '/plants/9' })).text
  await expect.poll(read, often).toBe('200 {"id":9,"name":"Oak"}')
  expect((await exchangeOnce(creator, list)).status).toBe(403)
  expect((await exchangeOnce(reader, create)).text).toBe(notOffered)
  await primary.stop('immediate')
  await standby.promote()
  const other = { body: '{"id":10,"name":"Ash"}' }
  expect((await exchangeOnce(creator, other)).text).toBe('200 {"name":"Ash"}')
  expect((await exchangeOnce(reader, { ...list, target: '/plants/10' })).status).toBe(200)
})

test('a service next to a standby creates plants as soon as the standby is promoted', async () => {
  const servers = await startServers()
  const service = await serveStandby(servers, '--allow', 'create,read')
  const readOnly = `The server ${hostOf(servers.standby)} is read-only`
  expect(service.log).toContainEqual(
    expect.objectContaining({
      level: 'warn',
      msg: `${readOnly}, so the service cannot create plants until the server accepts writes`,
    }),
  )
  expect(await explainReadiness(service)).toBe(readOnly)
  const rejected = await exchangeOnce(service, create)
  expect(rejected.text).toMatch(/^503 The store is not available, and nothing was stored/)
  expect((await exchangeOnce(service, list)).status).toBe(200)
  await servers.primary.stop('immediate')
  await servers.standby.promote()
  expect(await explainReadiness(service)).toBe(200)
  expect((await exchangeOnce(service, create)).text).toBe('200 {"name":"Oak"}')
})

test('a standby serves reads while it is promoted, and writes afterwards', async () => {
  const { primary, standby } = await startServers()
  const writer = await openShared({ ...primary, url: bothOf(primary, standby) })
  const reader = await openShared(standby, { parameters: any })
  await writer.check()
  await primary.stop('immediate')
  const created = createPlant(writer, { id: 3n, name: 'Oak' })
  expect((await reader.get([1n])).get(1n)).toEqual(fern)
  let isPromoted = false
  const promoted = standby.promote().finally(() => {
    isPromoted = true
  })
  while (!isPromoted) expect((await reader.get([1n])).get(1n)).toEqual(fern)
  await promoted
  expect(await created).toEqual({ id: 3n, name: 'Oak' })
  expect((await reader.get([3n])).get(3n)).toEqual({ id: 3n, name: 'Oak' })
  expect(await createPlant(reader, { id: 4n, name: 'Ash' })).toEqual({ id: 4n, name: 'Ash' })
})
