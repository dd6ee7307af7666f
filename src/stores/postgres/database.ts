/**
 * Connections to the servers of an address. Each has a pool, and the first one that accepts writes
 * is used until a connection to it fails, so that a failover takes no more than the next
 * connection. With `target_session_attrs=any`, it is the first one that answers, which may be a
 * standby. A call is repeated after whatever may pass, until its timeout.
 *
 * With `sslmode=prefer` a server has two pools, one with TLS and one without it, and the first
 * login chooses: neither a full pool nor a server that is away may lead to a connection without
 * TLS.
 */
import { setMaxListeners } from 'node:events'
import type { ConnectionOptions } from 'node:tls'
import type pg from 'pg'
import { assertDefined, PlantsError } from '../../errors.js'
import { retry } from '../../platform/retry.js'
import { isTimeout } from '../../platform/runtime.js'
import { Slots } from '../../platform/slots.js'
import type { PostgresHost } from '../address.js'
import type { CreateSystemContext } from '../credentials.js'
import { chooseRetryBudgetMs, findRetryPauseMs } from '../retry.js'
import { isUnknownIssuer } from '../unknown-issuer.js'
import type { Access } from './address.js'
import { PostgresConnection, type Row, waitUntilSignal } from './connection.js'
import { isPoolFull, lacksTls, ReadOnlyServerError, raiseMax, toPlantsError } from './errors.js'
import { createPool, createTlsOptions } from './pool.js'

/** A failover takes some seconds, a lost connection none. */
const backoff = { firstMs: 10, longestMs: 1000 }

type Action<T> = (connection: PostgresConnection) => Promise<T>
type Parse<T> = (chunks: AsyncIterable<Buffer>) => AsyncGenerator<T>

interface ScanOptions {
  maxRows?: number
  signal?: AbortSignal | undefined
}

interface Server {
  host: PostgresHost
  pool: pg.Pool
  /** Tried after the one before, of the same host, if that has said that it has no TLS. */
  isFallback: boolean
}

export class PostgresDatabase {
  readonly #access: Access
  /** All pools share them, and each new connection reads them. */
  readonly #tls: ConnectionOptions
  #systemContext: ReturnType<CreateSystemContext> | undefined
  #servers: Server[]
  #wasConnected = false
  /** Times in a row that no server could be used. The second is reported. */
  #failures = 0
  /**
   * Searches, counts and lists with a tag take at most half of the connections, because creates,
   * look-ups of tokens and `/ready` need one, too. All servers share these slots, so a failover
   * adds none.
   */
  readonly #scanSlots: Slots

