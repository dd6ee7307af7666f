/**
 * Connects to the servers of an address, and repeats calls that may succeed later.
 *
 * Each server has a pool of connections. The first server that accepts writes is used until a
 * connection to it fails. Then the next connection tries the other servers in their order, which is
 * all that happens at a failover. With `target_session_attrs=any`, the first server that answers is
 * used, which may be a standby.
 *
 * With `sslmode=prefer`, a server has two pools, one with TLS and one without. The pool without TLS
 * is used only if the server itself has said that it has no TLS. A full pool, or a server that is
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
import { isUnknownIssuer } from '../certificate-errors.js'
import type { CreateSystemContext } from '../credentials.js'
import { chooseRetryBudgetMs, findRetryPauseMs } from '../retry.js'
import type { PostgresAccess } from './address.js'
import { PostgresConnection, type Row } from './connection.js'
import { parseCopyRows } from './copy-text.js'
import { isLockTimeout, isPoolFull, lacksTls, raiseMaxHint, toPlantsError } from './explain.js'
import { createPool, createTlsOptions } from './pool.js'
import { waitUntilSignal } from './wait-until-signal.js'

/**
 * A lost connection can be replaced at once, so the first pause is short. A failover takes long, so
 * later pauses are longer.
 */
const backoff = { firstMs: 10, longestMs: 1000 }

type Action<T> = (connection: PostgresConnection) => Promise<T>

interface Server {
  host: PostgresHost
  pool: pg.Pool
  /**
   * True for the pool without TLS of a host. It is used only after the pool with TLS has failed
   * because the server has no TLS.
   */
  isFallback: boolean
}

export class PostgresDatabase {
  readonly #access: PostgresAccess
  /** All pools share this object, and each new connection reads it: see `#connectToServer`. */
  readonly #tls: ConnectionOptions
  #systemContext: ReturnType<CreateSystemContext> | undefined
  #servers: Server[]
  #hasConnected = false
  /** How many times in succession no server could be used. The second time is reported. */
  #failureCount = 0
  /**
   * Searches, counts and lists with a tag take at most half of the connections, because creates,
   * look-ups of tokens and `/ready` need one, too. All servers share these slots, so a failover
   * adds none.
   */
  readonly #scanSlots: Slots
  /** Changes leave one connection to reads, if there are several. */
  readonly #changeSlots: Slots

