import { describe, expect, test } from 'vitest'
import { PostgresStore } from '../../../../src/stores/postgres/store.js'
import { closedPort, Hostile } from '../../../helpers/hostile.js'
import {
  addressOf,
  type Database,
  databaseOptions,
  openShared,
  reusedDatabase,
  reusedServer,
} from '../../../helpers/postgres.js'
import { createPlant } from '../../../helpers/store.js'
import { configure, nameOf, settled } from './steps.js'

const server = reusedServer()
const ids = (count: number) => Array.from({ length: count }, (_, index) => BigInt(index))
const fern = { id: 1n, name: 'Fern' }
const moss = { id: 2n, name: 'Moss' }
const stored = 'SELECT id, idempotency_key AS key FROM plant_store.plants ORDER BY id'
const insertion = "INSERT INTO plant_store.plants (id, name) VALUES (1, 'Moss')"
const locked = 'LOCK TABLE plant_store.plants IN EXCLUSIVE MODE'
const unavailable = (why = '') => expect.stringMatching(RegExp(`^unavailable: .*${why}`))
const often = { interval: 5 }

test('loses and doubles nothing when the server ends every connection under load', async () => {
  const place = await server()
  const store = await openShared(place)
  const plants = ids(3000).map((id) => ({ id, name: `Fern ${id}` }))
  const calls = plants.map((plant) => createPlant(store, plant, `key-${plant.id}`))
  const answers = settled(calls)
  await Promise.race(calls) // the other batches are in flight
  await endSessions(place)
  expect(await answers).toStrictEqual(plants)
  expect(await place.sql(stored)).toEqual(plants.map(({ id }) => ({ id, key: `key-${id}` })))
})

test('fails in time while the server is away, and goes on afterwards', async () => {
  const place = await server()
  const told: unknown[] = []
  const onUnreachable = (failure: unknown) => void told.push(failure && `${failure}`)
  const hasty = await openShared(place, { timeoutMs: 1000 })
  const patient = await openShared(place, { onUnreachable })
  await place.stop('fast')
  expect(await settled([createPlant(hasty, fern)])).toEqual([unavailable()])
  const created = createPlant(patient, moss)
  await place.start()
  expect(await created).toStrictEqual(moss)
  expect(told).toEqual([expect.stringContaining('Could not reach postgres:'), undefined])
  expect(await place.sql(stored)).toEqual([{ id: 2n, key: null }])
})

test('fails at once when its login is rejected, and goes on afterwards', async () => {
  const place = await server()
  const store = await openShared(place)
  await place.admin('ALTER ROLE plants NOLOGIN')
  await endSessions(place)
  expect(await settled([createPlant(store, fern)])).toEqual([
    expect.stringMatching(/^accessDenied: .*not permitted/),
  ])
  await place.admin('ALTER ROLE plants LOGIN')
  expect(await createPlant(store, moss)).toStrictEqual(moss)
})

test.each([
  ['a lock', locked, ids(2), 'statement timeout'],
  ['others with the same id', insertion, Array(5).fill(1n), ''],
])('stores nothing of what has waited too long for %s', async (_, held, wanted, why) => {
  const place = await server()
  const store = await openShared(place, { timeoutMs: 1000 })
  const release = await place.hold(held)
  const calls = wanted.map((id) => createPlant(store, { id, name: 'Fern' }))
  expect(await settled(calls)).toEqual(calls.map(() => unavailable(why)))
  await release()
  expect(await place.sql(stored)).toEqual([])
  await expect.poll(() => settled([createPlant(store, fern, 'key')]), often).toEqual([fern])
})

test('creates the others that came together with one that waits for a lock', async () => {
  const place = await server()
  const store = await openShared(place, { parameters: 'max=2' })
  const release = await place.hold(insertion)
  const wanted = ids(20).map((id) => ({ id, name: 'Fern' }))
  const calls = wanted.map((plant) => createPlant(store, plant))
  const isBlocked = (_: unknown, id: number) => id === 1
  const others = calls.filter((call, id) => !isBlocked(call, id))
  expect(await Promise.all(others)).toEqual(wanted.filter((plant, id) => !isBlocked(plant, id)))
  const blocked = settled(calls.filter(isBlocked))
  await release('COMMIT')
  expect(await blocked).toEqual(['conflict: A plant with id 1 already exists'])
})

test('a full pool is not a server that is away', async () => {
  const place = await server()
  const told: unknown[] = []
  const onUnreachable = (failure: unknown) => void told.push(failure)
  const options = { parameters: 'max=1', timeoutMs: 500, onUnreachable }
  const store = await openShared({ ...place, url: bothOf(place, place) }, options)
  told.length = 0 // of opening it on a slow machine
  const all = store.transaction(async () => settled([store.get([1n])]))
  const inUse = unavailable('All connections to postgres:\\S+ are in use$')
  expect([await all, told]).toEqual([[inUse], []])
})

test('fails in time at a server that is silent, also where the time is 0', async () => {
  const place = await server()
  const { port } = await Hostile.listen({})
  const address = addressOf({ url: at(port, place) })
  const opening = PostgresStore.open(address, databaseOptions(place, { timeoutMs: 0 }))
  expect(await settled([opening])).toEqual([unavailable('connection timeout$')])
})

test('fails in time while the database is read-only, and goes on afterwards', async () => {
  const place = await server()
  const notNow = unavailable('not read-write')
  const [hasty, patient] = [await openShared(place, { timeoutMs: 1000 }), await openShared(place)]
  const set = (value: string) => configure(place, `default_transaction_read_only = ${value}`)
  await hasty.check()
  await set('on')
  const create = () => settled([createPlant(hasty, { id: 9n, name: 'Oak' })])
  await expect.poll(create, often).toEqual([notNow])
  await expect.poll(() => settled([hasty.check()]), often).toEqual([notNow])
  const created = createPlant(patient, moss)
  await set('off')
  expect(await Promise.all([created, createPlant(patient, fern)])).toStrictEqual([moss, fern])
})

describe('of several hosts', () => {
  const database = reusedDatabase()

  test.each(['is down', 'says nothing'])('takes the next when the first %s', async (how) => {
    const place = await database()
    const port = how === 'is down' ? closedPort : (await Hostile.listen({})).port
    const url = bothOf({ url: at(port, place) }, place)
    const store = await openShared({ ...place, url }, { timeoutMs: 2000 })
    expect(await createPlant(store, fern)).toStrictEqual(fern)
  })

  test('takes the one that takes writes', async () => {
    const [reader, writer] = [await server(), await database()]
    const name = nameOf(writer)
    await reader.admin(`CREATE DATABASE ${name} OWNER plants`)
    await reader.admin(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
    const store = await openShared({ ...writer, url: bothOf(reader, writer) })
    await createPlant(store, fern)
    expect(await writer.sql('SELECT id FROM plant_store.plants')).toEqual([{ id: 1n }])
    await reader.stop('immediate')
    expect(await createPlant(store, moss)).toStrictEqual(moss)
    await reader.start()
  })
})

/** Ends the sessions of all stores in a database. */
async function endSessions({ admin }: Database): Promise<void> {
  const own = "application_name = 'plants' AND datname = current_database()" // other tests use the same server
  await admin(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${own}`)
}

/** The address of two servers that have the same database. */
function bothOf(first: { url: string }, second: { url: string }): string {
  return second.url.replace('@', `@${new URL(first.url).host},`)
}

function at(port: number, { url }: Database): string {
  return Object.assign(new URL(url), { port }).href
}
