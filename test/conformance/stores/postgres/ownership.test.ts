import { expect, test } from 'vitest'
import { type Database, freshDatabase } from '../../../helpers/postgres.js'
import { asRole, grantsTo, nameOf, withUser } from '../../../helpers/shared-store.js'
import { World } from '../../../helpers/world.js'

const foreign = (owner: string) => expect.stringContaining(`contains a schema plant_store that belongs to ${owner}`)
const rejection = (owner: string) => ({ code: 4, out: '', err: foreign(owner) })

const lines = [
  ...['list', 'get 1', 'create --id 2 --name Fern', 'create --id 2 --name Fern --dry-run', 'delete 1 --yes', 'export'],
  ...['tokens list', 'stores init ADDRESS', 'import', 'import --dry-run', 'import --atomic', 'serve --port 0'],
]

test.each(['a role that may create schemas', 'the owner of the database'])(
  'nothing that %s made in the place of a store is called',
  async (who) => {
    const place = await freshDatabase()
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
  const place = await freshDatabase()
  const { role } = await asRole(place, 'mallory')
  await place.admin(`CREATE SCHEMA plant_store AUTHORIZATION ${role}; GRANT ALL ON SCHEMA plant_store TO PUBLIC`)
  const rejected = rejection(role)
  for (const url of [place.url, withUser(place, 'postgres')])
    expect(await new World().run(`stores init ${url}`, { env: place.env })).toMatchObject(rejected)
})

test('a store is used by those who trust its owner, and not by a superuser who does not', async () => {
  const place = await freshDatabase()
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
  const used = async () => [await run('list', owner.url), await run('list', clerk.url), await run('list', superuser)]
  await init(owner.url)
  expect(await used()).toEqual([0, 4, 4])
  await place.admin(`GRANT ${owner.role} TO ${clerk.role}`)
  expect(await used()).toEqual([0, 0, 4])
  await place.admin('DROP SCHEMA plant_store CASCADE')
  for (const _ of [1, 2]) await init(superuser)
  expect((await used()).slice(1)).toEqual([0, 0])
})

/**
 * What the program calls, by the types that it calls it with: an exact match in any schema wins over a match by a cast
 * in pg_catalog. Those that return numeric are aggregates.
 */
const signatures = `
  to_json(text) json; octet_length(text) int; current_setting(text) text; current_setting(text, boolean) text;
  current_database() name; strpos(text, text) int; replace(text, text, text) text; chr(int) text; length(text) int;
  unnest(bigint[]) bigint; unnest(text[]) text; has_table_privilege(text, text) boolean; to_regclass(text) regclass;
  pg_advisory_xact_lock(int) int; pg_advisory_xact_lock(bigint) int; concat(text, bigint) text;
  coalesce(text, text) text;
  lag(bigint, int, numeric) numeric; sum(int) numeric; sum(bigint) numeric; max(int) numeric; max(bigint) numeric;
  = (text, text) boolean; = (bigint, bigint) boolean; = (bigint, int) boolean; > (bigint, int) boolean;
  = (bigint, numeric) boolean; > (bigint, numeric) boolean; = (numeric, int) boolean; < (numeric, int) boolean;
  <= (bigint, int) boolean; <= (numeric, int) boolean; = (bigint, text) boolean; > (int, int) boolean;
  <> (text, text) boolean; = (bytea, bytea) boolean; = (numeric, bigint) boolean; < (numeric, bigint) boolean;
  = (int, bigint) boolean; || (text, bigint) text; || (bigint, text) text; || (text, text) text`
  .trim()
  .split(/;\s*/)
const tables = ['plants', 'tokens', 'imports', 'schema_version', 'page', 'sized', 'sizes', 'sums', 'excluded', 'new']

function noting(name: string, types: string, result: string): string {
  return `CREATE FUNCTION public."${name}"(${types}) RETURNS ${result} LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO public.loot VALUES (current_user, '${name}(${types})'); RETURN NULL; END $$`
}

/** What makes a function, an aggregate or an operator of such a signature. */
function madeAs(signature: string, index: number): string {
  const [, name = '', types = '', result = ''] = /^([^ (]+) ?\((.*)\) (\w+)$/.exec(signature) ?? []
  const isOperator = /^\W/.test(name)
  if (!isOperator && result !== 'numeric') return noting(name, types, result)
  const own = `called_${index}`
  if (!isOperator)
    return `${noting(own, `numeric, ${types}`, 'numeric')};
      CREATE AGGREGATE public."${name}"(${types}) (SFUNC = public.${own}, STYPE = numeric, INITCOND = '0')`
  const [left, right] = types.split(', ')
  return `${noting(own, types, result)};
    CREATE OPERATOR public.${name} (FUNCTION = public.${own}, LEFTARG = ${left}, RIGHTARG = ${right})`
}

/** Lets a role that owns nothing make whatever could be called in the place of PostgreSQL's own. */
async function hijack(database: Database): Promise<void> {
  const { role } = await asRole(database, 'mallory')
  const made = [
    'CREATE TABLE public.loot (who text, what text); GRANT ALL ON public.loot TO PUBLIC',
    ...tables.map((table) => `CREATE TABLE public.${table} (id bigint, name text, tag text, version int)`),
    ...signatures.map(madeAs),
  ]
  await database.admin(`GRANT CREATE ON SCHEMA public TO PUBLIC; SET ROLE ${role}; ${made.join(';\n')}`)
}

test.each(['"$user", public', 'public, pg_catalog'])(
  'nothing of another role is called by the search path %s',
  async (path) => {
    const database = await freshDatabase()
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
      ['import --if-exists skip --max-errors 1', more + plant(9)],
      ['import --dry-run', more.replaceAll('"id":', '"id":1')],
      ['import --atomic --if-exists skip', more + plant(10)],
      ['list'],
      ['list --tag green --after 0 --limit 5'],
      ...['ndjson', 'csv', 'tsv', 'json'].map((format): [string] => [`export --output ${format}`]),
      ['export --after 1 --tag a,b'],
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
    expect((await user.run('list', world)).out).toBe(plant(2, 'Moss') + more + plant(8) + plant(9) + plant(10))
  },
)
