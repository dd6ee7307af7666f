import { PlantsError } from '../../errors.js'
import type { PostgresConnection } from './connection.js'

export const plants = 'plant_store.plants'
export const tokens = 'plant_store.tokens'
export const imports = 'plant_store.imports'
const versions = 'plant_store.schema_version'

export const columns = 'id, name, tag'

const version = 1

const schema = `
  CREATE SCHEMA plant_store;
  CREATE TABLE ${plants} (
    id bigint PRIMARY KEY,
    name text NOT NULL,
    tag text,
    idempotency_key text COLLATE "C"
  );
  CREATE TABLE ${tokens} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest bytea NOT NULL UNIQUE,
    note text,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    rights text NOT NULL
  );
  CREATE TABLE ${imports} (id text COLLATE "C" PRIMARY KEY, state text NOT NULL);
  CREATE TABLE ${versions} (version integer PRIMARY KEY);
  INSERT INTO ${versions} VALUES (${version})`

export async function assertStore(connection: PostgresConnection): Promise<void> {
  const [[found] = []] = await connection.read(`SELECT max(version) FROM ${versions}`)
  if (found === String(version)) return
  const message = `The store at ${connection.name} has version ${found} of the schema, but this program needs version ${version}`
  throw new PlantsError('accessDenied', message, {
    hint: 'Use the version of plants that created it',
  })
}

/**
 * Creates the tables of a store if there are none. The lock makes processes that do so at the same
 * time wait for one another: `CREATE TABLE IF NOT EXISTS` may fail then.
 *
 * @returns true if there was no store
 */
export function createStore(connection: PostgresConnection): Promise<boolean> {
  return connection.transaction(async () => {
    const { rows } = await connection.query(
      `SELECT pg_advisory_xact_lock(hashtext('plant_store')); SELECT to_regclass('${versions}')`,
      [],
      2,
    )
    const isMissing = rows[0]?.[0] === null
    if (isMissing) await connection.query(schema)
    else {
      await assertStore(connection)
      await connection.logMessage()
    }
    return isMissing
  })
}
