import { once, setMaxListeners } from 'node:events'
import pg from 'pg'
import { must, PlantsError } from '../../platform/errors.js'
import { isTimeout, retrying, within } from '../../platform/runtime.js'
import type { PostgresAddress } from '../common/address.js'
import type { WaitOptions } from '../common/query.js'
import { nextPause, patienceOf } from '../common/retry-policy.js'
import { Connection, type Endpoint } from './postgres-connection.js'
import {
  type Account,
  codeOf,
  DatabaseFailure,
  explain,
  statementCanceled,
} from './postgres-errors.js'
import type { PostgresOptions } from './postgres-options.js'
import type { Row } from './sql.js'

/** What a caller waits for. */
export interface Call {
  /** Times on the runtime. */
  start: number
  end: number
  signal: AbortSignal
  /** Each of many statements has the timeout, and so has the commit; `end` is for the wait for a connection. */
  isLong: boolean
}

interface CallOptions extends WaitOptions {
  signal?: AbortSignal | undefined
  isLong?: boolean
}

/** Connections to the first server of a database that accepts writes, kept until they are lost. */
export class ConnectionPool {
  readonly options: PostgresOptions
  readonly size: number
  readonly #account: Account
  readonly #pool: pg.Pool
  readonly #connections = new Set<Connection>()
  readonly #endpoints: Endpoint[]
  /** The index of the server to try next. */
  #next = 0
  #wasConnected = false
  /** The error of the last attempt to connect. */
  #failure: PlantsError | undefined
  #isReportedAway = false
  readonly #closing = new AbortController()

  private constructor(account: Account, options: PostgresOptions) {
    const { runtime, timeout } = options
    setMaxListeners(0, runtime.handleSignals(), this.#closing.signal) // each call adds a listener
    this.options = options
    this.size = account.address.max
    this.#account = account
    this.#endpoints = endpointsOf(account.address)
    const connectTimeout = Math.min(maxConnectTimeout, timeout / account.address.hosts.length)
    const endpoint = () => must(this.#endpoints[this.#next])
    const connections = this.#connections
    this.#pool = new pg.Pool({
      max: this.size,
      idleTimeoutMillis: 0,
      Client: class extends Connection {
        constructor() {
          super(endpoint(), account, connectTimeout, runtime)
          connections.add(this)
          this.once('end', () => connections.delete(this))
        }
      },
      onConnect: (connection) => (connection as Connection).check(),
    })
    this.#pool.on('error', () => undefined) // of an idle connection, which the pool drops
  }

  /** Also connects, and closes the pool if `action` fails. */
  static async open<T>(
    address: PostgresAddress,
    options: PostgresOptions,
    action: (connection: Connection) => Promise<T>,
  ): Promise<{ pool: ConnectionPool; result: T }> {
    const pool = new ConnectionPool({ address, login: options.login }, options)
    try {
      return { pool, result: await pool.run(action) }
    } catch (error) {
      pool.close()
      throw error
    }
  }

  newCall({ signal, waited = 0, isLong = false }: CallOptions = {}): Call {
    const { runtime, timeout } = this.options
    const start = runtime.now() - waited
    const either = signal
      ? AbortSignal.any([runtime.handleSignals(), signal])
      : runtime.handleSignals()
    return { start, end: start + timeout, signal: either, isLong }
  }

  /** Gives the call that has a connection the timeout once more. */
  renew(connection: Connection): void {
    const { runtime, timeout } = this.options
    connection.deadline = runtime.now() + timeout
  }

  query(text: string, call?: Call): Promise<Row[]> {
    return this.run((connection) => connection.ask(text), call)
  }

  /** With a connection, which it gives back, until the action succeeds or the call ends. */
  run<T>(action: (connection: Connection) => Promise<T>, call = this.newCall()): Promise<T> {
    return this.retry(call, async () => {
      const connection = await this.lease(call)
      return action(connection).finally(() => this.release(connection))
    })
  }

