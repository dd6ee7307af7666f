import { PlantsError } from '../../platform/errors.js'
import type { PostgresAddress } from '../store.js'
import type { Connection } from './connection.js'
import { divisionByZero, sqlState } from './failure.js'
import { identifier } from './literal.js'
import { inspectSchema, schemaCheck } from './ownership.js'
import { imports, plants, schemaName, tokens, versions } from './statements.js'

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
]

/**
 * Finds out which schema a database has.
 *
 * @returns its version, 0 when there is no store yet
 * @throws {PlantsError} `unavailable` when it was made by a newer version of this program, or by somebody else
 */
export async function identify(connection: Connection, address: PostgresAddress, newest = migrations.length): Promise<number> {
  const { name } = address
  const version = await versionOf(connection, address)
  if (version <= newest) return version
  const message = `${name} was made by a newer version of plants (schema ${version}, this one knows ${newest})`
  throw new PlantsError('unavailable', message, { hint: 'Update plants' })
}

async function versionOf(connection: Connection, address: PostgresAddress): Promise<number> {
  try {
    const [[version] = []] = await connection.query(`${schemaCheck}; SELECT max(version) FROM ${versions}`)
    return Number(version ?? 0)
  } catch (error) {
    if (isMissing(error)) return 0
    if (sqlState(error) !== divisionByZero) throw error
  }
  const found = await inspectSchema(connection, address)
  if (found instanceof PlantsError) throw found
  return found ? versionOf(connection, address) : 0 // it may have been made a moment ago
}

/** Whether what was asked for is not there: a schema or a table. */
export function isMissing(error: unknown): boolean {
  return ['3F000', '42P01'].includes(sqlState(error) ?? '')
}

/**
 * Brings a database to the newest schema, in one transaction and behind a lock, so that several nodes may do so at the same moment.
 * The connection does nothing else meanwhile.
 */
export async function migrate(connection: Connection, address: PostgresAddress, steps = migrations): Promise<void> {
  if ((await identify(connection, address, steps.length)) === steps.length) return
  await connection.query(`BEGIN; SELECT pg_catalog.pg_advisory_xact_lock(${lock})`)
  try {
    const left = steps.slice(await lockedVersion(connection, address, steps))
    await connection.query(
      `${left.map((step) => `${step};`).join('\n')} ${left.length === 0 ? '' : `INSERT INTO ${versions} VALUES (${steps.length});`} COMMIT`,
    )
  } catch (error) {
    if (sqlState(error) !== undefined || error instanceof PlantsError) await connection.rollBack()
    throw error
  }
}

/**
 * The version behind the lock. The place for it is made first: to ask for what is not there would end the transaction. A schema that somebody
 * else makes meanwhile is not used.
 */
async function lockedVersion(connection: Connection, address: PostgresAddress, steps: readonly string[]): Promise<number> {
  const found = await inspectSchema(connection, address)
  if (found instanceof PlantsError) throw found
  if (!found) await connection.query(`CREATE SCHEMA ${schemaName}`)
  const [[isThere] = []] = await connection.query(`SELECT EXISTS (SELECT FROM pg_catalog.pg_class
    WHERE relnamespace = pg_catalog.to_regnamespace('${schemaName}') AND relname = 'schema_version')::text`)
  if (isThere !== 'true') await connection.query(`CREATE TABLE ${versions} (version integer PRIMARY KEY)`)
  return identify(connection, address, steps.length)
}

/** "plnt": a number that all nodes know, and that no other program is likely to take. */
const lock = 0x706c6e74

/** What a service needs, and nothing that changes or removes a plant or a token. The positions of imports are its own. */
export function grants(role: string): string {
  const name = identifier(role)
  return [
    `GRANT USAGE ON SCHEMA ${schemaName} TO ${name}`,
    `GRANT SELECT ON ${versions}, ${tokens} TO ${name}`,
    `GRANT SELECT, INSERT ON ${plants} TO ${name}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ${imports} TO ${name}`,
  ].join('; ')
}
