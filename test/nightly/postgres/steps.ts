import { expect, onTestFinished } from 'vitest'
import { PlantsError } from '../../../src/errors.js'
import type { NewPlant } from '../../../src/plant/plant.js'
import type { PostgresStore } from '../../../src/stores/postgres/store.js'
import type { Database } from '../../helpers/postgres/database.js'
import { password } from '../../helpers/postgres/server.js'
import { toCreates } from '../../helpers/sandbox/store.js'

// What the tests of a store in a database do with the database and the store.

export async function waitForBlockedSessions(
  { queryAsSuperuser }: Database,
  count: number,
): Promise<void> {
  const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  await expect
    .poll(async () => (await queryAsSuperuser(waiting)).length, { interval: 5 })
    .toBe(count)
}

export async function createRole(database: Database, prefix: string) {
  const role = `${prefix}_${getDatabaseName(database)}`
  await database.queryAsSuperuser(`CREATE ROLE ${role} LOGIN PASSWORD '${password}'`)
  const drop = `DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`
  onTestFinished(async () => void (await database.queryAsSuperuser(drop)))
  const url = Object.assign(new URL(database.url), { username: role }).href
  return { ...database, role, url }
}

export function getDatabaseName({ url }: Pick<Database, 'url'>): string {
  return new URL(url).pathname.slice(1)
}

/** Creates plants in one transaction, and gives the type of each outcome. */
export async function createAll(store: PostgresStore, plants: NewPlant[]): Promise<string[]> {
  const outcomes = await store.write(toCreates(plants))
  return outcomes.map(({ type }) => type)
}

/** Waits for each call, and returns its value, or the kind and the message of its error. */
export async function settleAll(calls: Promise<unknown>[]): Promise<unknown[]> {
  const formatFailure = (error: unknown) =>
    error instanceof PlantsError ? `${error.kind}: ${error.message}` : error
  return Promise.all(calls.map((call) => call.catch(formatFailure)))
}
