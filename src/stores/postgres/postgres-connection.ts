import pg from 'pg'
import { PlantsError } from '../../platform/errors.js'
import { delayOf, type Runtime, timeIsOver } from '../../platform/runtime.js'
import { shellWord } from '../../platform/shell.js'
import { isLoopback } from '../../platform/urls.js'
import type { PostgresAddress, PostgresHost } from '../common/address.js'
import { atServer } from './postgres-address.js'
import {
  type Account,
  codeOf,
  DatabaseFailure,
  explain,
  otherProtocol,
  statementCanceled,
} from './postgres-errors.js'
import { type Row, schemaName } from './sql.js'

export interface Endpoint extends PostgresHost {
  usesTls: boolean
}

/**
 * A connection of the driver, with what it lacks: a deadline, bounds on what a server may send, and rules for who gets
 * the password.
 */
export class Connection extends pg.Client {
  readonly address: PostgresAddress
  readonly isSecure: boolean
  /** Whether the outcome of a commit can be asked for: a managed server may forbid what that takes. */
  canSettle = false
  /**
   * The deadline of what is asked, on the runtime: that of the call that has the connection, and at first that of the
   * check.
   */
  deadline: number
  readonly #account: Account
  readonly #runtime: Runtime
  /** Runs until the connection is checked. */
  readonly #connecting: NodeJS.Timeout
  /** The authentication method that the server requested. */
  #method: string | undefined
  /** Whether the server has proved, with SCRAM, that it knows the password. */
  #isProven = false
  /** Whether it waits for an answer. Until that comes, the transaction status is that of before. */
  #isWaiting = false
  /** Whether a statement has not found a table, so that the connection is closed. */
  lacksStore = false
  /** Whether the server has stopped waiting for a standby, so that a commit may be lost with this server. */
  #isDoubtful = false
  /** Bytes of the current answer, and their maximum. At first, of all answers up to the end of the login. */
  #received = 0
  #maxReceived = 2 ** 20

