import { expect, onTestFinished, test } from 'vitest'
import { password } from '../../../helpers/postgres/cluster.js'
import { type Database, freshDatabase, reusedDatabase } from '../../../helpers/postgres.js'
import { World } from '../../../helpers/world.js'

const database = reusedDatabase()

/** The database as another role, which is made. */
async function as(place: Database, prefix: string): Promise<Database & { role: string }> {
  const role = `${prefix}_${new URL(place.url).pathname.slice(1)}`
  await place.admin(`CREATE ROLE ${role} LOGIN PASSWORD '${password}'`)
  return { ...place, role, url: withUser(place, role) }
}

function withUser({ url }: Database, username: string): string {
  return Object.assign(new URL(url), { username }).href
}

/** What a command says of a store that is not used. */
function refusal(why: string) {
  return {
    code: 4,
    out: '',
    err: expect.stringContaining(`contains a schema plant_store that plants did not create: ${why}`),
  }
}

const lines = [
  'list',
  'get 1',
  'create --id 2 --name Fern',
  'create --id 2 --name Fern --dry-run',
  'delete 1 --yes',
  'export',
  'tokens list',
]
const more = ['stores init ADDRESS', 'import', 'import --dry-run', 'import --atomic', 'serve --port 0']

test.each(['a role that may create schemas', 'the owner of the database'])(
  'what %s made in the place of a store is asked for nothing',
  async (who) => {
    const place = await freshDatabase()
    const mallory = await as(place, 'mallory')
    const service = await as(place, 'service')
    onTestFinished(async () => {
      await place.admin(
        `DROP OWNED BY ${mallory.role}, ${service.role} CASCADE; DROP ROLE ${mallory.role}, ${service.role}`,
      )
    })
    await place.sql(`GRANT CREATE ON DATABASE ${new URL(place.url).pathname.slice(1)} TO ${mallory.role}`)
    const maker = who === 'the owner of the database' ? 'plants' : mallory.role
    await place.admin(`SET ROLE ${maker};
    CREATE SCHEMA plant_store; GRANT USAGE, CREATE ON SCHEMA plant_store TO PUBLIC;
    CREATE TABLE plant_store.loot (who text); GRANT ALL ON plant_store.loot TO PUBLIC;
    CREATE FUNCTION plant_store.rob() RETURNS int LANGUAGE plpgsql AS 'BEGIN INSERT INTO plant_store.loot VALUES (current_user); RETURN 1; END';
    CREATE VIEW plant_store.schema_version AS SELECT plant_store.rob() AS version;
    CREATE VIEW plant_store.plants AS SELECT plant_store.rob()::bigint AS id, 'a' AS name, 'b' AS tag;
    GRANT ALL ON ALL TABLES IN SCHEMA plant_store TO PUBLIC`)
    const user = new World()
    const roles = [
      { url: withUser(place, 'postgres'), why: `it belongs to ${maker}` },
      { url: place.url, why: 'plants is not a table' },
      { url: service.url, why: 'plants is not a table' },
    ]
    for (const { url, why } of roles) {
      const world = { env: { ...place.env, PLANTS_STORE: url }, stdin: '{"id":5,"name":"Fern"}\n' }
      for (const line of [...lines, ...more]) {
        const { code, out, err } = await user.run(line.replace('ADDRESS', url), world)
        expect({ line, code, out, err }).toEqual({ line, ...refusal(why) })
      }
      const found = await user.run('doctor', world)
      expect(found).toMatchObject({
        code: 1,
        out: expect.stringContaining(`contains a schema plant_store that plants did not create: ${why}`),
      })
    }
    expect(await place.admin('SELECT who FROM plant_store.loot')).toEqual([])
  },
)

test('an empty schema of another role is not used either', async () => {
  const place = await freshDatabase()
  const mallory = await as(place, 'mallory')
  onTestFinished(
    async () => void (await place.admin(`DROP OWNED BY ${mallory.role} CASCADE; DROP ROLE ${mallory.role}`)),
  )
  await place.admin(
    `CREATE SCHEMA plant_store AUTHORIZATION ${mallory.role}; GRANT ALL ON SCHEMA plant_store TO PUBLIC`,
  )
  for (const url of [place.url, withUser(place, 'postgres')]) {
    const { code, out, err } = await new World().run(`stores init ${url}`, { env: place.env })
    expect({ code, out, err }).toEqual(refusal(`it belongs to ${mallory.role}`))
  }
})

