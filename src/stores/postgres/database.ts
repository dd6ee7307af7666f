/**
 * Connects to the servers of an address, and repeats calls that may succeed later.
 *
 * Each server has a pool of connections. The first server that accepts writes is used until a
 * connection to it fails; then the next connection tries the servers in their order again. So a
 * failover costs no more than that. With `target_session_attrs=any`, the first server that answers
 * is used, which may be a standby.
 *
 * With `sslmode=prefer`, a server has two pools, one with TLS and one without. The second is tried
 * only if the server itself has said that it has no TLS. A full pool, or a server that is
 * unreachable, must never lead to a connection without TLS, which an attacker could then force.
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
import { PostgresConnection, type Row } from './connection.js'
import {
  isLockTimeout,
  isPoolFull,
  lacksTls,
  ReadOnlyServerError,
  raiseMax,
  toPlantsError,
} from './errors.js'
import { createPool, createTlsOptions } from './pool.js'
import { waitUntilSignal } from './wait-until-signal.js'

/**
 * A lost connection can be replaced at once, so the first pause is short; a failover takes long.
 */
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
  /**
   * True for the pool without TLS of a host. It is tried after the pool with TLS, and only if that
   * has failed because the server has no TLS.
   */
  isFallback: boolean
}

export class PostgresDatabase {
  readonly #access: Access
  /** All pools share this object, and each new connection reads it: see `#connectTo`. */
  readonly #tls: ConnectionOptions
  #systemContext: ReturnType<CreateSystemContext> | undefined
  #servers: Server[]
  #wasConnected = false
  /** How many times in a row no server could be used. The second time is reported. */
  #failureCount = 0
  /**
   * Searches, counts and lists with a tag take at most half of the connections, because creates,
   * look-ups of tokens and `/ready` need one, too. All servers share these slots, so a failover
   * adds none.
   */
  readonly #scanSlots: Slots

  constructor(options: Access) {
    // The driver and the server take a timeout of 0 for none.
    const access = { ...options, timeoutMs: Math.max(1, options.timeoutMs) }
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
    // Each call that waits adds a listener, and Node.js would warn of more than ten.
    setMaxListeners(0, access.runtime.handleSignals())
  }

  /**
   * Calls `action`, and calls it again after a failure that may pass.
   *
   * @param mayRepeatCommit returns true if `action` may also be called again after a commit whose
   *   outcome is unknown
   */
  run<T>(action: Action<T>, mayRepeatCommit?: () => boolean): Promise<T> {
    return this.#retry(async () => this.#use(await this.#connect(), action), mayRepeatCommit)
  }

  /** Only connecting is repeated. `action` is called once, on a connection. */
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
   * @throws {PlantsError} `unavailable` if no connection became free for it within the timeout
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

  /**
   * Calls `collect` with all rows of a query. After a failure that may pass, `collect` is called
   * again, with all rows from the first one on.
   */
  collectRows<T>(
    select: string,
    collect: (chunks: AsyncIterable<Buffer>) => Promise<T>,
  ): Promise<T> {
    return this.#retry(() => collect(this.#copyOut(select)))
  }

  /**
   * The connection is dropped after the copy, because its client no longer limits what the server
   * sends: see `LimitedClient.endLimit`.
   */
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

  /** A connection whose action has failed is dropped: it may be lost, or in a transaction. */
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
    // Without another try, this throws: the error of an earlier try may be the one to report.
    const findPauseMs = (error: unknown, tries: number) => {
      if (!(error instanceof PlantsError)) throw error
      const elapsedMs = runtime.now() - startMs
      // A change waits for a lock for most of the timeout, so it has no time for another try.
      const hasWaited = isLockTimeout(error) && elapsedMs > this.#access.timeoutMs / 2
      const isFinal = error instanceof ReadOnlyServerError || hasWaited
      const mayPass = error.isRetryable && !isFinal
      const mayRepeat = error.isOutcomeUnknown ? mayRepeatCommit() : mayPass
      if (mayRepeat && error.isOutcomeUnknown) unknownOutcome = error
      const retryBudgetMs = chooseRetryBudgetMs(this.#access, this.#wasConnected)
      const pauseMs = findRetryPauseMs(backoff, { tries, elapsedMs, retryBudgetMs }, runtime)
      if (!mayRepeat || pauseMs === undefined) throw unknownOutcome ?? error
      return pauseMs
    }
    return retry(action, { findPauseMs, getSignals: () => [runtime.handleSignals()] })
  }

  /**
   * Returns a connection to the first server that can be used.
   *
   * @throws {PlantsError} if there is none: the failure of a server that may pass, if there is one,
   *   because the call is then repeated
   */
  async #connect(): Promise<pg.PoolClient> {
    const signal = this.#access.runtime.handleSignals()
    let failure: PlantsError | undefined
    let lastError: unknown
    for (const server of this.#servers) {
      if (server.isFallback && !lacksTls(lastError)) continue
      try {
        const client = await this.#connectTo(server)
        this.#choose(server)
        return client
      } catch (error) {
        signal.throwIfAborted()
        lastError = error
        const serverFailure = toPlantsError(error, this.#access)
        this.#assertOtherMayServe(error, serverFailure)
        if (!failure?.isRetryable) failure = serverFailure
      }
    }
    this.#failureCount += 1
    const retryBudgetMs = chooseRetryBudgetMs(this.#access, this.#wasConnected)
    if (this.#failureCount === 2) this.#access.onUnreachable?.(failure, retryBudgetMs)
    throw assertDefined(failure)
  }

  /** Throws if the failure of one server means that the next one must not be tried. */
  #assertOtherMayServe(error: unknown, failure: PlantsError): void {
    if (isPoolFull(error)) throw failure
    // The last error of several servers is thrown. So if the next server were unreachable, nobody
    // would learn that the password is wrong.
    if (failure.kind !== 'unauthorized') return
    if (!this.#wasConnected) throw failure
    // A service that has been running would pass `unauthorized` on to its caller, whose token is
    // right.
    throw new PlantsError('accessDenied', failure.message, { hint: failure.hint, cause: failure })
  }

  /**
   * If the certificates of Node.js are not enough, those of the system are trusted, too. They are
   * loaded only then, because that takes 50 ms.
   */
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

  /** A signal ends this even if the server says nothing, or never completes the login. */
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
    const furtherServers = this.#servers.filter(({ host }) => host !== server.host)
    this.#servers = [{ ...server, isFallback: false }, ...furtherServers]
    this.#wasConnected = true
    if (this.#failureCount > 1) this.#access.onUnreachable?.(undefined)
    this.#failureCount = 0
  }

  async close(): Promise<void> {
    for (const { pool } of this.#servers) if (!pool.ending) void pool.end()
  }
}
