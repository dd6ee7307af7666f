import { describe, expect, test } from 'vitest'
import { PostgresStore } from '../../../src/stores/postgres/store.js'
import {
  buildDatabaseOptions,
  type Database,
  openPostgresStore,
  parseDatabaseAddress,
  shareDatabase,
  shareServer,
} from '../../helpers/postgres/database.js'
import { configure } from '../../helpers/postgres/standby.js'
import { createPlant } from '../../helpers/sandbox/store.js'
import { closedPort, ScriptedServer } from '../../helpers/scripted-server/scripted-server.js'
import { getDatabaseName, settleAll } from './steps.js'

const server = shareServer()
const ids = (count: number) => Array.from({ length: count }, (_, index) => BigInt(index))
const fern = { id: 1n, name: 'Fern' }
const moss = { id: 2n, name: 'Moss' }
const stored = 'SELECT id, idempotency_key AS key FROM plant_store.plants ORDER BY id'
const insertion = "INSERT INTO plant_store.plants (id, name) VALUES (1, 'Moss')"
const locked = 'LOCK TABLE plant_store.plants IN EXCLUSIVE MODE'
const unavailable = (why = '') => expect.stringMatching(RegExp(`^unavailable: .*${why}`))
const often = { interval: 5 }

test('no plant is lost or stored twice when the server ends every connection under load', async () => {
  const database = await server()
  const store = await openPostgresStore(database)
  const plants = ids(3000).map((id) => ({ id, name: `Fern ${id}` }))
  const calls = plants.map((plant) => createPlant(store, plant, `key-${plant.id}`))
  const answers = settleAll(calls)
  await Promise.race(calls) // the other batches are in flight
  await endSessions(database)
  expect(await answers).toStrictEqual(plants)
  expect(await database.query(stored)).toEqual(plants.map(({ id }) => ({ id, key: `key-${id}` })))
})

test('a store fails in time while its server is unreachable, and works again afterwards', async () => {
  const database = await server()
  const reported: unknown[] = []
  const onUnreachable = (failure: unknown) => void reported.push(failure && `${failure}`)
  const hasty = await openPostgresStore(database, { timeoutMs: 1000 })
  const patient = await openPostgresStore(database, { onUnreachable })
  await database.stop('fast')
  expect(await settleAll([createPlant(hasty, fern)])).toEqual([unavailable()])
  const created = createPlant(patient, moss)
  await expect.poll(() => reported, often).toHaveLength(1)
  await database.start()
  expect(await created).toStrictEqual(moss)
  expect(reported).toEqual([expect.stringContaining('Could not reach postgres:'), undefined])
  expect(await database.query(stored)).toEqual([{ id: 2n, key: null }])
})

test('a store fails at once when its login is rejected, and works again afterwards', async () => {
  const database = await server()
  const store = await openPostgresStore(database)
  await database.queryAsSuperuser('ALTER ROLE plants NOLOGIN')
  await endSessions(database)
  expect(await settleAll([createPlant(store, fern)])).toEqual([
    expect.stringMatching(/^accessDenied: .*not permitted/),
  ])
  await database.queryAsSuperuser('ALTER ROLE plants LOGIN')
  expect(await createPlant(store, moss)).toStrictEqual(moss)
})

test.each([
  ['a lock', locked, ids(2), 'Another session keeps a table or a row of the store at .* locked$'],
  ['others with the same id', insertion, Array(5).fill(1n), ''],
])('a create that waits too long for %s stores nothing', async (_, held, wanted, why) => {
  const database = await server()
  const store = await openPostgresStore(database, { timeoutMs: 1000 })
  const release = await database.beginTransaction(held)
  const calls = wanted.map((id) => createPlant(store, { id, name: 'Fern' }))
  expect(await settleAll(calls)).toEqual(calls.map(() => unavailable(why)))
  await release()
  expect(await database.query(stored)).toEqual([])
  await expect.poll(() => settleAll([createPlant(store, fern, 'key')]), often).toEqual([fern])
})

