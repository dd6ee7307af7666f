import { expect, test } from 'vitest'
import type { PostgresStore } from '../../../src/stores/postgres/store.js'
import {
  type Database,
  openPostgresStore,
  partitionPlants,
} from '../../helpers/postgres/database.js'
import { configure } from '../../helpers/postgres/standby.js'
import { buildPlantLine } from '../../helpers/sandbox/import-sandbox.js'
import { parseObjects, Sandbox } from '../../helpers/sandbox/sandbox.js'
import { createPlant, gather } from '../../helpers/sandbox/store.js'
import {
  anyServer,
  fern,
  getHost,
  joinServers,
  moss,
  pollOptions,
  startServers,
} from './standby-steps.js'
import { settleAll } from './steps.js'

// A standby has the plants of its primary, a moment later, and accepts no change.

const useWritable = 'Use the address of the server that accepts writes'

test.each(['the address', 'the variable'])(
  'commands read from a standby if %s allows it',
  async (where) => {
    const { standby } = await startServers()
    const isOfAddress = where === 'the address'
    const env = isOfAddress
      ? { PLANTS_STORE: `${standby.url}?${anyServer}` }
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
    `stores init ${standby.url}?${anyServer}`,
  ]
  const env = { PLANTS_STORE: `${standby.url}?${anyServer}`, PLANTS_TIMEOUT: '1h' }
  for (const line of lines) {
    const { code, out, err } = await new Sandbox().run(line, { env })
    expect({ line, code, out }).toEqual({ line, code: 4, out: '' })
    expect(err).toContain(`The server ${getHost(standby)} is read-only`)
    expect(err).toContain(useWritable)
  }
  const readWrite = `${joinServers(standby, primary)}?target_session_attrs=read-write`
  const followed = { ...env, PLANTS_STORE: readWrite }
  expect(await new Sandbox().run('create --id 3 --name Oak', { env: followed })).toMatchObject({
    code: 0,
  })
})

test('a command uses the first server of its address that answers', async () => {
  const { primary, standby } = await startServers()
  const open = (first: Database, second: Database) =>
    openPostgresStore({ ...first, url: joinServers(first, second) }, { parameters: anyServer })
  const [atStandby, atPrimary] = [await open(standby, primary), await open(primary, standby)]
  const onStandby = { name: getHost(standby), isReadOnly: true }
  const onPrimary = { name: getHost(primary), isReadOnly: false }
  const findServers = () => Promise.all([atStandby, atPrimary].map((store) => store.findServer()))
  expect(await findServers()).toEqual([onStandby, onPrimary])
  await standby.stop('fast')
  expect(await findServers()).toEqual([onPrimary, onPrimary])
})

test('a service at a server that is read-only by a setting is ready to read', async () => {
  const { primary } = await startServers()
  await configure(primary, 'default_transaction_read_only = on')
  const store = await openPostgresStore(primary, { parameters: anyServer })
  await expect.poll(async () => (await store.findServer()).isReadOnly, pollOptions).toBe(true)
  const readOnly = `accessDenied: The server ${getHost(primary)} is read-only`
  const calls = [store.check(['read']), store.check(), store.write([]), createPlant(store, fern)]
  expect(await settleAll(calls)).toEqual([undefined, readOnly, readOnly, readOnly])
})

test('an import stores at the primary, even if the address and the variable allow a standby', async () => {
  const { primary, standby } = await startServers()
  const user = new Sandbox()
  user.write('plants.ndjson', `${buildPlantLine(3)}${buildPlantLine(4)}`)
  // A list with fewer than half of the plants is no list of the whole store.
  user.write('plant.ndjson', buildPlantLine(4))
  const env = {
    PLANTS_STORE: `${joinServers(standby, primary)}?${anyServer}`,
    PGTARGETSESSIONATTRS: 'any',
  }
  const lines = [
    'import plants.ndjson --dry-run',
    'import plants.ndjson --atomic',
    'import plants.ndjson --by-name',
    'import plant.ndjson --if-exists update',
  ]
  for (const line of lines) {
    const { code, err } = await user.run(line, { env })
    expect({ line, code, err }).toEqual({ line, code: 0, err: '' })
  }
  const stored = await primary.query('SELECT id FROM plant_store.plants ORDER BY id')
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
    `postgres://${getHost(first)},${getHost(second)}/plants`
  expect(await examine(`${joinServers(standby, primary)}?${anyServer}`)).toEqual({
    ...{ code: 0, state: 'ok' },
    message: `${name(standby, primary)}: The server ${getHost(standby)} is used, which is read-only`,
  })
  expect(await examine(joinServers(standby, primary))).toEqual({
    ...{ code: 0, state: 'ok' },
    message: `${name(standby, primary)}: The server ${getHost(primary)} is used`,
  })
  expect(await examine(primary.url)).toMatchObject({
    message: `postgres://${getHost(primary)}/plants`,
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
  'a read is repeated when it conflicts with the recovery of the standby: %s',
  async (_, read, found) => {
    const { primary, standby } = await startServers()
    await partitionPlants(primary)
    await configure(standby, 'max_standby_streaming_delay = 0')
    await standby.catchUp()
    const store = await openPostgresStore(standby, { parameters: anyServer })
    // The statement locks one partition after the other. It waits for the last one, and so keeps the
    // first one locked, which the primary locks next.
    const unlockLast = await holdLock(primary, 'plants_1')
    await standby.catchUp()
    const running = read(store)
    const waiting =
      "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active'"
    await expect.poll(() => standby.queryAsSuperuser(waiting), pollOptions).toHaveLength(1)
    const unlockFirst = await holdLock(primary, 'plants_0')
    await expect.poll(() => countConflicts(standby), pollOptions).toBe(1n)
    await unlockFirst()
    await unlockLast()
    expect(await running).toEqual(found)
  },
)

test('a list that has yielded plants is not repeated after its connection is ended', async () => {
  const { primary, standby } = await startServers()
  const long = "repeat('x', 1000)"
  const rows = `SELECT id, ${long} FROM generate_series(10, 30000) id`
  await primary.query(`INSERT INTO plant_store.plants (id, name) ${rows}`)
  await standby.catchUp()
  const store = await openPostgresStore(standby, { parameters: anyServer })
  const blocks = store.read()[Symbol.asyncIterator]()
  const { value: block } = await blocks.next()
  expect(block?.[0]).toEqual(fern)
  const waitMs = 60_000
  const end = `SELECT pg_terminate_backend(pid, ${waitMs}) AS ended FROM pg_stat_activity
    WHERE wait_event = 'ClientWrite'`
  await expect.poll(() => standby.queryAsSuperuser(end), pollOptions).toEqual([{ ended: true }])
  const readRest = async () => {
    while (!(await blocks.next()).done);
  }
  expect(await settleAll([readRest()])).toEqual([expect.stringMatching(/^unavailable: /)])
})

/** Locks a table for a statement that changes it; gives what unlocks it. Standbys lock it, too. */
async function holdLock(primary: Database, table: string): Promise<() => Promise<void>> {
  const unlock = await primary.beginTransaction(
    `LOCK TABLE plant_store.${table} IN ACCESS EXCLUSIVE MODE`,
  )
  // What is in the log is sent to standbys with the next commit.
  await primary.queryAsSuperuser(`SELECT pg_logical_emit_message(true, '', '')`)
  return unlock
}

async function countConflicts(standby: Database): Promise<unknown> {
  const [row] = await standby.queryAsSuperuser(
    'SELECT confl_lock AS count FROM pg_stat_database_conflicts WHERE datname = current_database()',
  )
  return row?.['count']
}
