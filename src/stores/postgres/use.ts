import type { OpenOptions } from '../store.js'
import type { Account } from './dial.js'
import type { Pool } from './pool.js'

/** What it takes to use a database: which one, connections to it, and how long things may take. */
export interface Use {
  account: Account
  pool: Pool
  options: OpenOptions
}
