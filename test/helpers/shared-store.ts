import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import type { NewPlant } from '../../src/plant/plant.js'
import type { PostgresAddress } from '../../src/stores/common/address.js'
import type { OpenOptions } from '../../src/stores/common/store.js'
import { parsePostgres } from '../../src/stores/postgres/postgres-address.js'
import { PostgresStore } from '../../src/stores/postgres/postgres-store.js'
import { SqliteStore } from '../../src/stores/sqlite/sqlite-store.js'
import { password } from './postgres/cluster.js'
import { Line } from './postgres/line.js'
import type { Database } from './postgres.js'
import { closedAfterTest, fileAddress, openOptions } from './store.js'
import { temporaryFolder } from './temporary.js'

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

/** The same over a line, which can be cut. */
export async function openByLine(database: Database, options: Parameters<typeof openShared>[1] = {}) {
  const line = await Line.to(database)
  return { line, store: await openShared({ url: line.url, env: database.env }, options) }
}

/** An embedded store to compare with. */
export async function openEmbedded(): Promise<SqliteStore> {
  return closedAfterTest(await SqliteStore.open(fileAddress(join(temporaryFolder(), 'plants.db')), openOptions()))
}

/** Creates plants in one transaction, or none. */
export function createAtomically(store: PostgresStore, plants: NewPlant[]): ReturnType<PostgresStore['createAll']> {
  return store.createAll(
    () => [plants],
    () => false,
  )
}

/** The database as another role, which is made for the test. */
export async function asRole(place: Database, prefix: string): Promise<Database & { role: string }> {
  const role = `${prefix}_${nameOf(place)}`
  await place.admin(`CREATE ROLE ${role} LOGIN PASSWORD '${password}'`)
  onTestFinished(async () => void (await place.admin(`DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`)))
  return { ...place, role, url: withUser(place, role) }
}

/** The address with another role. */
export function withUser({ url }: Pick<Database, 'url'>, username: string): string {
  return Object.assign(new URL(url), { username }).href
}

/** The name of a database. */
export function nameOf({ url }: Pick<Database, 'url'>): string {
  return new URL(url).pathname.slice(1)
}
