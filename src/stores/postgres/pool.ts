import { once, setMaxListeners } from 'node:events'
import type pg from 'pg'
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
  isTransient,
  isUnknownParameter,
  LostCommit,
  lostCommit,
  mayRetryOtherEndpoint,
} from './errors.js'
import type { Account } from './login.js'
import { checkServer, isWanted } from './server-state.js'
import type { Row } from './sql.js'

export interface CallLimits {
  /** time on the clock; Infinity for none */
  deadline: number
  signal?: AbortSignal | undefined
}

interface EarlierTries {
  tries: number
  /** whether a commit was lost, and may have been done */
  isLost: boolean
}

interface Outage {
  failures: number
  /** the error of the last one, and the time of the first one on the clock */
  error: PlantsError
  since: number
  isReported: boolean
}

/**
 * Connections to a database: to the first of its servers with the requested `target_session_attrs`. They are kept until they are lost.
 * The pool of the driver has one server, and no signal or deadline for those that wait.
 */
export class ConnectionPool {
  readonly account: Account
  readonly options: OpenOptions
  /** one permit for each connection that is leased or being established */
  readonly #permits: Semaphore
  readonly #clients = new Set<Client>()
  readonly #idle: Client[] = []
  readonly #servers: Endpoint[][]
  #current: Endpoint | undefined
  /** whether the server cancels statements on timeout; PgBouncer does not accept that parameter */
  #hasTimeouts = true
  #outage: Outage | undefined
  readonly #closing = new AbortController()

  constructor(account: Account, options: OpenOptions) {
    setMaxListeners(0, options.clock.signal, this.#closing.signal) // each call adds a listener
    this.account = account
    this.options = options
    this.#permits = new Semaphore(this.size)
    this.#servers = endpointsOf(account.address)
  }

  get size(): number {
    return this.account.address.max
  }

  limits(): CallLimits {
    const { clock, timeout } = this.options
    return { deadline: clock.now() + timeout, signal: clock.signal }
  }

  query(statement: pg.QueryConfig): Promise<Row[]> {
    return this.run((client) => client.ask(statement))
  }

  /** Runs an action on a connection, with retries. */
  run<T>(action: (client: Client, earlier: EarlierTries) => Promise<T>, limits = this.limits()): Promise<T> {
    return this.retry(limits, (earlier) => this.use(limits, (client) => action(client, earlier)))
  }

  /**
   * Runs an action, and retries it while its errors are transient.
   *
   * @throws {PlantsError} for the last error, with a hint; `unknownOutcome` if a commit was lost
   */
  async retry<T>({ deadline, signal }: CallLimits, action: (earlier: EarlierTries) => Promise<T>): Promise<T> {
    let isLost = false
    for (let tries = 0; ; tries += 1) {
      try {
        return await action({ tries, isLost })
      } catch (error) {
        isLost ||= error instanceof LostCommit
        const pause = this.#backoff(tries)
        const isOver = signal?.aborted === true || this.options.clock.now() + pause >= deadline || !isTransient(error)
        if (isOver && isLost) throw lostCommit(this.account.address, error)
        signal?.throwIfAborted()
        if (isOver) throw explainDatabase(error, this.account)
        await this.#pause(pause, signal)
      }
    }
  }

  /** Milliseconds to wait after so many failures, with exponential growth and jitter, up to a second. */
  #backoff(failures: number): number {
    return backoff(failures, { base: 10, max: 1000, random: this.options.clock.random })
  }

