/**
 * Connections to the servers of an address. Each has a pool, and the first one that accepts writes is used until a
 * connection to it fails, so that a failover takes no more than the next connection. A call is repeated after whatever
 * may pass, until its timeout.
 *
 * With `sslmode=prefer` a server has two pools, one with TLS and one without it, and the first login chooses: neither a
 * full pool nor a server that is away may lead to a connection without TLS.
 */
import { setMaxListeners } from 'node:events'
import { finished } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { must, PlantsError } from '../../platform/errors.js'
import { isTimeout, retrying, within } from '../../platform/runtime.js'
import { isLoopback } from '../../platform/urls.js'
import type { PostgresHost } from '../common/address.js'
import { nextPause, patienceOf } from '../common/store.js'
import type { Access } from './address.js'
import { LimitedClient, SecretiveClient } from './client.js'
import { explained, isPoolFull, lacksTls, raiseMax, wasRolledBack } from './errors.js'
import { Slots } from './slots.js'

export type Row = (string | null)[]
type Result = pg.QueryArrayResult<Row>
type Action<T> = (connection: Connection) => Promise<T>

/** What the server says besides its answers. */
interface Notice {
  code: string | undefined
  message: string | undefined
}

interface Server {
  host: PostgresHost
  pool: pg.Pool
  /** Tried after the one before, of the same host, if that has said that it has no TLS. */
  isFallback: boolean
}

export class PostgresDatabase {
  readonly #access: Access
  #servers: Server[]
  #wasConnected = false
  /** Times in a row that no server could be used. The second is reported. */
  #failures = 0
  /** Of all servers together: a failover gives no further ones. */
  readonly #scanSlots: Slots

