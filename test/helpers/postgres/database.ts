import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import pg from 'pg'
import { afterAll, expect, inject, onTestFinished } from 'vitest'
import { assertDefined, PlantsError } from '../../../src/errors.js'
import type { PostgresAddress } from '../../../src/stores/address.js'
import { type PostgresOptions, parsePostgres } from '../../../src/stores/postgres/address.js'
import { PostgresStore } from '../../../src/stores/postgres/store.js'
import { hang } from '../sandbox/hang.mjs'
import { buildSqliteOptions, closeAfterTest, createAddressContext } from '../sandbox/store.js'
import {
  type DatabaseTemplate,
  type Installation,
  installations,
  password,
  type ServerOptions,
  startServer,
} from './server.js'

export type Row = Record<string, unknown>

type Server = Awaited<ReturnType<typeof startServer>>
type Place = Pick<Server, 'socketFolder' | 'port'>
type AtEnd = (drop: () => Promise<void>) => void

/** A database of the role `plants`, which is no superuser. It has a store, or is empty. */
export interface Database {
  url: string
  env: { PGPASSWORD: string }
  /** Runs statements as the role `plants`. Returns the rows of the last, with int8 as bigint. */
  sql(text: string): Promise<Row[]>
  admin(text: string): Promise<Row[]>
  /** Runs statements in a transaction that stays open, and returns a function that ends it. */
  hold(text: string): Promise<(how?: 'COMMIT') => Promise<void>>
}

type Held = Pick<Database, 'url' | 'env'>

/** Creates a database for one test, on the server that all tests share. It asks for a password. */
export function createDatabase({ isEmpty = false } = {}): Promise<Database> {
  return makeDatabase(onTestFinished, { isEmpty })
}

/** Partitions the table of plants with the statements of docs/database-size.md. */
export async function partitionPlants(database: Database): Promise<void> {
  const page = readFileSync('docs/database-size.md', 'utf8')
  const [, statements] =
    /^ *```text\n( *BEGIN;\n *ALTER TABLE plant_store\.plants [^`]*)```$/m.exec(page) ?? []
  await database.sql(assertDefined(statements))
}

/** Creates one database for all tests of a file or a group, because to create one takes long. */
export function reuseDatabase(installation?: Installation): () => Promise<Database> {
  return reuse((atEnd) => makeDatabase(atEnd, { installation }))
}

export function startOwnServer(options?: ServerOptions): Promise<Server & Database> {
  return makeServer(onTestFinished, options)
}

/** Starts a primary whose commits wait for a standby, and that standby. */
export async function startServerWithStandby() {
  const primary = await startOwnServer({ access: ['local replication postgres trust'] })
  await primary.stop()
  const standby = await startServer(await findSharedServer(), { primary })
  onTestFinished(standby.remove)
  await primary.start()
  const onStandby = describeDatabase(standby, 'plants')
  const isSynchronous = "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'"
  const waitForStandby = () =>
    expect.poll(() => primary.admin(isSynchronous), { interval: 5 }).toHaveLength(1)
  await primary.admin("ALTER SYSTEM SET synchronous_standby_names = '*'")
  await primary.admin('SELECT pg_reload_conf()')
  await waitForStandby()
  return {
    primary,
    standby: {
      ...onStandby,
      stop: standby.stop,
      start: async () => {
        await standby.start()
        await waitForStandby()
      },
      promote: () => onStandby.admin('SELECT pg_promote()'),
      /** Waits until readers of the standby see all commits, for which a commit does not wait. */
      catchUp: async () => {
        const [{ position } = {}] = await primary.admin(
          'SELECT pg_current_wal_flush_lsn()::text AS position',
        )
        const missing = `SELECT FROM pg_last_wal_replay_lsn() AS lsn WHERE lsn < '${position}'`
        await expect.poll(() => onStandby.admin(missing), { interval: 5 }).toEqual([])
      },
    },
  }
}

export function reuseServer(): () => Promise<Server & Database> {
  return reuse(makeServer)
}

/** Makes a database once, and empties its store before each further test. */
function reuse<Kind extends Database>(make: (atEnd: AtEnd) => Promise<Kind>): () => Promise<Kind> {
  let made: Promise<Kind> | undefined
  let drop = async () => {}
  afterAll(() => drop())
  const tables = ['plants', 'tokens', 'imports']
  const emptied = tables.map((table) => `DELETE FROM plant_store.${table};`).join(' ')
  return async () => {
    await (await made)?.sql(emptied)
    made ??= make((end) => {
      drop = end
    })
    return made
  }
}

async function makeDatabase(
  atEnd: AtEnd,
  { installation, isEmpty = false }: { installation?: Installation | undefined; isEmpty?: boolean },
): Promise<Database> {
  const place = await findSharedServer(installation)
  const name = `db${randomBytes(6).toString('hex')}`
  const admin = (text: string) => query(place, 'postgres', 'postgres', text)
  const locale = "LOCALE_PROVIDER icu ICU_LOCALE 'und'"
  await admin(`CREATE DATABASE ${name} OWNER plants TEMPLATE template0 ${locale}`)
  atEnd(async () => void (await admin(`DROP DATABASE ${name} WITH (FORCE)`)))
  const database = describeDatabase(place, name)
  if (!isEmpty)
    await PostgresStore.init(parseDatabaseAddress(database), buildDatabaseOptions(database))
  return database
}

async function makeServer(atEnd: AtEnd, options?: ServerOptions): Promise<Server & Database> {
  const server = await startServer(await findSharedServer(), options)
  atEnd(server.remove)
  const database = { ...server, ...describeDatabase(server, 'plants') }
  await PostgresStore.init(parseDatabaseAddress(database), buildDatabaseOptions(database))
  return database
}

function describeDatabase(place: Place, name: string): Database {
  return {
    url: `postgres://plants@127.0.0.1:${place.port}/${name}`,
    env: { PGPASSWORD: password },
    sql: (text) => query(place, 'plants', name, text),
    admin: (text) => query(place, 'postgres', name, text),
    hold: async (text) => {
      const client = await connectAs(place, 'postgres', name)
      await client.query(`BEGIN; ${text}`)
      return async (how) => {
        await client.query(how ?? 'ROLLBACK')
        await client.end()
      }
    },
  }
}

