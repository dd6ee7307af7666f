import pg from 'pg'
import { PlantsError } from '../../platform/errors.js'
import type { PostgresAddress } from '../address.js'
import type { OpenOptions, Right } from '../store.js'
import type { Client } from './client.js'
import { divisionByZero, sqlState } from './errors.js'
import { usingOnce } from './pool.js'
import { begin, imports, pinned, plants, privilegeFor, rightsStatement, schemaName, tokens, toRights, versions } from './sql.js'

/**
 * The steps from an empty database to the newest schema. The version counts the steps that were taken; a step that has been released is never
 * changed, only followed by another, and takes nothing away, because nodes of the version before go on meanwhile.
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
    revoked_at bigint
  );
  CREATE TABLE ${imports} (id text COLLATE "C" PRIMARY KEY, state text NOT NULL)`,
  `ALTER TABLE ${tokens} ADD COLUMN rights text NOT NULL DEFAULT 'create'`,
]

/**
 * Finds out which schema a database has.
 *
 * @returns its version, 0 when there is no store yet
 * @throws {PlantsError} `unavailable` when it was made by a newer version of this program, or by somebody else
 */
export async function identify(client: Client, address: PostgresAddress, newest = migrations.length): Promise<number> {
  const { name } = address
  const version = await versionOf(client, address)
  if (version <= newest) return version
  const message = `${name} was made by a newer version of plants (schema ${version}, this one knows ${newest})`
  throw new PlantsError('unavailable', message, { hint: 'Update plants' })
}

async function versionOf(client: Client, address: PostgresAddress): Promise<number> {
  try {
    const [[version] = []] = await client.ask(pinned(`${schemaCheck}; SELECT max(version) FROM ${versions}`))
    return Number(version ?? 0)
  } catch (error) {
    if (isMissing(error)) return 0
    if (sqlState(error) !== divisionByZero) throw error
  }
  const found = await inspectSchema(client, address)
  if (found instanceof PlantsError) throw found
  return found ? versionOf(client, address) : 0 // it may have been made a moment ago
}

/** Whether what was asked for is not there: a schema or a table. */
function isMissing(error: unknown): boolean {
  return ['3F000', '42P01'].includes(sqlState(error) ?? '')
}

/**
 * Brings a database to the newest schema, in one transaction and behind a lock, so that several nodes may do so at the same moment.
 * The connection does nothing else meanwhile.
 */
export async function migrate(client: Client, address: PostgresAddress, steps = migrations): Promise<void> {
  if ((await identify(client, address, steps.length)) === steps.length) return
  try {
    await client.ask({ text: `${begin().text}; SELECT pg_advisory_xact_lock(${lock})` })
    const left = steps.slice(await lockedVersion(client, address, steps))
    for (const step of left) await client.ask({ text: step })
    if (left.length > 0) await client.ask({ text: `INSERT INTO ${versions} VALUES (${steps.length})` })
    await client.ask({ text: 'COMMIT' })
  } catch (error) {
    if (sqlState(error) !== undefined || error instanceof PlantsError) await client.ask({ text: 'ROLLBACK' })
    throw error
  }
}

/**
 * The version behind the lock. The place for it is made first: to ask for what is not there would end the transaction. A schema that somebody
 * else makes meanwhile is not used.
 */
async function lockedVersion(client: Client, address: PostgresAddress, steps: readonly string[]): Promise<number> {
  const found = await inspectSchema(client, address)
  if (found instanceof PlantsError) throw found
  if (!found) await client.ask({ text: `CREATE SCHEMA ${schemaName}` })
  await client.ask({ text: `CREATE TABLE IF NOT EXISTS ${versions} (version integer PRIMARY KEY)` })
  return identify(client, address, steps.length)
}

/** "plnt": a number that all nodes know, and that no other program is likely to take. */
const lock = 0x706c6e74

/**
 * What a service needs that offers these rights, and nothing that changes a token. The positions of imports are its own. Whoever creates,
 * updates or deletes reads as well: what is there decides what an operation returns.
 */
export function grants({ role, rights }: Grant): string {
  const name = pg.escapeIdentifier(role)
  const privileges = [...new Set(['SELECT', ...rights.map((right) => privilegeFor[right])])]
  return [
    `GRANT USAGE ON SCHEMA ${schemaName} TO ${name}`,
    `GRANT SELECT ON ${versions}, ${tokens} TO ${name}`,
    `GRANT ${privileges.join(', ')} ON ${plants} TO ${name}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ${imports} TO ${name}`,
  ].join('; ')
}

/**
 * Looks at whose the schema of a store is, in the catalogues of PostgreSQL alone: whoever owns a table, or what is in its place, can have
 * code run as each role that reads it.
 *
 * @returns whether it is there, or why it is not used
 */
