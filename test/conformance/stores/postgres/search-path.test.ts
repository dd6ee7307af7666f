import { expect, test } from 'vitest'
import { asRole, type Database, freshDatabase, nameOf } from '../../../helpers/postgres.js'
import { World } from '../../../helpers/world.js'

/**
 * In the place of some of what the program calls, by the types that it calls it with: an exact match in any schema wins
 * over a match by a cast in pg_catalog.
 */
const functions = [
  ...['octet_length(text)', 'strpos(text, text)'],
  ...['pg_advisory_xact_lock(bigint)', 'unnest(bigint[])'],
]
const operators = [
  ...['= text text', '|| text text', '= bigint bigint'],
  ...['> bigint int', '<= bigint int'],
]
const tables = ['plants', 'tokens', 'imports', 'schema_version', 'page', 'sums', 'texts', 'new']

/** Lets a role that owns nothing make whatever could be called in the place of PostgreSQL's own. */
async function hijack(database: Database): Promise<void> {
  const { role } = await asRole(database, 'mallory')
  const noting = (what: string) =>
    `CREATE FUNCTION public.${what} RETURNS bigint LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO public.loot VALUES (current_user, '${what}'); RETURN 1; END $$`
  const operator = (signature: string, index: number) => {
    const [name, left, right] = signature.split(' ')
    return `${noting(`called_${index}(${left}, ${right})`)}; CREATE OPERATOR public.${name}
      (FUNCTION = public.called_${index}, LEFTARG = ${left}, RIGHTARG = ${right})`
  }
  const made = [
    'CREATE TABLE public.loot (who text, what text); GRANT ALL ON public.loot TO PUBLIC',
    ...tables.map(
      (name) => `CREATE TABLE public.${name} (id bigint, name text, tag text, version int)`,
    ),
    ...functions.map(noting),
    ...operators.map(operator),
  ]
  const granted = `GRANT CREATE ON SCHEMA public TO PUBLIC; SET ROLE ${role}`
  await database.admin(`${granted}; ${made.join('; ')}`)
}

test.each(['"$user", public', 'public, pg_catalog'])(
  'nothing of another role is called by the search path %s',
  async (path) => {
    const database = await freshDatabase({ isEmpty: true })
    const { url, env, admin } = database
    await hijack(database)
    await admin(`ALTER DATABASE ${nameOf(database)} SET search_path = ${path}`)
    const user = new World()
    const more = [5, 6, 7].map((id) => `{"id":${id},"name":"Fern","tag":"a,b"}\n`).join('')
    const lines = [
      `stores init ${url}`,
      'create --id 1 --name Fern --tag green',
      ...Array<string>(2).fill('create --id 2 --name Moss --idempotency-key two'),
      ...['import --dry-run', 'import', 'import --atomic --if-exists skip'],
      ...['list --tag green --after 0 --limit 5 --search e', 'export --tag a,b', 'count --by tag'],
      ...['update 1 --name Ivy', 'get 1', 'delete 1 --yes'],
      ...['tokens create --note a', 'tokens list', 'tokens revoke 1', 'doctor'],
    ]
    const world = { env: { ...env, PLANTS_STORE: url }, mayShowSecrets: true, stdin: more }
    for (const line of lines) expect([line, (await user.run(line, world)).code]).toEqual([line, 0])
    expect(await admin('SELECT DISTINCT who, what FROM public.loot ORDER BY what')).toEqual([])
    expect((await user.run('list', world)).out).toBe(`{"id":2,"name":"Moss"}\n${more}`)
  },
)
