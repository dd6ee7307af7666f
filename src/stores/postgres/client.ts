import { Socket } from 'node:net'
import { type ConnectionOptions, TLSSocket } from 'node:tls'
import pg from 'pg'
import { isLoopback } from '../../platform/network.js'
import type { PostgresAddress, PostgresHost } from '../address.js'
import { socketPath } from './address.js'
import { driverError } from './errors.js'
import { type Account, checkMethod, checkSocketOwner, LoginError, type LoginMethod } from './login.js'
import type { Row } from './sql.js'

/** A server, and a way to connect to it. */
export interface Endpoint {
  host: PostgresHost
  usesTls: boolean
}

/**
 * The ways to a server in the order in which they are tried, as libpq has it: the second one where the server lets nobody in who comes the
 * first way (https://www.postgresql.org/docs/current/libpq-ssl.html#LIBPQ-SSL-PROTECTION).
 */
export function endpointsOf(host: PostgresHost, { sslmode }: PostgresAddress): Endpoint[] {
  if (isSocketFolder(host)) return [{ host, usesTls: false }]
  const ways = {
    disable: [false],
    allow: [false, true],
    prefer: [true, false],
    require: [true],
    'verify-ca': [true],
    'verify-full': [true],
  }
  return ways[sslmode].map((usesTls) => ({ host, usesTls }))
}

function isSocketFolder({ host }: PostgresHost): boolean {
  return host.startsWith('/')
}

/** One connection to a server: the driver's, which checks what the driver leaves open. */
export class Client extends pg.Client {
  readonly #endpoint: Endpoint
  readonly #account: Account
  /** how the server has asked for a login */
  #method: LoginMethod = 'none'
  /** whether the server has proved that it knows the password, where it asked for SCRAM */
  #isProven = false
  /** whether the wait for a standby was given up, so that a commit may be lost with this server */
  #isDoubtful = false

  /** @param statementTimeout milliseconds after which the server ends a statement; without it when undefined, as PgBouncer wants it */
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
      connectionTimeoutMillis: address.connectTimeout,
      keepAlive: true,
      keepAliveInitialDelayMillis: 30_000,
      ssl: endpoint.usesTls && tlsOptions(account),
      sslnegotiation: 'postgres',
      types: { getTypeParser: () => (text: string) => text },
      ...(statementTimeout === undefined ? {} : { statement_timeout: statementTimeout }),
      ...scramLimit,
      // A function, since the driver would else look for one in places of its own.
      password: () => {
        this.#checkMethod(password !== undefined)
        return password ?? ''
      },
      ...(isSocketFolder(endpoint.host) && { stream: () => checkedSocket(endpoint.host, account) }),
    })
    this.#endpoint = endpoint
    this.#account = account
    this.on('error', () => undefined) // whatever is under way fails with it as well
    // A commit whose wait for the standbys was given up has happened on the server alone.
    this.on('notice', ({ routine }) => {
      this.#isDoubtful ||= routine === 'SyncRepWaitForLSN'
    })
    this.connection
      .on('error', () => this.destroy()) // also where the driver would leave it open: a login that fails here
      .on('authenticationCleartextPassword', () => this.#noteMethod('password'))
      .on('authenticationMD5Password', () => this.#noteMethod('md5'))
      .on('authenticationSASL', () => this.#noteMethod('scram-sha-256'))
      .on('authenticationSASLContinue', ({ data }: { data: string }) => this.#checkIterations(data))
      .on('authenticationSASLFinal', () => {
        this.#isProven = true
      })
      .on(endpoint.usesTls ? 'sslconnect' : 'connect', () => boundReads(this.connection))
  }

  /** whether nobody on the way can read along */
  get isSecure(): boolean {
    return this.connection.stream instanceof TLSSocket
  }

  /** @throws {LoginError} when the server has let this program in, and should not have */
  checkLogin(): void {
    if (this.#method === 'none') this.#checkMethod(true)
    else if (this.#method === 'scram-sha-256' && !this.#isProven)
      throw new LoginError('the server has not proved that it knows the password')
  }

  /**
   * Runs a statement; of several, the last gives the rows.
   *
   * @throws {pg.DatabaseError} when the server refused it; anything else when the connection was lost
   */
  async ask({ text, values }: pg.QueryConfig): Promise<Row[]> {
    this.#isDoubtful = false
    const asked: Promise<pg.QueryArrayResult<Row> | pg.QueryArrayResult<Row>[]> = this.query<Row>({
      text,
      ...(values && { values }),
      rowMode: 'array',
    })
    const result = await asked.catch((error: unknown) => {
      throw driverError(error)
    })
    if (this.#isDoubtful) throw new Error('the server has stopped waiting for its standby')
    return (Array.isArray(result) ? result.at(-1) : result)?.rows ?? []
  }

  /** Ends the connection now, with whatever is under way. */
  destroy(reason?: Error): void {
    this.connection.stream.destroy(reason)
  }

  /** A second challenge would be one that this program has not agreed to. */
  #noteMethod(method: LoginMethod): void {
    if (this.#method !== 'none') this.destroy(new LoginError('the server does not speak the PostgreSQL protocol'))
    this.#method = method
  }

  #checkMethod(hasPassword: boolean): void {
    const { address } = this.#account
    const isTrusted =
      isSocketFolder(this.#endpoint.host) || isLoopback(this.#endpoint.host.host) || (this.#endpoint.usesTls && isChecked(this.#account))
    checkMethod(this.#method, { requireAuth: address.requireAuth, isTrusted, hasPassword })
  }

  /** The fewest iterations that RFC 7677 allows: with fewer, the answer would be easy to guess the password from. */
  #checkIterations(challenge: string): void {
    const [, count] = /,i=(\d+)$/.exec(challenge) ?? []
    if (Number(count) >= 4096) return
    this.destroy(new LoginError(`it asks for ${count} iterations of SCRAM, and 4096 are the fewest here`))
  }
}

/** A Unix socket that says nothing before its owner was checked. */
function checkedSocket({ host, port }: PostgresHost, { address, login }: Account): Socket {
  const socket = new Socket()
  return socket.once('connect', () => {
    try {
      checkSocketOwner(socketPath(host, port), address.requirePeer, login.trusts)
    } catch (error) {
      socket.destroy(error as Error)
    }
  })
}

/** An option of the driver that its types lack: these iterations take about a second. */
const scramLimit: object = { scramMaxIterations: 1_000_000 }

/** A string of JavaScript holds no more bytes, and what is asked for is far less. */
const maxAnswer = 2 ** 29

/** What the driver cannot read, it throws out of the event of its socket: that becomes the socket's error, and so does an answer without end. */
function boundReads(connection: pg.Connection): void {
  let bytes = 0
  connection.on('readyForQuery', () => {
    bytes = 0
  })
  const { stream } = connection
  for (const read of stream.listeners('data')) {
    stream.removeListener('data', read as () => void)
    stream.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      try {
        if (bytes > maxAnswer) throw new Error('it answers with more than can be read')
        read.call(stream, chunk)
      } catch (error) {
        stream.destroy(driverError(error))
      }
    })
  }
}

/** A certificate that was given is compared with the server's in every mode, as libpq does. */
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
