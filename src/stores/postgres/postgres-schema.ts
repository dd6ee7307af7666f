import { PlantsError } from '../../platform/errors.js'
import type { PostgresAddress } from '../common/address.js'
import type { CheckReport } from '../common/store.js'
import { type Right, rights } from '../common/token-store.js'
import { ConnectionPool } from './pool.js'
import type { Connection } from './postgres-connection.js'
import type { PostgresOptions } from './postgres-options.js'
import { imports, plants, schemaName, tokens, versions } from './sql.js'

/** The version that the first of `migrations` follows. */
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
  // It is no longer used, and other programs that insert plants do not know it.
  `ALTER TABLE ${plants} ALTER attempt DROP NOT NULL`,
]

const latestVersion = baseVersion + migrations.length

/** Throws `unavailable` as `inspect` does, and if there is no store. */
export async function assertStore(connection: Connection): Promise<void> {
  await findStore(connection)
}

async function findStore(
  connection: Connection,
  { newest = latestVersion, mayBeMissing = false } = {},
) {
  const found = await inspect(connection, newest)
  if (found.version === 0 && !mayBeMissing) throw connection.noStore()
  return found
}

/**
 * In one transaction and under a lock, so that several processes may do so concurrently. Returns what it did, if
 * anything. Throws as `assertStore` does. After an error, the connection may still be in the transaction.
 */
export async function migrate(
  connection: Connection,
  { mayCreate = false, steps = migrations } = {},
): Promise<'created' | 'migrated' | undefined> {
  const latest = baseVersion + steps.length
  const find = () => findStore(connection, { newest: latest, mayBeMissing: mayCreate })
  if ((await find()).version === latest) return undefined
  await connection.ask(`BEGIN; SELECT pg_advisory_xact_lock(${lock})`)
  const { hasSchema, version } = await find() // somebody may have migrated it meanwhile
  if (!hasSchema) await connection.ask(`CREATE SCHEMA ${schemaName}`)
  if (version === 0) await connection.ask(`CREATE TABLE ${versions} (version integer PRIMARY KEY)`)
  const left = steps.slice(Math.max(0, version - baseVersion))
  for (const step of left) await connection.ask(step)
  if (left.length > 0) await connection.ask(`INSERT INTO ${versions} VALUES (${latest})`)
  await connection.ask('COMMIT')
  if (version === 0) return 'created'
  return left.length > 0 ? 'migrated' : undefined
}

/** "plnt", which no other program is likely to use */
const lock = 0x706c6e74

/**
 * Throws `unavailable` for a schema of a newer version of this program, and for a schema or tables of an owner who is
 * not trusted: an owner can run code in the name of every role that uses a table. A superuser trusts only superusers.
 * Other roles also trust the roles that they are members of, and the owner of the database.
 */
async function inspect(
  connection: Connection,
  newest: number,
): Promise<{ hasSchema: boolean; version: number }> {
  const { name } = connection.address
  const [[hasSchema, hasVersions, owner] = []] = await connection.ask(inspection)
  if (typeof owner === 'string') {
    const message = `${name} contains a schema ${schemaName} that belongs to ${owner}`
    const hint = `If you trust ${owner}, log in as that role. Otherwise remove the schema, or use another database`
    throw new PlantsError('inaccessible', message, { hint })
  }
  if (hasVersions !== 't') return { hasSchema: hasSchema === 't', version: 0 }
  const version = Number(await connection.ask(`SELECT max(version) FROM ${versions}`))
  if (version <= newest) return { hasSchema: true, version }
  const message = `${name} was created by a newer version of plants (schema ${version}, this one supports ${newest})`
  throw new PlantsError('inaccessible', message, { hint: 'Update plants' })
}

const inspection = `SELECT to_regnamespace('${schemaName}') IS NOT NULL, to_regclass('${versions}') IS NOT NULL, (
    SELECT min(rolname::text) FROM pg_roles WHERE oid IN (
      SELECT nspowner FROM pg_namespace WHERE nspname = '${schemaName}'
      UNION SELECT relowner FROM pg_class WHERE relnamespace = to_regnamespace('${schemaName}')
        AND relname IN ('plants', 'tokens', 'imports', 'schema_version')
    ) AND rolname <> current_user AND NOT rolsuper AND (
      EXISTS (SELECT FROM pg_roles WHERE rolname IN (current_user, session_user) AND rolsuper)
      OR NOT (pg_has_role(oid, 'MEMBER') OR oid = (SELECT datdba FROM pg_database WHERE datname = current_database()))
    ))`

/** Asks the catalog about the unique indexes, which PostgreSQL has kept since they were there: no row is read. */
export async function check(
  address: PostgresAddress,
  options: PostgresOptions,
): Promise<CheckReport> {
  const { pool, result: missing } = await ConnectionPool.open(
    address,
    options,
    async (connection) => {
      await assertStore(connection)
      return (await connection.ask(missingIndexes)).map(String)
    },
  )
  pool.close()
  const hint = 'Add them again, or restore a backup'
  if (missing.length > 0)
    throw new PlantsError(
      'inaccessible',
      `${address.name} has lost unique constraints: ${missing.join(', ')}`,
      { hint },
    )
  return { message: 'all unique constraints of the tables are in place and valid' }
}

const missingIndexes = `SELECT name FROM unnest(ARRAY['plants_pkey', 'plants_idempotency_key', 'tokens_pkey',
    'tokens_digest_key', 'imports_pkey', 'schema_version_pkey']) AS name
  WHERE NOT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass('${schemaName}.' || name)
    AND indisunique AND indisvalid AND indimmediate)`

/** Throws `unavailable` for a server that is not ready, and a login without these rights. */
export async function assertUsable(connection: Connection, needs: readonly Right[]): Promise<void> {
  await connection.check()
  const has = await rightsOf(connection)
  const missing = needs.find((right) => !has.includes(right))
  if (missing === undefined) return
  const { name, user } = connection.address
  const message = `${user} has no right to ${missing} plants in ${name}`
  throw new PlantsError('inaccessible', message, {
    hint: 'The owner of the database can grant it: see Least privilege in docs/databases.md',
  })
}

export async function rightsOf(connection: Connection): Promise<Right[]> {
  const privileges = { create: 'INSERT', read: 'SELECT', update: 'UPDATE', delete: 'DELETE' }
  const has = rights.map((right) => `has_table_privilege('${plants}', '${privileges[right]}')`)
  const [row = []] = await connection.ask(`SELECT ${has.join()}`)
  return rights.filter((_, index) => row[index] === 't')
}
