import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import pg from 'pg'
import { afterAll, inject, onTestFinished } from 'vitest'
import { assertDefined, PlantsError } from '../../../src/errors.js'
import type { PostgresAddress } from '../../../src/stores/address.js'
import { type PostgresOptions, parsePostgres } from '../../../src/stores/postgres/address.js'
import { PostgresStore } from '../../../src/stores/postgres/store.js'
import { hangLimitsMs } from '../sandbox/hang.mjs'
import { buildSqliteOptions, closeAfterTest, createAddressContext } from '../sandbox/store.js'
import { waitFor } from '../sandbox/wait.js'
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
type Endpoint = Pick<Server, 'socketFolder' | 'port'>
/** Registers what removes a database or a server: after the test, or after the file. */
type OnEnd = (remove: () => Promise<void>) => void

/** A database of the role `plants`, which is no superuser. It has a store, or is empty. */
export interface Database {
  url: string
  env: { PGPASSWORD: string }
  /** Runs statements as the role `plants`. Returns the rows of the last, with int8 as bigint. */
  query(statements: string): Promise<Row[]>
  /** Runs statements as the role `postgres`. */
  queryAsSuperuser(statements: string): Promise<Row[]>
  /**
   * Runs statements of a superuser in a transaction that stays open, such as one with locks.
   *
   * @returns a function that rolls it back, or commits it
   */
  beginTransaction(statements: string): Promise<(end?: 'COMMIT') => Promise<void>>
}

/** What a client needs to log in. */
type DatabaseLogin = Pick<Database, 'url' | 'env'>

/** Creates a database for one test, on the server that all tests share. It asks for a password. */
export function createDatabase({ isEmpty = false } = {}): Promise<Database> {
  return createDatabaseUntil(onTestFinished, { isEmpty })
}

/** Partitions the table of plants with the statements of docs/more-machines.md. */
export async function partitionPlants(database: Database): Promise<void> {
  const page = readFileSync('docs/more-machines.md', 'utf8')
  const [, statements] =
    /^ *```text\n( *BEGIN;\n *ALTER TABLE plant_store\.plants [^`]*)```$/m.exec(page) ?? []
  await database.query(assertDefined(statements))
}

/** Creates one database for all tests of a file or a group, because to create one takes long. */
export function shareDatabase(installation?: Installation): () => Promise<Database> {
  return shareBetweenTests((onEnd) => createDatabaseUntil(onEnd, { installation }))
}

export function startOwnServer(options?: ServerOptions): Promise<Server & Database> {
  return startServerUntil(onTestFinished, options)
}

export function shareServer(): () => Promise<Server & Database> {
  return shareBetweenTests(startServerUntil)
}

/**
 * Creates a database for the first test, and empties its store before each further test.
 *
 * @returns a function that a test calls to get the database
 */
function shareBetweenTests<Kind extends Database>(
  create: (onEnd: OnEnd) => Promise<Kind>,
): () => Promise<Kind> {
  let database: Promise<Kind> | undefined
  // Hooks are registered while the tests are collected, which is before the database exists.
  let remove = async () => {}
  afterAll(() => remove())
  const tables = ['plants', 'tokens']
  const deleteRows = tables.map((table) => `DELETE FROM plant_store.${table};`).join(' ')
  return async () => {
    await (await database)?.query(deleteRows)
    database ??= create((removeShared) => {
      remove = removeShared
    })
    return database
  }
}

/** Creates a store in a database, and returns whether there was none. */
export async function initStore(database: DatabaseLogin): Promise<boolean> {
  let isCreated = false
  const onCreated = async () => {
    isCreated = true
  }
  const options = buildDatabaseOptions(database, { onCreated })
  const store = await PostgresStore.open(parseDatabaseAddress(database), 'init', options)
  await store.close()
  return isCreated
}

async function createDatabaseUntil(
  onEnd: OnEnd,
  { installation, isEmpty = false }: { installation?: Installation | undefined; isEmpty?: boolean },
): Promise<Database> {
  const server = await findSharedServer(installation)
  const name = `db${randomBytes(6).toString('hex')}`
  const execute = (statement: string) => runQuery(server, 'postgres', 'postgres', statement)
  const locale = "LOCALE_PROVIDER icu ICU_LOCALE 'und'"
  await execute(`CREATE DATABASE ${name} OWNER plants TEMPLATE template0 ${locale}`)
  onEnd(async () => void (await execute(`DROP DATABASE ${name} WITH (FORCE)`)))
  const database = describeDatabase(server, name)
  if (!isEmpty) await initStore(database)
  return database
}

async function startServerUntil(onEnd: OnEnd, options?: ServerOptions): Promise<Server & Database> {
  const server = await startServer(await findSharedServer(), options)
  onEnd(server.remove)
  const database = { ...server, ...describeDatabase(server, 'plants') }
  await initStore(database)
  return database
}

export function describeDatabase(server: Endpoint, name: string): Database {
  return {
    url: `postgres://plants@127.0.0.1:${server.port}/${name}`,
    env: { PGPASSWORD: password },
    query: (statements) => runQuery(server, 'plants', name, statements),
    queryAsSuperuser: (statements) => runQuery(server, 'postgres', name, statements),
    beginTransaction: async (statements) => {
      const client = await connectAs(server, 'postgres', name)
      await client.query(`BEGIN; ${statements}`)
      return async (end) => {
        await client.query(end ?? 'ROLLBACK')
        await client.end()
      }
    },
  }
}