/** Finds the shared server of an installation, by default of the first on this machine. */
async function findSharedServer(
  installation = installations[0],
): Promise<DatabaseTemplate & Place> {
  const which = installations.findIndex(({ bin }) => bin === installation?.bin)
  const answer = await fetch(`${inject('postgres')}/${which}`)
  const body = await answer.json()
  if (!answer.ok) throw new Error(`The tests' PostgreSQL has not started: ${body}`)
  return body as DatabaseTemplate & Place // server.ts answers with this type
}

async function query(place: Place, user: string, database: string, text: string): Promise<Row[]> {
  const client = await connectAs(place, user, database)
  try {
    const result: pg.QueryResult<Row> | pg.QueryResult<Row>[] = await client.query<Row>(text)
    return (Array.isArray(result) ? result.at(-1) : result)?.rows ?? []
  } finally {
    await client.end()
  }
}

async function connectAs(place: Place, user: string, database: string): Promise<pg.Client> {
  const types = new pg.TypeOverrides()
  types.setTypeParser(pg.types.builtins.INT8, BigInt)
  const { socketFolder: host, port } = place
  const client = new pg.Client({ host, port, user, database, password, types })
  client.on('error', () => undefined) // the server may be stopped while the client is connected
  await client.connect()
  return client
}

/** Parses the address of a database, with parameters such as `max=1`. */
export function parseDatabaseAddress({ url }: Pick<Held, 'url'>, parameters = ''): PostgresAddress {
  return parsePostgres(
    `${url}${parameters && `?${parameters}`}`,
    'The test',
    createAddressContext(),
  )
}

export function buildDatabaseOptions(
  { env }: { env: { PGPASSWORD?: string } },
  options: Partial<PostgresOptions> = {},
): PostgresOptions {
  const files = { ca: undefined, cert: undefined, key: undefined }
  const login = { findPassword: () => env.PGPASSWORD, passwordHint: 'Set PGPASSWORD', ...files }
  return { ...buildSqliteOptions(), login, ...options }
}

/**
 * Opens the store of a database until the test ends. A short timeout also limits the opening, so
 * that is repeated on a slow machine.
 */
export async function openShared(
  database: Held,
  { parameters, ...options }: Partial<PostgresOptions> & { parameters?: string } = {},
): Promise<PostgresStore> {
  const end = performance.now() + hang.event
  for (;;) {
    try {
      const opening = buildDatabaseOptions(database, options)
      return closeAfterTest(
        await PostgresStore.open(parseDatabaseAddress(database, parameters), opening),
      )
    } catch (error) {
      const isTooShort = error instanceof PlantsError && error.isRetryable
      if (options.timeoutMs === undefined || !isTooShort || performance.now() > end) throw error
    }
  }
}
