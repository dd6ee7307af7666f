import { setMaxListeners } from 'node:events'
import pg from 'pg'
import { backoff, isTimeout, maxTimer, timeIsOver, wait, within } from '../../platform/clock.js'
import { PlantsError, systemCode } from '../../platform/errors.js'
import { Semaphore } from '../../platform/semaphore.js'
import type { PostgresAddress } from '../address.js'
import type { OpenOptions } from '../store.js'
import { Client, type Endpoint, endpointsOf } from './client.js'
import {
  ConnectionError,
  driverError,
  explainDatabase,
  isFinal,
  isReadOnly,
  isRefusal,
  isTransient,
  isUnknownParameter,
  mayEnterOtherwise,
} from './errors.js'
import type { Account } from './login.js'
import { checkServer, isWanted } from './server-state.js'
import type { Row } from './sql.js'

/** How long a call may take, and what ends it before. */
export interface Limits {
  /** as the clock has it; for ever when it is Infinity */
  deadline: number
  signal?: AbortSignal | undefined
}

/** A database on one server or on several: connections to the first of them that is as it was asked for, kept until they are lost. */
export class ConnectionPool {
  readonly account: Account
  readonly options: OpenOptions
  /** for each server, a pool of connections with TLS and one without, in the order in which they are tried */
  readonly #servers: pg.Pool[][]
  readonly #clients = new Set<Client>()
  /** whether the server ends by itself what takes too long; PgBouncer does not let that be asked for */
  #hasTimeouts = true
  /** where the last connection was made */
  #current: pg.Pool | undefined
  /** when no connection could be made for the first time since one could, and whether that was reported */
  #awaySince: number | undefined
  #isAway = false
  readonly #closing = new AbortController()
  /** why there was no connection the last time that one was tried */
  #failure: PlantsError | undefined
  /** tries to connect that have failed, one after the other */
  #failures = 0
  /** for connections that are lent, or being made for somebody */
  readonly #places: Semaphore

