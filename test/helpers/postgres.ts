import { randomBytes } from 'node:crypto'
import { afterAll, inject, onTestFinished } from 'vitest'
import { PostgresStore } from '../../src/stores/postgres/store.js'
import { password, type Template } from './postgres/cluster.js'
import { type Installation, installations } from './postgres/installation.js'
import { hold, type Place, query, type Row } from './postgres/query.js'
import { PostgresServer, type ServerOptions } from './postgres/server.js'
import { addressOf, databaseOptions } from './shared-store.js'

/** A database with a store, or an empty one, whose owner is the role plants, which is no superuser. */
export interface Database {
  /** without the password */
  url: string
  /** the password, where the server asks for it */
  env: { PGPASSWORD?: string }
  /** Runs one statement, or several, as the role of the url, and gives the rows of the last. Each int8 is a bigint. */
  sql(text: string): Promise<Row[]>
  /** Does the same as the superuser postgres, whose password is the same. */
  admin(text: string): Promise<Row[]>
  /** Does it in a transaction that stays open, and gives what ends it: by a rollback, when nothing else is said. */
  hold(text: string): ReturnType<typeof hold>
}

/**
 * Makes a database on the server that all tests of a run share, which asks for the password; it is dropped when the
 * test is over.
 */
export async function freshDatabase(options: Content = {}): Promise<Database> {
  const { database, drop } = await makeDatabase(undefined, options)
  onTestFinished(drop)
  return database
}

/**
 * The same for all tests of a file or a group, one after the other, as to make a database takes longer than most of
 * them.
 *
 * @returns what gives the database to a test, without plants, tokens and positions of imports
 */
export function reusedDatabase(installation?: Installation): () => Promise<Database> {
  return reused(() => makeDatabase(installation))
}

/**
 * A server of their own for all tests of a file or a group, with one database, which is given to each test without what
 * a store holds.
 */
export function reusedServer(options: OwnServer = {}): () => Promise<PostgresServer & Database> {
  return reused(() => makeServer(options))
}

interface Content {
  /** whether it has no store */
  isEmpty?: boolean
}

interface Made<Kind> {
  database: Kind
  drop(): Promise<void>
}

function reused<Kind extends Database>(make: () => Promise<Made<Kind>>): () => Promise<Kind> {
  let made: Promise<Made<Kind>> | undefined
  afterAll(async () => (await made)?.drop())
  return async () => {
    const isNew = made === undefined
    made ??= make()
    const { database } = await made
    if (!isNew) await database.sql(emptied.join(' '))
    return database
  }
}

const emptied = ['plants', 'tokens', 'imports'].map((table) => `DELETE FROM plant_store.${table};`)

async function makeDatabase(
  installation?: Installation,
  { isEmpty }: Content = {},
): Promise<Made<Database>> {
  const place = await shared<Place>('servers', installation)
  const name = `db${randomBytes(6).toString('hex')}`
  const admin = (text: string) => query(place, 'postgres', 'postgres', text)
  await admin(`CREATE DATABASE ${name} OWNER plants TEMPLATE template0`)
  const drop = async () => void (await admin(`DROP DATABASE ${name} WITH (FORCE)`))
  const database = { ...databaseOf(place, name), env: { PGPASSWORD: password } }
  if (!isEmpty) await init(database)
  return { database, drop }
}

async function init(database: Database): Promise<void> {
  await PostgresStore.init(addressOf(database), databaseOptions(database))
}

type OwnServer = ServerOptions & Content & { installation?: Installation }

/** Starts a server of the test's own, with one database, and removes it when the test is over. */
export async function ownServer(options: OwnServer = {}): Promise<PostgresServer & Database> {
  const { database, drop } = await makeServer(options)
  onTestFinished(drop)
  return database
}

async function makeServer(options: OwnServer): Promise<Made<PostgresServer & Database>> {
  const server = await PostgresServer.start(
    await shared<Template>('templates', options.installation),
    options,
  )
  const remove = () => server.remove()
  process.once('disconnect', remove) // the run was killed, and has left this process alone
  const drop = async () => {
    process.off('disconnect', remove)
    await remove()
  }
  const env = options.asksPassword ? { PGPASSWORD: password } : {}
  const database = Object.assign(server, databaseOf(server, 'plants'), { env })
  if (!options.isEmpty) await init(database)
  return { database, drop }
}

function databaseOf(place: Place, name: string): Omit<Database, 'env'> {
  return {
    url: `postgres://plants@127.0.0.1:${place.port}/${name}`,
    sql: (text) => query(place, 'plants', name, text),
    admin: (text) => query(place, 'postgres', name, text),
    hold: (text) => hold(place, name, text),
  }
}

/** What the run has of an installation: the first that is here, when none is named. */
async function shared<Kind>(what: string, installation = installations[0]): Promise<Kind> {
  const which = installations.findIndex(({ bin }) => bin === installation?.bin)
  const answer = await fetch(`${inject('postgres')}/${what}/${which}`)
  const body = await answer.json()
  if (!answer.ok) throw new Error(`The tests' PostgreSQL has not started: ${body}`)
  return body as Kind // what setup.ts answers
}
