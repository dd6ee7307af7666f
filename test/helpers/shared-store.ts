import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import type { NewPlant } from '../../src/plant/plant.js'
import { PlantsError } from '../../src/platform/errors.js'
import type { PostgresAddress } from '../../src/stores/common/address.js'
import type { Change, Outcome } from '../../src/stores/common/change.js'
import type { CheckpointChange, Transaction, WriteOptions } from '../../src/stores/common/store.js'
import type { PostgresOptions } from '../../src/stores/postgres/address.js'
import { parsePostgres } from '../../src/stores/postgres/address.js'
import { PostgresStore } from '../../src/stores/postgres/store.js'
import { password } from './postgres/cluster.js'
import { message, says } from './postgres/listener.js'
import type { Database } from './postgres.js'
import { closedAfterTest, openOptions, place } from './store.js'

/** The address of a database for tests, with parameters such as "max=1". */
export function addressOf({ url }: Pick<Database, 'url'>, parameters = ''): PostgresAddress {
  return parsePostgres(`${url}${parameters && `?${parameters}`}`, 'The test', place())
}

export function databaseOptions(
  { env }: Pick<Database, 'env'>,
  options: Partial<PostgresOptions> = {},
): PostgresOptions {
  const login = {
    password: () => env.PGPASSWORD,
    passwordHint: 'Set PGPASSWORD',
    ca: undefined,
    cert: undefined,
    key: undefined,
  }
  return { ...openOptions(), login, ...options }
}

/**
 * Opens the store of a database for tests, with parameters such as "max=1", and closes it when the test is over. With a
 * short timeout, which is one of opening as well, it is opened as often as a slow machine needs.
 */
