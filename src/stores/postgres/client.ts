import { Socket } from 'node:net'
import { type ConnectionOptions, TLSSocket } from 'node:tls'
import pg from 'pg'
import { maxTimer, timeIsOver } from '../../platform/clock.js'
import { isLoopback } from '../../platform/network.js'
import type { PostgresAddress, PostgresHost } from '../common/address.js'
import { socketPath } from './address.js'
import { ConnectionError, driverError, isReadOnly, isServerError, LostCommit } from './errors.js'
import { type Account, checkMethod, checkSocketOwner, LoginError, type LoginMethod } from './login.js'
import type { Row, Statement } from './sql.js'

export interface Endpoint {
  host: PostgresHost
  usesTls: boolean
}

/**
 * The connection attempts for each server, in order, like libpq: the second one is made if the server rejects the first
 * (https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION).
 */
export function endpointsOf({ hosts, sslmode }: PostgresAddress): Endpoint[][] {
  const attempts = { disable: [false], prefer: [true, false] }[String(sslmode)] ?? [true]
  return hosts.map((host) => (isSocketFolder(host) ? [false] : attempts).map((usesTls) => ({ host, usesTls })))
}

function isSocketFolder({ host }: PostgresHost): boolean {
  return host.startsWith('/')
}

/** A connection of the driver, with checks that the driver lacks. */
export class Client extends pg.Client {
  readonly #endpoint: Endpoint
  readonly #account: Account
  #method: LoginMethod = 'none'
  /** with SCRAM, whether the server has proved that it knows the password */
  #isProven = false
  /** whether the server has stopped waiting for a standby, so that a commit may be lost with this server */
  #isDoubtful = false
  readonly #reads = new BoundedReads()
  #timer: NodeJS.Timeout | undefined

