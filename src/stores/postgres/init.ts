import { PlantsError } from '../../platform/errors.js'
import type { OpenOptions, PostgresAddress } from '../store.js'
import { usingOnce } from './asking.js'
import { sqlState } from './failure.js'
import { identifier, literal } from './literal.js'
import { grants, migrate } from './schema.js'
import { plants } from './statements.js'

/**
 * Makes the store in a database, or brings it to the newest schema, and grants to a role what a service needs.
 *
 * @param role one that is there already
 */
export function initialise(address: PostgresAddress, options: OpenOptions, role: string | undefined): Promise<void> {
  return usingOnce(address, { ...options, allowAsyncCommit: true }, async (connection) => {
    await migrate(connection, address)
    if (role === undefined) return
    await connection.query(grants(role)).catch((error: unknown) => {
      if (sqlState(error) !== '42704') throw error
      const hint = `Make it first: CREATE ROLE ${identifier(role)} LOGIN`
      throw new PlantsError('malformed', `There is no role ${JSON.stringify(role)} in ${address.name}`, { hint, cause: error })
    })
    // Who may not grant is told so in a notice, and no more.
    const [[mayCreate] = []] = await connection.query(
      `SELECT pg_catalog.has_table_privilege(${literal(role)}, '${plants}', 'INSERT')::text`,
    )
    if (mayCreate === 'true') return
    const hint = 'Use the address of the owner of the tables, or of an administrator'
    throw new PlantsError('unavailable', `${address.user} may grant nothing in ${address.name}`, { hint })
  })
}
