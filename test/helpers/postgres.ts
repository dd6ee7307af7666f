import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, expect, inject, onTestFinished } from 'vitest'
import type { NewPlant } from '../../src/plant/plant.js'
import { PlantsError } from '../../src/platform/errors.js'
import type { PostgresAddress } from '../../src/stores/common/address.js'
import type { Change } from '../../src/stores/common/change.js'
import type { CheckpointChange } from '../../src/stores/common/store.js'
import { type PostgresOptions, parsePostgres } from '../../src/stores/postgres/address.js'
import { PostgresStore } from '../../src/stores/postgres/store.js'
import {
  type Installation,
  installations,
  password,
  type ServerOptions,
  startServer,
  type Template,
} from './postgres/server.js'
import { closedAfterTest, openOptions, place } from './store.js'

export type Row = Record<string, unknown>

type Server = Awaited<ReturnType<typeof startServer>>
type Place = Pick<Server, 'socketFolder' | 'port'>

/** A database with a store, or an empty one, whose owner is the role plants, which is no superuser. */
export interface Database {
  url: string
  /** the password, where the server asks for it */
  env: { PGPASSWORD?: string }
  /** Runs statements as the role of the url, and gives the rows of the last. Each int8 is a bigint. */
  sql(text: string): Promise<Row[]>
  admin(text: string): Promise<Row[]>
  /** Does it in a transaction that stays open, and gives what ends it. */
  hold(text: string): Promise<(how?: 'COMMIT') => Promise<void>>
}

type Held = Pick<Database, 'url' | 'env'>

/** Makes a database on the server that a run shares, which asks for the password, until the test is over. */
export async function freshDatabase(options: { isEmpty?: boolean } = {}): Promise<Database> {
  const { database, drop } = await makeDatabase(undefined, options.isEmpty)
  onTestFinished(drop)
  return database
}

/** The same for all tests of a file or a group: to make one takes longer than most of them. */
export function reusedDatabase(installation?: Installation): () => Promise<Database> {
  return reused(() => makeDatabase(installation))
}

export async function ownServer(options?: ServerOptions): Promise<Server & Database> {
  const { database, drop } = await makeServer(options)
  onTestFinished(drop)
  return database
}

export function reusedServer(): () => Promise<Server & Database> {
  return reused(makeServer)
}

interface Made<Kind> {
  database: Kind
  drop(): Promise<void>
}

/** Gives what is made once to each test without what a store holds. */
function reused<Kind extends Database>(make: () => Promise<Made<Kind>>): () => Promise<Kind> {
  let made: Promise<Made<Kind>> | undefined
  afterAll(async () => (await made)?.drop())
  const tables = ['plants', 'tokens', 'imports']
  const emptied = tables.map((table) => `DELETE FROM plant_store.${table};`).join(' ')
  return async () => {
    const isNew = made === undefined
    made ??= make()
    const { database } = await made
    if (!isNew) await database.sql(emptied)
    return database
  }
}

async function makeDatabase(installation?: Installation, isEmpty = false): Promise<Made<Database>> {
  const place = await shared(installation)
  const name = `db${randomBytes(6).toString('hex')}`
  const admin = (text: string) => query(place, 'postgres', 'postgres', text)
  // A locale with an order of its own, as most have.
  const locale = "LOCALE_PROVIDER icu ICU_LOCALE 'und'"
  await admin(`CREATE DATABASE ${name} OWNER plants TEMPLATE template0 ${locale}`)
  const drop = async () => void (await admin(`DROP DATABASE ${name} WITH (FORCE)`))
  const database = { ...databaseOf(place, name), env: { PGPASSWORD: password } }
  if (!isEmpty) await PostgresStore.init(addressOf(database), databaseOptions(database))
  return { database, drop }
}

async function makeServer(options: ServerOptions = {}): Promise<Made<Server & Database>> {
  const server = await startServer(await shared(), options)
  const env = options.asksPassword ? { PGPASSWORD: password } : {}
  const database = { ...server, ...databaseOf(server, 'plants'), env }
  await PostgresStore.init(addressOf(database), databaseOptions(database))
  return { database, drop: server.remove }
}

function databaseOf(place: Place, name: string): Omit<Database, 'env'> {
  return {
    url: `postgres://plants@127.0.0.1:${place.port}/${name}`,
    sql: (text) => query(place, 'plants', name, text),
    admin: (text) => query(place, 'postgres', name, text),
    hold: async (text) => {
      const client = await connected(place, 'postgres', name)
      await client.query(`BEGIN; ${text}`)
      return async (how) => {
        await client.query(how ?? 'ROLLBACK')
        await client.end()
      }
    },
  }
}

