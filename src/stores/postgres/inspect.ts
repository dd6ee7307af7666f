import { PlantsError } from '../../platform/errors.js'
import type { DatabaseReport, OpenOptions, PostgresAddress } from '../store.js'
import { usingOnce } from './asking.js'
import type { Connection } from './connection.js'
import { inspectSchema } from './ownership.js'
import { checkServer } from './server-state.js'
import { plants, schemaName } from './statements.js'

/** Looks at a database, and changes nothing. Throws `unavailable` when it cannot be reached, `unauthorized` when it lets nobody in. */
export function inspectPostgres(address: PostgresAddress, options: OpenOptions): Promise<DatabaseReport> {
  return usingOnce(address, { ...options, allowAsyncCommit: true }, async (connection) => {
    const { version, isDurable } = await checkServer(connection, address, { allowAsyncCommit: true })
    const [[isPublicOpen] = []] = await connection.query(publicRights)
    const found = await inspectSchema(connection, address)
    const refusal = found instanceof PlantsError ? found : undefined
    const { isSecure } = connection
    return { version, isDurable, isSecure, isPublicOpen: isPublicOpen === 'true', refusal, ...(await rightsOver(connection)) }
  })
}

/** Whether there is a store, and whether plants could be created in it. */
export async function rightsOver(connection: Connection): Promise<Pick<DatabaseReport, 'exists' | 'isWritable'>> {
  const [[exists, mayMake, mayCreate] = []] = await connection.query(rights)
  return { exists: exists === 'true', isWritable: (mayCreate ?? mayMake) === 'true' }
}

/** There may be no such schema. */
const publicRights = `SELECT pg_catalog.has_schema_privilege('public', pg_catalog.to_regnamespace('public')::oid, 'CREATE')::text`

/** What is not there, or may not be looked into, has no rights: null. */
const rights = `SELECT (pg_catalog.to_regnamespace('${schemaName}') IS NOT NULL)::text, pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')::text,
  CASE WHEN pg_catalog.to_regnamespace('${schemaName}') IS NULL THEN NULL
    WHEN pg_catalog.has_schema_privilege('${schemaName}', 'USAGE') THEN pg_catalog.has_table_privilege(pg_catalog.to_regclass('${plants}'), 'INSERT')::text ELSE 'false' END`
