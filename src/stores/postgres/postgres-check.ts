import { PlantsError } from '../../platform/errors.js'
import type { PostgresAddress } from '../common/address.js'
import { type CheckReport, type OpenOptions, type Right, rights } from '../common/store.js'
import { ConnectionPool } from './pool.js'
import type { Connection } from './postgres-connection.js'
import { hasStore, missingConstraints } from './postgres-schema.js'
import { plants } from './sql.js'

/** Changes nothing. Throws `unavailable`, or `unauthorized` when the database rejects the login. */
export function inspectPostgres(address: PostgresAddress, options: OpenOptions) {
  return using(address, options, async (connection, exists) => {
    const version = String(await connection.ask('SHOW server_version'))
    const isWritable = exists
      ? (await rightsOf(connection)).includes('create')
      : String(await connection.ask("SELECT has_database_privilege(current_database(), 'CREATE')")) === 't'
    return { version, exists, isWritable }
  })
}

/** Asks the catalog about the constraints, which PostgreSQL has kept since they were there: no row is read. */
export function check(address: PostgresAddress, options: OpenOptions): Promise<CheckReport | undefined> {
  return using(address, options, async (connection, exists) => {
    const missing = exists ? (await connection.ask(missingConstraints)).map(String) : []
    const hint = 'Add them again, or restore a backup'
    if (missing.length > 0)
      throw new PlantsError('unavailable', `${address.name} has lost constraints: ${missing.join(', ')}`, { hint })
    return exists ? { message: 'all constraints of the tables are in place and valid' } : undefined
  })
}

/** Throws `unavailable` for a server that is not ready, and a login without these rights. */
export async function assertUsable(connection: Connection, needs: readonly Right[]): Promise<void> {
  await connection.check()
  const has = await rightsOf(connection)
  const missing = needs.find((right) => !has.includes(right))
  if (missing === undefined) return
  const { name, user } = connection.address
  const message = `${user} has no right to ${missing} plants in ${name}`
  throw new PlantsError('unavailable', message, { hint: 'See: plants doctor' })
}

export async function rightsOf(connection: Connection): Promise<Right[]> {
  const privileges = { create: 'INSERT', read: 'SELECT', update: 'UPDATE', delete: 'DELETE' }
  const has = rights.map((right) => `has_table_privilege('${plants}', '${privileges[right]}')`)
  const [row = []] = await connection.ask(`SELECT ${has.join()}`)
  return rights.filter((_, index) => row[index] === 't')
}

async function using<T>(
  address: PostgresAddress,
  options: OpenOptions,
  action: (connection: Connection, exists: boolean) => Promise<T>,
): Promise<T> {
  const { pool, result } = await ConnectionPool.open(address, options, async (connection) =>
    action(connection, await hasStore(connection)),
  )
  pool.close()
  return result
}
