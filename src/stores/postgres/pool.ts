import { once, setMaxListeners } from 'node:events'
import type pg from 'pg'
import { backoff, isTimeout, maxTimer, timeIsOver, wait, within } from '../../platform/clock.js'
import { PlantsError, systemCode } from '../../platform/errors.js'
import { Semaphore } from '../../platform/semaphore.js'
import type { PostgresAddress, PostgresHost } from '../common/address.js'
import type { OpenOptions } from '../common/store.js'
import { Client, type Endpoint } from './postgres-client.js'
import {
  type Account,
  ConnectionError,
  driverError,
  explainDatabase,
  isFinal,
  isTransient,
  isUnknownParameter,
  LostCommit,
  mayRetryWithoutTls,
  unknownCommit,
} from './postgres-errors.js'
import { fsyncs, type Row } from './sql.js'

interface CallLimits {
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
 * Connections to the first server of a database with the requested `target_session_attrs`, kept until they are lost.
 * The pool of the driver has one server, and no signal or deadline for those that wait.
 */
export class ConnectionPool {
  readonly account: Account
  readonly options: OpenOptions
  /** one permit for each connection that is leased or being established */
  readonly #permits: Semaphore
  readonly #clients = new Set<Client>()
  readonly #idle: Client[] = []
  #current: PostgresHost | undefined
  /** whether the server cancels statements on timeout; PgBouncer does not accept that parameter */
  #hasTimeouts = true
  #outage: Outage | undefined
  readonly #closing = new AbortController()