/** Finds the shared server of an installation, by default of the first on this machine. */
export async function findSharedServer(
  installation = installations[0],
): Promise<DatabaseTemplate & Endpoint> {
  const index = installations.findIndex(({ bin }) => bin === installation?.bin)
  const url = `${inject('postgres')}/${index}`
  const request = async () => {
    const response = await fetch(url)
    return { isStarted: response.ok, body: await response.json() }
  }
  // The limit is longer than those of the programs that start the server, which say more.
  const description = () => `a response of ${url}`
  const { isStarted, body } = await waitFor(request(), description, hangLimitsMs.wait)
  if (!isStarted) throw new Error(`The tests' PostgreSQL has not started: ${body}`)
  // The setup in server.ts answers with this type.
  return body as DatabaseTemplate & Endpoint
}

async function runQuery(
  server: Endpoint,
  user: string,
  database: string,
  statements: string,
): Promise<Row[]> {
  const client = await connectAs(server, user, database)
  try {
    const result: pg.QueryResult<Row> | pg.QueryResult<Row>[] = await client.query<Row>(statements)
    return (Array.isArray(result) ? result.at(-1) : result)?.rows ?? []
  } finally {
    await client.end()
  }
}

async function connectAs(server: Endpoint, user: string, database: string): Promise<pg.Client> {
  const types = new pg.TypeOverrides()
  types.setTypeParser(pg.types.builtins.INT8, BigInt)
  const { socketFolder: host, port } = server
  const client = new pg.Client({ host, port, user, database, password, types })
  client.on('error', () => undefined) // the server may be stopped while the client is connected
  await client.connect()
  return client
}

/** Parses the address of a database, with parameters such as `max=1`. */
export function parseDatabaseAddress(
  { url }: Pick<Database, 'url'>,
  parameters = '',
): PostgresAddress {
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
export async function openPostgresStore(
  database: DatabaseLogin,
  { parameters, ...options }: Partial<PostgresOptions> & { parameters?: string } = {},
): Promise<PostgresStore> {
  const end = performance.now() + hangLimitsMs.event
  for (;;) {
    try {
      const openOptions = buildDatabaseOptions(database, options)
      return closeAfterTest(
        await PostgresStore.open(parseDatabaseAddress(database, parameters), 'read', openOptions),
      )
    } catch (error) {
      const isTooShort = error instanceof PlantsError && error.isRetryable
      if (options.timeoutMs === undefined || !isTooShort || performance.now() > end) throw error
    }
  }
}
