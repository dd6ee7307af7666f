import { expect, onTestFinished, test } from 'vitest'
import { PostgresStore } from '../../../../src/stores/postgres/store.js'
import { freshDatabase, ownServer, reusedDatabase } from '../../../helpers/postgres.js'
import {
  addressOf,
  asRole,
  configure,
  databaseOptions,
  grantsTo,
  nameOf,
  openShared,
  settled,
} from '../../../helpers/shared-store.js'
import { createPlant, deletePlant } from '../../../helpers/store.js'
import { objectsOf, World } from '../../../helpers/world.js'

const database = reusedDatabase()
const fern = { id: 1n, name: 'Fern' }

test('ten that create a store at once create one, and one of them says so', async () => {
  const place = await freshDatabase({ isEmpty: true })
  const init = () => PostgresStore.init(addressOf(place), databaseOptions(place))
  const created = await Promise.all(Array.from({ length: 10 }, init))
  expect(created.toSorted()).toEqual([...Array(9).fill(false), true])
  expect(await place.sql('SELECT version FROM plant_store.schema_version')).toEqual([
    { version: 1 },
  ])
})

test('a store of another version is not opened', async () => {
  const place = await freshDatabase()
  await place.sql('UPDATE plant_store.schema_version SET version = 2')
  const other = `inaccessible: The store at ${addressOf(place).name} has version 2 of the schema, but this program needs version 1`
  const init = PostgresStore.init(addressOf(place), databaseOptions(place))
  expect(await settled([openShared(place), init])).toEqual([other, other])
})

test('lets a role do what it has been granted', async () => {
  const place = await database()
  const owner = await openShared(place)
  await createPlant(owner, fern)
  const clerk = await asRole(place, 'clerk')
  const name = addressOf(clerk).name
  const denied = (what: string) =>
    `inaccessible: ${name} reported an error: permission denied for ${what}`
  expect(await settled([openShared(clerk)])).toEqual([denied('schema plant_store')])
  await place.sql(grantsTo(clerk.role, 'SELECT, INSERT'))
  const store = await openShared(clerk)
  await createPlant(store, { id: 2n, name: 'Moss' })
  expect(await settled([createPlant(store, { id: 1n, name: 'Moss' })])).toEqual([
    'conflict: A plant with id 1 already exists',
  ])
  await store.transaction(({ saveCheckpoint }) =>
    saveCheckpoint({ id: 'a', from: undefined, to: 'b' }),
  )
  await store.check()
  const mayNot = 'inaccessible: The store gives no right to delete plants'
  expect(await settled([store.check(['read']), store.check(['read', 'delete'])])).toEqual([
    undefined,
    mayNot,
  ])
  expect([(await store.get([1n])).get(1n), await store.rights()]).toEqual([
    fern,
    ['create', 'read'],
  ])
  expect(await settled([deletePlant(store, 1n)])).toEqual([denied('table plants')])
  await place.sql(grantsTo(clerk.role, 'UPDATE, DELETE'))
  expect(await store.rights()).toEqual(['create', 'read', 'update', 'delete'])
  expect(await deletePlant(store, 1n)).toStrictEqual(fern)
})

test('rejects a database that has not every character', async () => {
  const place = await database()
  const name = `${nameOf(place)}latin`
  await place.admin(
    `CREATE DATABASE ${name} OWNER plants TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`,
  )
  onTestFinished(async () => void (await place.admin(`DROP DATABASE ${name} WITH (FORCE)`)))
  const latin = { ...place, url: Object.assign(new URL(place.url), { pathname: `/${name}` }).href }
  const why = 'has the encoding LATIN1 in place of UTF8'
  expect(await settled([openShared(latin)])).toEqual([
    `inaccessible: ${addressOf(latin).name} ${why}`,
  ])
})

test('rejects a server that could lose what it has answered', async () => {
  const place = await ownServer()
  const early = `inaccessible: ${addressOf(place).name} answers before a plant is on disk: fsync is off`
  const store = await openShared(place)
  await configure(place, 'fsync = off')
  await expect.poll(() => settled([store.check()]), { interval: 5 }).toEqual([early])
  expect(await settled([openShared(place)])).toEqual([early])
})

test('doctor checks a database, and what its role may do', async () => {
  const place = await freshDatabase()
  const { url } = place
  const user = new World()
  const doctor = async (store = url) => {
    const { code, out } = await user.run('doctor', { env: { ...place.env, PLANTS_STORE: store } })
    return {
      code,
      ...objectsOf(out).find((found) => `${found['check']}`.startsWith('store postgres')),
    }
  }
  const name = url.replace('plants@', '')
  const ok = { code: 0, check: `store ${name}`, state: 'ok' }
  expect(await doctor()).toEqual({ ...ok, message: name })
  const { role, url: own } = await asRole(place, 'gardener')
  await place.sql(grantsTo(role, 'SELECT'))
  const hint = expect.stringContaining('Least privilege')
  expect(await doctor(own)).toMatchObject({ code: 0, state: 'warning', hint })
  await place.sql(grantsTo(role, 'SELECT, INSERT'))
  await place.admin('DROP SCHEMA public')
  expect(await doctor(own)).toMatchObject(ok)
  const missing = url.replace(/db\w+$/, 'nowhere')
  expect(await doctor(missing)).toMatchObject({ code: 1, state: 'failed' })
})
