import { PlantsError } from '../../errors.js'
import type { PostgresConnection } from './connection.js'

export const plantsTable = 'plant_store.plants'
export const tokensTable = 'plant_store.tokens'
const versionsTable = 'plant_store.schema_version'

export const plantColumns = 'id, name, tag'

const schemaVersion = 1

const schema = `
  CREATE SCHEMA plant_store;
  CREATE TABLE ${plantsTable} (
    id bigint PRIMARY KEY,
    name text NOT NULL,
    tag text,
    idempotency_key text COLLATE "C"
  );
  CREATE TABLE ${tokensTable} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    digest bytea NOT NULL UNIQUE,
    note text,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint,
    rights text NOT NULL
  );
  CREATE TABLE ${versionsTable} (version integer PRIMARY KEY);
  INSERT INTO ${versionsTable} VALUES (${schemaVersion})`

export async function assertStore(connection: PostgresConnection): Promise<void> {
  const [[storedVersion] = []] = await connection.read(`SELECT max(version) FROM ${versionsTable}`)
  if (storedVersion === String(schemaVersion)) return
  const message = `The store at ${connection.name} has version ${storedVersion} of the schema, but this program needs version ${schemaVersion}`
  throw new PlantsError('accessDenied', message, {
    hint: 'Use the version of plants that created it',
  })
}

/**
 * Creates the tables of a store if there are none. With the lock, processes that create the tables
 * at the same time wait for one another. `CREATE TABLE IF NOT EXISTS` may fail without it.
 *
 * @returns true if there was no store
 */
export function createStore(connection: PostgresConnection): Promise<boolean> {
  return connection.transaction(async () => {
    const { rows } = await connection.query(
      `SELECT pg_advisory_xact_lock(hashtext('plant_store')); SELECT to_regclass('${versionsTable}')`,
    )
    const isMissing = rows[0]?.[0] === null
    if (isMissing) await connection.query(schema)
    else {
      await assertStore(connection)
      await connection.writeWalMessage()
    }
    return isMissing
  })
}
