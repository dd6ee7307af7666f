import type { NewPlant } from '../../plant/plant.js'
import { PlantsError } from '../../platform/errors.js'
import type { CredentialCheck } from '../common/access.js'
import type { PostgresAddress } from '../common/address.js'
import type { CreateOptions, CreatePreview, OpenOptions } from '../common/store.js'
import type { Client } from './client.js'
import { usingOnce } from './pool.js'
import { identify, inspectSchema } from './schema.js'
import { checkServer, mayNotCreate } from './server-state.js'
import { findStatement, newWriteId, pinned, plants, schemaName } from './sql.js'
import { resultsOf } from './writer.js'

/** Inspects a database without changes. Throws `unavailable` when it cannot be reached, `unauthorized` when it rejects the login. */
export function inspectPostgres(address: PostgresAddress, options: OpenOptions) {
  return usingOnce(address, options, async (client) => {
    const { version } = await checkServer(client, address)
    const [[isPublicOpen] = []] = await client.ask(pinned(publicRights))
    const found = await inspectSchema(client, address)
    const refusal = found instanceof PlantsError ? found : undefined
    const { isSecure } = client
    return { version, isSecure, isPublicOpen: isPublicOpen === 'true', refusal, ...(await rightsOver(client)) }
  })
}

/** Checks whether a database accepts a password, without changes. Throws the reason of the clock's signal. */
export async function checkPassword(address: PostgresAddress, options: OpenOptions): Promise<CredentialCheck> {
  try {
    await inspectPostgres(address, options)
    return { state: 'accepted' }
  } catch (error) {
    options.clock.signal.throwIfAborted()
    if (!(error instanceof PlantsError)) throw error
    return { state: error.type === 'unauthorized' ? 'refused' : 'unknown', error }
  }
}

/** Whether there is a store, and whether this role can create plants in it. */
async function rightsOver(client: Client): Promise<{ exists: boolean; isWritable: boolean }> {
  const [[exists, mayMake, mayCreate] = []] = await client.ask(pinned(rights))
  return { exists: exists === 'true', isWritable: (mayCreate ?? mayMake) === 'true' }
}

/** `to_regnamespace` allows for a missing schema. */
const publicRights = `SELECT pg_catalog.has_schema_privilege('public', pg_catalog.to_regnamespace('public')::oid, 'CREATE')::text`

/** NULL for the rights on a schema or a table that does not exist. */
const rights = `SELECT (pg_catalog.to_regnamespace('${schemaName}') IS NOT NULL)::text, pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')::text,
  CASE WHEN pg_catalog.to_regnamespace('${schemaName}') IS NULL THEN NULL
    WHEN pg_catalog.has_schema_privilege('${schemaName}', 'USAGE') THEN pg_catalog.has_table_privilege(pg_catalog.to_regclass('${plants}'), 'INSERT')::text ELSE 'false' END`

/**
 * Determines what a create would do, without doing it.
 *
 * @throws {PlantsError} the errors of a create, as far as they can be predicted
 */
export function previewCreate(
  address: PostgresAddress,
  plant: NewPlant,
  create: CreateOptions,
  options: OpenOptions,
): Promise<CreatePreview> {
  return usingOnce(address, options, async (client) => {
    const { isWritable } = await rightsOver(client)
    if (!isWritable) throw mayNotCreate(address)
    if ((await identify(client, address)) === 0) return { exists: false, creates: true }
    const entry = { plant, key: create.idempotencyKey, writeId: newWriteId() }
    const result = resultsOf([entry], await client.ask(findStatement([entry]))).get(entry)
    if (result instanceof PlantsError) throw result
    return { exists: true, creates: result === undefined }
  })
}