  async #pause(milliseconds: number, signal = this.#closing.signal): Promise<void> {
    await wait(milliseconds, [this.#closing.signal, signal]).catch(() => undefined) // `lease` throws the reason
  }

  /**
   * Runs an action on a leased connection.
   *
   * @throws the errors of the action; those of `driverError` when no connection could be established; `PlantsError` when all connections
   * were busy until the deadline
   */
  async use<T>(limits: CallLimits, action: (client: Client) => Promise<T>): Promise<T> {
    const client = await this.lease(limits)
    this.setDeadline(client, limits.deadline)
    try {
      return await action(client)
    } finally {
      this.release(client)
    }
  }

  /** Sets when a leased connection is destroyed, if the server has not cancelled its statement by then. */
  setDeadline(client: Client, deadline: number): void {
    client.destroyAfter(Math.max(0, deadline - this.options.clock.now()) + grace)
  }

  close(): void {
    if (this.#closing.signal.aborted) return
    this.#closing.abort(new PlantsError('unavailable', `${this.account.address.name} is closed`))
    for (const client of this.#idle) void client.end()
    for (const client of this.#clients) client.destroy()
  }

  /** Leases a connection, until `release`. Throws the reason why there was none before the deadline. */
  async lease({ deadline, signal }: CallLimits): Promise<Client> {
    const signals = [this.#closing.signal, signal].filter((each) => each !== undefined)
    const left = Math.max(0, deadline - this.options.clock.now())
    try {
      return await within(left, signals, async (late) => {
        await this.#permits.enter(late)
        for (let client = this.#idle.pop(); client; client = this.#idle.pop()) {
          if (client.isIdle) return client
          client.destroy()
        }
        return this.#connectUntil(late)
      })
    } catch (error) {
      throw isTimeout(error) ? this.late() : error
    }
  }

  release(client: Client): void {
    client.destroyAfter(Infinity)
    if (client.isIdle) this.#idle.push(client)
    else client.destroy()
    this.#permits.leave()
  }

  late(): unknown {
    if (this.#outage) return this.#outage.error
    if (!this.#current) return explainDatabase(new ConnectionError(timeIsOver()), this.account)
    const message = `All connections to ${this.account.address.name} are busy`
    return new PlantsError('unavailable', message, { hint: 'Try again, or allow more connections: ?max=', retryable: true })
  }

  /** Establishes a connection. Releases one that is established after `late` aborts. */
  async #connectUntil(late: AbortSignal): Promise<Client> {
    const connecting = this.#connect()
    const aborted = once(late, 'abort').then(() => Promise.reject(late.reason))
    try {
      return await Promise.race([connecting, aborted])
    } catch (error) {
      connecting.then(
        (client) => this.release(client),
        () => this.#permits.leave(),
      )
      throw error
    }
  }

  /** Tries the servers in turn, first the one of the last connection. Throws the most informative of their errors. */
  async #connect(): Promise<Client> {
    if (this.#outage) await this.#pause(this.#backoff(this.#outage.failures)) // waiting calls share the attempts
    let failure: unknown
    for (const attempts of this.#current ? [[this.#current], ...this.#servers] : this.#servers) {
      try {
        const client = await this.#connectTo(attempts)
        if (this.#outage?.isReported) this.options.onAway?.(undefined)
        this.#outage = undefined
        return client
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
  async #connectTo(attempts: Endpoint[]): Promise<Client> {
    let failure: unknown
    for (const endpoint of attempts) {
      try {
        const client = await this.#open(endpoint)
        this.#current = endpoint
        return client
      } catch (error) {
        if (failure === undefined || systemCode(failure) === 'NO_TLS') failure = error
        if (!mayRetryOtherEndpoint(error)) break
      }
    }
    throw failure
  }

  /** Opens a connection. Throws when the server does not have the requested attributes, or the database cannot be used. */
  async #open(endpoint: Endpoint): Promise<Client> {
    this.#closing.signal.throwIfAborted()
    const { account, options } = this
    const { address } = account
    const client = new Client(endpoint, account, this.#hasTimeouts ? Math.min(options.timeout, maxTimer) : undefined)
    this.#clients.add(client)
    client.once('end', () => this.#clients.delete(client))
    client.destroyAfter(address.connectTimeout)
    try {
      await client.connect()
      client.checkLogin()
      if (isWanted(await checkServer(client, address), address.targetSessionAttrs)) return client
      const hint = 'Try again, or use the address of another server'
      throw new PlantsError('unavailable', `${address.name} is not ${address.targetSessionAttrs} now`, { hint, retryable: true })
    } catch (error) {
      client.destroy()
      const failure = driverError(error)
      if (!this.#hasTimeouts || !isUnknownParameter(failure)) throw failure
      this.#hasTimeouts = false
      return this.#open(endpoint)
    } finally {
      client.destroyAfter(Infinity)
    }
  }

  #noteFailure(error: unknown): void {
    if (!(error instanceof PlantsError)) return
    const now = this.options.clock.now()
    const { failures, since, isReported } = this.#outage ?? { failures: 0, since: now, isReported: false }
    const reports = error.retryable && !isReported && now - since >= 1000
    this.#outage = { failures: failures + 1, error, since, isReported: isReported || reports }
    if (reports) this.options.onAway?.(error)
  }
}

/** milliseconds in which a working server cancels a statement after its timeout, or completes one that began just before the deadline */
const grace = 1000

export async function usingOnce<T>(address: PostgresAddress, options: OpenOptions, action: (client: Client) => Promise<T>): Promise<T> {
  const account = { address, login: await options.login(address) }
  const connections = new ConnectionPool(account, options)
  try {
    return await connections.use(connections.limits(), action)
  } catch (error) {
    throw explainDatabase(error, account)
  } finally {
    connections.close()
  }
}