  constructor(options: PostgresAccess) {
    // The driver and the server take a timeout of 0 for none.
    const access = { ...options, timeoutMs: Math.max(1, options.timeoutMs) }
    const { hosts, sslmode, maxConnections } = access.address
    this.#access = access
    this.#tls = createTlsOptions(access)
    this.#scanSlots = new Slots(Math.max(1, Math.floor(maxConnections / 2)))
    this.#changeSlots = new Slots(Math.max(1, maxConnections - 1))
    this.#servers = hosts.flatMap((host) => {
      const tls = sslmode !== 'disable' && !host.host.startsWith('/') && this.#tls
      const server = { host, pool: createPool(host, tls, access), isFallback: false }
      if (!tls || sslmode !== 'prefer') return server
      return [server, { host, pool: createPool(host, false, access), isFallback: true }]
    })
    // Each call that waits adds a listener, and Node.js would warn of more than ten.
    setMaxListeners(0, access.runtime.getStopSignal())
  }

  /**
   * Calls `action` with a connection, and calls it again after a transient failure.
   *
   * @param mayRepeatCommit returns true if `action` may also be called again after a commit whose
   *   outcome is unknown
   */
  run<T>(action: Action<T>, mayRepeatCommit?: () => boolean): Promise<T> {
    return this.#retryWhileTransient(
      async () => this.#runOnClient(await this.#connectToAnyServer(), action),
      mayRepeatCommit,
    )
  }

  /**
   * Calls `action`, which changes something, as `run` does, with a connection for changes.
   *
   * @throws {PlantsError} `unavailable` if none of these became free within the timeout
   */
  change<T>(action: Action<T>, mayRepeatCommit?: () => boolean): Promise<T> {
    return this.#runInSlot(this.#changeSlots, 'changes', () => this.run(action, mayRepeatCommit))
  }

  /**
   * Calls `action`, which changes something, once. Only connecting is repeated after a transient
   * failure.
   */
  changeOnce<T>(action: Action<T>): Promise<T> {
    return this.#runInSlot(this.#changeSlots, 'changes', async () =>
      this.#runOnClient(await this.#retryWhileTransient(() => this.#connectToAnyServer()), action),
    )
  }

  get name(): string {
    return this.#access.address.name
  }

  read(select: string): Promise<Row[]> {
    return this.run((connection) => connection.read(select))
  }

  /**
   * Runs a query that may read all plants. At most half of the connections run such queries at
   * once.
   *
   * @throws {PlantsError} `unavailable` if none of these connections became free within the timeout
   */
  scan(select: string, signal?: AbortSignal): Promise<Row[]> {
    return this.#runInSlot(this.#scanSlots, 'searches', () => this.read(select), signal)
  }

  /** @param noun what the slots are for */
  async #runInSlot<T>(
    slots: Slots,
    noun: string,
    action: () => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    const { runtime, timeoutMs, address } = this.#access
    const signals = [runtime.getStopSignal(), ...(signal === undefined ? [] : [signal])]
    try {
      return await slots.run(action, { timeoutMs, signals })
    } catch (error) {
      if (!isTimeout(error)) throw error
      const message = `All connections for ${noun} at ${address.name} are in use`
      throw new PlantsError('unavailable', message, { hint: raiseMaxHint, cause: error })
    }
  }

  /**
   * Yields the rows of a query. Before the first rows, the query is repeated after a transient
   * failure: for example, a standby cancels a query that conflicts with a change from its primary
   * server.
   */
  async *streamRows(select: string): AsyncGenerator<Row[]> {
    const { chunks, first } = await this.#retryWhileTransient(async () => {
      const chunks = parseCopyRows(this.#copyOut(select), this.name)
      return { chunks, first: await chunks.next() }
    })
    try {
      if (first.done) return
      yield first.value
      yield* chunks
    } finally {
      await chunks.return(undefined)
    }
  }

  /** The connection is dropped after the copy, whose transaction is not ended. */
  async *#copyOut(select: string): AsyncGenerator<Buffer> {
    const client = await this.#connectToAnyServer()
    const connection = new PostgresConnection(client, this.#access)
    try {
      yield* connection.copyOut(select)
    } finally {
      client.release(true)
    }
  }

  /**
   * Calls `action` with the connection of a client. If the action fails, the connection is dropped,
   * because it may be lost, or in a transaction.
   */
  async #runOnClient<T>(client: pg.PoolClient, action: Action<T>): Promise<T> {
    const connection = new PostgresConnection(client, this.#access)
    const result = await action(connection).catch((error: unknown) => {
      client.release(true)
      throw error
    })
    client.release()
    return result
  }

  #retryWhileTransient<T>(action: () => Promise<T>, mayRepeatCommit = () => false): Promise<T> {
    const { runtime } = this.#access
    const startMs = runtime.now()
    let unknownOutcome: PlantsError | undefined
    // Without a further try, this throws the error that the caller sees. If an earlier try has an
    // unknown outcome, that is the error, because its change may be stored. Otherwise it is the
    // last error.
    const findPauseMs = (error: unknown, tries: number) => {
      if (!(error instanceof PlantsError)) throw error
      const elapsedMs = runtime.now() - startMs
      // A change waits for a lock for most of the timeout, so it has no time for another try.
      const hasWaited = isLockTimeout(error) && elapsedMs > this.#access.timeoutMs / 2
      const isTransient = error.isRetryable && !hasWaited
      const mayRetry = error.isOutcomeUnknown ? mayRepeatCommit() : isTransient
      if (mayRetry && error.isOutcomeUnknown) unknownOutcome = error
      const retryBudgetMs = chooseRetryBudgetMs(this.#access, this.#hasConnected)
      const pauseMs = findRetryPauseMs(backoff, { tries, elapsedMs, retryBudgetMs }, runtime)
      if (!mayRetry || pauseMs === undefined) throw unknownOutcome ?? error
      return pauseMs
    }
    return retry(action, { findPauseMs, getSignals: () => [runtime.getStopSignal()] })
  }

  /**
   * Returns a connection to the first server that can be used.
   *
   * @throws {PlantsError} if no server can be used: the first transient failure of a server, after
   *   which the call is repeated, or otherwise the failure of the last server
   */
  async #connectToAnyServer(): Promise<pg.PoolClient> {
    const signal = this.#access.runtime.getStopSignal()
    let failure: PlantsError | undefined
    let lastError: unknown
    for (const server of this.#servers) {
      if (server.isFallback && !lacksTls(lastError)) continue
      try {
        const client = await this.#connectToServer(server)
        this.#preferServer(server)
        return client
      } catch (error) {
        signal.throwIfAborted()
        lastError = error
        const serverFailure = toPlantsError(error, this.#access)
        this.#assertNextServerMayBeTried(error, serverFailure)
        if (!failure?.isRetryable) failure = serverFailure
      }
    }
    this.#failureCount += 1
    const retryBudgetMs = chooseRetryBudgetMs(this.#access, this.#hasConnected)
    if (this.#failureCount === 2) this.#access.onUnreachable?.(failure, retryBudgetMs)
    throw assertDefined(failure)
  }

  /** Throws if the failure of one server means that the next server must not be tried. */
  #assertNextServerMayBeTried(error: unknown, failure: PlantsError): void {
    if (isPoolFull(error)) throw failure
    // A transient failure of the next server would be thrown instead of this failure, so nobody
    // would learn that the password is wrong.
    if (failure.kind !== 'unauthorized') return
    if (!this.#hasConnected) throw failure
    // A running service would report `unauthorized` to its caller, whose token is valid.
    throw new PlantsError('accessDenied', failure.message, { hint: failure.hint, cause: failure })
  }

  /**
   * If the certificates of Node.js do not verify the server, those of the system are trusted, too.
   * They are loaded only then, because to load them takes 50 ms.
   */
  async #connectToServer(server: Server): Promise<pg.PoolClient> {
    const { secureContext } = this.#tls
    try {
      return await this.#acquireClient(server)
    } catch (error) {
      if (!isUnknownIssuer(error) || secureContext !== undefined) throw error
      this.#systemContext ??= this.#access.login.createSystemContext?.()
      const systemContext = await this.#systemContext
      if (systemContext === undefined) throw error
      this.#tls.secureContext = systemContext
      return this.#acquireClient(server)
    }
  }

  /**
   * A signal ends the wait for a connection even if the server sends nothing, or never completes
   * the login.
   */
  async #acquireClient({ pool }: Server): Promise<pg.PoolClient> {
    const signal = this.#access.runtime.getStopSignal()
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

  #preferServer(server: Server): void {
    const furtherServers = this.#servers.filter(({ host }) => host !== server.host)
    this.#servers = [{ ...server, isFallback: false }, ...furtherServers]
    this.#hasConnected = true
    if (this.#failureCount > 1) this.#access.onUnreachable?.(undefined)
    this.#failureCount = 0
  }

  async close(): Promise<void> {
    for (const { pool } of this.#servers) if (!pool.ending) void pool.end()
  }
}
