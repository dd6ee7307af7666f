import type { NewPlant } from '../../plant/plant.js'
import { PlantsError } from '../../platform/errors.js'
import type { CredentialCheck } from '../common/access.js'
import type { PostgresAddress } from '../common/address.js'
import { assertDone, type Change } from '../common/change.js'
import type { CheckReport, CreatePreview, OpenOptions } from '../common/store.js'
import { ConnectionPool } from './pool.js'
import type { Connection } from './postgres-connection.js'
import { explainDatabase } from './postgres-errors.js'
import { identify, inspectSchema, missingConstraints } from './postgres-schema.js'
import { Plan, storedFor } from './postgres-write.js'
import { rightsStatement, toRights } from './sql.js'

/** Changes nothing. Throws `unavailable`, or `unauthorized` when the database rejects the login. */
export function inspectPostgres(address: PostgresAddress, options: OpenOptions) {
  return usingOnce(address, options, async (connection) => {
    const { version, isSecure } = connection
    const exists = (await identify(connection, address)) > 0
    const creates = exists ? rightsStatement : `SELECT has_database_privilege(current_database(), 'CREATE')`
    return { version, isSecure, exists, isWritable: toRights(await connection.ask(creates)).includes('create') }
  })
}

/** Asks the catalog about the constraints, which PostgreSQL has kept since they were there: no row is read. */
export function check(address: PostgresAddress, options: OpenOptions): Promise<CheckReport | undefined> {
  return usingOnce(address, options, async (connection) => {
    const { hasVersions } = await inspectSchema(connection, address)
    if (!hasVersions) return undefined
    const missing = await missingConstraints(connection)
    if (missing.length === 0) return { message: 'all constraints of the tables are in place and valid' }
    const hint = 'Add them again, or restore a backup'
    throw new PlantsError('unavailable', `${address.name} has lost constraints: ${missing.join(', ')}`, { hint })
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

export function previewCreate(
  address: PostgresAddress,
  plant: NewPlant,
  key: string | undefined,
  options: OpenOptions,
): Promise<CreatePreview> {
  return usingOnce(address, options, async (connection) => {
    if ((await identify(connection, address)) === 0) return { exists: false, creates: true }
    const change: Change = { type: 'create', plant, key }
    const plan = new Plan(await storedFor(connection, [change]))
    assertDone(plan.apply(change))
    return { exists: true, creates: !plan.hasRepeated }
  })
}

/** Throws `unavailable` when no plant can be created over a connection. */
export async function checkWritable(connection: Connection, { name, user }: PostgresAddress): Promise<void> {
  await connection.assertWritable()
  if (toRights(await connection.ask(rightsStatement)).includes('create')) return
  const message = `${user} has no right to create plants in ${name}`
  throw new PlantsError('unavailable', message, { hint: 'See: plants doctor' })
}

/** Without a retry: what is asked is whether the database works now. */
async function usingOnce<T>(
  address: PostgresAddress,
  options: OpenOptions,
  action: (connection: Connection) => Promise<T>,
): Promise<T> {
  const account = { address, login: await options.login(address) }
  const connections = new ConnectionPool(account, options)
  try {
    return await connections.use(connections.limits(), action)
  } catch (error) {
    throw explainDatabase(error, account)
  } finally {
    connections.close()
  }
}
