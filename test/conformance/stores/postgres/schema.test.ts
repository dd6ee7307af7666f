import { expect, onTestFinished, test } from 'vitest'
import { ConnectionPool } from '../../../../src/stores/postgres/pool.js'
import { grants, migrate, migrations } from '../../../../src/stores/postgres/postgres-schema.js'
import { PostgresStore } from '../../../../src/stores/postgres/postgres-store.js'
import { batchOf, createAll } from '../../../helpers/bulk.js'
import { freshDatabase, ownServer, reusedDatabase } from '../../../helpers/postgres.js'
import { settled } from '../../../helpers/settled.js'
import {
  addressOf,
  asRole,
  createAtomically,
  databaseOptions,
  nameOf,
  openShared,
} from '../../../helpers/shared-store.js'

const database = reusedDatabase()
const fern = { id: 1n, name: 'Fern' }

test('makes one schema when ten stores are first opened at the same moment', async () => {
  const place = await freshDatabase()
  const stores = await Promise.all(Array.from({ length: 10 }, () => openShared(place, { parameters: 'max=1' })))
  const answers = await Promise.all(stores.map((store, index) => store.create({ id: BigInt(index), name: 'Fern' })))
  expect(answers).toStrictEqual(stores.map(() => ({ name: 'Fern' })))
  expect(await place.sql('SELECT version FROM plant_store.schema_version')).toEqual([{ version: 3 }])
})

test('migrates while another store goes on creating, and then no older one opens', async () => {
  const place = await freshDatabase()
  const [older, address] = [await openShared(place), addressOf(place)]
  const options = databaseOptions(place)
  const connections = new ConnectionPool({ address, login: await options.login(address) }, options)
  onTestFinished(() => connections.close())
  let isMigrated = false
  const creating = (async () => {
    for (let id = 0n; !isMigrated || id < 50n; id += 1n) await older.create({ id, name: 'Fern' })
  })()
  const steps = [...migrations, 'ALTER TABLE plant_store.plants ADD COLUMN watered bigint']
  const turn = { deadline: performance.now() + 10_000 }
  await Promise.all([1, 2, 3].map(() => connections.use(turn, (client) => migrate(client, address, steps))))
  isMigrated = true
  await creating
  expect(await place.sql('SELECT max(version) AS version FROM plant_store.schema_version')).toEqual([{ version: 4 }])
  const newer = `unavailable: ${address.name} was created by a newer version of plants (schema 4, this one supports 3)`
  const opened = [openShared(place), PostgresStore.openExisting(address, databaseOptions(place))]
  expect(await settled(opened)).toEqual([newer, newer])
})

test('has to be migrated when it is opened for reading and lacks a column', async () => {
  const place = await freshDatabase()
  const address = addressOf(place)
  await openShared(place)
  await place.sql('ALTER TABLE plant_store.tokens DROP COLUMN rights')
  const store = await PostgresStore.openExisting(address, databaseOptions(place))
  onTestFinished(async () => store?.close())
  const why = 'has the tables of an older version of plants: column "rights" does not exist'
  const find = async () => store?.tokens.find(Buffer.from('old'))
  expect(await settled([find()])).toEqual([`unavailable: ${address.name} ${why}`])
})

test('lets a role do what it has been granted', async () => {
  const place = await database()
  const owner = await openShared(place)
  await owner.create(fern)
  const clerk = await asRole(place, 'clerk')
  const denied = (what: string) =>
    `unavailable: Permission denied for ${clerk.role} in ${addressOf(clerk).name}: permission denied for ${what}`
  expect(await settled([openShared(clerk)])).toEqual([denied('schema plant_store')])
  await place.sql(grants({ role: clerk.role, rights: ['create', 'read'] }))
  const store = await openShared(clerk)
  await store.create({ id: 2n, name: 'Moss' })
  await store.keepCheckpoint({ id: 'a', state: 'b' })
  await store.check()
  expect([await store.get(1n), await store.rights()]).toEqual([fern, ['create', 'read']])
  expect(await settled([store.delete(1n), store.replace(fern)])).toEqual(Array(2).fill(denied('table plants')))
  await place.sql(grants({ role: clerk.role, rights: ['update', 'delete'] }))
  expect(await store.rights()).toEqual(['create', 'read', 'update', 'delete'])
  expect(await store.replace({ id: 1n, name: 'Ivy' })).toStrictEqual({ id: 1n, name: 'Ivy' })
})

test('names the database in which a role may not make the schema', async () => {
  const place = await freshDatabase()
  const message = expect.stringMatching(
    new RegExp(`^unavailable: .*: permission denied for database ${nameOf(place)}$`),
  )
  expect(await settled([openShared(await asRole(place, 'newcomer'))])).toEqual([message])
})

test('rejects a database that has not every character', async () => {
  const place = await database()
  const name = `${nameOf(place)}latin`
  await place.admin(`CREATE DATABASE ${name} OWNER plants TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`)
  onTestFinished(async () => void (await place.admin(`DROP DATABASE ${name} WITH (FORCE)`)))
  const latin = { ...place, url: Object.assign(new URL(place.url), { pathname: `/${name}` }).href }
  const why = 'has the encoding LATIN1, which cannot store every character'
  expect(await settled([openShared(latin)])).toEqual([`unavailable: ${addressOf(latin).name} ${why}`])
})

test('changes nothing that a crash could lose, from the moment that a setting allows that', async () => {
  const place = await ownServer()
  const early = `unavailable: ${addressOf(place).name} answers before a plant is on disk: fsync is off`
  const store = await openShared(place)
  await store.create(fern)
  await place.admin('ALTER SYSTEM SET fsync = off')
  await place.admin('SELECT pg_reload_conf()')
  await expect.poll(() => settled([store.check()]), { interval: 5 }).toEqual([early])
  const oak = { id: 2n, name: 'Oak' }
  const calls = [
    store.create(oak),
    createAll(store, batchOf([oak])),
    createAtomically(store, [oak]),
    store.replace({ ...fern, tag: 'shade' }),
    store.delete(1n),
    openShared(place),
  ]
  expect(await settled(calls)).toEqual(calls.map(() => early))
  expect(await place.sql('SELECT id, tag FROM plant_store.plants')).toEqual([{ id: 1n, tag: null }])
})
