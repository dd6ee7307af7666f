import { expect, onTestFinished, test } from 'vitest'
import { ConnectionPool } from '../../../../src/stores/postgres/pool.js'
import { migrate, migrations } from '../../../../src/stores/postgres/postgres-schema.js'
import { PostgresStore } from '../../../../src/stores/postgres/postgres-store.js'
import { objectsOf } from '../../../helpers/json-lines.js'
import { freshDatabase, ownServer, reusedDatabase } from '../../../helpers/postgres.js'
import type { RunOptions } from '../../../helpers/run.js'
import {
  addressOf,
  asRole,
  configure,
  createAll,
  createAtomically,
  databaseOptions,
  grantsTo,
  nameOf,
  openShared,
  settled,
} from '../../../helpers/shared-store.js'
import { createPlant, deletePlant, replacePlant } from '../../../helpers/store.js'
import { World } from '../../../helpers/world.js'

const database = reusedDatabase()
const fern = { id: 1n, name: 'Fern' }

test('ten that create a store at once create one, and one of them says so', async () => {
  const place = await freshDatabase({ isEmpty: true })
  const init = () => PostgresStore.init(addressOf(place), databaseOptions(place))
  const created = await Promise.all(Array.from({ length: 10 }, init))
  expect(created.toSorted()).toEqual([...Array(9).fill(false), true])
  expect(await place.sql('SELECT version FROM plant_store.schema_version')).toEqual([
    { version: 4 },
  ])
})

test('migrates while another store creates, and then no older one opens', async () => {
  const place = await freshDatabase()
  const [older, address] = [await openShared(place), addressOf(place)]
  const { pool } = await ConnectionPool.open(address, databaseOptions(place), async () => undefined)
  onTestFinished(() => pool.close())
  let isMigrated = false
  const creating = (async () => {
    for (let id = 0n; !isMigrated || id < 50n; id += 1n)
      await createPlant(older, { id, name: 'Fern' })
  })()
  const steps = [...migrations, 'ALTER TABLE plant_store.plants ADD COLUMN watered bigint']
  await Promise.all([1, 2, 3].map(() => pool.run((connection) => migrate(connection, { steps }))))
  isMigrated = true
  await creating
  expect(await place.sql('SELECT max(version) AS version FROM plant_store.schema_version')).toEqual(
    [{ version: 5 }],
  )
  const newer = `unavailable: ${address.name} was created by a newer version of plants (schema 5, this one supports 4)`
  const opened = [openShared(place), PostgresStore.openExisting(address, databaseOptions(place))]
  expect(await settled(opened)).toEqual([newer, newer])
})

test('lets a role do what it has been granted', async () => {
  const place = await database()
  const owner = await openShared(place)
  await createPlant(owner, fern)
  const clerk = await asRole(place, 'clerk')
  const name = addressOf(clerk).name
  const denied = (what: string) =>
    `unavailable: Permission denied for ${clerk.role} in ${name}: permission denied for ${what}`
  expect(await settled([openShared(clerk)])).toEqual([denied('schema plant_store')])
  await place.sql(grantsTo(clerk.role, 'SELECT, INSERT'))
  const store = await openShared(clerk)
  await createPlant(store, { id: 2n, name: 'Moss' })
  await store.transaction(({ saveCheckpoint }) =>
    saveCheckpoint({ id: 'a', from: undefined, to: 'b' }),
  )
  await store.check()
  const mayNot = `unavailable: ${clerk.role} has no right to delete plants in ${name}`
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
  const why = 'has the encoding LATIN1, which cannot store every character'
  expect(await settled([openShared(latin)])).toEqual([
    `unavailable: ${addressOf(latin).name} ${why}`,
  ])
})

test('changes nothing that a crash could lose', async () => {
  const place = await ownServer()
  const early = `unavailable: ${addressOf(place).name} answers before a plant is on disk: fsync is off`
  const store = await openShared(place)
  await createPlant(store, fern)
  await configure(place, 'fsync = off')
  await expect.poll(() => settled([store.check()]), { interval: 5 }).toEqual([early])
  const oak = { id: 2n, name: 'Oak' }
  const calls = [
    createPlant(store, oak),
    createAll(store, [oak]),
    createAtomically(store, [oak]),
    replacePlant(store, { ...fern, tag: 'shade' }),
    deletePlant(store, 1n),
    openShared(place),
  ]
  expect(await settled(calls)).toEqual(calls.map(() => early))
  expect(await place.sql('SELECT id, tag FROM plant_store.plants')).toEqual([{ id: 1n, tag: null }])
})

