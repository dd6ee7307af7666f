import { PlantsError } from '../../platform/errors.js'
import type { PostgresAddress } from '../store.js'
import type { Connection } from './connection.js'
import { literal } from './literal.js'
import { imports, plants, schemaName, tokens, versions } from './statements.js'

/**
 * Looks at whose the schema of a store is, in the catalogues of PostgreSQL alone: whoever owns a table, or what is in its place, can have
 * code run as each role that reads it.
 *
 * @returns whether it is there, or why it is not used
 */
export async function inspectSchema(connection: Connection, address: PostgresAddress): Promise<boolean | PlantsError> {
  const [[isThere, owner, flaw] = []] = await connection.query(
    `${context} SELECT EXISTS (SELECT FROM space)::text, (${stranger}), (${fault})`,
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

const names = [plants, tokens, imports, versions].map((table) => literal(table.slice(schemaName.length + 1))).join()

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
export const schemaCheck = `${context} SELECT 1 / (EXISTS (SELECT FROM space) AND (${stranger}) IS NULL AND (${fault}) IS NULL)::int`
