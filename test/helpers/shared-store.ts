import { expect } from 'vitest'
import type { PostgresAddress } from '../../src/stores/common/address.js'
import type { OpenOptions } from '../../src/stores/common/store.js'
import { parsePostgres } from '../../src/stores/postgres/postgres-address.js'
import { PostgresStore } from '../../src/stores/postgres/postgres-store.js'
import type { Database } from './postgres.js'
import { closedAfterTest, openOptions } from './store.js'

/** The address of a database for tests, with parameters such as "max=1". */
export function addressOf({ url }: Pick<Database, 'url'>, parameters = ''): PostgresAddress {
  const place = { resolvePath: (path: string) => path, dataFolder: async () => '/nonexistent' }
  const surroundings = { env: {}, userName: () => 'plants', secrets: new Set<string>(), isArgument: false }
  return parsePostgres(`${url}${parameters && `?${parameters}`}`, 'The test', { ...place, ...surroundings })
}

/** What a store needs to log in to a database for tests. */
export function databaseOptions({ env }: Pick<Database, 'env'>, options: Partial<OpenOptions> = {}): OpenOptions {
  const login = async () => ({
    password: () => env.PGPASSWORD,
    passwordHint: 'Set PGPASSWORD',
    trusts: () => true,
    ca: undefined,
    cert: undefined,
    key: undefined,
  })
  return openOptions({ login, ...options })
}

/** Opens the store of a database for tests, with parameters such as "max=1", and closes it when the test is over. */
export async function openShared(
  database: Pick<Database, 'url' | 'env'>,
  { parameters, ...options }: Partial<OpenOptions> & { parameters?: string } = {},
): Promise<PostgresStore> {
  return closedAfterTest(await PostgresStore.open(addressOf(database, parameters), databaseOptions(database, options)))
}

/** Resolves when so many sessions wait for others in a database. */
export async function othersWait(database: Database, count: number): Promise<void> {
  const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  await expect.poll(async () => (await database.admin(waiting)).length, { interval: 5 }).toBe(count)
}
