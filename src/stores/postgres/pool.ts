import { setMaxListeners } from 'node:events'
import pg from 'pg'
import { isTimeout, within } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import { must } from '../../platform/values.js'
import type { PostgresAddress } from '../common/address.js'
import { nextPause, patienceOf, retrying } from '../common/retry-policy.js'
import type { OpenOptions } from '../common/store.js'
import { Connection, type Endpoint } from './postgres-connection.js'
import {
  type Account,
  ConnectionError,
  driverError,
  explainDatabase,
  isFinal,
  isTransient,
  mayRetryWithoutTls,
} from './postgres-errors.js'
import type { Row } from './sql.js'

/** What a caller waits for, at most until its timeout. */
export interface Call {
  /** time on the clock */
  start: number
  signal: AbortSignal
}

/** Connections to the first server of a database that accepts writes, kept until they are lost. */
export class ConnectionPool {
  readonly account: Account
  readonly options: OpenOptions
  readonly #pool: pg.Pool
  readonly #connections = new Set<Connection>()
  readonly #endpoints: Endpoint[]
  /** of the next connection */
  #next = 0
  #wasConnected = false
  /** of the last attempt to connect */
  #failure: unknown
  #isReportedAway = false
  readonly #waiters = new Set<{ resolve(connection: Connection): void; reject(reason: unknown): void }>()
  /** calls of `#open` */
  #opening = 0
  readonly #closing = new AbortController()

