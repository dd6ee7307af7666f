import { expect, onTestFinished, test } from 'vitest'
import { ConnectionPool } from '../../../../src/stores/postgres/pool.js'
import { grants, migrate, migrations } from '../../../../src/stores/postgres/postgres-schema.js'
import { PostgresStore } from '../../../../src/stores/postgres/postgres-store.js'
import { batchOf, createAll } from '../../../helpers/bulk.js'
import { password } from '../../../helpers/postgres/cluster.js'
import { type Database, freshDatabase, ownServer, reusedDatabase } from '../../../helpers/postgres.js'
import { settled } from '../../../helpers/settled.js'
import { addressOf, databaseOptions, openShared } from '../../../helpers/shared-store.js'

const database = reusedDatabase()
const fern = { id: 1n, name: 'Fern' }

test('makes one schema when ten stores are first opened at the same moment', async () => {
  const place = await freshDatabase()
  const stores = await Promise.all(Array.from({ length: 10 }, () => openShared(place, { parameters: 'max=1' })))
  const answers = await Promise.all(stores.map((store, index) => store.create({ id: BigInt(index), name: 'Fern' })))
  expect(answers).toStrictEqual(stores.map(() => ({ name: 'Fern' })))
  expect(await place.sql('SELECT version FROM plant_store.schema_version')).toEqual([{ version: 3 }])
})

test('migrates while another store goes on creating, and the older one refuses then to open', async () => {
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
  expect(await settled([openShared(place), PostgresStore.openExisting(address, databaseOptions(place))])).toEqual([
    newer,
    newer,
  ])
})

test('is told to be migrated when it is opened for reading and lacks a column', async () => {
  const place = await freshDatabase()
  const address = addressOf(place)
  await openShared(place)
  await place.sql('ALTER TABLE plant_store.tokens DROP COLUMN rights')
  const store = await PostgresStore.openExisting(address, databaseOptions(place))
  onTestFinished(async () => store?.close())
  const older = `unavailable: ${address.name} has the tables of an older version of plants: column "rights" does not exist`
  const find = async () => store?.tokens.find(Buffer.from('old'))
  expect(await settled([find()])).toEqual([older])
})

test('lets a role with its grants create and read, and not delete', async () => {
  const place = await database()
  const owner = await openShared(place)
  await owner.create(fern)
  const clerk = await roleIn(place, 'clerk')
  expect(await settled([openShared(clerk)])).toEqual([refused(clerk, 'permission denied for schema plant_store')])
  await place.sql(grants({ role: clerk.role, rights: ['create', 'read'] }))
  const store = await openShared(clerk)
  await store.create({ id: 2n, name: 'Moss' })
  await store.keepCheckpoint({ id: 'a', state: 'b' })
  await store.check()
  expect(await store.get(1n)).toStrictEqual(fern)
  expect(await store.rights()).toEqual(['create', 'read'])
  const denied = refused(clerk, 'permission denied for table plants')
  expect(await settled([store.delete(1n), store.replace(fern)])).toEqual([denied, denied])
  await place.sql(grants({ role: clerk.role, rights: ['update', 'delete'] }))
  expect(await store.rights()).toEqual(['create', 'read', 'update', 'delete'])
  expect(await store.replace({ id: 1n, name: 'Ivy' })).toStrictEqual({ id: 1n, name: 'Ivy' })
})

test('says what is missing when a role may not make the schema', async () => {
  const place = await freshDatabase()
  const clerk = await roleIn(place, 'newcomer')
  expect(await settled([openShared(clerk)])).toEqual([
    refused(clerk, `permission denied for database ${new URL(place.url).pathname.slice(1)}`),
  ])
})

test('refuses a database that has not every character', async () => {
  const place = await database()
  const name = `${new URL(place.url).pathname.slice(1)}latin`
  await place.admin(`CREATE DATABASE ${name} OWNER plants TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`)
  onTestFinished(async () => void (await place.admin(`DROP DATABASE ${name} WITH (FORCE)`)))
  const latin = { ...place, url: Object.assign(new URL(place.url), { pathname: `/${name}` }).href }
  expect(await settled([openShared(latin)])).toEqual([
    `unavailable: ${addressOf(latin).name} has the encoding LATIN1, which cannot store every character`,
  ])
})

test('creates nothing that a crash could lose, from the moment that a setting says so', async () => {
  const place = await ownServer()
  const { name } = addressOf(place)
  const early = `unavailable: ${name} answers before a plant is on disk: fsync is off`
  const store = await openShared(place)
  await store.create(fern)
  await place.admin('ALTER SYSTEM SET fsync = off')
  await place.admin('SELECT pg_reload_conf()')
  await expect.poll(() => settled([store.check()]), { interval: 5 }).toEqual([early])
  const oak = { id: 2n, name: 'Oak' }
  const all = () =>
    store.createAll(
      () => [[oak]],
      () => false,
    )
  const calls = [
    store.create(oak),
    createAll(store, batchOf([oak])),
    all(),
    store.replace({ ...fern, tag: 'shade' }),
    store.delete(1n),
  ]
  expect(await settled([...calls, openShared(place)])).toEqual([...calls, 0].map(() => early))
  expect(await place.sql('SELECT id, tag FROM plant_store.plants')).toEqual([{ id: 1n, tag: null }])
})

async function roleIn(place: Database, prefix: string): Promise<Database & { role: string }> {
  const role = `${prefix}_${new URL(place.url).pathname.slice(1)}`
  await place.admin(`CREATE ROLE ${role} LOGIN PASSWORD '${password}'`)
  onTestFinished(async () => void (await place.admin(`DROP OWNED BY ${role}; DROP ROLE ${role}`)))
  return { ...place, role, url: Object.assign(new URL(place.url), { username: role }).href }
}

function refused(place: Database & { role: string }, why: string): string {
  return `unavailable: Permission denied for ${place.role} in ${addressOf(place).name}: ${why}`
}