test('a create that waits for a lock does not delay the creates that came with it', async () => {
  const database = await server()
  const store = await openPostgresStore(database, { parameters: 'max=3' })
  const release = await database.beginTransaction(insertion)
  const wanted = ids(20).map((id) => ({ id, name: 'Fern' }))
  const calls = wanted.map((plant) => createPlant(store, plant))
  const isBlocked = (_: unknown, id: number) => id === 1
  const others = calls.filter((call, id) => !isBlocked(call, id))
  expect(await Promise.all(others)).toEqual(wanted.filter((plant, id) => !isBlocked(plant, id)))
  const blocked = settleAll(calls.filter(isBlocked))
  await release('COMMIT')
  expect(await blocked).toEqual(['conflict: A plant with id 1 already exists'])
})

test('the error of a full pool does not say that the server is unreachable', async () => {
  const database = await server()
  const reported: unknown[] = []
  const onUnreachable = (failure: unknown) => void reported.push(failure)
  const options = { parameters: 'max=1', timeoutMs: 500, onUnreachable }
  const store = await openPostgresStore({ ...database, url: bothOf(database, database) }, options)
  // A slow machine may report an outage while the store opens.
  reported.length = 0
  const all = store.transaction(async () => settleAll([store.get([1n])]))
  const inUse = unavailable('All connections to postgres:\\S+ are in use$')
  expect([await all, reported]).toEqual([[inUse], []])
})

test('an operation at a silent server fails in time, also with a timeout of 0', async () => {
  const database = await server()
  const { port } = await ScriptedServer.listen({})
  const address = parseDatabaseAddress({ url: at(port, database) })
  const opening = PostgresStore.open(
    address,
    'read',
    buildDatabaseOptions(database, { timeoutMs: 0 }),
  )
  expect(await settleAll([opening])).toEqual([unavailable('it timed out$')])
})

test('a store fails in time while its database is read-only, and works again afterwards', async () => {
  const database = await server()
  const notNow = unavailable('read-only at the moment')
  const [hasty, patient] = [
    await openPostgresStore(database, { timeoutMs: 1000 }),
    await openPostgresStore(database),
  ]
  const set = (value: string) => configure(database, `default_transaction_read_only = ${value}`)
  await hasty.check()
  await set('on')
  const create = () => settleAll([createPlant(hasty, { id: 9n, name: 'Oak' })])
  await expect.poll(create, often).toEqual([notNow])
  await expect.poll(() => settleAll([hasty.check()]), often).toEqual([notNow])
  const created = createPlant(patient, moss)
  await set('off')
  expect(await Promise.all([created, createPlant(patient, fern)])).toStrictEqual([moss, fern])
})

describe('an address with several hosts', () => {
  const getDatabase = shareDatabase()

  test.each(['is down', 'says nothing'])('uses the next host when the first %s', async (how) => {
    const database = await getDatabase()
    const port = how === 'is down' ? closedPort : (await ScriptedServer.listen({})).port
    const url = bothOf({ url: at(port, database) }, database)
    const store = await openPostgresStore({ ...database, url }, { timeoutMs: 2000 })
    expect(await createPlant(store, fern)).toStrictEqual(fern)
  })

  test('uses the host that accepts writes', async () => {
    const [reader, writer] = [await server(), await getDatabase()]
    const name = getDatabaseName(writer)
    await reader.queryAsSuperuser(`CREATE DATABASE ${name} OWNER plants`)
    await reader.queryAsSuperuser(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
    const store = await openPostgresStore({ ...writer, url: bothOf(reader, writer) })
    await createPlant(store, fern)
    expect(await writer.query('SELECT id FROM plant_store.plants')).toEqual([{ id: 1n }])
    await reader.stop('immediate')
    expect(await createPlant(store, moss)).toStrictEqual(moss)
    await reader.start()
  })
})

/** Ends the sessions of all stores in a database. */
async function endSessions({ queryAsSuperuser }: Database): Promise<void> {
  const own = "application_name = 'plants' AND datname = current_database()" // other tests use the same server
  await queryAsSuperuser(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${own}`)
}

/** The address of two servers that have the same database. */
function bothOf(first: { url: string }, second: { url: string }): string {
  return second.url.replace('@', `@${new URL(first.url).host},`)
}

function at(port: number, { url }: Database): string {
  return Object.assign(new URL(url), { port }).href
}
