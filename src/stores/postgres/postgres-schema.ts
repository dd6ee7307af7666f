import pg from 'pg'
import { malformed, PlantsError } from '../../platform/errors.js'
import type { PostgresAddress } from '../common/address.js'
import type { OpenOptions, Right } from '../common/store.js'
import { usingOnce } from './pool.js'
import type { Client } from './postgres-client.js'
import { sqlState } from './postgres-errors.js'
import {
  begin,
  imports,
  pinned,
  plants,
  privilegeFor,
  rightsStatement,
  schemaName,
  tokens,
  toRights,
  versions,
} from './sql.js'

/** the version that the first of `migrations` follows */
const baseVersion = 2

/**
 * Each leads to the next version. A released migration is never changed, and removes nothing, because nodes with the
 * previous version continue to run.
 */
export const migrations: readonly string[] = [
  `CREATE TABLE ${plants} (
    id bigint PRIMARY KEY,
    attempt bigint NOT NULL,
    name text NOT NULL,
    tag text,
    idempotency_key text COLLATE "C"
  );
  CREATE UNIQUE INDEX plants_idempotency_key ON ${plants} (idempotency_key) WHERE idempotency_key IS NOT NULL;
  CREATE TABLE ${tokens} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest bytea NOT NULL UNIQUE,
    note text,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    rights text NOT NULL,
    last_used_at bigint
  );
  CREATE TABLE ${imports} (id text COLLATE "C" PRIMARY KEY, state text NOT NULL)`,
]

/**
 * Returns the version of the schema, or 0 if there is no store. Throws `unavailable` when a newer version of this
 * program, or somebody else, has created it.
 */
export async function identify(
  client: Client,
  address: PostgresAddress,
  newest = baseVersion + migrations.length,
): Promise<number> {
  const { hasVersions } = await inspectSchema(client, address)
  if (!hasVersions) return 0
  const [[text] = []] = await client.ask(pinned(`SELECT max(version) FROM ${versions}`))
  const version = Number(text ?? 0)
  if (version <= newest) return version
  const message = `${address.name} was created by a newer version of plants (schema ${version}, this one supports ${newest})`
  throw new PlantsError('unavailable', message, { hint: 'Update plants' })
}

/**
 * Migrates in one transaction and under a lock, so that several nodes may do so concurrently. The connection must not
 * be used for anything else meanwhile; after an error, it is still in the transaction.
 */
export async function migrate(client: Client, address: PostgresAddress, steps = migrations): Promise<void> {
  const latest = baseVersion + steps.length
  if ((await identify(client, address, latest)) === latest) return
  await client.ask(begin)
  await client.ask({ text: `SELECT pg_advisory_xact_lock(${lock})` })
  const { exists } = await inspectSchema(client, address) // somebody else may have created it meanwhile
  if (!exists) await client.ask({ text: `CREATE SCHEMA ${schemaName}` })
  await client.ask({ text: `CREATE TABLE IF NOT EXISTS ${versions} (version integer PRIMARY KEY)` })
  const version = await identify(client, address, latest)
  const left = steps.slice(Math.max(0, version - baseVersion))
  for (const step of left) await client.ask({ text: step })
  if (left.length > 0) await client.ask({ text: `INSERT INTO ${versions} VALUES (${latest})` })
  await client.ask({ text: 'COMMIT' })
}

/** "plnt", which no other program is likely to use */
const lock = 0x706c6e74

/** Creates, updates and deletes need SELECT, too: their result depends on existing rows. */
export function grants({ role, rights }: Grant): string {
  const name = pg.escapeIdentifier(role)
  const privileges = [...new Set(['SELECT', ...rights.map((right) => privilegeFor[right])])]
  return [
    `GRANT USAGE ON SCHEMA ${schemaName} TO ${name}`,
    `GRANT SELECT ON ${versions}, ${tokens} TO ${name}`,
    `GRANT UPDATE (last_used_at) ON ${tokens} TO ${name}`,
    `GRANT ${privileges.join(', ')} ON ${plants} TO ${name}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ${imports} TO ${name}`,
  ].join('; ')
}

/**
 * Throws `unavailable` for a schema or tables of an owner who is not trusted, or with `faults`. Reads only the system
 * catalogs: the owner of a table, or of a view in its place, can run code in the name of every role that reads it.
 */
export async function inspectSchema(
  client: Client,
  { name }: PostgresAddress,
): Promise<{ exists: boolean; hasVersions: boolean }> {
  const [[exists, hasVersions, owner, flaw] = []] = await client.ask(pinned(inspection))
  if (owner == null && flaw == null) return { exists: exists === 't', hasVersions: hasVersions === 't' }
  const message = `${name} contains a schema ${schemaName} that plants did not create`
  if (owner == null) {
    const hint = 'Remove what plants did not create, or use another database'
    throw new PlantsError('unavailable', `${message}: ${flaw}`, { hint })
  }
  const hint = `If you trust ${owner}, log in as that role, not as a superuser. Otherwise have the schema removed, or use another database`
  throw new PlantsError('unavailable', `${message}: it belongs to ${owner}`, { hint })
}