const create = 'create --id 1 --name Fern'

/** A fresh database, a user of it, and what doctor says of it. */
async function gardener() {
  const place = await freshDatabase()
  const { url } = place
  const user = new World()
  const run = (line: string, store = url, options: RunOptions = {}) =>
    user.run(line, { ...options, env: { ...place.env, PLANTS_STORE: store } })
  const doctor = async (check: string, store = url) => {
    const { code, out } = await run('doctor', store)
    return { code, ...objectsOf(out).find((found) => `${found['check']}`.startsWith(check)) }
  }
  return { place, url, run, doctor }
}

test('doctor checks a database, and what its role may do', async () => {
  const { place, url, doctor } = await gardener()
  const name = url.replace('plants@', '')
  const ok = { code: 0, check: `store ${name}`, state: 'ok' }
  expect(await doctor('store postgres')).toEqual({ ...ok, message: name })
  const { role, url: own } = await asRole(place, 'gardener')
  await place.sql(grantsTo(role, 'SELECT'))
  const hint = expect.stringContaining('Least privilege')
  expect(await doctor('store postgres', own)).toMatchObject({ code: 0, state: 'warning', hint })
  await place.sql(grantsTo(role, 'SELECT, INSERT'))
  await place.admin('DROP SCHEMA public')
  expect(await doctor('store postgres', own)).toMatchObject(ok)
  const missing = url.replace(/db\w+$/, 'nowhere')
  expect(await doctor('store postgres', missing)).toMatchObject({ code: 1, state: 'failed' })
})

test('doctor asks the catalog for the unique constraints of a database', async () => {
  const { place, run, doctor } = await gardener()
  await run(create)
  const message = 'all unique constraints of the tables are in place and valid'
  expect(await doctor('contents')).toEqual({ code: 0, check: 'contents', state: 'ok', message })
  await place.sql('ALTER TABLE plant_store.plants DROP CONSTRAINT plants_pkey')
  // as a REINDEX CONCURRENTLY that fails would leave it
  const key = "'plant_store.tokens_digest_key'::regclass"
  await place.admin(`UPDATE pg_index SET indisvalid = false WHERE indexrelid = ${key}`)
  expect(await doctor('contents')).toEqual({
    ...{ code: 1, check: 'contents', state: 'failed' },
    message: expect.stringMatching(/ has lost unique constraints: plants_pkey, tokens_digest_key$/),
    hint: 'Add them again, or restore a backup',
  })
  expect(await run('doctor --quick')).toMatchObject({ code: 0 })
})

test('a store of an earlier version is migrated aloud by its owner, and keeps its plants', async () => {
  const place = await freshDatabase({ isEmpty: true })
  const address = addressOf(place)
  const { pool } = await ConnectionPool.open(address, databaseOptions(place), (connection) =>
    migrate(connection, { mayCreate: true, steps: migrations.slice(0, 1) }),
  )
  onTestFinished(() => pool.close())
  await place.sql("INSERT INTO plant_store.plants (id, attempt, name) VALUES (1, 5, 'Fern')")
  const clerk = await asRole(place, 'clerk')
  await place.sql(grantsTo(clerk.role, 'SELECT, INSERT'))
  const existing = await PostgresStore.openExisting(addressOf(clerk), databaseOptions(place))
  onTestFinished(() => existing.close())
  expect(await existing.get([1n])).toEqual(new Map([[1n, fern]]))
  const denied = `unavailable: Permission denied for ${clerk.role} in ${address.name}: must be owner of table plants`
  expect(await settled([openShared(clerk)])).toEqual([denied])
  const migrated: string[] = []
  const onMigrated = async (name: string) => void migrated.push(name)
  for (const _ of [1, 2]) await openShared(place, { onMigrated })
  expect(migrated).toEqual([address.name])
  const store = await openShared(clerk, { onMigrated })
  await place.sql("INSERT INTO plant_store.plants (id, name) VALUES (7, 'x')") // as other programs do
  await createPlant(store, { id: 2n, name: 'Moss' })
  const plants = [fern, { id: 2n, name: 'Moss' }, { id: 7n, name: 'x' }]
  expect(
    [...(await store.get([1n, 2n, 7n])).values()].toSorted((a, b) => Number(a.id - b.id)),
  ).toEqual(plants)
})