export async function inspectSchema(client: Client, address: PostgresAddress): Promise<boolean | PlantsError> {
  const [[isThere, owner, flaw] = []] = await client.ask(
    pinned(`${context} SELECT EXISTS (SELECT FROM space)::text, (${stranger}), (${fault})`),
  )
  if (isThere !== 'true') return false
  if (owner != null)
    return notOurs(
      address,
      `it belongs to ${owner}`,
      `If you trust ${owner}, use its address, and no superuser's. Else have the schema removed, or use another database`,
    )
  return flaw == null ? true : notOurs(address, flaw, 'Remove what plants did not make, or use another database')
}

function notOurs({ name }: PostgresAddress, why: string, hint: string): PlantsError {
  return new PlantsError('unavailable', `${name} holds a schema ${schemaName} that plants did not make: ${why}`, { hint })
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
 * An owner who is not to be trusted. A superuser trusts superusers alone. Others trust roles that they are members of and the database's
 * owner as well, and the only owner of a store that is there, who has let them in.
 */
const stranger = `SELECT min(rolname::text) FROM owners JOIN pg_catalog.pg_roles ON pg_roles.oid = owners.id, me
  WHERE rolname <> current_user AND NOT rolsuper AND (is_super OR NOT (
    pg_catalog.pg_has_role(owners.id, 'MEMBER')
    OR owners.id = (SELECT datdba FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
    OR ((SELECT count(*) FROM owners) = 1 AND EXISTS (SELECT FROM tables WHERE relname = 'schema_version'))
  ))`

/** Below it are the numbers of what PostgreSQL brings with it: FirstNormalObjectId. */
const firstOfUsers = '16384::oid'

/** What no table of ours has, and could call functions or leave out rows. */
const faults: [condition: string, words: string][] = [
  [`relkind <> 'r'`, 'is not a table'],
  ['relrowsecurity', 'has row security'],
  ['EXISTS (SELECT FROM pg_catalog.pg_rewrite WHERE ev_class = id)', 'has a rule'],
  ['EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE tgrelid = id AND NOT tgisinternal)', 'has a trigger'],
  ['EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE id IN (inhparent, inhrelid))', 'has a parent or children'],
  ["EXISTS (SELECT FROM pg_catalog.pg_attrdef WHERE adrelid = id AND adbin::text NOT LIKE '{CONST %')", 'computes a column'],
  [`EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = id AND atttypid >= ${firstOfUsers})`, 'has a column of another type'],
  [`EXISTS (SELECT FROM pg_catalog.pg_constraint WHERE conrelid = id AND contype NOT IN ('p', 'u', 'n'))`, 'has a constraint'],
  [
    `EXISTS (SELECT FROM pg_catalog.pg_index WHERE indrelid = id AND (indexprs IS NOT NULL OR ${firstOfUsers} <= ANY (indclass::oid[])
      OR pg_catalog.pg_get_expr(indpred, indrelid) <> '(idempotency_key IS NOT NULL)'))`,
    'has an index',
  ],
]

/** What is wrong with a table. */
const fault = `SELECT min(relname || ' ' || flaw) FROM (
  SELECT relname::text, CASE ${faults.map(([condition, words]) => `WHEN ${condition} THEN '${words}'`).join(' ')} END AS flaw FROM tables
) AS flaws`

/** Fails, with a division by zero, where there is no schema that can be used; what comes after it is not looked at then. */
const schemaCheck = `${context} SELECT 1 / (EXISTS (SELECT FROM space) AND (${stranger}) IS NULL AND (${fault}) IS NULL)::int`

/** A role, which is there already, and what a service that logs in as it offers. */
export interface Grant {
  role: string
  rights: readonly Right[]
}

/** Makes the store in a database, or brings it to the newest schema, and grants to a role what a service needs. */
export function initialise(address: PostgresAddress, options: OpenOptions, grant: Grant | undefined): Promise<void> {
  return usingOnce(address, { ...options, allowAsyncCommit: true }, async (client) => {
    await migrate(client, address)
    if (grant === undefined) return
    const { role, rights } = grant
    await client.ask({ text: grants(grant) }).catch((error: unknown) => {
      if (sqlState(error) !== '42704') throw error
      const hint = `Make it first: CREATE ROLE ${pg.escapeIdentifier(role)} LOGIN`
      throw new PlantsError('malformed', `There is no role ${JSON.stringify(role)} in ${address.name}`, { hint, cause: error })
    })
    // Who may not grant is told so in a notice, and no more.
    const [row] = await client.ask(rightsStatement(role))
    if (rights.every((right) => toRights(row).includes(right))) return
    const hint = 'Use the address of the owner of the tables, or of an administrator'
    throw new PlantsError('unavailable', `${address.user} may grant nothing in ${address.name}`, { hint })
  })
}