const names = [plants, tokens, imports, versions].map((table) => `'${table.slice(schemaName.length + 1)}'`).join()

const context = `WITH me AS (
    SELECT bool_or(rolsuper) AS is_super FROM pg_catalog.pg_roles WHERE rolname IN (current_user, session_user)
  ), space AS (
    SELECT oid, nspowner FROM pg_catalog.pg_namespace WHERE nspname = '${schemaName}'
  ), tables AS (
    SELECT class.oid AS id, relname, relkind, relowner, relrowsecurity
    FROM pg_catalog.pg_class AS class JOIN space ON relnamespace = space.oid WHERE relname IN (${names})
  ), owners AS (
    SELECT nspowner AS id FROM space UNION SELECT relowner FROM tables
  )`

/**
 * Selects an owner who is not trusted. A superuser trusts only superusers. Other roles also trust the roles that they
 * are members of, the owner of the database, and the owner of an existing store if it is the only one, since that owner
 * has granted them access.
 */
const stranger = `SELECT min(rolname::text) FROM owners JOIN pg_catalog.pg_roles ON pg_roles.oid = owners.id, me
  WHERE rolname <> current_user AND NOT rolsuper AND (is_super OR NOT (
    pg_catalog.pg_has_role(owners.id, 'MEMBER')
    OR owners.id = (SELECT datdba FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
    OR ((SELECT count(*) FROM owners) = 1 AND EXISTS (SELECT FROM tables WHERE relname = 'schema_version'))
  ))`

/** FirstNormalObjectId: smaller OIDs are reserved for built-in objects. */
const firstOfUsers = '16384::oid'

/** Properties that no table of a store has, and that could call functions or suppress rows. */
const faults: [condition: string, words: string][] = [
  [`relkind <> 'r'`, 'is not a table'],
  ['relrowsecurity', 'has row security'],
  ['EXISTS (SELECT FROM pg_catalog.pg_rewrite WHERE ev_class = id)', 'has a rule'],
  ['EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE tgrelid = id AND NOT tgisinternal)', 'has a trigger'],
  ['EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE id IN (inhparent, inhrelid))', 'has a parent or children'],
  [
    "EXISTS (SELECT FROM pg_catalog.pg_attrdef WHERE adrelid = id AND adbin::text NOT LIKE '{CONST %')",
    'computes a column',
  ],
  [
    `EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = id AND atttypid >= ${firstOfUsers})`,
    'has a column of another type',
  ],
  [
    `EXISTS (SELECT FROM pg_catalog.pg_constraint WHERE conrelid = id AND contype NOT IN ('p', 'u', 'n'))`,
    'has a constraint',
  ],
  [
    `EXISTS (SELECT FROM pg_catalog.pg_index WHERE indrelid = id AND (indexprs IS NOT NULL OR ${firstOfUsers} <= ANY (indclass::oid[])
      OR pg_catalog.pg_get_expr(indpred, indrelid) <> '(idempotency_key IS NOT NULL)'))`,
    'has an index',
  ],
]

const fault = `SELECT min(relname || ' ' || flaw) FROM (
  SELECT relname::text, CASE ${faults.map(([condition, words]) => `WHEN ${condition} THEN '${words}'`).join(' ')} END AS flaw FROM tables
) AS flaws`

const inspection = `${context} SELECT EXISTS (SELECT FROM space), EXISTS (SELECT FROM tables WHERE relname = 'schema_version'),
  (${stranger}), (${fault})`

interface Grant {
  role: string
  rights: readonly Right[]
}

export function initialize(address: PostgresAddress, options: OpenOptions, grant: Grant | undefined): Promise<void> {
  return usingOnce(address, options, async (client) => {
    await migrate(client, address)
    if (grant === undefined) return
    const { role, rights } = grant
    await client.ask({ text: grants(grant) }).catch((error: unknown) => {
      if (sqlState(error) !== '42704') throw error
      const hint = `Create it first: CREATE ROLE ${pg.escapeIdentifier(role)} LOGIN`
      throw malformed(`There is no role ${JSON.stringify(role)} in ${address.name}`, hint, error)
    })
    // Without the privilege to grant, PostgreSQL only sends a notice.
    const granted = toRights(await client.ask(rightsStatement(role)))
    if (rights.every((right) => granted.includes(right))) return
    const hint = 'Use the address of the owner of the tables, or of an administrator'
    throw new PlantsError('unavailable', `${address.user} cannot grant these rights in ${address.name}`, { hint })
  })
}