export async function openShared(
  database: Pick<Database, 'url' | 'env'>,
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

/** Resolves when so many sessions wait for others in a database. */
export async function othersWait(database: Database, count: number): Promise<void> {
  const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  await expect.poll(async () => (await database.admin(waiting)).length, { interval: 5 }).toBe(count)
}

/** Ends the sessions of all stores in a database. */
export async function endSessions({ admin }: Database): Promise<void> {
  const own = "application_name = 'plants' AND datname = current_database()" // other tests use the same server
  await admin(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${own}`)
}

export async function configure({ admin }: Database, setting: string): Promise<void> {
  await admin(`ALTER SYSTEM SET ${setting}`)
  await admin('SELECT pg_reload_conf()')
}

/** The same over a line, which can be cut. */
export async function openByLine(
  database: Database,
  options: Parameters<typeof openShared>[1] = {},
) {
  const line = await Line.to(database)
  return { line, store: await openShared({ url: line.url, env: database.env }, options) }
}

export function createAtomically(store: PostgresStore, plants: NewPlant[]): Promise<Outcome[]> {
  return store.transaction(({ write }) => write(creations(plants)))
}

export function creations(plants: NewPlant[], options: Partial<Creation> = {}): Creation[] {
  return plants.map((plant) => ({ type: 'create', plant, ...options }))
}

type Creation = Extract<Change, { type: 'create' }>

/** Creates plants in one transaction, also a single one, and gives the type of each outcome. */
export async function createAll(
  store: PostgresStore,
  plants: NewPlant[],
  { checkpoint, ...options }: WriteOptions & { checkpoint?: CheckpointChange } = {},
): Promise<string[]> {
  const work = async ({ write, saveCheckpoint }: Transaction) => {
    const outcomes = await write(creations(plants), options)
    if (checkpoint) await saveCheckpoint(checkpoint)
    return outcomes
  }
  return typesOf(await store.transaction(work, { isRepeatable: true }))
}

export function typesOf(outcomes: Outcome[]): string[] {
  return outcomes.map(({ type }) => type)
}

/** The database as another role, which is made for the test. */
export async function asRole(
  place: Database,
  prefix: string,
): Promise<Database & { role: string }> {
  const role = `${prefix}_${nameOf(place)}`
  await place.admin(`CREATE ROLE ${role} LOGIN PASSWORD '${password}'`)
  onTestFinished(
    async () => void (await place.admin(`DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`)),
  )
  return { ...place, role, url: withUser(place, role) }
}

/** The grants of docs/databases.md, of such rights as `SELECT, INSERT`. */
export function grantsTo(role: string, rights: string): string {
  return `GRANT USAGE ON SCHEMA plant_store TO ${role};
    GRANT SELECT ON plant_store.schema_version, plant_store.tokens TO ${role};
    GRANT ${rights} ON plant_store.plants TO ${role};
    GRANT SELECT, INSERT, UPDATE, DELETE ON plant_store.imports TO ${role}`
}

export function withUser({ url }: Pick<Database, 'url'>, username: string): string {
  return Object.assign(new URL(url), { username }).href
}

export function nameOf({ url }: Pick<Database, 'url'>): string {
  return new URL(url).pathname.slice(1)
}

/** What became of each call: its value, or the kind and the message of its error. */
export async function settled(calls: Promise<unknown>[]): Promise<unknown[]> {
  const results = await Promise.allSettled(calls)
  return results.map((result) =>
    result.status === 'fulfilled' ? result.value : told(result.reason),
  )
}

function told(error: unknown): unknown {
  return error instanceof PlantsError ? `${error.kind}: ${error.message}` : error
}

/**
 * When a connection is cut: "before" the server gets what was said; when it was "sent", so that the server goes on
 * alone; or when the server has "answered", and nobody has heard it.
 */
export type Moment = 'before' | 'sent' | 'answered'

interface Cut {
  text: string
  /** or the SQLSTATE of the error that is said in place of the answer */
  moment: Moment | { code: string }
  /** how many more connections are cut so */
  left: number
}

/** A line to a server, which can be cut. */
export class Line {
  /** of a database, by the line */
  url = ''
  cuts = 0
  /** connections that were accepted */
  connections = 0
  readonly #server = createServer({ allowHalfOpen: true }, (socket) => this.#join(socket))
  readonly #sockets = new Set<Socket>()
  readonly #target: number
  #cuts: Cut[] = []
  #isSilent = false

  private constructor(target: number) {
    this.#target = target
  }

  static async to({ url }: { url: string }): Promise<Line> {
    const address = new URL(url)
    const line = new Line(Number(address.port))
    await once(line.#server.listen(0, '127.0.0.1'), 'listening')
    address.port = String((line.#server.address() as AddressInfo).port)
    line.url = address.href
    onTestFinished(() => line.end())
    return line
  }

  /**
   * Cuts the next connection, or so many of them, over which a text goes to the server; when that has been done, what
   * is told next.
   */
  cut(text: string, moment: Moment, times = 1): void {
    this.#cuts.push({ text, moment, left: times })
  }

  /** Says an error in place of the next answer to a text, which the server gets. */
  answer(text: string, code: string): void {
    this.#cuts.push({ text, moment: { code }, left: 1 })
  }

  /** Lets nothing come back any more, whatever is sent. */
  silence(): void {
    this.#isSilent = true
  }

  /** Is a line again, for those who connect anew. */
  mend(): void {
    this.#isSilent = false
    this.#cuts = []
    this.cutAll()
  }

  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  end(): void {
    this.cutAll()
    this.#server.close()
  }

  #join(near: Socket): void {
    this.connections += 1
    const far = connect({ port: this.#target, host: '127.0.0.1', allowHalfOpen: true })
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(socket)
      socket.on('error', () => other.destroy()).on('close', () => this.#sockets.delete(socket))
      socket.on('end', () => other.end())
    }
    near.on('close', () => far.end()) // after what is on its way
    let isAwaited = false
    let code: string | undefined
    near.on('data', (data) => {
      const moment = this.#momentOf(data)
      if (moment === 'before') {
        near.destroy()
        far.destroy()
        return
      }
      far.write(data)
      isAwaited ||= moment === 'answered'
      if (typeof moment === 'object') code = moment.code
      if (moment === 'sent') near.destroy()
    })
    far.on('data', (data) => {
      if (isAwaited && isReady(data)) near.destroy()
      if (code !== undefined) {
        if (isReady(data)) near.write(errorOf(code), 'latin1')
        if (isReady(data)) code = undefined
      } else if (!isAwaited && !this.#isSilent) near.write(data)
    })
  }

  #momentOf(data: Buffer): Cut['moment'] | undefined {
    const cut = this.#cuts.find(({ left }) => left > 0)
    if (!cut || !data.includes(cut.text)) return undefined
    cut.left -= 1
    this.cuts += 1
    return cut.moment
  }
}

/** An error, after which the server is ready again. */
function errorOf(code: string): string {
  return message('E', `SERROR\0C${code}\0Mlost\0\0`) + says.ready
}

/** Whether an answer is over (https://www.postgresql.org/docs/current/protocol-message-formats.html, ReadyForQuery). */
function isReady(data: Buffer): boolean {
  return (
    data.length >= 6 &&
    data.readUInt32BE(data.length - 5) === 5 &&
    data.at(-6) === 'Z'.charCodeAt(0)
  )
}