  /** @param timeout milliseconds until the connection is checked */
  constructor(
    { host, port, usesTls }: Endpoint,
    account: Account,
    timeout: number,
    runtime: Runtime,
  ) {
    const { user, database, applicationName } = account.address
    super({
      ...{ host, port, user, database, application_name: applicationName },
      keepAlive: true,
      keepAliveInitialDelayMillis: 30_000,
      ssl: usesTls && tlsOptions(account),
      sslnegotiation: 'postgres',
      types: { getTypeParser: () => (text: string) => text },
      password: () => this.#passwordFor(host, port), // otherwise the driver would search for one itself
    })
    this.address = account.address
    this.isSecure = usesTls
    this.#account = account
    this.#runtime = runtime
    this.deadline = runtime.now() + timeout
    this.#connecting = setTimeout(() => this.destroy(timeIsOver()), timeout)
    this.on('end', () => clearTimeout(this.#connecting))
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
      .on('authenticationOk', () => {
        if (this.#method === 'SCRAM' && !this.#isProven) this.#rejectLogin(unproven)
      })
      .on(usesTls ? 'sslconnect' : 'connect', () => this.#boundAnswers())
  }

  /** Throws `unavailable` for a server that is read-only, without UTF8, or with fsync off. */
  async check(): Promise<void> {
    const { name } = this.address
    const [[encodings, fsync, isReadOnly, canSettle] = []] = await this.ask(state)
    this.canSettle = canSettle === 't'
    if (encodings !== 'UTF8 UTF8') {
      const message = `${name} has the encoding ${encodings?.replace(/ .*/, '')}, which cannot store every character`
      const hint = 'Create one that can: createdb --encoding UTF8 --template template0 NAME'
      throw new PlantsError('inaccessible', message, { hint })
    }
    if (fsync === 'off') throw this.fsyncIsOff()
    if (isReadOnly === 't') {
      this.destroy()
      const hint = 'Try again, or use the address of another server'
      throw new PlantsError('unavailable', `${name} is not read-write now`, { hint })
    }
    clearTimeout(this.#connecting)
  }

  fsyncIsOff(): PlantsError {
    const message = `${this.address.name} answers before a plant is on disk: fsync is off`
    return new PlantsError('inaccessible', message, { hint: 'Turn fsync on in postgresql.conf' })
  }

  /**
   * Returns the rows of the last statement of a message. Outside of a transaction, the message is one.
   *
   * @param plants how many it asks for by their ids or keys, however long they are
   * @throws {DatabaseFailure}
   */
  async ask(text: string, plants?: number): Promise<Row[]> {
    return (await this.askAll(text, plants)).at(-1) ?? []
  }

  /** Returns the rows of each statement. */
  async askAll(text: string, plants = 0): Promise<Row[][]> {
    const left = this.#left
    if (left <= 0) throw this.failure(statementCanceled, 'no answer in time')
    const timeout = `SET LOCAL statement_timeout = ${Math.ceil(delayOf(left - Math.min(maxGrace, left / 10)))}`
    const status = this.getTransactionStatus() // the driver sets it late at first
    // A transaction that has failed accepts nothing but its end.
    const before = status === 'E' ? [] : [...(status === 'T' ? [] : pinned), timeout]
    this.#isDoubtful = false
    const answer: Promise<pg.QueryArrayResult<Row> | pg.QueryArrayResult<Row>[]> = this.query<Row>({
      text: [...before, text].join('; '),
      rowMode: 'array',
    })
    const results = [await this.inTime(answer, plants)].flat()
    if (this.#isDoubtful)
      throw this.failure('STANDBY', 'the server has stopped waiting for its standby')
    return results.slice(before.length).map(({ rows }) => rows)
  }

  get #left(): number {
    return this.deadline - this.#runtime.now()
  }

  /** Destroys the connection if it has no answer at the deadline, and if it can be used no longer. */
  async inTime<T>(answer: Promise<T>, plants = 0): Promise<T> {
    this.#isWaiting = true
    this.#received = 0
    this.#maxReceived = Math.min(maxAnswer + plants * maxPlant, maxText)
    const timer = setTimeout(() => this.destroy(timeIsOver()), delayOf(this.#left))
    try {
      return await answer
    } catch (error) {
      const cause = this.connection.stream.errored ?? error // the driver forgets why it cannot be used
      const failure = explain(cause, this.#account)
      const code = codeOf(failure)
      // PostgreSQL names the table in the message alone. It may be another one, such as that of somebody's trigger.
      const isOfServer = cause instanceof pg.DatabaseError
      this.lacksStore = isOfServer && missingTable.test(code) && cause.message.includes(schemaName)
      if (!isOfServer || code === readOnlyTransaction || this.lacksStore) this.destroy()
      else await this.query('').catch(() => undefined) // until the server is ready again
      throw this.lacksStore ? this.noStore() : failure
    } finally {
      clearTimeout(timer)
      this.#isWaiting = false
    }
  }

  get isIdle(): boolean {
    return (
      !this.#isWaiting && !this.connection.stream.destroyed && this.getTransactionStatus() === 'I'
    )
  }

  destroy(reason?: Error): void {
    this.connection.stream.destroy(reason)
  }

  /** Names this server: others of the address may have the store. */
  noStore(): PlantsError {
    const { name, href } = atServer(this.address, this)
    return new PlantsError('inaccessible', `There is no store at ${name}`, {
      hint: `To create a store on this server: plants stores init ${shellWord(href)}`,
    })
  }

  failure(code: string, reason: string, cause?: unknown): DatabaseFailure {
    return new DatabaseFailure(code, reason, this.#account, cause)
  }

  #rejectLogin(why: string): void {
    this.destroy(this.failure('LOGIN', why))
  }

  /** A second request violates the protocol, and the driver would answer it without asking for the password again. */
  #noteMethod(method: string): void {
    if (this.#method !== undefined) this.#rejectLogin(otherProtocol)
    this.#method = method
  }

  /** Throws when anybody else could read the password, or its MD5 hash. */
  #passwordFor(host: string, port: number): string {
    const password = this.#account.login.password({ host, port })
    if (password === undefined)
      throw this.failure('PASSWORD', 'it requires a password, but none is set')
    const isVerified = this.isSecure && verifiesServer(this.#account)
    if (this.#method === 'SCRAM' || isVerified || host.startsWith('/') || isLoopback(host))
      return password
    const why = `the server requests the password ${this.#method} over a connection that others could read`
    throw this.failure('LOGIN', why)
  }

  /** Enforces the minimum of RFC 7677: with fewer iterations, the password would be easy to guess from the response. */
  #checkIterations(challenge: string): void {
    const [, count] = /,i=(\d+)$/.exec(challenge) ?? []
    if (Number(count) >= 4096) return
    this.#rejectLogin(`it requests ${count} SCRAM iterations, but the minimum is 4096`)
  }

  /** Also turns parse errors, which the driver throws in a socket event, into errors of the socket. */
  #boundAnswers(): void {
    const { stream } = this.connection
    for (const read of stream.listeners('data')) {
      stream.removeListener('data', read as () => void)
      stream.on('data', (chunk: Buffer) => {
        this.#received += chunk.length
        try {
          if (this.#received > this.#maxReceived) throw this.failure('TOO_LARGE', responseTooLarge)
          read.call(stream, chunk)
        } catch (error) {
          stream.destroy(explain(error, this.#account))
        }
      })
    }
  }
}

const unproven = 'the server has not proved that it knows the password'
export const responseTooLarge = 'its response is too large'

/** A working server cancels a statement so many milliseconds before the deadline, so that the connection is kept. */
const maxGrace = 1000

/** Bytes of the answer to a statement. A page has 1 MB. */
export const maxAnswer = 2 ** 26
/** What each plant that is requested by its id adds, up to the maximum size of a JavaScript string. */
const maxPlant = 2 ** 20
const maxText = 2 ** 29

/** Errors of a table or its schema. */
const missingTable = /^(42P01|3F000)$/

const readOnlyTransaction = '25006'

/**
 * For each transaction: behind PgBouncer, the next one may go to another session. Only built-in functions and operators
 * are found (https://www.postgresql.org/docs/current/ddl-schemas.html#DDL-SCHEMAS-PATTERNS), and a commit returns when
 * it is on disk.
 */
const pinned = ['SET LOCAL search_path = pg_catalog, pg_temp', 'SET LOCAL synchronous_commit = on']

const state = `SELECT current_setting('server_encoding') || ' ' || current_setting('client_encoding'),
  current_setting('fsync'), pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean,
  has_function_privilege('pg_control_system()', 'EXECUTE')`

/** Like libpq, `require` verifies the server if a root certificate is configured. */
function verifiesServer({ address: { sslmode }, login: { ca } }: Account): boolean {
  return sslmode.startsWith('verify') || (sslmode === 'require' && ca !== undefined)
}

function tlsOptions(account: Account) {
  const { ca, cert, key } = account.login
  const anyHost = account.address.sslmode !== 'verify-full' && {
    checkServerIdentity: () => undefined,
  }
  return { rejectUnauthorized: verifiesServer(account), ca, cert, key, ...anyHost }
}