  constructor(account: Account, options: OpenOptions) {
    setMaxListeners(0, options.clock.signal, this.#closing.signal) // each call adds a listener
    this.account = account
    this.options = options
    this.#endpoints = endpointsOf(account.address)
    const { timeout } = options
    const connectTimeout = Math.min(maxConnectTimeout, timeout / account.address.hosts.length)
    const nextOptions = () => ({ endpoint: must(this.#endpoints[this.#next]), account, connectTimeout, timeout })
    const connections = this.#connections
    this.#pool = new pg.Pool({
      max: this.size,
      idleTimeoutMillis: 0,
      Client: class extends Connection {
        constructor() {
          super(nextOptions())
          connections.add(this)
          this.once('end', () => connections.delete(this))
        }
      },
      onConnect: (connection) => (connection as Connection).check(),
    })
    this.#pool.on('error', () => undefined) // of an idle connection, which the pool drops
  }

  /** Opens a pool for an action, and closes it if that fails. */
  static async open<T>(
    address: PostgresAddress,
    options: OpenOptions,
    action: (connection: Connection) => Promise<T>,
  ): Promise<{ pool: ConnectionPool; result: T }> {
    const pool = new ConnectionPool({ address, login: await options.login(address) }, options)
    try {
      return { pool, result: await pool.run(action) }
    } catch (error) {
      pool.close()
      throw error
    }
  }

  get size(): number {
    return this.account.address.max
  }

  newCall(signal?: AbortSignal): Call {
    const { clock } = this.options
    return { start: clock.now(), signal: signal ? AbortSignal.any([clock.signal, signal]) : clock.signal }
  }

  /** @param plants see `Connection.ask` */
  query(text: string, plants?: number): Promise<Row[]> {
    return this.run((connection) => connection.ask(text, plants))
  }

  run<T>(action: (connection: Connection) => Promise<T>): Promise<T> {
    const call = this.newCall()
    return this.retry(call, () => this.use(call, action))
  }

  /** Repeats what has failed for a reason that may pass soon. Throws `PlantsError` for the last one. */
  retry<T>(call: Call, action: () => Promise<T>): Promise<T> {
    const { clock, onAway } = this.options
    const pauseAfter = (error: unknown, tries: number) => {
      if (!(error instanceof PlantsError && error.isOutcomeUnknown)) call.signal.throwIfAborted()
      const patience = patienceOf(this.options, this.#wasConnected)
      const elapsed = clock.now() - call.start
      const pause = isTransient(error) ? nextPause(policy, { tries, elapsed, patience }, clock) : undefined
      const explained = this.explain(error)
      if (pause === undefined) throw explained
      const isAway = this.#failure !== undefined && elapsed >= reportAfter && explained instanceof PlantsError
      if (isAway && !this.#isReportedAway) {
        this.#isReportedAway = true
        onAway?.(explained, patience)
      }
      return pause
    }
    return retrying(action, pauseAfter, [this.#closing.signal, call.signal])
  }

  async use<T>(call: Call, action: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.lease(call)
    try {
      return await action(connection)
    } finally {
      this.release(connection)
    }
  }

  /** Throws the reason why there was no connection in time. */
  async lease({ start, signal }: Call): Promise<Connection> {
    this.#closing.signal.throwIfAborted()
    const { timeout, clock } = this.options
    const waiting = (over: AbortSignal) =>
      new Promise<Connection>((resolve, reject) => {
        over.throwIfAborted()
        const waiter = { resolve, reject }
        this.#waiters.add(waiter)
        over.addEventListener('abort', () => {
          this.#waiters.delete(waiter)
          reject(over.reason)
        })
        void this.#open()
      })
    try {
      return await within(start + timeout - clock.now(), [this.#closing.signal, signal], waiting)
    } catch (error) {
      throw isTimeout(error) ? this.#late() : error
    }
  }

  /** To the first that waits, whoever has opened it: so nobody waits for a server that does not answer any more. */
  release(connection: Connection): void {
    const [waiter] = this.#waiters
    if (waiter && connection.isIdle) {
      this.#waiters.delete(waiter)
      waiter.resolve(connection)
      return
    }
    ;(connection as Connection & pg.PoolClient).release(!connection.isIdle) // of the pool
    if (waiter) void this.#open()
  }

  async #open(): Promise<void> {
    if (this.#opening === this.size) return
    this.#opening += 1
    const connection = await this.#connect().catch((error: unknown) => {
      for (const { reject } of this.#waiters) reject(error)
      this.#waiters.clear()
    })
    this.#opening -= 1
    if (connection) this.release(connection)
  }

  /** Tries each endpoint once. Of their failures, one that may pass soon is the most informative. */
  async #connect(): Promise<Connection> {
    let failure: unknown
    for (const _ of this.#endpoints) {
      const at = this.#next
      try {
        const connection = (await this.#pool.connect()) as unknown as Connection // of its option `Client`
        this.#wasConnected = true
        this.#failure = undefined
        if (this.#isReportedAway) this.options.onAway?.(undefined)
        this.#isReportedAway = false
        return connection
      } catch (reason) {
        const error = driverError(reason)
        const canFallBack = must(this.#endpoints[at]).usesTls && this.account.address.sslmode === 'prefer'
        const fallsBack = canFallBack && mayRetryWithoutTls(error)
        if (this.#next === at) this.#next = (at + (canFallBack && !fallsBack ? 2 : 1)) % this.#endpoints.length
        if (failure === undefined || !(fallsBack || isTransient(failure))) failure = error
        if (!isFinal(error) || fallsBack) continue
        failure = error
        break
      }
    }
    this.#failure = failure
    throw failure
  }

  /** What a call fails with that has waited too long. */
  #late(): unknown {
    if (this.#failure !== undefined) return this.#failure
    if (!this.#wasConnected) return new ConnectionError('LATE', 'no answer in time')
    const message = `All connections to ${this.account.address.name} are busy`
    const hint = 'Try again, or allow more connections: ?max='
    return new PlantsError('unavailable', message, { hint, retryable: true })
  }

  /** When the login was accepted before, its rejection is no matter of the credentials of whoever calls. */
  explain(error: unknown): unknown {
    const explained = explainDatabase(error, this.account)
    if (!this.#wasConnected || !(explained instanceof PlantsError) || explained.type !== 'unauthorized')
      return explained
    return new PlantsError('unavailable', explained.message, { hint: explained.hint, cause: error })
  }

  close(): void {
    if (this.#closing.signal.aborted) return
    this.#closing.abort(new PlantsError('unavailable', `${this.account.address.name} is closed`))
    void this.#pool.end()
    for (const connection of this.#connections) if (!connection.isIdle) connection.destroy()
  }
}

const policy = { base: 10, max: 1000 }

/** milliseconds until the next of several servers is tried */
const maxConnectTimeout = 5000

/** milliseconds that a call waits for a database that is away before that is reported: a user should not wonder */
const reportAfter = 300

/** In the order in which they are tried: with sslmode=prefer, like libpq, each host first with TLS. */
function endpointsOf({ hosts, sslmode }: PostgresAddress): Endpoint[] {
  return hosts.flatMap((host) => {
    const isPlain = sslmode === 'disable' || host.host.startsWith('/')
    const ways = sslmode === 'prefer' && !isPlain ? [true, false] : [!isPlain]
    return ways.map((usesTls) => ({ ...host, usesTls }))
  })
}
