/**
 * Runs statements on one connection, and transactions of them. Each statement has the timeout, and
 * fails with a `PlantsError`.
 *
 * When a statement fails, the connection is dropped by its caller. So nothing here tidies up after
 * a failure: the server rolls back the transaction of a connection that ends.
 */
import { finished } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { assertDefined, PlantsError } from '../../errors.js'
import { runWithin } from '../../platform/runtime.js'
import { createUnknownOutcomeError } from '../change.js'
import type { StoreServer } from '../store.js'
import { formatHost, type PostgresAccess } from './address.js'
import { isSettingRejected, ReadOnlyServerError, toPlantsError, wasRolledBack } from './explain.js'
import { waitUntilSignal } from './wait-until-signal.js'

export type Row = (string | null)[]
type Result = pg.QueryArrayResult<Row>

/** The server sends notices and warnings in addition to the response to a statement. */
interface Notice {
  code: string | undefined
  message: string | undefined
}

/**
 * @throws {PlantsError} `accessDenied` if the server could lose or change a plant, `unavailable` if
 *   the server is read-only and the address asks for a server that accepts writes
 */
export async function examineServer(connection: PostgresConnection): Promise<StoreServer> {
  const [[encoding, fsync, isReadOnly] = []] = await connection.readFirst(
    `SELECT current_setting('server_encoding'), current_setting('fsync'),
      current_setting('transaction_read_only')`,
  )
  const { name } = connection
  if (encoding !== 'UTF8')
    throw new PlantsError('accessDenied', `${name} has the encoding ${encoding} instead of UTF8`, {
      hint: 'Create another database with: CREATE DATABASE NAME ENCODING UTF8 TEMPLATE template0',
    })
  if (fsync === 'off')
    throw new PlantsError(
      'accessDenied',
      `${name} confirms plants before they are on disk: fsync is off`,
      { hint: 'Set fsync = on in postgresql.conf' },
    )
  const server = { name: connection.server, isReadOnly: isReadOnly === 'on' }
  if (server.isReadOnly && !connection.mayBeReadOnly)
    throw new PlantsError('unavailable', `${name} is read-only at the moment`, {
      hint: 'Add the server that accepts writes to the address',
    })
  return server
}

export class PostgresConnection {
  readonly name: string
  /** This has the form of an address, such as `[::1]:5432`. */
  readonly server: string
  /** This is true if the address allows a server that is read-only. */
  readonly mayBeReadOnly: boolean
  /**
   * The driver waits a second longer than the server, which usually cancels the statement first.
   */
  readonly #clientTimeout: { query_timeout: number }

  constructor(
    private readonly client: pg.ClientBase,
    private readonly access: PostgresAccess,
  ) {
    // A pool creates clients of this class, but its type does not say so.
    if (!(client instanceof pg.Client)) throw new TypeError('The client has no host')
    this.name = access.address.name
    this.server = formatHost(client)
    this.mayBeReadOnly = access.address.targetSessionAttrs === 'any'
    this.#clientTimeout = { query_timeout: access.timeoutMs + 1000 }
  }

  /**
   * Reads in a separate transaction. The settings and the statement are sent as one message, which
   * cannot have parameters: `select` must contain its values as literals.
   */
  async read(select: string): Promise<Row[]> {
    const { rows } = await this.query(`${this.#formatSettings()}; ${select}`)
    return rows
  }

  /**
   * Reads as the first statement of a connection. It finds out whether the server accepts the
   * setting by which it notices that its client has gone: on Windows, it does not.
   */
  async readFirst(select: string): Promise<Row[]> {
    try {
      return await this.read(select)
    } catch (error) {
      if (!isSettingRejected(error)) throw error
      clientsWithoutCheck.add(this.client)
      return this.read(select)
    }
  }

  begin(settings: string): Promise<Result> {
    return this.query(`BEGIN; ${this.#formatSettings()}; ${settings}`)
  }

