import { expect, onTestFinished, test } from 'vitest'
import {
  createDatabase,
  initStore,
  openPostgresStore,
  shareDatabase,
  startOwnServer,
} from '../../helpers/postgres/database.js'
import { configure } from '../../helpers/postgres/standby.js'
import { Sandbox, toJsonResult } from '../../helpers/sandbox/sandbox.js'
import { createPlant, deletePlant } from '../../helpers/sandbox/store.js'
import { createRole, getDatabaseName, settleAll } from './steps.js'

const getDatabase = shareDatabase()
const fern = { id: 1n, name: 'Fern' }
const accessDenied = (why: string) => expect.stringMatching(RegExp(`^accessDenied: .*${why}`))

test('ten concurrent commands create a store once, and one of them reports it', async () => {
  const database = await createDatabase({ isEmpty: true })
  const created = await Promise.all(Array.from({ length: 10 }, () => initStore(database)))
  expect(created.toSorted()).toEqual([...Array(9).fill(false), true])
  expect(await database.query('SELECT version FROM plant_store.schema_version')).toEqual([
    { version: 1 },
  ])
})

test('counts distinguish strings that a collation of the database considers equal', async () => {
  const database = await createDatabase()
  await database.query(`CREATE COLLATION plant_store.any_case
      (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
    ALTER TABLE plant_store.plants ALTER COLUMN tag TYPE text COLLATE plant_store.any_case`)
  const store = await openPostgresStore(database)
  for (const [index, tag] of ['Schön', 'Scho\u0308n', 'schon'].entries())
    await createPlant(store, { id: BigInt(index), name: 'Fern', tag })
  expect(await store.countBy('tag')).toEqual(
    new Map([
      ['Schön', 1n],
      ['Scho\u0308n', 1n],
      ['schon', 1n],
    ]),
  )
})

test('no command except stores init creates a store in a database', async () => {
  const { url, env, query } = await createDatabase({ isEmpty: true })
  const user = new Sandbox()
  const options = { env: { ...env, PLANTS_STORE: url }, stdin: '{"id":5,"name":"Fern"}\n' }
  const lines = [
    ...['list', 'get 1', 'count --by tag', 'export plants.csv', 'create --id next --name Fern'],
    ...['create --id 2 --name Fern', 'create --id 2 --name Fern --dry-run', 'update 1 --name A'],
    ...['delete 1 --yes', 'import', 'import --dry-run', 'import --atomic', 'import --by-name'],
    ...['tokens create', 'tokens list', 'serve --port 0'],
  ]
  for (const line of lines) {
    const { code, out, err } = await user.run(line, options)
    expect({ line, code, out, err }).toMatchObject({ line, code: 4, out: '' })
    expect(err).toContain('There is no store at postgres://')
  }
  expect((await user.run('doctor', options)).code).toBe(1)
  expect(user.has('plants.csv')).toBe(false)
  const schema = `SELECT to_regnamespace('plant_store') AS schema`
  expect(await query(schema)).toEqual([{ schema: null }])
  const address = url.replace('plants@', '')
  user.save({ stores: { shared: { address: url } } })
  for (const [endpoint, created] of [
    ['shared', true],
    [url, false],
  ] as const)
    expect(await user.run(`stores init ${endpoint}`, { env })).toEqual(
      toJsonResult({ address, created }),
    )
  expect((await user.run('list', options)).code).toBe(0)
})

test('a command does not open a store of another version', async () => {
  const database = await createDatabase()
  await database.query('UPDATE plant_store.schema_version SET version = 2')
  const other = accessDenied('version 2')
  expect(await settleAll([openPostgresStore(database), initStore(database)])).toEqual([
    other,
    other,
  ])
})

/** The grants of docs/postgresql.md, of such rights as `SELECT, INSERT`. */
function grantsTo(role: string, rights: string): string {
  return `GRANT USAGE ON SCHEMA plant_store TO ${role};
    GRANT SELECT ON plant_store.schema_version, plant_store.tokens TO ${role};
    GRANT ${rights} ON plant_store.plants TO ${role}`
}

test('a role that may not create a store gets the hint to use that of the owner', async () => {
  const database = await createDatabase({ isEmpty: true })
  const clerk = await createRole(database, 'clerk')
  const options = { env: { ...database.env, PLANTS_STORE: clerk.url } }
  const { code, err } = await new Sandbox().run(`stores init ${clerk.url}`, options)
  expect([code, err]).toEqual([
    4,
    expect.stringMatching(/permission denied for database .*\n {2}Use the role of the owner/),
  ])
  const owned = await new Sandbox().run(`stores init ${database.url}`, options)
  expect(owned).toMatchObject({ code: 0 })
})

