import type { NewPlant } from '../../plant/plant.js'
import { PlantsError } from '../../platform/errors.js'
import type { CredentialCheck } from '../common/access.js'
import type { PostgresAddress } from '../common/address.js'
import type { CreateOptions, CreatePreview, OpenOptions } from '../common/store.js'
import { checkServer, usingOnce } from './pool.js'
import type { Client } from './postgres-client.js'
import { identify, inspectSchema } from './postgres-schema.js'
import { resolveConflicts } from './postgres-writer.js'
import { findStatement, newAttempt, pinned, plants, rightsStatement, schemaName, toRights } from './sql.js'

/** Changes nothing. Throws `unavailable`, or `unauthorized` when the database rejects the login. */
export function inspectPostgres(address: PostgresAddress, options: OpenOptions) {
  return usingOnce(address, options, async (client) => {
    const version = await checkServer(client, address)
    await inspectSchema(client, address)
    return { version, isSecure: client.isSecure, ...(await rightsOver(client)) }
  })
}

/** Throws the reason of the clock's signal. */
export async function checkPassword(address: PostgresAddress, options: OpenOptions): Promise<CredentialCheck> {
  try {
    await usingOnce(address, options, async () => undefined)
    return { state: 'accepted' }
  } catch (error) {
    options.clock.signal.throwIfAborted()
    if (!(error instanceof PlantsError)) throw error
    return { state: error.type === 'unauthorized' ? 'rejected' : 'unknown', error }
  }
}

async function rightsOver(client: Client) {
  const [[exists, isWritable] = []] = await client.ask(pinned(rights))
  return { exists: exists === 't', isWritable: isWritable === 't' }
}

const schema = `pg_catalog.to_regnamespace('${schemaName}')`

/** The rights on a missing schema or table are NULL: then the database counts, in which they can be created. */
const rights = `SELECT ${schema} IS NOT NULL, coalesce(
  CASE WHEN pg_catalog.has_schema_privilege(${schema}::oid, 'USAGE') THEN pg_catalog.has_table_privilege(pg_catalog.to_regclass('${plants}'), 'INSERT')
    WHEN ${schema} IS NOT NULL THEN false END,
  pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE'))`

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
    const entry = { plant, key: create.idempotencyKey, attempt: newAttempt() }
    const result = resolveConflicts([entry], await client.ask(findStatement([entry]))).get(entry)
    if (result instanceof PlantsError) throw result
    return { exists: true, creates: result === undefined }
  })
}

/** Throws `unavailable` when no plant can be created over a connection. */
export async function checkWritable(client: Client, address: PostgresAddress): Promise<void> {
  await checkServer(client, address)
  if (!toRights(await client.ask(rightsStatement())).includes('create')) throw mayNotCreate(address)
}

function mayNotCreate({ name, user }: PostgresAddress): PlantsError {
  return new PlantsError('unavailable', `${user} has no right to create plants in ${name}`, {
    hint: 'See: plants doctor',
  })
}