  /** @param statementTimeout milliseconds after which the server cancels a statement; undefined for PgBouncer, which does not accept it */
  constructor(endpoint: Endpoint, account: Account, statementTimeout: number | undefined) {
    const { address, login } = account
    const { host, port } = endpoint.host
    const password = login.password(endpoint.host)
    super({
      host,
      port,
      user: address.user,
      database: address.database,
      application_name: address.applicationName,
      keepAlive: true,
      keepAliveInitialDelayMillis: 30_000,
      ssl: endpoint.usesTls && tlsOptions(account),
      sslnegotiation: 'postgres',
      types: { getTypeParser: () => (text: string) => text },
      ...(statementTimeout === undefined ? {} : { statement_timeout: statementTimeout }),
      ...scramLimit,
      // A function, since without one the driver would search for a password itself.
      password: () => {
        this.#checkMethod(password !== undefined)
        return password ?? ''
      },
      ...(isSocketFolder(endpoint.host) && { stream: () => checkedSocket(endpoint.host, account) }),
    })
    this.#endpoint = endpoint
    this.#account = account
    this.on('error', (error) => this.destroy(error)) // statements in progress fail with the same error
    // The server reports that it has stopped waiting for the standbys: the commit is only on this server.
    this.on('notice', ({ routine }) => {
      this.#isDoubtful ||= routine === 'SyncRepWaitForLSN'
    })
    this.connection
      .on('error', () => this.destroy()) // the driver would keep the connection open after a login error
      .on('authenticationCleartextPassword', () => this.#noteMethod('password'))
      .on('authenticationMD5Password', () => this.#noteMethod('md5'))
      .on('authenticationSASL', () => this.#noteMethod('scram-sha-256'))
      .on('authenticationSASLContinue', ({ data }: { data: string }) => this.#checkIterations(data))
      .on('authenticationSASLFinal', () => {
        this.#isProven = true
      })
      .on(endpoint.usesTls ? 'sslconnect' : 'connect', () => this.#reads.watch(this.connection))
  }

  /** whether the connection can be used again: it is not destroyed, nor in the middle of a transaction */
  get isIdle(): boolean {
    return !this.connection.stream.destroyed && this.getTransactionStatus() === 'I'
  }

  get isSecure(): boolean {
    return this.connection.stream instanceof TLSSocket
  }

  /** @throws {LoginError} when the server has accepted a SCRAM login without the proof that it knows the password */
  checkLogin(): void {
    if (this.#method === 'scram-sha-256' && !this.#isProven) throw new LoginError('the server has not proved that it knows the password')
  }

  /**
   * Runs one or more statements. Returns the rows of the last one.
   *
   * @throws {pg.DatabaseError} when the server reports an error; anything else when the connection is lost
   */
  async ask({ text, values, plants = 0 }: Statement): Promise<Row[]> {
    this.#isDoubtful = false
    this.#reads.limit = Math.min(maxAnswer + plants * maxPlant, maxText)
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

  /** Runs statements that commit. Throws like `ask`, but `LostCommit` when whether they have committed is unknown. */
  async commit(statement: Statement): Promise<Row[]> {
    try {
      return await this.ask(statement)
    } catch (error) {
      throw isServerError(error) ? error : new LostCommit(error)
    }
  }

  /** Destroys the connection after some milliseconds; replaces an earlier call. */
  destroyAfter(milliseconds: number): void {
    clearTimeout(this.#timer)
    if (milliseconds <= maxTimer) this.#timer = setTimeout(() => this.destroy(timeIsOver() as Error), milliseconds)
  }

  /** Closes the connection immediately, with any statement in progress. */
  destroy(reason?: Error): void {
    clearTimeout(this.#timer)
    this.connection.stream.destroy(reason)
  }

  /** A second authentication request violates the protocol. */
  #noteMethod(method: LoginMethod): void {
    if (this.#method !== 'none') this.destroy(new LoginError('the server does not speak the PostgreSQL protocol'))
    this.#method = method
  }

  #checkMethod(hasPassword: boolean): void {
    const { host, usesTls } = this.#endpoint
    const isTrusted = isSocketFolder(host) || isLoopback(host.host) || (usesTls && isChecked(this.#account))
    checkMethod(this.#method, { isTrusted, hasPassword })
  }

  /** Enforces the minimum of RFC 7677: with fewer iterations, the password would be easy to guess from the response. */
  #checkIterations(challenge: string): void {
    const [, count] = /,i=(\d+)$/.exec(challenge) ?? []
    if (Number(count) >= 4096) return
    this.destroy(new LoginError(`it requests ${count} SCRAM iterations, but the minimum is 4096`))
  }
}

/** A Unix socket that sends nothing until its owner is checked. */
function checkedSocket({ host, port }: PostgresHost, { login }: Account): Socket {
  const socket = new Socket()
  return socket.once('connect', () => {
    try {
      checkSocketOwner(socketPath(host, port), login.trusts)
    } catch (error) {
      socket.destroy(error as Error)
    }
  })
}

/** An option that the types of the driver lack. So many iterations take about a second. */
const scramLimit: object = { scramMaxIterations: 1_000_000 }

/** The maximum size of a response, in bytes: before the end of the login, and to a statement. A page has 1 MB. */
const maxLoginAnswer = 2 ** 20
export const maxAnswer = 2 ** 26
/** what each plant that is requested by its id adds to that, up to the maximum size of a JavaScript string */
const maxPlant = 2 ** 20
const maxText = 2 ** 29

/** Limits responses. Turns parse errors, which the driver throws in a socket event, into errors of the socket. */
class BoundedReads {
  /** of the response that is awaited */
  limit = maxLoginAnswer
  #bytes = 0

  watch(connection: pg.Connection): void {
    connection.on('readyForQuery', () => {
      this.#bytes = 0
      this.limit = maxAnswer
    })
    const { stream } = connection
    for (const read of stream.listeners('data')) {
      stream.removeListener('data', read as () => void)
      stream.on('data', (chunk: Buffer) => {
        this.#bytes += chunk.length
        try {
          if (this.#bytes > this.limit) throw tooLarge()
          read.call(stream, chunk)
        } catch (error) {
          stream.destroy(driverError(error))
        }
      })
    }
  }
}

/** No retry makes a response smaller. */
export function tooLarge(): ConnectionError {
  return new ConnectionError(undefined, 'its response is too large', 'TOO_LARGE')
}

/** Whether to verify the certificate of the server: like libpq, in every mode if a root certificate is configured. */
function isChecked({ address: { sslmode, sslrootcert }, login: { ca } }: Account): boolean {
  return sslmode.startsWith('verify') || sslrootcert !== undefined || ca !== undefined
}

function tlsOptions(account: Account): ConnectionOptions {
  const { sslmode, sslrootcert } = account.address
  const { ca, cert, key } = account.login
  const isNamed = sslmode === 'verify-full' || sslrootcert === 'system'
  return {
    rejectUnauthorized: isChecked(account),
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && key !== undefined && { cert, key }),
    ...(!isNamed && { checkServerIdentity: () => undefined }),
  }
}
