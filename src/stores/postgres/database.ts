/**
 * Connections to the servers of an address. Each server has a pool, and the pools are tried in the order of the address:
 * the first server that accepts writes is used until a connection to it fails, so that a failover takes no more than the
 * next connection. A call is repeated after whatever may pass, until its timeout.
 *
 * With `sslmode=prefer` a server has two pools, one with TLS and one without it, and the first login chooses: neither a
 * pool that is full later nor a server that is away may lead to a connection without TLS.
 */
import { setMaxListeners } from 'node:events'
import pg from 'pg'
import { must, PlantsError } from '../../platform/errors.js'
import { retrying } from '../../platform/runtime.js'
import { isLoopback } from '../../platform/urls.js'
import type { PostgresAddress, PostgresHost } from '../common/address.js'
import { nextPause, patienceOf } from '../common/retry-policy.js'
import { Connection } from './connection.js'
import { type Account, explained, isPoolFull, refusesTls } from './errors.js'
import type { PostgresOptions } from './options.js'

interface Server {
  /** In the order in which they are tried. */
  pools: pg.Pool[]
  /** The pool of the first login. */
  chosen?: pg.Pool
}

type Action<T> = (connection: Connection) => Promise<T>

export class PostgresDatabase {
  readonly options: PostgresOptions
  readonly #account: Account
  readonly #servers: Server[]
  readonly #inUse = new Set<pg.PoolClient>()
  /** The index of the server that is tried first. */
  #current = 0
  #wasConnected = false
  /** Why the last attempt to connect failed. */
  #failure: PlantsError | undefined
  #isReportedAway = false

