/**
 * Connections to the servers of an address. Each server has a pool, and the first one that accepts writes is used until
 * a connection to it fails, so that a failover takes no more than the next connection. A call is repeated after whatever
 * may pass, until its timeout.
 *
 * With `sslmode=prefer` a server has two pools, one with TLS and one without it, and the first login chooses: neither a
 * pool that is full later nor a server that is away may lead to a connection without TLS.
 */
import { setMaxListeners } from 'node:events'
import pg from 'pg'
import { type ErrorKind, must, PlantsError } from '../../platform/errors.js'
import { retrying } from '../../platform/runtime.js'
import { isLoopback } from '../../platform/urls.js'
import type { PostgresAddress, PostgresHost } from '../common/address.js'
import { nextPause, patienceOf } from '../common/store.js'
import { Connection } from './connection.js'
import { type Access, explained, isPoolFull, refusesTls } from './errors.js'

/** The pools of a server, in the order in which they are tried. After the first login, there is one. */
type Server = pg.Pool[]

type Action<T> = (connection: Connection) => Promise<T>

export class PostgresDatabase {
  readonly #access: Access
  readonly #pools: pg.Pool[]
  readonly #inUse = new Set<pg.PoolClient>()
  /** In the order in which they are tried. */
  #servers: Server[]
  #wasConnected = false
  /** Since no server could be reached. */
  #outage: { failure: PlantsError; isReported: boolean } | undefined

