import { expect, test } from 'vitest'
import { type Database, freshDatabase } from '../../../helpers/postgres.js'
import { asRole, nameOf } from '../../../helpers/shared-store.js'
import { World } from '../../../helpers/world.js'

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
const tables = ['plants', 'tokens', 'imports', 'schema_version', 'page', 'sums', 'texts', 'new']

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