  constructor(address: PostgresAddress, options: PostgresOptions) {
    this.options = options
    this.#account = { address, login: options.login }
    this.#servers = address.hosts.map((host) => ({
      pools: waysTo(host, address).map((usesTls) => newPool(host, usesTls, this.#account, options)),
    }))
    setMaxListeners(0, options.runtime.handleSignals()) // Each call that waits adds one.
  }

  /**
   * Calls `action` with a connection, and again after a failure that may pass, until the timeout.
   *
   * @param mayRepeatCommit whether to do so even if a commit may have been made; asked when that is unknown
   */
  run<T>(action: Action<T>, mayRepeatCommit?: () => boolean): Promise<T> {
    return this.#retry(async () => this.#use(await this.#connect(), action), mayRepeatCommit)
  }

  /** Calls `action` once, with the first connection that there is before the timeout. */
  async runOnce<T>(action: Action<T>): Promise<T> {
    return this.#use(await this.#retry(() => this.#connect()), action)
  }

  /** The same for a generator, which has the connection until its end. */
  async *stream<T>(items: (connection: Connection) => AsyncIterable<T>): AsyncGenerator<T> {
    const client = await this.#retry(() => this.#connect())
    const connection = this.#connectionOf(client)
    try {
      yield* items(connection)
    } finally {
      this.#release(client, connection)
    }
  }

  async #use<T>(client: pg.PoolClient, action: Action<T>): Promise<T> {
    const connection = this.#connectionOf(client)
    try {
      return await action(connection)
    } finally {
      this.#release(client, connection)
    }
  }

  #connectionOf(client: pg.PoolClient): Connection {
    this.#inUse.add(client)
    return new Connection(client, this.#account, this.options.timeout)
  }

  /** The pool drops a connection that is lost, or is still in a transaction. */
  #release(client: pg.PoolClient, { isLost }: Connection): void {
    this.#inUse.delete(client)
    client.release(isLost || client.getTransactionStatus() !== 'I')
  }

  #retry<T>(action: () => Promise<T>, mayRepeatCommit = () => false): Promise<T> {
    const { runtime, onAway } = this.options
    const signal = runtime.handleSignals()
    const start = runtime.now()
    let unknownOutcome: PlantsError | undefined
    const pauseAfter = (error: unknown, tries: number) => {
      if (!(error instanceof PlantsError)) throw error
      if (error.isOutcomeUnknown && mayRepeatCommit()) unknownOutcome = error
      else if (!error.isRetryable) throw unknownOutcome ?? error
      if (!unknownOutcome) signal.throwIfAborted()
      const elapsed = runtime.now() - start
      const patience = patienceOf(this.options, this.#wasConnected)
      if (this.#failure && !this.#isReportedAway && elapsed >= reportAfterMs) {
        this.#isReportedAway = true
        onAway?.(this.#failure, patience)
      }
      const pause = nextPause(policy, { tries, elapsed, patience }, runtime)
      if (pause === undefined) throw unknownOutcome ?? error
      return pause
    }
    return retrying(action, pauseAfter, () => [signal])
  }

  /** Tries each server once. Throws one of their failures, one that may pass if there is any. */
  async #connect(): Promise<pg.PoolClient> {
    const failures: PlantsError[] = []
    for (const _ of this.#servers) {
      const index = this.#current
      try {
        const client = await connectTo(must(this.#servers[index]))
        this.#wasConnected = true
        this.#failure = undefined
        if (this.#isReportedAway) this.options.onAway?.(undefined)
        this.#isReportedAway = false
        return client
      } catch (reason) {
        const error = explained(reason, this.#account)
        if (isPoolFull(reason)) throw error
        // At another server, a wrong password would look like a server that is away. After a login
        // was accepted, one that is rejected is not the fault of the caller's credentials.
        if (error.kind === 'unauthorized') {
          if (!this.#wasConnected) throw error
          throw new PlantsError('inaccessible', error.message, { hint: error.hint, cause: error })
        }
        failures.push(error)
        if (this.#current === index) this.#current = (index + 1) % this.#servers.length
      }
    }
    this.#failure = failures.find(({ isRetryable }) => isRetryable) ?? failures[0]
    throw must(this.#failure)
  }

  /** Calls that still run fail. */
  async close(): Promise<void> {
    for (const client of this.#inUse) void client.end()
    const open = this.#servers.flatMap(({ pools }) => pools).filter(({ ending }) => !ending)
    await Promise.all(open.map((pool) => pool.end()))
  }
}

const policy = { base: 10, max: 1000 }

/** A person should not wonder why a command waits. */
const reportAfterMs = 300

async function connectTo(server: Server): Promise<pg.PoolClient> {
  const [first, second] = server.chosen ? [server.chosen] : server.pools
  const connect = async (pool: pg.Pool) => {
    const client = await pool.connect()
    server.chosen ??= pool
    return client
  }
  return connect(must(first)).catch((error: unknown) => {
    if (second && refusesTls(error)) return connect(second)
    throw error
  })
}

/** With sslmode=prefer, like libpq, first with TLS. */
function waysTo({ host }: PostgresHost, { sslmode }: PostgresAddress): boolean[] {
  if (sslmode === 'disable' || host.startsWith('/')) return [false]
  return sslmode === 'prefer' ? [true, false] : [true]
}

function newPool(
  { host, port }: PostgresHost,
  usesTls: boolean,
  account: Account,
  { timeout, login }: PostgresOptions,
): pg.Pool {
  const { hosts, user, database, applicationName, max, name } = account.address
  const isPrivate = host.startsWith('/') || isLoopback(host) || (usesTls && verifies(account))
  const pool = new pg.Pool({
    ...{ host, port, user, database, max, application_name: applicationName },
    password: () => {
      const password = login.password({ host, port })
      if (password !== undefined) return password
      const message = `${name} requires a password, but none is set`
      throw new PlantsError('unauthorized', message, { hint: login.passwordHint })
    },
    ssl: usesTls && tlsOptions(account),
    connectionTimeoutMillis: Math.min(5000, timeout / hosts.length),
    idleTimeoutMillis: 0,
    keepAlive: true,
    keepAliveInitialDelayMillis: 30_000,
    types: { getTypeParser: () => (text: string) => text },
    Client: isPrivate ? Client : SecretiveClient,
    onConnect: (client) => assertReady(new Connection(client, account, timeout)),
  })
  return pool.on('error', () => undefined) // Of an idle connection, which the pool drops.
}

class Client extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config)
    this.on('error', () => undefined) // The statement in progress fails with the same error.
    // The driver leaves a connection open whose login has failed.
    this.connection.on('error', () => this.connection.stream.destroy())
  }
}

/** Logs in with SCRAM alone, where others could read a password or its MD5 hash. */
class SecretiveClient extends Client {
  constructor(config?: pg.ClientConfig) {
    super(config)
    for (const request of ['authenticationCleartextPassword', 'authenticationMD5Password'])
      this.connection.prependListener(request, () => {
        const message = `${this.host} requests the password over a connection that others could read`
        const hint = 'Let it use scram-sha-256, or verify its certificate: sslmode=verify-full'
        this.connection.stream.destroy(new PlantsError('unauthorized', message, { hint }))
      })
  }
}

/** Throws for a server that is read-only, has another encoding than UTF8, or answers before a plant is on disk. */
export async function assertReady(connection: Connection): Promise<void> {
  const { name } = connection
  const state = `SELECT current_setting('server_encoding'), current_setting('fsync'),
    pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean`
  const [[encoding, fsync, isReadOnly] = []] = await connection.read(state)
  if (encoding !== 'UTF8') {
    const message = `${name} has the encoding ${encoding}, which cannot store every character`
    const hint = 'Create one that can: createdb --encoding UTF8 --template template0 NAME'
    throw new PlantsError('inaccessible', message, { hint })
  }
  if (fsync === 'off') {
    const message = `${name} answers before a plant is on disk: fsync is off`
    throw new PlantsError('inaccessible', message, { hint: 'Turn fsync on in postgresql.conf' })
  }
  if (isReadOnly === 't') {
    const hint = 'Try again, or use the address of another server'
    throw new PlantsError('unavailable', `${name} is not read-write now`, { hint })
  }
}

/** Like libpq, `require` verifies the server if a root certificate is configured. */
function verifies({ address: { sslmode }, login: { ca } }: Account): boolean {
  return sslmode.startsWith('verify') || (sslmode === 'require' && ca !== undefined)
}

function tlsOptions(account: Account) {
  const { ca, cert, key } = account.login
  const anyHost = account.address.sslmode !== 'verify-full' && {
    checkServerIdentity: () => undefined,
  }
  return { rejectUnauthorized: verifies(account), ca, cert, key, ...anyHost }
}