test.each([
  [
    'plants has a trigger',
    'CREATE TRIGGER t BEFORE INSERT ON plant_store.plants EXECUTE FUNCTION f()',
    'DROP TRIGGER t ON plant_store.plants',
  ],
  [
    'plants has a rule',
    'CREATE RULE r AS ON INSERT TO plant_store.plants DO ALSO SELECT g()',
    'DROP RULE r ON plant_store.plants',
  ],
  [
    'tokens has row security',
    'ALTER TABLE plant_store.tokens ENABLE ROW LEVEL SECURITY',
    'ALTER TABLE plant_store.tokens DISABLE ROW LEVEL SECURITY',
  ],
  [
    'plants computes a column',
    'ALTER TABLE plant_store.plants ALTER tag SET DEFAULT g()',
    'ALTER TABLE plant_store.plants ALTER tag DROP DEFAULT',
  ],
  [
    'imports has a constraint',
    'ALTER TABLE plant_store.imports ADD CONSTRAINT c CHECK (state <> g())',
    'ALTER TABLE plant_store.imports DROP CONSTRAINT c',
  ],
  ['plants has an index', 'CREATE INDEX i ON plant_store.plants (g(name))', 'DROP INDEX plant_store.i'],
  [
    'plants has an index',
    'CREATE INDEX i ON plant_store.plants (name) WHERE g(name) IS NULL',
    'DROP INDEX plant_store.i',
  ],
  ['imports has a parent or children', 'CREATE TABLE child () INHERITS (plant_store.imports)', 'DROP TABLE child'],
  [
    'imports has a column of another type',
    'ALTER TABLE plant_store.imports ADD more d',
    'ALTER TABLE plant_store.imports DROP more',
  ],
  [
    'tokens is not a table',
    'ALTER TABLE plant_store.tokens RENAME TO t; CREATE VIEW plant_store.tokens AS SELECT * FROM plant_store.t',
    'DROP VIEW plant_store.tokens; ALTER TABLE plant_store.t RENAME TO tokens',
  ],
])('a store is not used when %s: %s', async (why, change, undo) => {
  const place = await database()
  const world = { env: { ...place.env, PLANTS_STORE: place.url } }
  const user = new World()
  expect(await user.run(`stores init ${place.url}`, world)).toMatchObject({ code: 0 })
  await place.sql(`CREATE OR REPLACE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
    CREATE OR REPLACE FUNCTION g(text DEFAULT '') RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1';
    DROP DOMAIN IF EXISTS d; CREATE DOMAIN d AS text CHECK (value <> 'a'); ${change}`)
  const { code, out, err } = await user.run('list', world)
  await place.sql(undo)
  expect({ code, out, err }).toEqual(refusal(why))
  expect(await user.run('list', world)).toMatchObject({ code: 0 })
})

test('a store is used by its owner, by who shares a role with it, and by a role that it let in; not by a superuser who does not own it', async () => {
  const place = await freshDatabase()
  const owner = await as(place, 'owner')
  const clerk = await as(place, 'clerk')
  onTestFinished(async () => {
    await place.admin(`DROP OWNED BY ${owner.role}, ${clerk.role} CASCADE; DROP ROLE ${owner.role}, ${clerk.role}`)
  })
  await place.sql(`GRANT CREATE ON DATABASE ${new URL(place.url).pathname.slice(1)} TO ${owner.role}`)
  const run = async (line: string, url: string) =>
    (await new World().run(line.replace('ADDRESS', url), { env: { ...place.env, PLANTS_STORE: url } })).code
  expect(await run(`stores init ADDRESS --role ${clerk.role}`, owner.url)).toBe(0)
  expect(await run('list', clerk.url)).toBe(0)
  expect(await run('list', withUser(place, 'postgres'))).toBe(4)
  await place.admin('DROP SCHEMA plant_store CASCADE')
  for (const _ of [1, 2])
    expect(await run(`stores init ADDRESS --role ${clerk.role}`, withUser(place, 'postgres'))).toBe(0)
  for (const url of [withUser(place, 'postgres'), clerk.url]) expect(await run('list', url)).toBe(0)
})