  constructor(account: Account, options: OpenOptions) {
    setMaxListeners(0, options.clock.signal, this.#closing.signal) // each call listens to them
    this.account = account
    this.options = options
    this.#places = new Semaphore(this.size)
    const { hosts, targetSessionAttrs } = account.address
    const passes = targetSessionAttrs === 'prefer-standby' ? (['standby', 'any'] as const) : [targetSessionAttrs]
    this.#servers = passes.flatMap((attributes) =>
      hosts.map((host) => endpointsOf(host, account.address).map((endpoint) => this.#poolOf(endpoint, attributes))),
    )
  }

  /** how many connections there can be */
  get size(): number {
    return this.account.address.max
  }

  /** Those of a call that begins now. */
  limits(): Limits {
    const { clock, timeout } = this.options
    return { deadline: clock.now() + timeout, signal: clock.signal }
  }

  /** Runs a statement that can be run twice. */
  query(statement: pg.QueryConfig): Promise<Row[]> {
    return this.run((client) => client.ask(statement))
  }

  /** Uses a connection for what can be done twice. */
  run<T>(action: (client: Client) => Promise<T>): Promise<T> {
    const limits = this.limits()
    return this.retry(limits, () => this.use(limits, action, limits.deadline))
  }

  /**
   * Does what can be done twice, again for as long as its failures are transient.
   *
   * @throws {PlantsError} what failed last, and what to do about it
   */
  async retry<T>({ deadline, signal }: Limits, action: () => Promise<T>): Promise<T> {
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

  /** Waits longer from time to time, up to a second, and not as long as others. */
  pause(tries: number, signal?: AbortSignal): Promise<void> {
    return wait(backoff(tries, { base: 10, max: 1000, random: this.options.clock.random }), signal ? [signal] : [])
  }

  /**
   * Uses a connection that nobody else uses meanwhile.
   *
   * @param limits until when it may wait for one
   * @param end until when the action may take
   * @throws what the action throws; what `driverError` makes of a connection that could not be made; `PlantsError` when all connections were
   * busy until the deadline
   */
  async use<T>(limits: Limits, action: (client: Client) => Promise<T>, end = Infinity): Promise<T> {
    const client = await this.lease(limits)
    const done = this.destroyAt(end, client)
    let isBroken = false
    try {
      return await action(client)
    } catch (error) {
      isBroken = !(error instanceof PlantsError) && (!isRefusal(error) || isReadOnly(error))
      throw error
    } finally {
      done()
      this.giveBack(client, isBroken)
    }
  }

  /**
   * Gives a connection up when the time is over, and the server has not ended by itself what it does there.
   *
   * @returns what is called when it is done
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

  /** A connection, until it is given back. Throws why there was none until the deadline. */
  async lease({ deadline, signal }: Limits): Promise<Lease> {
    const signals = [this.#closing.signal, signal].filter((each) => each !== undefined)
    for (const each of signals) each.throwIfAborted()
    const left = Math.max(0, deadline - this.options.clock.now())
    try {
      return await within(left, signals, async (late) => {
        await this.#places.enter(late)
        return this.#connectUntil(late)
      })
    } catch (error) {
      throw isTimeout(error) ? this.late() : error
    }
  }

  /** @param isBroken whether it is of no more use */
  giveBack(client: Lease, isBroken: boolean): void {
    // One that was given up, or whose action has ended in the middle of a transaction, is of no more use either.
    const isOver = isBroken || client.connection.stream.destroyed || client.getTransactionStatus() !== 'I'
    if (isOver) client.destroy()
    client.release(isOver)
    this.#places.leave()
  }

  /** A connection; one that comes too late goes back. */
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
        (client) => this.giveBack(client, false),
        () => this.#places.leave(),
      )
      throw error
    }
  }

  /** What is reported when there was no connection until the deadline. */
  late(): unknown {
    if (this.#failure) return this.#failure
    if (!this.#current) return explainDatabase(new ConnectionError(timeIsOver()), this.account)
    const message = `All connections to ${this.account.address.name} are busy`
    return new PlantsError('unavailable', message, { hint: 'Try again, or allow more of them: ?max=', retryable: true })
  }

  /** Goes through the servers from the last one that was connected to. Throws what says most of why none is there. */
  async #connect(): Promise<Lease> {
    if (this.#failures > 0) await this.pause(this.#failures, this.#closing.signal) // all who wait share the tries
    let failure: unknown
    for (const pools of this.#current ? [[this.#current], ...this.#servers] : this.#servers) {
      try {
        return await this.#connectTo(pools)
      } catch (error) {
        // One that may come back says more than one that will not. Who is not let in by one is not tried at others, as libpq has it.
        if (failure === undefined || isTransient(error) > isTransient(failure) || isFinal(error)) failure = error
        if (isFinal(error)) break
      }
    }
    this.#noteFailure(explainDatabase(failure, this.account))
    throw failure
  }

  /** Tries the ways to a server. Throws what was wrong with the first that the server has. */
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
        if (!mayEnterOtherwise(error)) break
      }
    }
    throw failure
  }

  async #connectBy(pool: pg.Pool): Promise<Lease> {
    try {
      return (await pool.connect()) as Lease // of the class that the pool was given
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
    return pool.on('error', () => undefined) // an idle connection was lost: there will be another
  }

  /** Checks a new connection. Throws when it is not to a server that was asked for, or leads to a database that cannot be used. */
  async #verify(client: Client, attributes: PostgresAddress['targetSessionAttrs']): Promise<void> {
    const { address } = this.account
    const timer = setTimeout(() => client.destroy(timeIsOver() as Error), address.connectTimeout)
    try {
      client.checkLogin()
      if (isWanted(await checkServer(client, address, this.options), attributes)) return
      const hint = 'Try again, or name another server'
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
    this.#awaySince = undefined
    if (this.#isAway) this.options.onAway?.(undefined)
    this.#isAway = false
  }

  #noteFailure(failure: unknown): void {
    if (!(failure instanceof PlantsError)) return
    this.#failure = failure
    this.#failures += 1
    const now = this.options.clock.now()
    this.#awaySince ??= now
    if (!failure.retryable || this.#isAway || now - this.#awaySince < 1000) return
    this.#isAway = true
    this.options.onAway?.(failure)
  }
}

type Lease = Client & pg.PoolClient

/** milliseconds in which a server that works has ended a statement whose time was over */
const grace = 1000

/** Does one thing in a database. */
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
