import { setMaxListeners } from 'node:events'
import pg from 'pg'
import { backoff, isTimeout, maxTimer, timeIsOver, wait, within } from '../../platform/clock.js'
import { PlantsError, systemCode } from '../../platform/errors.js'
import { Semaphore } from '../../platform/semaphore.js'
import type { PostgresAddress } from '../common/address.js'
import type { OpenOptions } from '../common/store.js'
import { Client, type Endpoint, endpointsOf } from './client.js'
import {
  ConnectionError,
  driverError,
  explainDatabase,
  isFinal,
  isReadOnly,
  isServerError,
  isTransient,
  isUnknownParameter,
  mayRetryOtherEndpoint,
} from './errors.js'
import type { Account } from './login.js'
import { checkServer, isWanted } from './server-state.js'
import type { Row } from './sql.js'

/** The deadline of a call, and the signal that aborts it. */
export interface CallLimits {
  /** time on the clock; Infinity for none */
  deadline: number
  signal?: AbortSignal | undefined
}

/** Connections to a database: to the first of its servers with the requested `target_session_attrs`. They are kept until they are lost. */
export class ConnectionPool {
  readonly account: Account
  readonly options: OpenOptions
  /** for each server, a pool for each connection attempt, with or without TLS, in order */
  readonly #servers: pg.Pool[][]
  readonly #clients = new Set<Client>()
  /** whether the server cancels statements on timeout; PgBouncer does not accept that parameter */
  #hasTimeouts = true
  /** the pool of the last connection */
  #current: pg.Pool | undefined
  /** when the first connection attempt failed since the last success, and whether that has been reported */
  #unavailableSince: number | undefined
  #isUnavailable = false
  readonly #closing = new AbortController()
  /** the error of the last failed attempt */
  #failure: PlantsError | undefined
  /** consecutive failed attempts */
  #failures = 0
  /** one permit for each connection that is leased or being established */
  readonly #permits: Semaphore