  constructor(given: Access) {
    // To the driver and the server, 0 is no limit.
    const access = { ...given, timeoutMs: Math.max(1, given.timeoutMs) }
    const { hosts, sslmode, max } = access.address
    this.#access = access
    this.#tls = createTlsOptions(access)
    this.#scanSlots = new Slots(Math.max(1, Math.floor(max / 2)))
    this.#servers = hosts.flatMap((host) => {
      const tls = sslmode !== 'disable' && !host.host.startsWith('/') && this.#tls
      const server = { host, pool: createPool(host, tls, access), isFallback: false }
      if (!tls || sslmode !== 'prefer') return server
      return [server, { host, pool: createPool(host, false, access), isFallback: true }]
    })
    setMaxListeners(0, access.runtime.handleSignals()) // Each call that waits adds one.
  }

  /**
   * Calls `action` again after a failure that may pass, or after a commit whose outcome is unknown
   * if it may.
   */
  run<T>(action: Action<T>, mayRepeatCommit?: () => boolean): Promise<T> {
    return this.#retry(async () => this.#use(await this.#connect(), action), mayRepeatCommit)
  }

  async runOnce<T>(action: Action<T>): Promise<T> {
    return this.#use(await this.#retry(() => this.#connect()), action)
  }

  get name(): string {
    return this.#access.address.name
  }

  read(select: string, maxRows = 1): Promise<Row[]> {
    return this.run((connection) => connection.read(select, maxRows))
  }

  /**
   * Reads what may take a scan of all plants. At most half of the connections do so at once.
   *
   * @throws {PlantsError} `unavailable` if the others take longer than the timeout
   */
  async scan(select: string, { maxRows = 1, signal }: ScanOptions = {}): Promise<Row[]> {
    const { runtime, timeoutMs, address } = this.#access
    const signals = [runtime.handleSignals(), ...(signal === undefined ? [] : [signal])]
    try {
      return await this.#scanSlots.run(() => this.read(select, maxRows), { timeoutMs, signals })
    } catch (error) {
      if (!isTimeout(error)) throw error
      const message = `All connections for searches at ${address.name} are in use`
      throw new PlantsError('unavailable', message, { hint: raiseMax, cause: error })
    }
  }

  /**
   * Yields what `parse` makes of the rows of a query in the text format of COPY. Until it has
   * yielded something, the query is repeated after a failure that may pass: a standby cancels it if
   * it is in the way of a change that the standby has to make.
   */
  async *streamRows<T>(select: string, parse: Parse<T>): AsyncGenerator<T> {
    const { items, first } = await this.#retry(async () => {
      const items = parse(this.#copyOut(select))
      return { items, first: await items.next() }
    })
    try {
      if (first.done) return
      yield first.value
      yield* items
    } finally {
      await items.return(undefined)
    }
  }

  /** Calls `collect` with all rows of a query, again from the first one after such a failure. */
  collectRows<T>(
    select: string,
    collect: (chunks: AsyncIterable<Buffer>) => Promise<T>,
  ): Promise<T> {
    return this.#retry(() => collect(this.#copyOut(select)))
  }

  /** On a connection of its own. */
  async *#copyOut(select: string): AsyncGenerator<Buffer> {
    const client = await this.#connect()
    const connection = new PostgresConnection(client, this.#access)
    try {
      yield* connection.copyOut(select)
    } finally {
      await connection.cancel()
      client.release(true)
    }
  }

  /** A connection that failed may be lost, in a transaction, or read-only: it is dropped. */
  async #use<T>(client: pg.PoolClient, action: Action<T>): Promise<T> {
    const connection = new PostgresConnection(client, this.#access)
    const result = await action(connection).catch(async (error: unknown) => {
      await connection.cancel()
      client.release(true)
      throw error
    })
    client.release()
    return result
  }

  #retry<T>(action: () => Promise<T>, mayRepeatCommit = () => false): Promise<T> {
    const { runtime } = this.#access
    const startMs = runtime.now()
    let unknownOutcome: PlantsError | undefined
    const findPauseMs = (error: unknown, tries: number) => {
      if (!(error instanceof PlantsError)) throw error
      const mayPass = error.isRetryable && !(error instanceof ReadOnlyServerError)
      const mayRepeat = error.isOutcomeUnknown ? mayRepeatCommit() : mayPass
      if (mayRepeat && error.isOutcomeUnknown) unknownOutcome = error
      const elapsedMs = runtime.now() - startMs
      const retryBudgetMs = chooseRetryBudgetMs(this.#access, this.#wasConnected)
      const pauseMs = findRetryPauseMs(backoff, { tries, elapsedMs, retryBudgetMs }, runtime)
      if (!mayRepeat || pauseMs === undefined) throw unknownOutcome ?? error
      return pauseMs
    }
    return retry(action, { findPauseMs, getSignals: () => [runtime.handleSignals()] })
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
        const error = toPlantsError(reason, this.#access)
        this.#assertOtherMayServe(reason, error)
        if (!failure?.isRetryable) failure = error
      }
    }
    this.#failures += 1
    const retryBudgetMs = chooseRetryBudgetMs(this.#access, this.#wasConnected)
    if (this.#failures === 2) this.#access.onUnreachable?.(failure, retryBudgetMs)
    throw assertDefined(failure)
  }

  /** Throws an error for which the next server is not tried. */
  #assertOtherMayServe(reason: unknown, error: PlantsError): void {
    if (isPoolFull(reason)) throw error
    // At another server, a wrong password would look like a server that is away.
    if (error.kind !== 'unauthorized') return
    if (!this.#wasConnected) throw error
    // A service would seem to reject its caller.
    throw new PlantsError('accessDenied', error.message, { hint: error.hint, cause: error })
  }

  /** Trusts the certificates of the system, too, where those of Node.js are not enough. */
  async #connectTo(server: Server): Promise<pg.PoolClient> {
    const { secureContext } = this.#tls
    try {
      return await this.#takeClient(server)
    } catch (error) {
      if (!isUnknownIssuer(error) || secureContext !== undefined) throw error
      this.#systemContext ??= this.#access.login.createSystemContext?.()
      const systemContext = await this.#systemContext
      if (systemContext === undefined) throw error
      this.#tls.secureContext = systemContext
      return this.#takeClient(server)
    }
  }

  /** A server that says nothing, or does not come to an end, does not delay a signal. */
  async #takeClient({ pool }: Server): Promise<pg.PoolClient> {
    const signal = this.#access.runtime.handleSignals()
    const connecting = pool.connect()
    try {
      return await waitUntilSignal(connecting, signal)
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
    if (this.#failures > 1) this.#access.onUnreachable?.(undefined)
    this.#failures = 0
  }

  async close(): Promise<void> {
    for (const { pool } of this.#servers) if (!pool.ending) void pool.end()
  }
}