  /** Returns the result of the last statement of `sql`. */
  async query(sql: string, values: unknown[] = []): Promise<Result> {
    return assertDefined((await this.#query(sql, values)).at(-1))
  }

  /**
   * Runs statements, whose values are literals, one after the other. Up to a hundred statements are
   * sent as one message, because a round trip takes longer than most statements.
   *
   * @returns the result of each statement
   */
  async queryEach(statements: readonly string[]): Promise<Result[]> {
    const results: Result[] = []
    for (let start = 0; start < statements.length; start += maxStatementsPerMessage) {
      const batch = statements.slice(start, start + maxStatementsPerMessage)
      results.push(...(await this.#query(batch.join(';'), [])))
    }
    return results
  }

  async #query(sql: string, values: unknown[]): Promise<Result[]> {
    const query = { text: sql, values, rowMode: 'array' as const, ...this.#clientTimeout }
    const response: Promise<Result | Result[]> = this.client.query<Row>(query)
    const result = await this.#waitForResponse(response)
    return Array.isArray(result) ? result : [result]
  }

  /**
   * Runs `work` in a transaction. If `work` throws, the caller must drop the connection, which
   * rolls back.
   *
   * @param maxLockWaitMs a statement waits no longer for a lock. The wait always ends before the
   *   statement times out, because the error of a timeout does not mention a lock.
   * @throws {PlantsError} `unknownOutcome` when COMMIT was sent and no response says whether it
   *   happened, and `accessDenied` at a read-only server
   */
  async transaction<T>(
    work: () => Promise<T>,
    shouldCommit: (result: T) => boolean = () => true,
    maxLockWaitMs = Infinity,
  ): Promise<T> {
    const lockTimeoutMs = Math.ceil(Math.min(maxLockWaitMs, this.access.timeoutMs * 0.9))
    await this.begin(`SET LOCAL lock_timeout = ${lockTimeoutMs}; SAVEPOINT changes`)
    if (this.mayBeReadOnly) await this.#assertWritable()
    const result = await work()
    if (shouldCommit(result)) await this.#commit()
    else await this.query('ROLLBACK')
    return result
  }

  /**
   * Asks the server before each transaction whether it is read-only, because a standby may have
   * been promoted since the connection was made. The error of the first change does not tell this
   * reliably: on a standby, statements fail with several codes.
   */
  async #assertWritable(): Promise<void> {
    const { rows } = await this.query("SELECT current_setting('transaction_read_only')")
    if (rows[0]?.[0] === 'on') throw new ReadOnlyServerError(this.server)
  }

  /**
   * Writes a message to the write-ahead log, so that COMMIT waits for a synchronous standby
   * although the transaction has changed nothing.
   *
   * PostgreSQL waits for a standby only if the transaction has written to its log. A transaction
   * that finds its plants stored already has not written. But the commit that stored these plants
   * may not have reached the standby, because somebody may have canceled its wait. The message
   * changes no data, and needs no privileges. A standby that has the message has everything that
   * was logged before the message. `pg_current_xact_id()` would not be enough, because it logs
   * nothing.
   */
  async writeWalMessage(): Promise<void> {
    await this.query("SELECT pg_logical_emit_message(true, 'plants', '')")
  }

  async #commit(): Promise<void> {
    let warning: string | undefined
    const keepFirstWarning = ({ code, message }: Notice) => {
      if (code?.startsWith(warningClass)) warning ??= message ?? ''
    }
    this.client.on('notice', keepFirstWarning)
    const { command } = await this.query('COMMIT')
      .catch((cause: unknown) => {
        if (wasRolledBack(cause)) throw cause
        const event = `The connection to ${this.name} was lost during a commit`
        throw createUnknownOutcomeError(event, cause)
      })
      .finally(() => this.client.off('notice', keepFirstWarning))
    if (command !== 'COMMIT')
      throw new PlantsError('unavailable', `${this.name} rolled back the transaction`)
    // The warning says that the changes are stored on this server, but perhaps not on a standby.
    if (warning === undefined) return
    throw createUnknownOutcomeError(`${this.name} warned during a commit (${warning})`)
  }

  /** @returns the number of rows that were inserted */
  async insertByCopy(table: string, rows: string): Promise<number> {
    const copy = Object.assign(copyFrom(`COPY ${table} FROM STDIN`), this.#clientTimeout)
    const stream = this.client.query(copy)
    stream.end(rows)
    await this.#waitForResponse(finished(stream))
    return stream.rowCount
  }

  /**
   * Reads the rows of a query in the text format of COPY. The caller must drop the connection
   * afterwards, because its transaction is not ended. A large table may take longer than the
   * timeout, so the timeout only limits the wait for each chunk.
   */
  async *copyOut(select: string): AsyncGenerator<Buffer> {
    const { runtime, timeoutMs } = this.access
    const signal = runtime.getStopSignal()
    await this.begin('SET LOCAL statement_timeout = 0')
    signal.throwIfAborted()
    try {
      const stream = this.client.query(copyTo(`COPY (${select}) TO STDOUT`))
      const chunks: AsyncIterator<Buffer> = stream[Symbol.asyncIterator]()
      for (;;) {
        // Without `destroy`, `next` would wait for a server that has stopped to send.
        const chunk = await runWithin(timeoutMs, [signal], (deadline) => {
          deadline.onabort = () => stream.destroy(deadline.reason)
          return chunks.next()
        })
        if (chunk.done) break
        yield chunk.value
        signal.throwIfAborted()
      }
    } catch (error) {
      throw this.#toCallError(error)
    }
  }

  async #waitForResponse<T>(response: Promise<T>): Promise<T> {
    const signal = this.access.runtime.getStopSignal()
    try {
      return await waitUntilSignal(response, signal)
    } catch (error) {
      throw this.#toCallError(error)
    }
  }

  /**
   * @throws the reason of a signal, if the signal has aborted: then the statement failed because of
   *   it
   */
  #toCallError(error: unknown): PlantsError {
    this.access.runtime.getStopSignal().throwIfAborted()
    return toPlantsError(error, this.access)
  }

  /**
   * Each transaction makes these settings, because PgBouncer may give the next transaction another
   * session. The owner of the database may have other defaults, with which a store would not be
   * safe:
   *
   * - `search_path`: a name without a schema must be PostgreSQL's, and not a function of somebody;
   * - `synchronous_commit`: a commit must return only when it is on the disk;
   * - `client_min_messages`: a warning about a commit must be sent, as `#commit` reads it;
   * - `client_connection_check_interval`: the server must end a statement whose client has gone,
   *   because `max` limits the statements that run there;
   * - `CONSTRAINTS ALL IMMEDIATE`: a plant that violates a deferred constraint must fail at once,
   *   and not the commit of all plants.
   */
  #formatSettings(): string {
    const check = clientsWithoutCheck.has(this.client)
      ? ''
      : 'SET LOCAL client_connection_check_interval = 500;'
    return `${check} SET LOCAL search_path = pg_catalog; SET LOCAL synchronous_commit = on;
      SET LOCAL client_min_messages = warning;
      SET LOCAL statement_timeout = ${this.access.timeoutMs}; SET CONSTRAINTS ALL IMMEDIATE`
  }
}

/** The clients of servers that do not accept `client_connection_check_interval`. */
const clientsWithoutCheck = new WeakSet<pg.ClientBase>()

/** A name and a tag may have 1 MiB each, so a message has at most about 200 MiB. */
const maxStatementsPerMessage = 100

/**
 * The SQLSTATE of a warning begins with these digits. Its severity cannot be compared, because the
 * server translates `WARNING` (https://www.postgresql.org/docs/current/errcodes-appendix.html).
 */
const warningClass = '01'
