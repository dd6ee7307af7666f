import { expect, onTestFinished, test } from 'vitest'
import { PlantsError } from '../../../../src/platform/errors.js'
import { ConnectionPool } from '../../../../src/stores/postgres/pool.js'
import { grants, migrate, migrations } from '../../../../src/stores/postgres/postgres-schema.js'
import { PostgresStore } from '../../../../src/stores/postgres/postgres-store.js'
import { batchOf, createAll } from '../../../helpers/bulk.js'
import { objectsOf } from '../../../helpers/json-lines.js'
import { freshDatabase, ownServer, reusedDatabase } from '../../../helpers/postgres.js'
import type { RunOptions } from '../../../helpers/run.js'
import {
  addressOf,
  asRole,
  configure,
  createAtomically,
  databaseOptions,
  endSessions,
  nameOf,
  openShared,
  othersWait,
  settled,
} from '../../../helpers/shared-store.js'
import { answer, printed, World } from '../../../helpers/world.js'

const database = reusedDatabase()
const fern = { id: 1n, name: 'Fern' }

test('makes one schema when ten stores are first opened at once', async () => {
  const place = await freshDatabase()
  const stores = await Promise.all(Array.from({ length: 10 }, () => openShared(place, { parameters: 'max=1' })))
  const answers = await Promise.all(stores.map((store, index) => store.create({ id: BigInt(index), name: 'Fern' })))
  expect(answers).toStrictEqual(stores.map(() => ({ name: 'Fern' })))
  expect(await place.sql('SELECT version FROM plant_store.schema_version')).toEqual([{ version: 3 }])
})

test('migrates while another store creates, and then no older one opens', async () => {
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

test('has to be migrated when it lacks a column', async () => {
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

test('rejects a database that has not every character', async () => {
  const place = await database()
  const name = `${nameOf(place)}latin`
  await place.admin(`CREATE DATABASE ${name} OWNER plants TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`)
  onTestFinished(async () => void (await place.admin(`DROP DATABASE ${name} WITH (FORCE)`)))
  const latin = { ...place, url: Object.assign(new URL(place.url), { pathname: `/${name}` }).href }
  const why = 'has the encoding LATIN1, which cannot store every character'
  expect(await settled([openShared(latin)])).toEqual([`unavailable: ${addressOf(latin).name} ${why}`])
})

test('changes nothing that a crash could lose', async () => {
  const place = await ownServer()
  const early = `unavailable: ${addressOf(place).name} answers before a plant is on disk: fsync is off`
  const store = await openShared(place)
  await store.create(fern)
  await configure(place, 'fsync = off')
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

const create = 'create --id 1 --name Fern'

/** A fresh database, a user of it, and what doctor says of it. */
async function gardener() {
  const place = await freshDatabase()
  const { url } = place
  const user = new World()
  const run = (line: string, store = url, options: RunOptions = {}) =>
    user.run(line, { ...options, env: { ...place.env, PLANTS_STORE: store, ...options.env } })
  const doctor = async (store = url) => {
    const { code, out } = await run('doctor', store)
    return { code, ...objectsOf(out).find(({ check }) => `${check}`.startsWith('store postgres')) }
  }
  return { place, url, user, run, doctor }
}

test('a password is saved when the database accepts it', async () => {
  const { place, url, user, run } = await gardener()
  const log = (stdin: string) => run('auth login --with-token --output text', url, { stdin, env: { PGPASSWORD: '' } })
  expect(await log('s3cret-but-wrong')).toMatchObject({ code: 3, err: expect.stringContaining('Nothing was saved') })
  expect(user.saved).toBeUndefined()
  const noPassword = { env: { PGPASSWORD: '' } }
  const hint = expect.stringContaining('plants auth login\n')
  expect(await run(create, url, noPassword)).toMatchObject({ code: 3, err: hint })
  expect(await log(`${place.env.PGPASSWORD}\n`)).toEqual(printed(`Saved the password for ${url}, which accepts it\n`))
  expect(await run(create, url, noPassword)).toEqual(answer({ name: 'Fern' }))
})

test('doctor checks a database', async () => {
  const { place, url, run, doctor } = await gardener()
  const ok = { code: 0, check: `store ${url}`, state: 'ok' }
  expect(await doctor()).toEqual({ ...ok, message: expect.stringMatching(/ \(no store yet\), PostgreSQL [\d.]+$/) })
  await run(create)
  expect(await doctor()).toEqual({ ...ok, message: expect.stringMatching(/^postgres:\S+, PostgreSQL [\d.]+$/) })
  const elsewhere = await doctor(url.replace('127.0.0.1', '0.0.0.0')) // which leads here too
  expect(elsewhere).toMatchObject({ code: 0, state: 'warning', message: expect.stringContaining('has no TLS') })
  await place.admin('DROP SCHEMA public')
  expect(await doctor()).toMatchObject(ok)
  expect(await doctor(url.replace(/db\w+$/, 'nowhere'))).toMatchObject({ code: 1, state: 'failed' })
})

test('a dry run shows what a create would do', async () => {
  const { place, url, run } = await gardener()
  const dry = { dryRun: true, id: 1, name: 'Fern', store: url, storeExists: false, creates: true }
  expect(await run(`${create} --dry-run`)).toEqual(answer(dry))
  expect(await place.sql(`SELECT to_regclass('plant_store.plants') IS NULL AS none`)).toEqual([{ none: true }])
  await run(create)
  expect(await run(`${create} --dry-run`)).toMatchObject({ code: 1, err: expect.stringContaining('already exists') })
})

test('an administrator makes a store for a role', async () => {
  const { place, url, run, doctor } = await gardener()
  const { role, url: own } = await asRole(place, 'gardener')
  const hint = expect.stringContaining(`plants stores init ADDRESS --role ${role}`)
  expect(await doctor(own)).toMatchObject({ code: 1, state: 'failed', hint })
  expect(await run(`stores init ${url} --role ${role}`)).toEqual(answer({ address: url, role }))
  expect(await doctor(own)).toMatchObject({ code: 0, state: 'ok' })
  const ready = `The store in ${url} is ready, and ${role} may create and read plants there\n`
  expect(await run(`stores init ${url} --role ${role} --output text`)).toMatchObject({ out: ready })
})

test('an import that is stopped while it is rolled back has created nothing', async () => {
  const { place, url, user, run } = await gardener()
  expect(await run(`stores init ${url}`)).toMatchObject({ code: 0 })
  await place.hold('LOCK TABLE plant_store.imports IN EXCLUSIVE MODE')
  user.write('plants.ndjson', '{"id":1,"name":"Fern"}')
  const stop = new AbortController()
  const result = run('import plants.ndjson', url, { signal: stop.signal })
  await othersWait(place, 1)
  stop.abort(new PlantsError('interrupted', 'Interrupted'))
  await endSessions(place)
  const { code, out, err } = await result
  expect([code, out, err.split('\n').at(-2)]).toEqual([130, '', 'plants: Interrupted, nothing was changed'])
  expect(await place.sql('SELECT count(*)::int FROM plant_store.plants')).toEqual([{ count: 0 }])
})