  /** Repeats what has failed for a reason that may pass soon. Throws `PlantsError` for the last one. */
  retry<T>(call: Call, action: () => Promise<T>): Promise<T> {
    const { runtime, onAway } = this.options
    const pauseAfter = (error: unknown, tries: number) => {
      if (!(error instanceof PlantsError && error.isOutcomeUnknown)) call.signal.throwIfAborted()
      const patience = patienceOf(this.options, this.#wasConnected)
      const elapsed = runtime.now() - call.start
      if (!(error instanceof PlantsError && error.isRetryable)) throw this.#outside(error)
      if (this.#failure && !this.#isReportedAway && elapsed >= reportAfter) {
        this.#isReportedAway = true
        onAway?.(this.#failure, patience)
      }
      return nextPause(policy, { tries, elapsed, patience }, runtime)
    }
    return retrying(action, pauseAfter, () => [this.#closing.signal, call.signal])
  }

  /** Throws the reason why there was no connection in time. */
  async lease({ end, signal }: Call): Promise<Connection> {
    this.#closing.signal.throwIfAborted()
    const { runtime } = this.options
    const connected = this.#connect()
    connected.catch((failure: PlantsError) => {
      this.#failure = failure
    })
    try {
      const connection = await within(
        end - runtime.now(),
        [this.#closing.signal, signal],
        async (over) => {
          over.throwIfAborted()
          const late = once(over, 'abort').then(() => Promise.reject(over.reason))
          return Promise.race([connected, late])
        },
      )
      connection.deadline = end
      return connection
    } catch (error) {
      connected.then(
        (connection) => this.release(connection), // which comes too late
        () => undefined,
      )
      if (!isTimeout(error)) throw error
      const code = this.#wasConnected ? statementCanceled : 'LATE' // there, all connections are busy
      throw this.#failure ?? new DatabaseFailure(code, 'no answer in time', this.#account)
    }
  }

  release(connection: Connection): void {
    if (connection.isIdle) this.#noteSuccess()
    // The first server of the address may be back, and have the store.
    if (connection.lacksStore) this.#next = 0
    ;(connection as Connection & pg.PoolClient).release(!connection.isIdle) // of the pool
  }

  #noteSuccess(): void {
    this.#wasConnected = true
    this.#failure = undefined
    if (this.#isReportedAway) this.options.onAway?.(undefined)
    this.#isReportedAway = false
  }

  /** Tries each server once. Of their failures, throws one that may pass soon if there is any. */
  async #connect(): Promise<Connection> {
    let failure: PlantsError | undefined
    for (let left = this.#endpoints.length; left > 0; ) {
      const at = this.#next
      try {
        return (await this.#pool.connect()) as unknown as Connection // of its option `Client`
      } catch (reason) {
        const error = explain(reason, this.#account)
        const hasPlainNext =
          this.#account.address.sslmode === 'prefer' && must(this.#endpoints[at]).usesTls
        const fallsBack = hasPlainNext && withoutTls.test(codeOf(error))
        const step = hasPlainNext && !fallsBack ? 2 : 1
        left -= step
        if (this.#next === at) this.#next = (at + step) % this.#endpoints.length
        if (final.test(codeOf(error)) && !fallsBack) throw error
        if (!failure || !(failure.isRetryable || fallsBack)) failure = error
      }
    }
    throw must(failure)
  }

  /** After the login has been accepted once, a rejection is not the fault of the caller's credentials. */
  #outside(error: unknown): unknown {
    if (!this.#wasConnected || !(error instanceof PlantsError) || error.kind !== 'unauthorized')
      return error
    return new PlantsError('inaccessible', error.message, { hint: error.hint, cause: error })
  }

  close(): void {
    if (this.#closing.signal.aborted) return
    this.#closing.abort(new PlantsError('inaccessible', `${this.#account.address.name} is closed`))
    void this.#pool.end()
    for (const connection of this.#connections) if (!connection.isIdle) connection.destroy()
  }
}

const policy = { base: 10, max: 1000 }

/** In milliseconds, until the next of several servers is tried. */
const maxConnectTimeout = 5000

/** In milliseconds: a user should not wonder why a call waits for a database that is away. */
const reportAfter = 300

/** The server has no TLS, or another entry of pg_hba.conf may apply without it. */
const withoutTls = /^(28000|NO_TLS)$/

/** Codes after which no other server is tried: otherwise a wrong password would look like an unavailable server. */
const final = /^(28|3D|LOGIN|PASSWORD)/

/** In the order in which they are tried: with sslmode=prefer, like libpq, each host first with TLS. */
function endpointsOf({ hosts, sslmode }: PostgresAddress): Endpoint[] {
  return hosts.flatMap((host) => {
    const isPlain = sslmode === 'disable' || host.host.startsWith('/')
    const ways = sslmode === 'prefer' && !isPlain ? [true, false] : [!isPlain]
    return ways.map((usesTls) => ({ ...host, usesTls }))
  })
}