  constructor(access: Access) {
    this.#access = access
    this.#servers = access.address.hosts.map((host) =>
      waysTo(host, access.address).map((usesTls) => newPool(host, usesTls, access)),
    )
    this.#pools = this.#servers.flat()
    setMaxListeners(0, access.options.runtime.handleSignals()) // Each call that waits adds one.
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
    let isDone = false
    try {
      yield* items(new Connection(client, this.#access))
      isDone = true
    } finally {
      this.#release(client, isDone)
    }
  }

  async #use<T>(client: pg.PoolClient, action: Action<T>): Promise<T> {
    let isDone = false
    try {
      const result = await action(new Connection(client, this.#access))
      isDone = true
      return result
    } finally {
      this.#release(client, isDone)
    }
  }

  /** One that has not done its work may be lost, in a transaction, or at a server that is read-only: it is dropped. */
  #release(client: pg.PoolClient, isDone: boolean): void {
    this.#inUse.delete(client)
    client.release(!isDone)
  }

  #retry<T>(action: () => Promise<T>, mayRepeatCommit = () => false): Promise<T> {
    const { options } = this.#access
    const { runtime, onAway } = options
    const start = runtime.now()
    let unknownOutcome: PlantsError | undefined
    const pauseAfter = (error: unknown, tries: number) => {
      if (!(error instanceof PlantsError)) throw error
      if (error.isOutcomeUnknown && mayRepeatCommit()) unknownOutcome = error
      else if (!error.isRetryable) throw unknownOutcome ?? error
      const elapsed = runtime.now() - start
      const patience = patienceOf(options, this.#wasConnected)
      if (this.#outage?.isReported === false && elapsed >= reportAfterMs) {
        this.#outage.isReported = true
        onAway?.(this.#outage.failure, patience)
      }
      const pause = nextPause(policy, { tries, elapsed, patience }, runtime)
      if (pause === undefined) throw unknownOutcome ?? error
      return pause
    }
    return retrying(action, pauseAfter, () => [runtime.handleSignals()])
  }

  /** Tries each server once. Throws one of their failures, one that may pass if there is any. */
  async #connect(): Promise<pg.PoolClient> {
    let failure: PlantsError | undefined
    for (const server of this.#servers) {
      try {
        const client = await connectTo(server)
        this.#inUse.add(client)
        this.#servers = [server, ...this.#servers.filter((other) => other !== server)]
        this.#wasConnected = true
        if (this.#outage?.isReported) this.#access.options.onAway?.(undefined)
        this.#outage = undefined
        return client
      } catch (reason) {
        const error = explained(reason, this.#access)
        if (isPoolFull(reason)) throw error
        // At another server, a wrong password would look like a server that is away. After a login
        // was accepted, one that is rejected is not the fault of the caller's credentials.
        if (error.kind === 'unauthorized') {
          if (!this.#wasConnected) throw error
          throw new PlantsError('inaccessible', error.message, { hint: error.hint, cause: error })
        }
        if (!failure?.isRetryable) failure = error
      }
    }
    this.#outage ??= { failure: must(failure), isReported: false }
    throw must(failure)
  }

  /** Calls that still run fail. */
  async close(): Promise<void> {
    for (const client of this.#inUse) void client.end()
    const open = this.#pools.filter(({ ending }) => !ending)
    await Promise.all(open.map((pool) => pool.end()))
  }
}

const policy = { base: 10, max: 1000 }

/** A person should not wonder why a command waits. */
const reportAfterMs = 300

/** Leaves the server with the pool of the first login. */
async function connectTo(server: Server): Promise<pg.PoolClient> {
  const [pool, withoutTls] = server
  try {
    const client = await must(pool).connect()
    server.length = 1
    return client
  } catch (error) {
    if (!withoutTls || !refusesTls(error)) throw error
    const client = await withoutTls.connect()
    if (server.length > 1) server.shift()
    return client
  }
}

/** With sslmode=prefer, like libpq, first with TLS. */
function waysTo({ host }: PostgresHost, { sslmode }: PostgresAddress): boolean[] {
  if (sslmode === 'disable' || host.startsWith('/')) return [false]
  return sslmode === 'prefer' ? [true, false] : [true]
}

function newPool({ host, port }: PostgresHost, usesTls: boolean, access: Access): pg.Pool {
  const { hosts, user, database, applicationName, max, name } = access.address
  const { login, timeout } = access.options
  const isPrivate = host.startsWith('/') || isLoopback(host) || (usesTls && verifies(access))
  const pool = new pg.Pool({
    ...{ host, port, user, database, max, application_name: applicationName },
    password: () => {
      const password = login.password({ host, port })
      if (password !== undefined) return password
      const message = `${name} requires a password, but none is set`
      throw new PlantsError('unauthorized', message, { hint: login.passwordHint })
    },
    ssl: usesTls && tlsOptions(access),
    connectionTimeoutMillis: Math.min(5000, timeout / hosts.length),
    idleTimeoutMillis: 0,
    keepAlive: true,
    keepAliveInitialDelayMillis: 30_000,
    types: { getTypeParser: () => (text: string) => text },
    Client: isPrivate ? Client : SecretiveClient,
    onConnect: (client) => assertReady(new Connection(client, access)),
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
  const failure = (kind: ErrorKind, why: string, hint: string) =>
    new PlantsError(kind, `${connection.name} ${why}`, { hint })
  const [[encoding, fsync, isReadOnly] = []] = await connection.read(
    `SELECT current_setting('server_encoding'), current_setting('fsync'),
      pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean`,
  )
  if (encoding !== 'UTF8') {
    const why = `has the encoding ${encoding}, which cannot store every character`
    const hint = 'Create one that can: createdb --encoding UTF8 --template template0 NAME'
    throw failure('inaccessible', why, hint)
  }
  if (fsync === 'off') {
    const why = 'answers before a plant is on disk: fsync is off'
    throw failure('inaccessible', why, 'Turn fsync on in postgresql.conf')
  }
  if (isReadOnly === 't') {
    const hint = 'Try again, or use the address of another server'
    throw failure('unavailable', 'is not read-write now', hint)
  }
}

function tlsOptions(access: Access) {
  const { ca, cert, key } = access.options.login
  const anyHost = { checkServerIdentity: () => undefined }
  return {
    ...{ rejectUnauthorized: verifies(access), ca, cert, key },
    ...(access.address.sslmode !== 'verify-full' && anyHost),
  }
}

/** Like libpq, `require` verifies the server if a root certificate is configured. */
function verifies({ address: { sslmode }, options: { login } }: Access): boolean {
  return sslmode.startsWith('verify') || (sslmode === 'require' && login.ca !== undefined)
}
