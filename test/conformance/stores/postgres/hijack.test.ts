import { expect, test } from 'vitest'
import { type Database, freshDatabase } from '../../../helpers/postgres.js'
import { asRole, nameOf } from '../../../helpers/shared-store.js'
import { World } from '../../../helpers/world.js'

const signatures = (text: string) => text.trim().split(/;\s*/)

/**
 * What the program calls, by the types that it calls it with: an exact match in any schema wins over a match by a cast
 * in pg_catalog.
 */
const functions = signatures(`
  to_json(text) json; octet_length(text) int; current_setting(text) text; current_setting(text, boolean) text;
  current_database() name; strpos(text, text) int; replace(text, text, text) text; chr(int) text; length(text) int;
  unnest(bigint[]) bigint; unnest(text[]) text; has_table_privilege(text, text) boolean; to_regclass(text) regclass;
  pg_advisory_xact_lock(int) int; pg_advisory_xact_lock(bigint) int; concat(text, bigint) text;
  coalesce(text, text) text`)
const aggregates = signatures(`
  lag(bigint, int, numeric) numeric; sum(int) numeric; sum(bigint) numeric; max(int) numeric; max(bigint) numeric`)
const operators = signatures(`
  = (text, text) boolean; = (bigint, bigint) boolean; = (bigint, int) boolean; > (bigint, int) boolean;
  = (bigint, numeric) boolean; > (bigint, numeric) boolean; = (numeric, int) boolean; < (numeric, int) boolean;
  <= (bigint, int) boolean; <= (numeric, int) boolean; = (bigint, text) boolean; > (int, int) boolean;
  <> (text, text) boolean; = (bytea, bytea) boolean; = (numeric, bigint) boolean; < (numeric, bigint) boolean;
  = (int, bigint) boolean; || (text, bigint) text; || (bigint, text) text; || (text, text) text`)
const tables = ['plants', 'tokens', 'imports', 'schema_version', 'page', 'sized', 'sizes', 'sums', 'excluded', 'new']

/** A function, by its name, its types and the type that it returns, that notes who has called it. */
function functionOf(signature: string): string {
  const [, name = '', types = '', result = ''] = /^(\w+)\((.*)\) (\w+)$/.exec(signature) ?? []
  return `CREATE FUNCTION public."${name}"(${types}) RETURNS ${result} LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO public.loot VALUES (current_user, '${signature}'); RETURN NULL; END $$`
}

function aggregateOf(signature: string): string {
  const [, name = '', types = ''] = /^(\w+)\((.*)\) numeric$/.exec(signature) ?? []
  return `${functionOf(`${name}_step(numeric, ${types}) numeric`)};
    CREATE AGGREGATE public."${name}"(${types}) (SFUNC = public.${name}_step, STYPE = numeric, INITCOND = '0')`
}

function operatorOf(signature: string, index: number): string {
  const [, name = '', left = '', right = '', result = ''] = /^(\S+) \((\w+), (\w+)\) (\w+)$/.exec(signature) ?? []
  return `${functionOf(`operator_${index}(${left}, ${right}) ${result}`)};
    CREATE OPERATOR public.${name} (FUNCTION = public.operator_${index}, LEFTARG = ${left}, RIGHTARG = ${right})`
}

/** Lets a role that owns nothing make whatever could be called in the place of PostgreSQL's own. */
async function hijack(database: Database): Promise<void> {
  const { role } = await asRole(database, 'mallory')
  const made = [
    'CREATE TABLE public.loot (who text, what text); GRANT ALL ON public.loot TO PUBLIC',
    ...tables.map((table) => `CREATE TABLE public.${table} (id bigint, name text, tag text, version int)`),
    ...functions.map(functionOf),
    ...aggregates.map(aggregateOf),
    ...operators.map(operatorOf),
  ]
  await database.admin(`GRANT CREATE ON SCHEMA public TO PUBLIC; SET ROLE ${role}; ${made.join(';\n')}`)
}

test.each(['"$user", public', 'public, pg_catalog'])(
  'nothing of another role is called by the search path %s',
  async (path) => {
    const database = await freshDatabase()
    const { url, env, admin } = database
    await hijack(database)
    const { role } = await asRole(database, 'service')
    await admin(`ALTER DATABASE ${nameOf(database)} SET search_path = ${path}`)
    const user = new World()
    const plant = (id: number, name = 'Oak') => `{"id":${id},"name":"${name}"}\n`
    const more = [5, 6, 7].map((id) => `{"id":${id},"name":"Fern","tag":"a,b"}\n`).join('')
    const runs: [line: string, stdin?: string][] = [
      [`stores init ${url} --role ${role}`],
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
    for (const [line, stdin] of runs) {
      const { code } = await user.run(line, stdin === undefined ? world : { ...world, stdin })
      codes.push([line, code])
    }
    expect(await admin('SELECT DISTINCT who, what FROM public.loot ORDER BY what')).toEqual([])
    expect(codes).toEqual(runs.map(([line]) => [line, 0]))
    expect((await user.run('list', world)).out).toBe(plant(2, 'Moss') + more + plant(8) + plant(9) + plant(10))
  },
)