  constructor(given: Access) {
    // To the driver and the server, 0 is no limit.
    const access = { ...given, timeout: Math.max(1, given.timeout) }
    const { hosts, sslmode, max } = access.address
    this.#access = access
    this.#scanSlots = new Slots(Math.max(1, Math.floor(max / 2)))
    this.#servers = hosts.flatMap((host) => {
      const usesTls = sslmode !== 'disable' && !host.host.startsWith('/')
      const server = { host, pool: newPool(host, usesTls, access), isFallback: false }
      if (!usesTls || sslmode !== 'prefer') return server
      return [server, { host, pool: newPool(host, false, access), isFallback: true }]
    })
    setMaxListeners(0, access.runtime.handleSignals()) // Each call that waits adds one.
  }

  /** Calls `action` again after a failure that may pass, or after a commit whose outcome is unknown if it may. */
  run<T>(action: Action<T>, mayRepeatCommit?: () => boolean): Promise<T> {
    return this.#retry(async () => this.#use(await this.#connect(), action), mayRepeatCommit)
  }

  async runOnce<T>(action: Action<T>): Promise<T> {
    return this.#use(await this.#retry(() => this.#connect()), action)
  }

  get name(): string {
    return this.#access.address.name
  }

  read(select: string): Promise<Row[]> {
    return this.run((connection) => connection.read(select))
  }

  /**
   * Reads what may take a scan of all plants. At most half of the connections do so at once.
   *
   * @throws {PlantsError} `unavailable` if the others take longer than the timeout
   */
  async scan(select: string, signal?: AbortSignal): Promise<Row[]> {
    const { runtime, timeout: timeoutMs, address } = this.#access
    const signals = [runtime.handleSignals(), ...(signal === undefined ? [] : [signal])]
    try {
      return await this.#scanSlots.run(() => this.read(select), { timeoutMs, signals })
    } catch (error) {
      if (!isTimeout(error)) throw error
      const message = `All connections for searches at ${address.name} are in use`
      throw new PlantsError('unavailable', message, { hint: raiseMax, cause: error })
    }
  }

  async *copyOut(select: string): AsyncGenerator<Buffer> {
    const { runtime, timeout } = this.#access
    const client = await this.#retry(() => this.#connect())
    const signal = runtime.handleSignals()
    try {
      await new Connection(client, this.#access).begin('SET LOCAL statement_timeout = 0')
      signal.throwIfAborted()
      if (client instanceof LimitedClient) client.endLimit()
      const stream = client.query(copyTo(`COPY (${select}) TO STDOUT`))
      const pieces: AsyncIterator<Buffer> = stream[Symbol.asyncIterator]()
      for (;;) {
        const piece = await within(timeout, [signal], (silence) => {
          silence.onabort = () => stream.destroy(silence.reason)
          return pieces.next()
        })
        if (piece.done) return
        yield piece.value
        signal.throwIfAborted()
      }
    } catch (error) {
      signal.throwIfAborted()
      throw explained(error, this.#access)
    } finally {
      client.release(true)
    }
  }

  /** A connection that failed may be lost, in a transaction, or read-only: it is dropped. */
  async #use<T>(client: pg.PoolClient, action: Action<T>): Promise<T> {
    const result = await action(new Connection(client, this.#access)).catch((error: unknown) => {
      client.release(true)
      throw error
    })
    client.release()
    return result
  }

  #retry<T>(action: () => Promise<T>, mayRepeatCommit = () => false): Promise<T> {
    const { runtime } = this.#access
    const start = runtime.now()
    let unknownOutcome: PlantsError | undefined
    const pauseAfter = (error: unknown, tries: number) => {
      if (!(error instanceof PlantsError)) throw error
      const mayRepeat = error.isOutcomeUnknown ? mayRepeatCommit() : error.isRetryable
      if (mayRepeat && error.isOutcomeUnknown) unknownOutcome = error
      const elapsed = runtime.now() - start
      const patience = patienceOf(this.#access, this.#wasConnected)
      const pause = nextPause({ base: 10, max: 1000 }, { tries, elapsed, patience }, runtime)
      if (!mayRepeat || pause === undefined) throw unknownOutcome ?? error
      return pause
    }
    return retrying(action, pauseAfter, () => [runtime.handleSignals()])
  }

  /** Prefers a failure that may pass. */
  async #connect(): Promise<pg.PoolClient> {
    const signal = this.#access.runtime.handleSignals()
    let failure: PlantsError | undefined
    let lastReason: unknown
    for (const server of this.#servers) {
      if (server.isFallback && !lacksTls(lastReason)) continue
      try {
        const client = await this.#connectTo(server)
        this.#choose(server)
        return client
      } catch (reason) {
        signal.throwIfAborted()
        lastReason = reason
        const error = explained(reason, this.#access)
        if (isPoolFull(reason)) throw error
        // At another server, a wrong password would look like a server that is away.
        if (error.kind === 'unauthorized') {
          if (!this.#wasConnected) throw error
          // A service would seem to reject its caller.
          throw new PlantsError('inaccessible', error.message, { hint: error.hint, cause: error })
        }
        if (!failure?.isRetryable) failure = error
      }
    }
    this.#failures += 1
    const patience = patienceOf(this.#access, this.#wasConnected)
    if (this.#failures === 2) this.#access.onAway?.(failure, patience)
    throw must(failure)
  }

  /** A server that says nothing, or does not come to an end, does not delay a signal. */
  async #connectTo({ pool }: Server): Promise<pg.PoolClient> {
    const signal = this.#access.runtime.handleSignals()
    const connecting = pool.connect()
    try {
      return await untilSignal(connecting, signal)
    } catch (error) {
      if (signal.aborted)
        connecting.then(
          (client) => client.release(true),
          () => undefined,
        )
      throw error
    }
  }

  #choose(server: Server): void {
    const others = this.#servers.filter(({ host }) => host !== server.host)
    this.#servers = [{ ...server, isFallback: false }, ...others]
    this.#wasConnected = true
    if (this.#failures > 1) this.#access.onAway?.(undefined)
    this.#failures = 0
  }

  async close(): Promise<void> {
    for (const { pool } of this.#servers) if (!pool.ending) void pool.end()
  }
}

function newPool({ host, port }: PostgresHost, usesTls: boolean, access: Access): pg.Pool {
  const { address, login, timeout } = access
  const { hosts, user, database, max, name, sslmode } = address
  const { ca, cert, key } = login
  // As in libpq, `require` verifies the server if a root certificate is configured.
  const verifies = sslmode.startsWith('verify') || (sslmode === 'require' && ca !== undefined)
  const anyName = sslmode !== 'verify-full' && { checkServerIdentity: () => undefined }
  const isPrivate = host.startsWith('/') || isLoopback(host) || (usesTls && verifies)
  const pool = new pg.Pool({
    ...{ host, port, user, database, max, application_name: 'plants' },
    password: () => {
      const password = login.password({ host, port })
      if (password !== undefined) return password
      const hint = login.passwordHint
      throw new PlantsError('unauthorized', `${name} requires a password`, { hint })
    },
    ssl: usesTls && { rejectUnauthorized: verifies, ca, cert, key, ...anyName },
    connectionTimeoutMillis: Math.min(5000, timeout / hosts.length),
    idleTimeoutMillis: 0,
    keepAlive: true,
    keepAliveInitialDelayMillis: 30_000,
    types: { getTypeParser: () => (text: string) => text },
    Client: isPrivate ? LimitedClient : SecretiveClient,
    onConnect: (client) => assertReady(new Connection(client, access)),
  })
  // Of an idle connection, which is dropped, and of a statement, which fails with it.
  pool.on('error', () => undefined)
  return pool.on('connect', (client) => void client.on('error', () => undefined))
}

export async function assertReady(connection: Connection): Promise<void> {
  const [[encoding, fsync, isReadOnly] = []] = await connection.read(
    `SELECT current_setting('server_encoding'), current_setting('fsync'),
      current_setting('transaction_read_only')`,
  )
  const { name } = connection
  if (encoding !== 'UTF8')
    throw new PlantsError('inaccessible', `${name} has the encoding ${encoding} in place of UTF8`)
  if (fsync === 'off')
    throw new PlantsError('inaccessible', `${name} answers before a plant is on disk: fsync is off`)
  if (isReadOnly === 'on') throw new PlantsError('unavailable', `${name} is not read-write now`)
}

/** Each statement has the timeout, and fails with a `PlantsError`. */
export class Connection {
  readonly name: string
  readonly #client: pg.ClientBase
  readonly #access: Access
  /** The server cancels it before. */
  readonly #limit: { query_timeout: number }

  constructor(client: pg.ClientBase, access: Access) {
    this.name = access.address.name
    this.#client = client
    this.#access = access
    this.#limit = { query_timeout: access.timeout + 1000 }
  }

  /** In a transaction of its own, which is one message. That has no parameters: values are literals. */
  async read(select: string): Promise<Row[]> {
    const { rows } = await this.query(`${this.#settings()}; ${select}`)
    return rows
  }

  begin(settings: string): Promise<Result> {
    return this.query(`BEGIN; ${this.#settings()}; ${settings}`)
  }

  async query(text: string, values: unknown[] = []): Promise<Result> {
    const query = { text, values, rowMode: 'array' as const, ...this.#limit }
    const answer: Promise<Result | Result[]> = this.#client.query<Row>(query)
    const signal = this.#access.runtime.handleSignals()
    const result = await untilSignal(answer, signal).catch(this.#explain)
    return Array.isArray(result) ? must(result.at(-1)) : result
  }

  /**
   * If `work` throws, the end of the connection rolls it back.
   *
   * @param lockTimeout in milliseconds; by default the timeout
   * @throws {PlantsError} `unknownOutcome` when COMMIT was sent, and no answer says what became of it
   */
  async transaction<T>(
    work: () => Promise<T>,
    commits: (result: T) => boolean = () => true,
    lockTimeout = 0,
  ): Promise<T> {
    await this.begin(`SET LOCAL lock_timeout = ${lockTimeout}; SAVEPOINT changes`)
    const result = await work()
    if (commits(result)) await this.#commit()
    else await this.query('ROLLBACK')
    return result
  }

  /**
   * Lets COMMIT wait for a synchronous standby although nothing else was written.
   *
   * PostgreSQL waits for a standby only if the transaction has written to its log. One that finds
   * its plants stored has not, and their own commit may not have reached the standby: its wait may
   * have been canceled. So it logs a message, which changes no data and needs no privileges: a
   * standby that has the message has all that was logged before. (`pg_current_xact_id()` is not
   * enough, because it logs nothing.)
   */
  async logMessage(): Promise<void> {
    await this.query("SELECT pg_logical_emit_message(true, 'plants', '')")
  }

  async #commit(): Promise<void> {
    const warnings: string[] = []
    const collectWarning = ({ code, message }: Notice) => {
      if (code?.startsWith(warningClass)) warnings.push(message ?? '')
    }
    this.#client.on('notice', collectWarning)
    const { command } = await this.query('COMMIT')
      .catch((cause: unknown) => {
        if (wasRolledBack(cause)) throw cause
        const isInterrupted = this.#access.runtime.handleSignals().aborted
        const end = isInterrupted ? 'interrupted' : 'lost'
        const what = `The connection to ${this.name} was ${end} during a commit`
        throw createUnknownOutcomeError(what, 'Look', cause)
      })
      .finally(() => this.#client.off('notice', collectWarning))
    if (command !== 'COMMIT')
      throw new PlantsError('unavailable', `${this.name} rolled a transaction back`)
    // It is stored here, but whether a standby has it, too, is unknown.
    const [warning] = warnings
    if (warning === undefined) return
    const what = `${this.name} warned during a commit (${warning})`
    throw createUnknownOutcomeError(what, 'Wait until its standby is connected, then look')
  }

  /** Returns the number of rows. */
  async copyIn(table: string, rows: string): Promise<number> {
    const copy = Object.assign(copyFrom(`COPY ${table} FROM STDIN`), this.#limit)
    const stream = this.#client.query(copy).end(rows)
    const signal = this.#access.runtime.handleSignals()
    await untilSignal(finished(stream), signal).catch(this.#explain)
    return stream.rowCount
  }

  readonly #explain = (error: unknown): never => {
    this.#access.runtime.handleSignals().throwIfAborted()
    throw explained(error, this.#access)
  }

  /**
   * For each transaction, because behind PgBouncer the next one may have another session. Names
   * without a schema are PostgreSQL's own, a commit returns when it is on disk, a plant that violates
   * a constraint fails itself, and a warning about a commit is sent.
   */
  #settings(): string {
    return `SET LOCAL search_path = pg_catalog; SET LOCAL synchronous_commit = on;
      SET LOCAL client_min_messages = warning;
      SET LOCAL statement_timeout = ${this.#access.timeout}; SET CONSTRAINTS ALL IMMEDIATE`
  }
}

/** How long what is running may go on after a signal: most of it ends, and is known to have. */
const graceMs = 250

/** @throws the reason of the signal if it aborts, and the answer does not come soon after that */
async function untilSignal<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  let startTimer = () => {}
  const interrupted = new Promise<never>((_, reject) => {
    startTimer = () => {
      timer = setTimeout(() => reject(signal.reason), graceMs)
    }
  })
  signal.addEventListener('abort', startTimer)
  if (signal.aborted) startTimer()
  try {
    return await Promise.race([answer, interrupted])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', startTimer)
  }
}

/**
 * The class of SQLSTATE that warnings have. Their severity, `WARNING`, is translated.
 * See https://www.postgresql.org/docs/current/errcodes-appendix.html.
 */
const warningClass = '01'

function createUnknownOutcomeError(what: string, firstStep: string, cause?: unknown): PlantsError {
  const message = `${what}: whether it is stored is unknown`
  const hint = `${firstStep} at what is stored before you repeat it`
  return new PlantsError('unknownOutcome', message, { hint, cause })
}
