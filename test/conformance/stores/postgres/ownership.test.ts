import { expect, test } from 'vitest'
import { type Database, freshDatabase } from '../../../helpers/postgres.js'
import { asRole, grantsTo, nameOf, withUser } from '../../../helpers/shared-store.js'
import { World } from '../../../helpers/world.js'

const foreign = (owner: string) =>
  expect.stringContaining(`contains a schema plant_store that belongs to ${owner}`)
const rejection = (owner: string) => ({ code: 4, out: '', err: foreign(owner) })

const lines = [
  ...[
    'list',
    'get 1',
    'create --id 2 --name Fern',
    'create --id 2 --name Fern --dry-run',
    'delete 1 --yes',
    'export',
  ],
  ...[
    'tokens list',
    'stores init ADDRESS',
    'import',
    'import --dry-run',
    'import --atomic',
    'serve --port 0',
  ],
]

test.each(['a role that may create schemas', 'the owner of the database'])(
  'nothing that %s made in the place of a store is called',
  async (who) => {
    const place = await freshDatabase({ isEmpty: true })
    const mallory = await asRole(place, 'mallory')
    const service = await asRole(place, 'service')
    await place.sql(`GRANT CREATE ON DATABASE ${nameOf(place)} TO ${mallory.role}`)
    const maker = who === 'the owner of the database' ? 'plants' : mallory.role
    await place.admin(`SET ROLE ${maker};
    CREATE SCHEMA plant_store; GRANT USAGE, CREATE ON SCHEMA plant_store TO PUBLIC;
    CREATE TABLE plant_store.loot (who text); GRANT ALL ON plant_store.loot TO PUBLIC;
    CREATE FUNCTION plant_store.rob() RETURNS int LANGUAGE plpgsql AS 'BEGIN INSERT INTO plant_store.loot VALUES (current_user); RETURN 1; END';
    CREATE VIEW plant_store.schema_version AS SELECT plant_store.rob() AS version;
    CREATE VIEW plant_store.plants AS SELECT plant_store.rob()::bigint AS id, 'a' AS name, 'b' AS tag;
    GRANT ALL ON ALL TABLES IN SCHEMA plant_store TO PUBLIC`)
    const user = new World()
    const others = maker === 'plants' ? [] : [place.url, service.url] // who trust the owner of the database
    for (const url of [withUser(place, 'postgres'), ...others]) {
      const world = { env: { ...place.env, PLANTS_STORE: url }, stdin: '{"id":5,"name":"Fern"}\n' }
      for (const line of lines) {
        const { code, out, err } = await user.run(line.replace('ADDRESS', url), world)
        expect({ line, code, out, err }).toEqual({ line, ...rejection(maker) })
      }
      expect(await user.run('doctor', world)).toMatchObject({ code: 1, out: foreign(maker) })
    }
    expect(await place.admin('SELECT who FROM plant_store.loot')).toEqual([])
  },
)

test('an empty schema of another role is not used either', async () => {
  const place = await freshDatabase({ isEmpty: true })
  const { role } = await asRole(place, 'mallory')
  await place.admin(
    `CREATE SCHEMA plant_store AUTHORIZATION ${role}; GRANT ALL ON SCHEMA plant_store TO PUBLIC`,
  )
  const rejected = rejection(role)
  for (const url of [place.url, withUser(place, 'postgres')])
    expect(await new World().run(`stores init ${url}`, { env: place.env })).toMatchObject(rejected)
})

test('a store is used by those who trust its owner, and not by a superuser who does not', async () => {
  const place = await freshDatabase({ isEmpty: true })
  const owner = await asRole(place, 'owner')
  const clerk = await asRole(place, 'clerk')
  const superuser = withUser(place, 'postgres')
  await place.sql(`GRANT CREATE ON DATABASE ${nameOf(place)} TO ${owner.role}`)
  const run = async (line: string, url: string) =>
    (await new World().run(line, { env: { ...place.env, PLANTS_STORE: url } })).code
  const init = async (url: string) => {
    expect(await run(`stores init ${url}`, url)).toBe(0)
    await place.admin(grantsTo(clerk.role, 'SELECT, INSERT'))
  }
  const used = async () => [
    await run('list', owner.url),
    await run('list', clerk.url),
    await run('list', superuser),
  ]
  await init(owner.url)
  expect(await used()).toEqual([0, 4, 4])
  await place.admin(`GRANT ${owner.role} TO ${clerk.role}`)
  expect(await used()).toEqual([0, 0, 4])
  await place.admin('DROP SCHEMA plant_store CASCADE')
  for (const _ of [1, 2]) await init(superuser)
  expect((await used()).slice(1)).toEqual([0, 0])
})