/** What the run has of an installation: the first that is here, when none is named. */
async function shared(installation = installations[0]): Promise<Template & Place> {
  const which = installations.findIndex(({ bin }) => bin === installation?.bin)
  const answer = await fetch(`${inject('postgres')}/${which}`)
  const body = await answer.json()
  if (!answer.ok) throw new Error(`The tests' PostgreSQL has not started: ${body}`)
  return body as Template & Place // what its setup answers
}

async function query(place: Place, user: string, database: string, text: string): Promise<Row[]> {
  const client = await connected(place, user, database)
  try {
    const result: pg.QueryResult<Row> | pg.QueryResult<Row>[] = await client.query<Row>(text)
    return (Array.isArray(result) ? result.at(-1) : result)?.rows ?? []
  } finally {
    await client.end()
  }
}

async function connected(place: Place, user: string, database: string): Promise<pg.Client> {
  const types = new pg.TypeOverrides()
  types.setTypeParser(pg.types.builtins.INT8, BigInt)
  const { socketFolder: host, port } = place
  const client = new pg.Client({ host, port, user, database, password, types })
  client.on('error', () => undefined) // of a server that is stopped meanwhile
  await client.connect()
  return client
}

/** The address of a database for tests, with parameters such as "max=1". */
export function addressOf({ url }: Pick<Held, 'url'>, parameters = ''): PostgresAddress {
  return parsePostgres(`${url}${parameters && `?${parameters}`}`, 'The test', place())
}

export function databaseOptions(
  { env }: Pick<Held, 'env'>,
  options: Partial<PostgresOptions> = {},
): PostgresOptions {
  const files = { ca: undefined, cert: undefined, key: undefined }
  const login = { password: () => env.PGPASSWORD, passwordHint: 'Set PGPASSWORD', ...files }
  return { ...openOptions(), login, ...options }
}

/**
 * Opens the store of a database until the test is over. With a short timeout, which is one of opening
 * as well, it is opened as often as a slow machine needs.
 */
export async function openShared(
  database: Held,
  { parameters, ...options }: Partial<PostgresOptions> & { parameters?: string } = {},
): Promise<PostgresStore> {
  for (;;) {
    try {
      const opening = databaseOptions(database, options)
      return closedAfterTest(await PostgresStore.open(addressOf(database, parameters), opening))
    } catch (error) {
      if (options.timeout === undefined || !(error instanceof PlantsError && error.isRetryable))
        throw error
    }
  }
}

export async function othersWait({ admin }: Database, count: number): Promise<void> {
  const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  await expect.poll(async () => (await admin(waiting)).length, { interval: 5 }).toBe(count)
}

export async function configure({ admin }: Database, setting: string): Promise<void> {
  await admin(`ALTER SYSTEM SET ${setting}`)
  await admin('SELECT pg_reload_conf()')
}

export async function asRole(place: Database, prefix: string) {
  const role = `${prefix}_${nameOf(place)}`
  await place.admin(`CREATE ROLE ${role} LOGIN PASSWORD '${password}'`)
  const drop = `DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`
  onTestFinished(async () => void (await place.admin(drop)))
  const url = Object.assign(new URL(place.url), { username: role }).href
  return { ...place, role, url }
}

export function nameOf({ url }: Pick<Held, 'url'>): string {
  return new URL(url).pathname.slice(1)
}

export function creations(plants: NewPlant[]): Change[] {
  return plants.map((plant) => ({ type: 'create', plant }))
}

/** Creates plants in one transaction, and gives the type of each outcome. */
export async function createAll(
  store: PostgresStore,
  plants: NewPlant[],
  checkpoint?: CheckpointChange,
): Promise<string[]> {
  const outcomes = await store.transaction(
    async ({ write, saveCheckpoint }) => {
      const outcomes = await write(creations(plants))
      if (checkpoint) await saveCheckpoint(checkpoint)
      return outcomes
    },
    { isRepeatable: true },
  )
  return outcomes.map(({ type }) => type)
}

/** What became of each call: its value, or the kind and the message of its error. */
export async function settled(calls: Promise<unknown>[]): Promise<unknown[]> {
  const told = (error: unknown) =>
    error instanceof PlantsError ? `${error.kind}: ${error.message}` : error
  return Promise.all(calls.map((call) => call.catch(told)))
}