  constructor(account: Account, options: OpenOptions) {
    setMaxListeners(0, options.clock.signal, this.#closing.signal) // each call adds a listener
    this.account = account
    this.options = options
    this.#permits = new Semaphore(this.size)
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

  run<T>(action: (client: Client, earlier: EarlierTries) => Promise<T>, limits = this.limits()): Promise<T> {
    return this.retry(limits, (earlier) => this.use(limits, (client) => action(client, earlier)))
  }

  /** Retries transient errors. Throws `PlantsError` for the last one; `unknownOutcome` if a commit was lost. */
  async retry<T>({ deadline, signal }: CallLimits, action: (earlier: EarlierTries) => Promise<T>): Promise<T> {
    let isLost = false
    for (let tries = 0; ; tries += 1) {
      try {
        return await action({ tries, isLost })
      } catch (error) {
        isLost ||= error instanceof LostCommit
        const pause = this.#backoff(tries)
        const isOver = signal?.aborted === true || this.options.clock.now() + pause >= deadline || !isTransient(error)
        if (isOver && isLost) throw unknownCommit(this.account.address, error)
        signal?.throwIfAborted()
        if (isOver) throw explainDatabase(error, this.account)
        await this.#pause(pause, signal)
      }
    }
  }

  #backoff(failures: number): number {
    return backoff(failures, { base: 10, max: 1000, random: this.options.clock.random })
  }

  async #pause(milliseconds: number, signal = this.#closing.signal): Promise<void> {
    await wait(milliseconds, [this.#closing.signal, signal]).catch(() => undefined) // `lease` throws the reason
  }

  async use<T>(limits: CallLimits, action: (client: Client) => Promise<T>): Promise<T> {
    const client = await this.lease(limits)
    this.setDeadline(client, limits.deadline)
    try {
      return await action(client)
    } finally {
      this.release(client)
    }
  }

  /** Sets when to destroy a connection whose statement the server has not cancelled; by default, after the timeout. */
  setDeadline(client: Client, deadline = this.limits().deadline): void {
    client.destroyAfter(Math.max(0, deadline - this.options.clock.now()) + grace)
  }

  close(): void {
    if (this.#closing.signal.aborted) return
    this.#closing.abort(new PlantsError('unavailable', `${this.account.address.name} is closed`))
    for (const client of this.#idle) void client.end()
    for (const client of this.#clients) client.destroy()
  }

  /** Throws the reason why there was no connection before the deadline. */
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
    return new PlantsError('unavailable', message, {
      hint: 'Try again, or allow more connections: ?max=',
      retryable: true,
    })
  }

  /** Releases a connection that is established after `late` aborts. */
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

  async #connect(): Promise<Client> {
    if (this.#outage) await this.#pause(this.#backoff(this.#outage.failures)) // waiting calls share the attempts
    let failure: unknown
    for (const host of this.#current ? [this.#current, ...this.account.address.hosts] : this.account.address.hosts) {
      try {
        const client = await this.#connectTo(host)
        this.#current = host
        if (this.#outage?.isReported) this.options.onAway?.(undefined)
        this.#outage = undefined
        return client
      } catch (error) {
        // A transient error is more informative than a permanent one. Like libpq, a rejected login is not tried at
        // other servers.
        if (failure === undefined || isTransient(error) > isTransient(failure) || isFinal(error)) failure = error
        if (isFinal(error)) break
      }
    }
    this.#noteFailure(explainDatabase(failure, this.account))
    throw failure
  }

  /** With sslmode=prefer, also tries to connect without TLS, like libpq. */
  async #connectTo(host: PostgresHost): Promise<Client> {
    const { sslmode } = this.account.address
    const usesTls = sslmode !== 'disable' && !host.host.startsWith('/')
    try {
      return await this.#open({ ...host, usesTls })
    } catch (error) {
      if (!(usesTls && sslmode === 'prefer' && mayRetryWithoutTls(error))) throw error
      return this.#open({ ...host, usesTls: false }).catch((other: unknown) => {
        throw systemCode(error) === 'NO_TLS' ? other : error
      })
    }
  }

  async #open(endpoint: Endpoint): Promise<Client> {
    this.#closing.signal.throwIfAborted()
    const { account, options } = this
    const client = new Client(endpoint, account, this.#hasTimeouts ? Math.min(options.timeout, maxTimer) : undefined)
    this.#clients.add(client)
    client.once('end', () => this.#clients.delete(client))
    client.destroyAfter(account.address.connectTimeout)
    try {
      await client.open()
      await checkServer(client, account.address)
      return client
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
    const reports = error.retryable && !isReported && now - since >= reportAfter
    this.#outage = { failures: failures + 1, error, since, isReported: isReported || reports }
    if (reports) this.options.onAway?.(error)
  }
}

/**
 * milliseconds in which a working server cancels a statement after its timeout, or completes one that began just before
 * the deadline
 */
const grace = 1000

/** milliseconds that a database may be away before that is reported: a user should not wonder for a second */
const reportAfter = 300

export async function usingOnce<T>(
  address: PostgresAddress,
  options: OpenOptions,
  action: (client: Client) => Promise<T>,
): Promise<T> {
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

/**
 * Returns the version of the server. Throws `unavailable` without the requested `target_session_attrs` or UTF8, and an
 * error of the server if fsync is off.
 */
export async function checkServer(client: Client, address: PostgresAddress): Promise<string> {
  const { name, targetSessionAttrs } = address
  const [[version, encoding, readOnly, standby] = []] = await client.ask({ text: state })
  if (encoding !== 'UTF8') {
    const hint = `Create one that can: createdb --encoding UTF8 --template template0 NAME`
    throw new PlantsError('unavailable', `${name} has the encoding ${encoding}, which cannot store every character`, {
      hint,
    })
  }
  // https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNECT-TARGET-SESSION-ATTRS
  const isStandby = standby === 't'
  const isWanted = { any: true, primary: !isStandby, 'read-write': !isStandby && readOnly !== 'on' }
  if (isWanted[targetSessionAttrs]) return version ?? ''
  client.destroy()
  const hint = 'Try again, or use the address of another server'
  throw new PlantsError('unavailable', `${name} is not ${targetSessionAttrs} now`, { hint, retryable: true })
}

const settings = ['server_version', 'server_encoding', 'transaction_read_only']
const state = `SELECT ${settings.map((name) => `pg_catalog.current_setting('${name}', true)`).join()}, pg_catalog.pg_is_in_recovery(), ${fsyncs}`