/**
 * In the place of some of what the program calls, by the types that it calls it with: an exact match in any schema wins
 * over a match by a cast in pg_catalog.
 */
const hijacked = [
  'octet_length(text)',
  'strpos(text, text)',
  'pg_advisory_xact_lock(bigint)',
  'unnest(bigint[])',
]
const operators = [
  '= (text, text)',
  '= (bigint, bigint)',
  '> (bigint, int)',
  '<= (bigint, int)',
  '|| (text, text)',
]
const tables = [
  'plants',
  'tokens',
  'imports',
  'schema_version',
  'page',
  'sized',
  'sums',
  'excluded',
  'new',
  'old',
]

/** Lets a role that owns nothing make whatever could be called in the place of PostgreSQL's own. */
async function hijack(database: Database): Promise<void> {
  const { role } = await asRole(database, 'mallory')
  const noting = (
    signature: string,
  ) => `CREATE FUNCTION public.${signature} RETURNS bigint LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO public.loot VALUES (current_user, '${signature}'); RETURN 1; END $$`
  const operator = (signature: string, index: number) => {
    const [, name, left, right] = /^(\S+) \((\w+), (\w+)\)$/.exec(signature) ?? []
    const rest = `(FUNCTION = public.called_${index}, LEFTARG = ${left}, RIGHTARG = ${right})`
    return `${noting(`called_${index}(${left}, ${right})`)}; CREATE OPERATOR public.${name} ${rest}`
  }
  const made = [
    'CREATE TABLE public.loot (who text, what text); GRANT ALL ON public.loot TO PUBLIC',
    ...tables.map(
      (table) => `CREATE TABLE public.${table} (id bigint, name text, tag text, version int)`,
    ),
    ...hijacked.map(noting),
    ...operators.map(operator),
  ]
  await database.admin(
    `GRANT CREATE ON SCHEMA public TO PUBLIC; SET ROLE ${role}; ${made.join(';\n')}`,
  )
}

test.each(['"$user", public', 'public, pg_catalog'])(
  'nothing of another role is called by the search path %s',
  async (path) => {
    const database = await freshDatabase({ isEmpty: true })
    const { url, env, admin } = database
    await hijack(database)
    await admin(`ALTER DATABASE ${nameOf(database)} SET search_path = ${path}`)
    const user = new World()
    const plant = (id: number, name = 'Oak') => `{"id":${id},"name":"${name}"}\n`
    const more = [5, 6, 7].map((id) => `{"id":${id},"name":"Fern","tag":"a,b"}\n`).join('')
    const runs: [line: string, stdin?: string][] = [
      [`stores init ${url}`],
      ['create --id 1 --name Fern --tag green'],
      ['create --id 2 --name Moss --idempotency-key two'],
      ['create --id 2 --name Moss --idempotency-key two'],
      ['create --id 3 --name Ivy --dry-run'],
      ['import', more],
      ['import --if-exists same', more + plant(8)],
      ['import --dry-run', more.replaceAll('"id":', '"id":1')],
      ['import --atomic --if-exists skip', more + plant(9)],
      ['list --tag green --after 0 --limit 5 --search e'],
      ['export --tag a,b'],
      ['count --by tag'],
      ['get 1'],
      ['delete 1 --yes'],
      ['tokens create --note a'],
      ['tokens list'],
      ['tokens revoke 1'],
      ['doctor'],
      [`stores init ${url}`],
    ]
    const world = { env: { ...env, PLANTS_STORE: url }, mayShowSecrets: true }
    const codes: unknown[] = []
    for (const [line, stdin] of runs)
      codes.push([line, (await user.run(line, { ...world, ...(stdin && { stdin }) })).code])
    expect(await admin('SELECT DISTINCT who, what FROM public.loot ORDER BY what')).toEqual([])
    expect(codes).toEqual(runs.map(([line]) => [line, 0]))
    expect((await user.run('list', world)).out).toBe(plant(2, 'Moss') + more + plant(8) + plant(9))
  },
)
