import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import postgres, { type Notice, type Sql } from 'postgres'
import type { PostgresAddress } from '../address.js'
import { type Account, dial, isTrusted, type Route } from './dial.js'
import { Wire } from './wire.js'

/** What a statement gave: the text of each column of each row. */
export type Rows = (string | null)[][]

/**
 * One connection to one server, for as long as it lasts. Statements go as simple queries, so that nothing outlives a transaction, and
 * several can be on their way at once; each is a transaction of its own where it does not say otherwise.
 */
export class Connection {
  readonly #sql: Sql
  readonly #socket: Socket
  readonly #wire: Wire
  readonly #sendCancel: (backend: Backend) => Promise<void>
  readonly #pending = new Set<{ isDoubtful: boolean }>()
  /** known from the first answer on */
  #backend: Backend | undefined
  #isLost = false

  private constructor(socket: Socket, route: Route, account: Account) {
    this.#socket = socket
    const password = account.login.password(route.host)
    const { requireAuth } = account.address
    this.#wire = new Wire(socket, { requireAuth, isTrusted: isTrusted(socket, route, account), hasPassword: password !== undefined })
    this.#sql = driverFor(this.#wire, account.address, password, (notice) => this.#hear(notice))
    this.#sendCancel = (backend) => cancel(route, account, backend)
    socket.once('close', () => {
      this.#isLost = true
    })
  }

  /** Connects; the first statement logs in. Throws what the system or TLS says, or the reason of the signal. */
  static async open(route: Route, account: Account, signal: AbortSignal): Promise<Connection> {
    return new Connection(await dial(route, account, signal), route, account)
  }

  /** whether nobody on the way can read along */
  get isSecure(): boolean {
    return this.#socket instanceof TLSSocket
  }

  get isLost(): boolean {
    return this.#isLost
  }

  /**
   * Runs a statement, or several in one transaction, of which the last gives the rows. All that they call is PostgreSQL's own.
   *
   * @throws {postgres.PostgresError} when the server refused it; anything else when the connection was lost
   */
  query(text: string): Promise<Rows> {
    return this.#run(`${searchPath}; ${text}`)
  }

  /** Ends a transaction that may have failed already. */
  async rollBack(): Promise<void> {
    await this.#run('ROLLBACK')
  }

  async #run(text: string): Promise<Rows> {
    const pending = { isDoubtful: false }
    this.#pending.add(pending)
    try {
      const asked = this.#sql.unsafe(text).values()
      const result = await (this.#backend ? asked : Promise.race([asked, closed(this.#wire)]))
      const last = 'state' in result ? result : (result as (typeof result)[]).at(-1) // several have a list of results
      this.#backend ??= last?.state
      if (pending.isDoubtful) throw new Error('the server has stopped to wait for its standby')
      return last as unknown as Rows // each column is asked for as text
    } finally {
      this.#pending.delete(pending)
    }
  }

  /**
   * Begins a transaction and copies rows into a table, on a connection that does nothing else meanwhile. Whether they were taken is said by
   * the next statement: for the driver the copy is over when its last byte is on its way.
   *
   * @param pieces of what the statement says that comes
   */
  async copy(text: string, pieces: Iterable<Uint8Array>): Promise<void> {
    this.#wire.expectCopy()
    const stream = await this.#sql.unsafe(`BEGIN; ${searchPath}; ${text}`).writable()
    const failed = new Promise<never>((_, reject) => stream.on('error', reject))
    failed.catch(() => undefined) // which comes when nobody waits for it
    for (const piece of pieces) await Promise.race([new Promise((resolve) => stream.write(piece, resolve)), failed])
    stream.end()
    await Promise.race([new Promise(setImmediate), failed]) // in which the end is sent
  }

  /** rows that the server has stored of the last copy, known after the next statement */
  get copied(): number | undefined {
    return this.#wire.copied
  }

  /** Asks the server to break off what it does on this connection; statements that are on their way then fail, or not. */
  async cancel(): Promise<void> {
    if (this.#backend) await this.#sendCancel(this.#backend)
  }

  destroy(): void {
    this.#isLost = true
    this.#socket.destroy()
  }

  /** Says goodbye, after what is on its way. */
  async close(): Promise<void> {
    await this.#sql.end({ timeout: 1 })
    this.#socket.destroy()
  }

  /** A commit whose wait for the standbys was given up has happened here, and may be lost with this server. Which statement's it was is not said. */
  #hear({ routine }: Notice): void {
    if (routine === 'SyncRepWaitForLSN') for (const pending of this.#pending) pending.isDoubtful = true
  }
}

/**
 * In front of each statement, for its transaction alone. With another path, a function or an operator that somebody else has made in a
 * schema of it, such as public, could run as this user (https://www.postgresql.org/docs/current/ddl-schemas.html#DDL-SCHEMAS-PATTERNS).
 */
const searchPath = 'SET LOCAL search_path = pg_catalog, pg_temp'

/** What the server calls the process behind a connection, and what proves that one may cancel it. */
interface Backend {
  pid: number
  secret: number
}

/** What the driver does not see, when it happens before it has begun to listen. */
async function closed(socket: Wire): Promise<never> {
  if (socket.readable && !socket.destroyed) await new Promise((resolve) => socket.once('close', resolve))
  throw new Error('the server closed the connection')
}

/** Whether a server has said something, and not the system or the driver. */
export function isOfServer(error: unknown): boolean {
  return error instanceof postgres.PostgresError
}

/** The driver on a socket that is connected already. It connects once: to try again, and elsewhere, is the pool's. */
function driverFor(
  socket: Wire,
  { user, database, applicationName }: PostgresAddress,
  password: string | undefined,
  hear: (notice: Notice) => void,
): Sql {
  return postgres({
    host: 'socket',
    port: 0,
    user,
    database,
    pass: () => password ?? '',
    ssl: false,
    max: 1,
    prepare: false,
    fetch_types: false,
    idle_timeout: 0,
    max_lifetime: null,
    connect_timeout: 0,
    keep_alive: 30,
    connection: { application_name: applicationName },
    onnotice: hear,
    ...onlyOnce(socket),
  })
}

/** An option that the driver has, and its types have not. */
function onlyOnce(socket: Wire): object {
  let isTaken = false
  return {
    socket: () => {
      if (isTaken) throw new Error('the connection was lost')
      isTaken = true
      return socket
    },
  }
}

/** https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-CANCELING-REQUESTS */
async function cancel(route: Route, account: Account, { pid, secret }: Backend): Promise<void> {
  const socket = await dial(route, account, AbortSignal.timeout(account.address.connectTimeout))
  const request = Buffer.alloc(16)
  for (const [index, value] of [16, 80_877_102, pid, secret].entries()) request.writeUInt32BE(value, 4 * index)
  socket.on('error', () => undefined).end(request)
  socket.resume()
}