test('a role may do exactly what it has been granted', async () => {
  const database = await getDatabase()
  await createPlant(await openPostgresStore(database), fern)
  const clerk = await createRole(database, 'clerk')
  expect(await settleAll([openPostgresStore(clerk)])).toEqual([accessDenied('permission denied')])
  await database.query(grantsTo(clerk.role, 'SELECT, INSERT'))
  const store = await openPostgresStore(clerk)
  await createPlant(store, { id: 2n, name: 'Moss' })
  expect(await settleAll([store.check(), store.check(['read']), store.check(['delete'])])).toEqual([
    undefined,
    undefined,
    accessDenied('delete'),
  ])
  expect([(await store.get([1n])).get(1n), await store.findRights()]).toEqual([
    fern,
    ['create', 'read'],
  ])
  expect(await settleAll([deletePlant(store, 1n)])).toEqual([accessDenied('permission denied')])
  await database.query(grantsTo(clerk.role, 'UPDATE, DELETE'))
  expect(await store.findRights()).toEqual(['create', 'read', 'update', 'delete'])
  expect(await deletePlant(store, 1n)).toStrictEqual(fern)
})

test('a store rejects a database that cannot store every character', async () => {
  const database = await getDatabase()
  const name = `${getDatabaseName(database)}latin`
  const encoding = `TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`
  await database.queryAsSuperuser(`CREATE DATABASE ${name} OWNER plants ${encoding}`)
  onTestFinished(
    async () => void (await database.queryAsSuperuser(`DROP DATABASE ${name} WITH (FORCE)`)),
  )
  const latin = {
    ...database,
    url: Object.assign(new URL(database.url), { pathname: `/${name}` }).href,
  }
  expect(await settleAll([openPostgresStore(latin)])).toEqual([accessDenied('LATIN1')])
})

test('a store rejects a server that could lose committed plants', async () => {
  const database = await startOwnServer()
  const early = accessDenied('fsync is off')
  const store = await openPostgresStore(database)
  await configure(database, 'fsync = off')
  await expect.poll(() => settleAll([store.check()]), { interval: 5 }).toEqual([early])
  expect(await settleAll([openPostgresStore(database)])).toEqual([early])
  const anyServer = new URL(database.url)
  anyServer.searchParams.set('target_session_attrs', 'any')
  const readableStore = openPostgresStore({ ...database, url: anyServer.href })
  expect(await settleAll([readableStore])).toEqual([early])
})

test('doctor checks a database, and reports what its role may do', async () => {
  const database = await createDatabase()
  const user = new Sandbox()
  const examined = async (store: string) => {
    const env = { ...database.env, PLANTS_STORE: store }
    const { code, out } = await user.run('doctor', { env })
    return { code, state: /"check":"store postgres[^"]*","state":"(\w+)"/.exec(out)?.[1] }
  }
  const { role, url } = await createRole(database, 'gardener')
  expect(await examined(database.url)).toEqual({ code: 0, state: 'ok' })
  await database.query(grantsTo(role, 'SELECT'))
  expect(await examined(url)).toEqual({ code: 0, state: 'warning' })
  await database.query(grantsTo(role, 'SELECT, INSERT'))
  expect(await examined(url)).toEqual({ code: 0, state: 'ok' })
  const missing = database.url.replace(/db\w+$/, 'nowhere')
  expect(await examined(missing)).toEqual({ code: 1, state: 'failed' })
})

// An exact match in any schema wins over a match by a cast in pg_catalog.
test('functions and tables of another role cannot replace those of PostgreSQL and the store', async () => {
  const database = await createDatabase({ isEmpty: true })
  const { role } = await createRole(database, 'mallory')
  const note = (what: string) =>
    `RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.loot VALUES ('${what}'); RETURN 1; END $$`
  const functions = ['strpos(text, text)', 'pg_advisory_xact_lock(bigint)', 'unnest(bigint[])']
  const made = [
    'CREATE TABLE public.loot (what text); GRANT ALL ON public.loot TO PUBLIC',
    ...['plants', 'tokens'].map((name) => `CREATE TABLE public.${name} (id bigint)`),
    ...functions.map((name) => `CREATE FUNCTION public.${name} ${note(name)}`),
    `CREATE FUNCTION public.equal(text, text) ${note('=')}`,
    'CREATE OPERATOR public.= (FUNCTION = public.equal, LEFTARG = text, RIGHTARG = text)',
  ]
  await database.queryAsSuperuser(
    `GRANT CREATE ON SCHEMA public TO PUBLIC; SET ROLE ${role}; ${made.join(';')}`,
  )
  await database.queryAsSuperuser(
    `ALTER DATABASE ${getDatabaseName(database)} SET search_path = public, pg_catalog`,
  )
  const user = new Sandbox()
  const stdin = '{"id":5,"name":"Fern","tag":"wet"}\n'
  const options = {
    env: { ...database.env, PLANTS_STORE: database.url },
    stdin,
    mayShowSecrets: true,
  }
  const lines = [
    ...[`stores init ${database.url}`, 'create --id 1 --name Fern', 'import --atomic', 'import'],
    ...['list --tag wet --search e', 'count --by tag', 'update 1 --name Ivy', 'delete 1 --yes'],
    ...['tokens create', 'tokens list', 'doctor'],
  ]
  for (const line of lines) expect([line, (await user.run(line, options)).code]).toEqual([line, 0])
  expect(await database.queryAsSuperuser('SELECT * FROM public.loot')).toEqual([])
  expect((await user.run('list', options)).out).toBe(stdin)
})
