import { once, setMaxListeners } from 'node:events'
import pg from 'pg'
import { backoff, isTimeout, wait, within } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import { must } from '../../platform/values.js'
import type { PostgresAddress } from '../common/address.js'
import type { OpenOptions } from '../common/store.js'
import { Connection, type Endpoint, fsyncIsOff } from './postgres-connection.js'
import {
  type Account,
  ConnectionError,
  driverError,
  explainDatabase,
  isFinal,
  isTransient,
  isUnknownTransaction,
  mayRetryWithoutTls,
  unknownCommit,
} from './postgres-errors.js'
import { literal, type Row } from './sql.js'

interface CallLimits {
  /** time on the clock */
  deadline: number
  signal?: AbortSignal | undefined
}

interface Outage {
  /** of the last failure, and the time of the first one on the clock */
  error: PlantsError
  since: number
  isReported: boolean
}

/** What became of a transaction whose work was done. `failure` is that of its COMMIT. */
export interface Commit<T> {
  result: T
  transaction: Transaction
  failure: unknown
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
  #outage: Outage | undefined
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
  ): Promise<{ connections: ConnectionPool; result: T }> {
    const connections = new ConnectionPool({ address, login: await options.login(address) }, options)
    try {
      return { connections, result: await connections.run(action) }
    } catch (error) {
      connections.close()
      throw error
    }
  }

  get size(): number {
    return this.account.address.max
  }

  limits(signal?: AbortSignal): CallLimits {
    const { clock, timeout } = this.options
    const either = signal ? AbortSignal.any([clock.signal, signal]) : clock.signal
    return { deadline: clock.now() + timeout, signal: either }
  }

  /** @param plants see `Connection.ask` */
  query(text: string, plants?: number): Promise<Row[]> {
    return this.run((connection) => connection.ask(text, plants))
  }

  run<T>(action: (connection: Connection) => Promise<T>, limits = this.limits()): Promise<T> {
    return this.retry(limits, () => this.use(limits, action))
  }

  /** Repeats a transaction until it is known to have committed, or the time is over. */
  transact<T>(work: (transaction: Transaction) => Promise<T>, limits = this.limits()): Promise<T> {
    return this.retry(limits, async () => {
      const commit = await this.use(limits, (connection) => this.attempt(connection, work, limits.signal))
      return this.settle(commit)
    })
  }

  /** Retries transient errors. Throws `PlantsError` for the last one. */
  async retry<T>({ deadline, signal }: CallLimits, action: () => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries += 1) {
      try {
        return await action()
      } catch (error) {
        if (!(error instanceof PlantsError && error.isOutcomeUnknown)) signal?.throwIfAborted()
        const { now, random } = this.options.clock
        const pause = backoff(tries, { base: 10, max: 1000, random })
        if (now() + pause >= deadline || !isTransient(error)) throw explainDatabase(error, this.account)
        await wait(pause, this.#signals(signal)).catch(() => undefined) // `lease` throws the reason
      }
    }
  }

  #signals(signal: AbortSignal | undefined): AbortSignal[] {
    return signal ? [this.#closing.signal, signal] : [this.#closing.signal]
  }

  async use<T>(limits: CallLimits, action: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.lease(limits)
    try {
      return await action(connection)
    } finally {
      this.release(connection)
    }
  }

  /** A failed COMMIT is returned: to `settle` it takes another connection. */
  async attempt<T>(
    connection: Connection,
    work: (transaction: Transaction) => Promise<T>,
    signal = this.options.clock.signal,
  ): Promise<Commit<T>> {
    const transaction = new Transaction(connection)
    try {
      const result = await work(transaction)
      signal.throwIfAborted()
      const failure = await connection.ask('COMMIT').then(
        () => undefined,
        (error: unknown) => error,
      )
      return { result, transaction, failure }
    } catch (error) {
      if (!connection.isIdle) await connection.ask('ROLLBACK').catch(() => undefined) // must not hide the error
      throw error
    }
  }

  /**
   * The result of a transaction that has committed. Throws the failure of one that has not, and `unknownOutcome` when
   * the server does not report that.
   */
  async settle<T>({ result, transaction, failure }: Commit<T>): Promise<T> {
    if (failure === undefined) return result
    const limits = this.limits()
    const hasCommitted = await this.retry(limits, () =>
      this.use(limits, (connection) => transaction.hasCommitted(connection)),
    ).catch((error: unknown) => {
      throw unknownCommit(this.account.address, error)
    })
    if (hasCommitted) return result
    throw failure
  }

  close(): void {
    if (this.#closing.signal.aborted) return
    this.#closing.abort(new PlantsError('unavailable', `${this.account.address.name} is closed`))
    void this.#pool.end()
    for (const connection of this.#connections) if (!connection.isIdle) connection.destroy()
  }

  /** Throws the reason why there was no connection before the deadline. */
  async lease({ deadline, signal }: CallLimits): Promise<Connection> {
    this.#closing.signal.throwIfAborted()
    const left = Math.max(0, deadline - this.options.clock.now())
    const connecting = this.#connect()
    try {
      return await within(left, this.#signals(signal), (late) => {
        late.throwIfAborted()
        return Promise.race([connecting, once(late, 'abort').then(() => Promise.reject(late.reason))])
      })
    } catch (error) {
      connecting.then(
        (connection) => this.release(connection),
        () => undefined,
      )
      throw isTimeout(error) ? this.late() : error
    }
  }

  release(connection: Connection): void {
    ;(connection as Connection & pg.PoolClient).release(!connection.isIdle) // of the pool
  }

  /** Tries each endpoint once. A transient error is more informative than a permanent one. */
  async #connect(): Promise<Connection> {
    let failure: unknown
    for (const _ of this.#endpoints) {
      const at = this.#next
      try {
        const connection = (await this.#pool.connect()) as unknown as Connection // of its option `Client`
        this.#wasConnected = true
        if (this.#outage?.isReported) this.options.onAway?.(undefined)
        this.#outage = undefined
        return connection
      } catch (reason) {
        const error = driverError(reason)
        const canFallBack = must(this.#endpoints[at]).usesTls && this.account.address.sslmode === 'prefer'
        const fallsBack = canFallBack && mayRetryWithoutTls(error)
        if (this.#next === at) this.#next = (at + (canFallBack && !fallsBack ? 2 : 1)) % this.#endpoints.length
        const isBetter = isTransient(error) > isTransient(failure) || isFinal(error) || mayRetryWithoutTls(failure)
        if (failure === undefined || isBetter) failure = error
        if (isFinal(error) && !fallsBack) break
      }
    }
    this.#noteFailure(explainDatabase(failure, this.account))
    throw failure
  }

  late(): unknown {
    if (this.#outage) return this.#outage.error
    if (!this.#wasConnected) return explainDatabase(new ConnectionError('LATE', 'no answer in time'), this.account)
    const message = `All connections to ${this.account.address.name} are busy`
    return new PlantsError('unavailable', message, {
      hint: 'Try again, or allow more connections: ?max=',
      retryable: true,
    })
  }

  #noteFailure(error: unknown): void {
    if (!(error instanceof PlantsError)) return
    const now = this.options.clock.now()
    const { since, isReported } = this.#outage ?? { since: now, isReported: false }
    const reports = error.retryable && !isReported && now - since >= reportAfter
    this.#outage = { error, since, isReported: isReported || reports }
    if (reports) this.options.onAway?.(error)
  }
}

/** milliseconds until the next of several servers is tried */
const maxConnectTimeout = 5000

/** milliseconds that a database may be away before that is reported: a user should not wonder for a second */
const reportAfter = 300

/** In the order in which they are tried: with sslmode=prefer, like libpq, each host first with TLS. */
function endpointsOf({ hosts, sslmode }: PostgresAddress): Endpoint[] {
  return hosts.flatMap((host) => {
    const isPlain = sslmode === 'disable' || host.host.startsWith('/')
    const ways = sslmode === 'prefer' && !isPlain ? [true, false] : [!isPlain]
    return ways.map((usesTls) => ({ ...host, usesTls }))
  })
}

/** The statements of one transaction, which begins with the first of them. */
export class Transaction {
  readonly connection: Connection
  #number: string | undefined
  #server: string | undefined
  #isBegun = false
  /**
   * Conditions that hold if all that it has stored is there. A server that has crashed may give a number again that it
   * has not written to disk, so that a number alone does not prove that this transaction has committed; nor does a part
   * of what it has stored, which another client may have stored under the same number.
   */
  evidence: (() => string)[] = []

  constructor(connection: Connection) {
    this.connection = connection
  }

  /** See `Connection.ask`. */
  async ask(text: string, plants?: number): Promise<Row[]> {
    if (this.#isBegun) return this.connection.ask(text, plants)
    this.#isBegun = true
    const identity = this.connection.canSettle ? `pg_current_xact_id(), (${server})` : 'NULL, NULL'
    const begin = `BEGIN; SELECT current_setting('fsync'), ${identity}`
    const [, [begun = []] = [], ...results] = await this.connection.askAll(`${begin}; ${text}`, plants)
    const [fsync, number, serverNow] = begun
    if (fsync === 'off') throw fsyncIsOff(this.connection.address.name)
    this.#number = number ?? undefined
    this.#server = serverNow ?? undefined
    return results.at(-1) ?? []
  }

  /**
   * Asks over another connection, after an answer to COMMIT was lost. If commits wait for standbys, the answer counts
   * once a later commit has reached them, too.
   *
   * @throws {Error} for an outcome that is not known yet, or cannot be
   */
  async hasCommitted(connection: Connection): Promise<boolean> {
    const status = `SELECT CASE (${server}) WHEN ${literal(this.#server)} THEN pg_xact_status('${this.#number}') END`
    if (this.#number === undefined || !connection.canSettle) throw new Error('The server does not report the outcome')
    const isStored = `SELECT ${['true', ...this.evidence.map((condition) => condition())].join(' AND ')}`
    const answers = await connection.askAll(`${status}; ${isStored}; ${reachStandbys}`).catch((error: unknown) => {
      if (isUnknownTransaction(error)) return undefined
      throw error
    })
    const [[[state] = []] = [], [[evidence] = []] = []] = answers ?? [[['aborted']]]
    if (state === 'in progress')
      throw new PlantsError('unavailable', 'The commit is still in progress', { retryable: true })
    if (state === 'aborted') return false
    if (state === 'committed' && evidence === 't') return true
    throw new Error('The server does not report the outcome')
  }
}

/** Changes with a promotion: the new server may have lost transactions, and gives their numbers again. */
const server = `SELECT system_identifier || ' ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
  FROM pg_control_system()`

/** A commit that waits until the standbys have everything that was committed before, if commits wait for them. */
export const reachStandbys = `SELECT pg_logical_emit_message(true, 'plants', '')
  WHERE current_setting('synchronous_standby_names') <> ''`