  constructor(account: Account, options: OpenOptions) {
    setMaxListeners(0, options.clock.signal, this.#closing.signal) // each call adds a listener
    this.account = account
    this.options = options
    this.#permits = new Semaphore(this.size)
    const { hosts, targetSessionAttrs } = account.address
    const passes = targetSessionAttrs === 'prefer-standby' ? (['standby', 'any'] as const) : [targetSessionAttrs]
    this.#servers = passes.flatMap((attributes) =>
      hosts.map((host) => endpointsOf(host, account.address).map((endpoint) => this.#poolOf(endpoint, attributes))),
    )
  }

  /** the maximum number of connections */
  get size(): number {
    return this.account.address.max
  }

  /** The limits of a call that begins now. */
  limits(): CallLimits {
    const { clock, timeout } = this.options
    return { deadline: clock.now() + timeout, signal: clock.signal }
  }

  /** Runs an idempotent statement. */
  query(statement: pg.QueryConfig): Promise<Row[]> {
    return this.run((client) => client.ask(statement))
  }

  /** Runs an idempotent action on a connection. */
  run<T>(action: (client: Client) => Promise<T>): Promise<T> {
    const limits = this.limits()
    return this.retry(limits, () => this.use(limits, action, limits.deadline))
  }

  /**
   * Runs an idempotent action, and retries it while its errors are transient.
   *
   * @throws {PlantsError} for the last error, with a hint
   */
  async retry<T>({ deadline, signal }: CallLimits, action: () => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries += 1) {
      try {
        return await action()
      } catch (error) {
        signal?.throwIfAborted()
        if (this.options.clock.now() >= deadline || !isTransient(error)) throw explainDatabase(error, this.account)
        await this.pause(tries, signal)
      }
    }
  }

  /** Waits with exponential backoff and jitter, up to a second. */
  pause(tries: number, signal?: AbortSignal): Promise<void> {
    return wait(backoff(tries, { base: 10, max: 1000, random: this.options.clock.random }), signal ? [signal] : [])
  }

  /**
   * Runs an action on a leased connection.
   *
   * @param limits the limits of the wait for a connection
   * @param end the deadline of the action
   * @throws the errors of the action; those of `driverError` when no connection could be established; `PlantsError` when all connections
   * were busy until the deadline
   */
  async use<T>(limits: CallLimits, action: (client: Client) => Promise<T>, end = Infinity): Promise<T> {
    const client = await this.lease(limits)
    const done = this.destroyAt(end, client)
    let isBroken = false
    try {
      return await action(client)
    } catch (error) {
      isBroken = !(error instanceof PlantsError) && (!isServerError(error) || isReadOnly(error))
      throw error
    } finally {
      done()
      this.release(client, isBroken)
    }
  }

  /**
   * Destroys a connection after a deadline, if the server has not cancelled its statement by then.
   *
   * @returns a function that cancels this
   */
  destroyAt(deadline: number, client: Client): () => void {
    const left = Math.max(0, deadline - this.options.clock.now()) + (this.#hasTimeouts ? grace : 0)
    if (left > maxTimer) return () => undefined
    const timer = setTimeout(() => client.destroy(timeIsOver() as Error), left)
    return () => clearTimeout(timer)
  }

  close(): void {
    if (this.#closing.signal.aborted) return
    this.#closing.abort(new PlantsError('unavailable', `${this.account.address.name} is closed`))
    for (const pool of this.#servers.flat()) void pool.end()
    for (const client of this.#clients) client.destroy()
  }

  /** Leases a connection, until `release`. Throws the reason why there was none before the deadline. */
  async lease({ deadline, signal }: CallLimits): Promise<Lease> {
    const signals = [this.#closing.signal, signal].filter((each) => each !== undefined)
    for (const each of signals) each.throwIfAborted()
    const left = Math.max(0, deadline - this.options.clock.now())
    try {
      return await within(left, signals, async (late) => {
        await this.#permits.enter(late)
        return this.#connectUntil(late)
      })
    } catch (error) {
      throw isTimeout(error) ? this.late() : error
    }
  }

  /** @param isBroken whether the connection can no longer be used */
  release(client: Lease, isBroken: boolean): void {
    // A connection that is destroyed, or in the middle of a transaction, cannot be used again either.
    const isOver = isBroken || client.connection.stream.destroyed || client.getTransactionStatus() !== 'I'
    if (isOver) client.destroy()
    client.release(isOver)
    this.#permits.leave()
  }

  /** Establishes a connection. Releases one that is established after `late` aborts. */
  async #connectUntil(late: AbortSignal): Promise<Lease> {
    const connecting = this.#connect()
    const aborted = new Promise<never>((_, reject) => {
      if (late.aborted) reject(late.reason)
      late.addEventListener('abort', () => reject(late.reason), { once: true })
    })
    try {
      return await Promise.race([connecting, aborted])
    } catch (error) {
      connecting.then(
        (client) => this.release(client, false),
        () => this.#permits.leave(),
      )
      throw error
    }
  }

  /** The error when there was no connection before the deadline. */
  late(): unknown {
    if (this.#failure) return this.#failure
    if (!this.#current) return explainDatabase(new ConnectionError(timeIsOver()), this.account)
    const message = `All connections to ${this.account.address.name} are busy`
    return new PlantsError('unavailable', message, { hint: 'Try again, or allow more connections: ?max=', retryable: true })
  }

  /** Tries the servers in turn, first the one of the last connection. Throws the most informative of their errors. */
  async #connect(): Promise<Lease> {
    if (this.#failures > 0) await this.pause(this.#failures, this.#closing.signal) // waiting calls share the attempts
    let failure: unknown
    for (const pools of this.#current ? [[this.#current], ...this.#servers] : this.#servers) {
      try {
        return await this.#connectTo(pools)
      } catch (error) {
        // A transient error is more informative than a permanent one. Like libpq, a rejected login is not tried at other servers.
        if (failure === undefined || isTransient(error) > isTransient(failure) || isFinal(error)) failure = error
        if (isFinal(error)) break
      }
    }
    this.#noteFailure(explainDatabase(failure, this.account))
    throw failure
  }

  /** Makes the connection attempts for a server. Throws the error of the first attempt that the server supports. */
  async #connectTo(pools: pg.Pool[]): Promise<Lease> {
    let failure: unknown
    for (const pool of pools) {
      try {
        const client = await this.#connectBy(pool)
        this.#noteSuccess()
        this.#current = pool
        return client
      } catch (error) {
        if (failure === undefined || systemCode(failure) === 'NO_TLS') failure = error
        if (!mayRetryOtherEndpoint(error)) break
      }
    }
    throw failure
  }

  async #connectBy(pool: pg.Pool): Promise<Lease> {
    try {
      return (await pool.connect()) as Lease // the `Client` class of the pool
    } catch (error) {
      const failure = driverError(error)
      if (!this.#hasTimeouts || !isUnknownParameter(failure)) throw failure
      this.#hasTimeouts = false
      return this.#connectBy(pool)
    }
  }

  #poolOf(endpoint: Endpoint, attributes: PostgresAddress['targetSessionAttrs']): pg.Pool {
    const connections = this
    class PooledClient extends Client {
      constructor() {
        super(endpoint, connections.account, connections.#hasTimeouts ? Math.min(connections.options.timeout, maxTimer) : undefined)
        connections.#clients.add(this)
        this.once('end', () => connections.#clients.delete(this))
      }
    }
    const verify = (client: pg.PoolClient, done: (error?: Error) => void) => {
      this.#verify(client as Lease, attributes).then(() => done(), done)
    }
    const pool = new pg.Pool({ max: this.size, idleTimeoutMillis: 0, Client: PooledClient, verify })
    return pool.on('error', () => undefined) // an idle connection was lost; the pool opens a new one
  }

  /** Checks a new connection. Throws when the server does not have the requested attributes, or the database cannot be used. */
  async #verify(client: Client, attributes: PostgresAddress['targetSessionAttrs']): Promise<void> {
    const { address } = this.account
    const timer = setTimeout(() => client.destroy(timeIsOver() as Error), address.connectTimeout)
    try {
      client.checkLogin()
      if (isWanted(await checkServer(client, address, this.options), attributes)) return
      const hint = 'Try again, or use the address of another server'
      throw new PlantsError('unavailable', `${address.name} is not ${attributes} now`, { hint, retryable: true })
    } catch (error) {
      client.destroy()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  #noteSuccess(): void {
    this.#failure = undefined
    this.#failures = 0
    this.#unavailableSince = undefined
    if (this.#isUnavailable) this.options.onAway?.(undefined)
    this.#isUnavailable = false
  }

  #noteFailure(failure: unknown): void {
    if (!(failure instanceof PlantsError)) return
    this.#failure = failure
    this.#failures += 1
    const now = this.options.clock.now()
    this.#unavailableSince ??= now
    if (!failure.retryable || this.#isUnavailable || now - this.#unavailableSince < 1000) return
    this.#isUnavailable = true
    this.options.onAway?.(failure)
  }
}

type Lease = Client & pg.PoolClient

/** milliseconds in which a working server cancels a statement after its timeout */
const grace = 1000

/** Opens a database, runs one action, and closes it. */
export async function usingOnce<T>(address: PostgresAddress, options: OpenOptions, action: (client: Client) => Promise<T>): Promise<T> {
  const account = { address, login: await options.login(address) }
  const connections = new ConnectionPool(account, options)
  try {
    const limits = connections.limits()
    return await connections.use(limits, action, limits.deadline)
  } catch (error) {
    throw explainDatabase(error, account)
  } finally {
    connections.close()
  }
}
