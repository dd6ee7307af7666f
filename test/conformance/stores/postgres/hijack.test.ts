import { expect, onTestFinished, test } from 'vitest'
import { type Database, freshDatabase } from '../../../helpers/postgres.js'
import { World } from '../../../helpers/world.js'

/**
 * What the program calls, by the types that it calls it with: an exact match in any schema wins over a match by a cast
 * in pg_catalog.
 */
const functions = [
  ...[
    'to_json(text) json',
    'octet_length(text) int',
    'current_setting(text) text',
    'current_setting(text, boolean) text',
  ],
  ...[
    'current_database() name',
    'strpos(text, text) int',
    'replace(text, text, text) text',
    'chr(int) text',
    'length(text) int',
  ],
  ...[
    'unnest(bigint[]) bigint',
    'unnest(text[]) text',
    'has_table_privilege(text, text) boolean',
    'to_regclass(text) regclass',
  ],
  ...[
    'pg_advisory_xact_lock(int) int',
    'pg_advisory_xact_lock(bigint) int',
    'concat(text, bigint) text',
    'coalesce(text, text) text',
  ],
]
const aggregates = [
  'lag(bigint, int, numeric) numeric',
  'sum(int) numeric',
  'sum(bigint) numeric',
  'max(int) numeric',
  'max(bigint) numeric',
]
const operators = [
  ...[
    '= (text, text)',
    '= (bigint, bigint)',
    '= (bigint, int)',
    '> (bigint, int)',
    '= (bigint, numeric)',
    '> (bigint, numeric)',
    '= (numeric, int)',
  ],
  ...[
    '< (numeric, int)',
    '<= (bigint, int)',
    '<= (numeric, int)',
    '= (bigint, text)',
    '> (int, int)',
    '<> (text, text)',
    '= (bytea, bytea)',
  ],
  ...['= (numeric, bigint)', '< (numeric, bigint)', '= (int, bigint)'],
]
const joins = ['|| (text, bigint)', '|| (bigint, text)', '|| (text, text)']
const tables = ['plants', 'tokens', 'imports', 'schema_version', 'page', 'sized', 'sizes', 'sums', 'excluded', 'new']

/** A function, by its name, its types and the type that it gives, that notes who has called it. */
function functionOf(signature: string): string {
  const [, name = '', types = '', result = ''] = /^(\w+)\((.*)\) (\w+)$/.exec(signature) ?? []
  return `CREATE FUNCTION public."${name}"(${types}) RETURNS ${result} LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO public.loot VALUES (current_user, '${signature}'); RETURN NULL; END $$`
}

function aggregateOf(signature: string): string {
  const [, name = '', types = ''] = /^(\w+)\((.*)\) numeric$/.exec(signature) ?? []
  const step = `${name}_step`
  return `${functionOf(`${step}(numeric, ${types}) numeric`)};
    CREATE AGGREGATE public."${name}"(${types}) (SFUNC = public.${step}, STYPE = numeric, INITCOND = '0')`
}

function operatorOf(signature: string, index: number, result: string): string {
  const [, name = '', left = '', right = ''] = /^(\S+) \((\w+), (\w+)\)$/.exec(signature) ?? []
  const step = `operator_${result}_${index}`
  return `${functionOf(`${step}(${left}, ${right}) ${result}`)};
    CREATE OPERATOR public.${name} (FUNCTION = public.${step}, LEFTARG = ${left}, RIGHTARG = ${right})`
}

/** Lets a role that owns nothing make whatever could be called in the place of PostgreSQL's own. */
async function hijack({ url, admin }: Database): Promise<{ role: string; service: string }> {
  const name = new URL(url).pathname.slice(1)
  const [role, service] = [`mallory_${name}`, `service_${name}`]
  await admin(`CREATE ROLE ${role}; CREATE ROLE ${service}; GRANT CREATE ON SCHEMA public TO PUBLIC`)
  onTestFinished(async () => void (await admin(`DROP OWNED BY ${role}, ${service}; DROP ROLE ${role}, ${service}`)))
  const made = [
    'CREATE TABLE public.loot (who text, what text); GRANT ALL ON public.loot TO PUBLIC',
    ...tables.map((table) => `CREATE TABLE public.${table} (id bigint, name text, tag text, version int)`),
    ...functions.map(functionOf),
    ...aggregates.map(aggregateOf),
    ...operators.map((operator, index) => operatorOf(operator, index, 'boolean')),
    ...joins.map((operator, index) => operatorOf(operator, index, 'text')),
  ]
  await admin(`SET ROLE ${role}; ${made.join(';\n')}`)
  return { role, service }
}

test.each(['"$user", public', 'public, pg_catalog'])(
  'nothing of another role is called, with the search path %s',
  async (path) => {
    const database = await freshDatabase()
    const { url, env, admin } = database
    const { service } = await hijack(database)
    await admin(`ALTER DATABASE ${new URL(url).pathname.slice(1)} SET search_path = ${path}`)
    const user = new World()
    const world = { env: { ...env, PLANTS_STORE: url } }
    const more = [5, 6, 7].map((id) => `{"id":${id},"name":"Fern","tag":"a,b"}\n`).join('')
    const runs: [line: string, stdin?: string][] = [
      [`stores init ${url} --role ${service}`],
      ['create --id 1 --name Fern --tag green'],
      ['create --id 2 --name Moss --idempotency-key two'],
      ['create --id 2 --name Moss --idempotency-key two'],
      ['create --id 3 --name Ivy --dry-run'],
      ['import', more],
      ['import --if-exists same', `${more}{"id":8,"name":"Oak"}\n`],
      ['import --if-exists skip --max-errors 1', `${more}{"id":9,"name":"Oak"}\n`],
      ['import --dry-run', more.replaceAll('"id":', '"id":1')],
      ['import --atomic --if-exists skip', `${more}{"id":10,"name":"Oak"}\n`],
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
    const codes: unknown[] = []
    for (const [line, stdin] of runs) {
      const { code } = await user.run(line, {
        ...world,
        ...(stdin === undefined ? {} : { stdin }),
        mayShowSecrets: true,
      })
      codes.push([line, code])
    }
    expect(await admin('SELECT DISTINCT who, what FROM public.loot ORDER BY what')).toEqual([])
    expect(codes).toEqual(runs.map(([line]) => [line, 0]))
    expect((await user.run('list', world)).out).toBe(
      `{"id":2,"name":"Moss"}\n${more}{"id":8,"name":"Oak"}\n{"id":9,"name":"Oak"}\n{"id":10,"name":"Oak"}\n`,
    )
  },
)
