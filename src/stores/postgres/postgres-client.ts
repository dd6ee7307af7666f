import { readFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import pg from 'pg'
import { maxTimer, timeIsOver } from '../../platform/clock.js'
import { isWindows, unlessSystemError } from '../../platform/errors.js'
import { untrustedReason } from '../../platform/files.js'
import { isLoopback } from '../../platform/network.js'
import type { PostgresHost } from '../common/address.js'
import { socketPath } from './postgres-address.js'
import {
  type Account,
  ConnectionError,
  driverError,
  isReadOnly,
  isServerError,
  LoginError,
  LostCommit,
  MissingPassword,
} from './postgres-errors.js'
import type { Query, Row } from './sql.js'

export interface Endpoint extends PostgresHost {
  usesTls: boolean
}

/** A connection of the driver, with checks that the driver lacks. */
export class Client extends pg.Client {
  readonly #account: Account
  readonly #endpoint: Endpoint
  readonly #password: string | undefined
  /** of the login, as requested by the server */
  #method: string | undefined
  /** with SCRAM, whether the server has proved that it knows the password */
  #isProven = false
  /** whether the server has stopped waiting for a standby, so that a commit may be lost with this server */
  #isDoubtful = false
  /** bytes of the current response, and their maximum; at first, of all responses up to the end of the login */
  #received = 0
  #maxResponse = 2 ** 20
  #timer: NodeJS.Timeout | undefined

  /** @param statementTimeout milliseconds; undefined for PgBouncer, which does not accept it */
  constructor(endpoint: Endpoint, account: Account, statementTimeout: number | undefined) {
    const { host, port, usesTls } = endpoint
    const { address, login } = account
    super({
      host,
      port,
      user: address.user,
      database: address.database,
      application_name: address.applicationName,
      keepAlive: true,
      keepAliveInitialDelayMillis: 30_000,
      ssl: usesTls && tlsOptions(account),
      sslnegotiation: 'postgres',
      types: { getTypeParser: () => (text: string) => text },
      statement_timeout: statementTimeout,
      ...scramLimit,
      password: () => this.#passwordToSend(), // without a function, the driver would search for a password itself
      ...(host.startsWith('/') && { stream: () => checkedSocket(socketPath(host, port), login.trusts) }),
    })
    this.#endpoint = endpoint
    this.#account = account
    this.#password = login.password({ host, port })
    this.on('error', (error) => this.destroy(error)) // statements in progress fail with the same error
    this.on('notice', ({ routine }) => {
      this.#isDoubtful ||= routine === 'SyncRepWaitForLSN'
    })
    this.connection
      .on('error', () => this.destroy()) // the driver would keep the connection open after a login error
      .on('authenticationCleartextPassword', () => this.#noteMethod('in clear text'))
      .on('authenticationMD5Password', () => this.#noteMethod('as MD5'))
      .on('authenticationSASL', () => this.#noteMethod('SCRAM'))
      .on('authenticationSASLContinue', ({ data }: { data: string }) => this.#checkIterations(data))
      .on('authenticationSASLFinal', () => {
        this.#isProven = true
      })
      .on('readyForQuery', () => {
        this.#received = 0
        this.#maxResponse = maxAnswer
      })
      .on(usesTls ? 'sslconnect' : 'connect', () => this.#boundResponses())
  }

  get isIdle(): boolean {
    return !this.connection.stream.destroyed && this.getTransactionStatus() === 'I'
  }

  get isSecure(): boolean {
    return this.connection.stream instanceof TLSSocket
  }

  /** Throws `LoginError` when the server has accepted a SCRAM login without the proof that it knows the password. */
  async open(): Promise<void> {
    await this.connect()
    if (this.#method === 'SCRAM' && !this.#isProven)
      throw new LoginError('the server has not proved that it knows the password')
  }

  /**
   * Returns the rows of the last statement. Throws `pg.DatabaseError` when the server reports an error; anything else
   * when the connection is lost.
   */
  async ask({ text, values, plants = 0 }: Query): Promise<Row[]> {
    this.#isDoubtful = false
    this.#maxResponse = Math.min(maxAnswer + plants * maxPlant, maxText)
    const asked: Promise<pg.QueryArrayResult<Row> | pg.QueryArrayResult<Row>[]> = this.query<Row>({
      text,
      ...(values && { values }),
      rowMode: 'array',
    })
    const result = await asked.catch((error: unknown) => {
      const failure = driverError(this.connection.stream.errored ?? error) // the driver forgets why it cannot be used
      if (!isServerError(failure) || isReadOnly(failure)) this.destroy() // it can no longer be used
      throw failure
    })
    if (this.#isDoubtful) throw new Error('the server has stopped waiting for its standby')
    return (Array.isArray(result) ? result.at(-1) : result)?.rows ?? []
  }

  /** Throws like `ask`, but `LostCommit` when it is unknown whether the statement has committed. */
  async commit(statement: Query): Promise<Row[]> {
    try {
      return await this.ask(statement)
    } catch (error) {
      throw isServerError(error) ? error : new LostCommit(error)
    }
  }

  /** Replaces an earlier call. */
  destroyAfter(milliseconds: number): void {
    clearTimeout(this.#timer)
    if (milliseconds <= maxTimer) this.#timer = setTimeout(() => this.destroy(timeIsOver() as Error), milliseconds)
  }

  destroy(reason?: Error): void {
    clearTimeout(this.#timer)
    this.connection.stream.destroy(reason)
  }

  /** A second authentication request violates the protocol. */
  #noteMethod(method: string): void {
    if (this.#method !== undefined) this.destroy(new LoginError('the server does not speak the PostgreSQL protocol'))
    this.#method = method
  }

  /** Throws when anybody else could read the password, or its MD5 hash. */
  #passwordToSend(): string {
    const { host, usesTls } = this.#endpoint
    if (this.#password === undefined) throw new MissingPassword('it requires a password, but none is set')
    const isTrusted = host.startsWith('/') || isLoopback(host) || (usesTls && isVerified(this.#account))
    if (this.#method === 'SCRAM' || isTrusted) return this.#password
    throw new LoginError(
      `the server requests the password ${this.#method} over a connection that others could read`,
      'Add to the address: sslmode=verify-full. Or let the server use scram-sha-256',
    )
  }

  /** Enforces the minimum of RFC 7677: with fewer iterations, the password would be easy to guess from the response. */
  #checkIterations(challenge: string): void {
    const count = /,i=(?<count>\d+)$/.exec(challenge)?.groups?.['count']
    if (Number(count) >= 4096) return
    this.destroy(new LoginError(`it requests ${count} SCRAM iterations, but the minimum is 4096`))
  }

  /** Also turns parse errors, which the driver throws in a socket event, into errors of the socket. */
  #boundResponses(): void {
    const { stream } = this.connection
    for (const read of stream.listeners('data')) {
      stream.removeListener('data', read as () => void)
      stream.on('data', (chunk: Buffer) => {
        this.#received += chunk.length
        try {
          if (this.#received > this.#maxResponse) throw tooLarge()
          read.call(stream, chunk)
        } catch (error) {
          stream.destroy(driverError(error))
        }
      })
    }
  }
}

/** A Unix socket that sends nothing until its owner is checked. */
function checkedSocket(path: string, trusts: (uid: number) => boolean): Socket {
  const socket = new Socket()
  return socket.once('connect', () => {
    try {
      checkSocketOwner(path, trusts)
    } catch (error) {
      socket.destroy(error as Error)
    }
  })
}

/**
 * Checks the owner of a connected Unix socket: a user who creates the socket while the server is down would receive the
 * password and the plants. Also trusts PostgreSQL's own account, and a group that can write to the folder, as on
 * Debian.
 *
 * @param trusts whether a user is this one, or root
 * @throws {LoginError} and the system's error if the socket no longer exists
 */
function checkSocketOwner(path: string, trusts: (uid: number) => boolean): void {
  if (isWindows) return
  const reason = untrustedReason(path, { trusts: (uid) => trusts(uid) || isPostgres(uid), writers: 0o002 })
  if (reason !== undefined)
    throw new LoginError(reason, 'If that user runs the database, connect over TCP: host=localhost')
}

function isPostgres(uid: number): boolean {
  const accounts = unlessSystemError(() => readFileSync('/etc/passwd', 'utf8')) ?? ''
  return new RegExp(`^_?postgres:[^:]*:${uid}:`, 'm').test(accounts)
}

/** An option that the types of the driver lack. So many iterations take about a second. */
const scramLimit: object = { scramMaxIterations: 1_000_000 }

/** bytes of the response to a statement; a page has 1 MB */
export const maxAnswer = 2 ** 26
/** what each plant that is requested by its id adds, up to the maximum size of a JavaScript string */
const maxPlant = 2 ** 20
const maxText = 2 ** 29

/** No retry makes a response smaller. */
export function tooLarge(): ConnectionError {
  return new ConnectionError(undefined, 'its response is too large', 'TOO_LARGE')
}

/** Like libpq, `require` verifies the server if a root certificate is configured. */
function isVerified({ address: { sslmode }, login: { ca } }: Account): boolean {
  return sslmode.startsWith('verify') || (sslmode === 'require' && ca !== undefined)
}

function tlsOptions(account: Account) {
  const { ca, cert, key } = account.login
  return {
    rejectUnauthorized: isVerified(account),
    ca,
    ...(cert !== undefined && key !== undefined && { cert, key }),
    ...(account.address.sslmode !== 'verify-full' && { checkServerIdentity: () => undefined }),
  }
}
