/** Statements on one connection, and transactions of them. */
import { finished } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { assertDefined, PlantsError } from '../../errors.js'
import { within } from '../../platform/runtime.js'
import type { StoreServer } from '../store.js'
import { type Access, formatHost } from './address.js'
import { LimitedClient } from './client.js'
import { ReadOnlyServerError, toPlantsError, wasRolledBack } from './errors.js'

export type Row = (string | null)[]
type Result = pg.QueryArrayResult<Row>

/** What the server says besides its answers. */
interface Notice {
  code: string | undefined
  message: string | undefined
}

/**
 * @throws {PlantsError} `accessDenied` if a plant would not be safe there, `unavailable` if the
 * server is read-only and the address asks for one that accepts writes
 */
export async function examineServer(connection: PostgresConnection): Promise<StoreServer> {
  const [[encoding, fsync, isReadOnly] = []] = await connection.read(
    `SELECT current_setting('server_encoding'), current_setting('fsync'),
      current_setting('transaction_read_only')`,
  )
  const { name } = connection
  if (encoding !== 'UTF8')
    throw new PlantsError('accessDenied', `${name} has the encoding ${encoding} instead of UTF8`)
  if (fsync === 'off')
    throw new PlantsError(
      'accessDenied',
      `${name} confirms plants before they are on disk: fsync is off`,
    )
  const server = { name: connection.server, isReadOnly: isReadOnly === 'on' }
  if (server.isReadOnly && !connection.mayBeReadOnly)
    throw new PlantsError('unavailable', `${name} is read-only at the moment`, {
      hint: nameWritable,
    })
  return server
}

const nameWritable =
  'Add the server that accepts writes to the address, or read from this one with target_session_attrs=any'

/** Each statement has the timeout, and fails with a `PlantsError`. */
export class PostgresConnection {
  readonly name: string
  /** Its host and its port, as they are in an address. */
  readonly server: string
  /** Whether the address allows a server that is read-only. */
  readonly mayBeReadOnly: boolean
  readonly #client: LimitedClient
  readonly #access: Access
  /** The server cancels it before. */
  readonly #limit: { query_timeout: number }
  /** Whether the server may still work on a statement, because it has not answered it. */
  #isResponseMissing = false

  constructor(client: pg.ClientBase, access: Access) {
    // A pool makes clients of the class that it was given, but its type does not say so.
    if (!(client instanceof LimitedClient)) throw new TypeError('The client has no limits')
    this.name = access.address.name
    this.server = formatHost(client)
    this.mayBeReadOnly = access.address.targetSessionAttrs === 'any'
    this.#client = client
    this.#access = access
    this.#limit = { query_timeout: access.timeoutMs + 1000 }
  }

  /**
   * Reads in a transaction of its own, which is one message. That has no parameters: values are
   * literals.
   */
  async read(select: string, maxRows = 1): Promise<Row[]> {
    const { rows } = await this.query(`${this.#settings()}; ${select}`, [], maxRows)
    return rows
  }

  begin(settings: string): Promise<Result> {
    return this.query(`BEGIN; ${this.#settings()}; ${settings}`)
  }

  /**
   * @param maxRows that all statements of the text can return. A server that sends more than that
   * would fill the memory: it gets an error.
   * @returns the result of the last one of the statements
   */
  async query(text: string, values: unknown[] = [], maxRows = 0): Promise<Result> {
    return assertDefined((await this.#query(text, values, maxRows)).at(-1))
  }

  /**
   * Runs statements, whose values are literals, one after the other. Many of them are one message,
   * because waiting for an answer takes longer than most of them.
   *
   * @param maxRows that each of the statements can return
   * @returns the result of each of them
   */
  async queryEach(statements: readonly string[], maxRows = 0): Promise<Result[]> {
    const results: Result[] = []
    for (let start = 0; start < statements.length; start += maxStatementsPerMessage) {
      const batch = statements.slice(start, start + maxStatementsPerMessage)
      results.push(...(await this.#query(batch.join(';'), [], batch.length * maxRows)))
    }
    return results
  }

  async #query(text: string, values: unknown[], maxRows: number): Promise<Result[]> {
    this.#client.limitRows(maxRows)
    const query = { text, values, rowMode: 'array' as const, ...this.#limit }
    const answer: Promise<Result | Result[]> = this.#client.query<Row>(query)
    const result = await this.#waitFor(answer)
    return Array.isArray(result) ? result : [result]
  }

  /**
   * If `work` throws, the end of the connection rolls it back.
   *
   * @param lockTimeoutMs in milliseconds; by default the timeout
   * @throws {PlantsError} `unknownOutcome` when COMMIT was sent, and no answer says what became of
   * it, and `unavailable` at a server that is read-only
   */
  async transaction<T>(
    work: () => Promise<T>,
    shouldCommit: (result: T) => boolean = () => true,
    lockTimeoutMs = 0,
  ): Promise<T> {
    await this.begin(`SET LOCAL lock_timeout = ${lockTimeoutMs}; SAVEPOINT changes`)
    if (this.mayBeReadOnly) await this.#assertWritable()
    const result = await work()
    if (shouldCommit(result)) await this.#commit()
    else await this.query('ROLLBACK')
    return result
  }

  /**
   * It is asked each time: a standby may have been promoted since the connection was made, and the
   * errors of statements on a standby have several codes.
   */
  async #assertWritable(): Promise<void> {
    const { rows } = await this.query("SELECT current_setting('transaction_read_only')", [], 1)
    if (rows[0]?.[0] === 'on') throw new ReadOnlyServerError(this.server)
  }

  /**
   * Lets COMMIT wait for a synchronous standby although nothing else was written.
   *
   * PostgreSQL waits for a standby only if the transaction has written to its log. One that finds
   * its plants stored has not, and their own commit may not have reached the standby: its wait may
   * have been canceled. So it logs a message, which changes no data and needs no privileges: a
   * standby that has the message has all that was logged before. (`pg_current_xact_id()` is not
   * enough, because it logs nothing.)
   */
  async logMessage(): Promise<void> {
    await this.query("SELECT pg_logical_emit_message(true, 'plants', '')", [], 1)
  }

  async #commit(): Promise<void> {
    let warning: string | undefined
    const keepFirstWarning = ({ code, message }: Notice) => {
      if (code?.startsWith(warningClass)) warning ??= message ?? ''
    }
    this.#client.on('notice', keepFirstWarning)
    const { command } = await this.query('COMMIT')
      .catch((cause: unknown) => {
        if (wasRolledBack(cause)) throw cause
        const isInterrupted = this.#access.runtime.handleSignals().aborted
        const end = isInterrupted ? 'interrupted' : 'lost'
        const what = `The connection to ${this.name} was ${end} during a commit`
        throw createUnknownOutcomeError(what, 'Look', cause)
      })
      .finally(() => this.#client.off('notice', keepFirstWarning))
    if (command !== 'COMMIT')
      throw new PlantsError('unavailable', `${this.name} rolled back the transaction`)
    // It is stored here, but whether a standby has it, too, is unknown.
    if (warning === undefined) return
    const what = `${this.name} warned during a commit (${warning})`
    throw createUnknownOutcomeError(what, 'Wait until its standby is connected, then look')
  }

  /**
   * Returns the number of rows.
   *
   * @param onWait is called when all rows are on their way
   */
  async insertByCopy(table: string, rows: string, onWait?: () => void): Promise<number> {
    const copy = Object.assign(copyFrom(`COPY ${table} FROM STDIN`), this.#limit)
    this.#client.limitRows(0)
    const stream = this.#client.query(copy)
    stream.write(rows, (error) => {
      if (!error) onWait?.()
    })
    stream.end()
    await this.#waitFor(finished(stream))
    return stream.rowCount
  }

  /**
   * Reads the rows of a query in the text format of COPY, in a transaction that the end of the
   * connection rolls back. The timeout is that of each chunk.
   */
  async *copyOut(select: string): AsyncGenerator<Buffer> {
    const { runtime, timeoutMs } = this.#access
    const signal = runtime.handleSignals()
    await this.begin('SET LOCAL statement_timeout = 0')
    signal.throwIfAborted()
    this.#client.endLimit()
    this.#isResponseMissing = true
    try {
      const stream = this.#client.query(copyTo(`COPY (${select}) TO STDOUT`))
      const chunks: AsyncIterator<Buffer> = stream[Symbol.asyncIterator]()
      for (;;) {
        const chunk = await within(timeoutMs, [signal], (silence) => {
          silence.onabort = () => stream.destroy(silence.reason)
          return chunks.next()
        })
        if (chunk.done) break
        yield chunk.value
        signal.throwIfAborted()
      }
      this.#isResponseMissing = false
    } catch (error) {
      throw this.#toFailure(error)
    }
  }

  /** Cancels the statement that the server has not answered, before the connection is dropped. */
  async cancel(): Promise<void> {
    if (this.#isResponseMissing) await this.#client.cancelStatement()
  }

  async #waitFor<T>(answer: Promise<T>): Promise<T> {
    const signal = this.#access.runtime.handleSignals()
    this.#isResponseMissing = true
    try {
      const result = await waitUntilSignal(answer, signal)
      this.#isResponseMissing = false
      return result
    } catch (error) {
      throw this.#toFailure(error)
    }
  }

  /** @throws the reason of a signal, which is why the statement failed */
  #toFailure(error: unknown): PlantsError {
    if (error instanceof pg.DatabaseError) this.#isResponseMissing = false
    this.#access.runtime.handleSignals().throwIfAborted()
    return toPlantsError(error, this.#access)
  }

  /**
   * For each transaction, because behind PgBouncer the next one may have another session. Names
   * without a schema are PostgreSQL's own, a commit returns when it is on disk, a plant that
   * violates a constraint fails itself, and a warning about a commit is sent.
   */
  #settings(): string {
    return `SET LOCAL search_path = pg_catalog; SET LOCAL synchronous_commit = on;
      SET LOCAL client_min_messages = warning;
      SET LOCAL statement_timeout = ${this.#access.timeoutMs}; SET CONSTRAINTS ALL IMMEDIATE`
  }
}

/** With texts of 1 MiB, a message has at most 200 MiB. */
const maxStatementsPerMessage = 100

/** How long what is running may go on after a signal: most of it ends, and is known to have. */
const graceMs = 250

/** @throws the reason of the signal if it aborts, and the answer does not come soon after that */
export async function waitUntilSignal<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  let startTimer = () => {}
  const interrupted = new Promise<never>((_, reject) => {
    startTimer = () => {
      timer = setTimeout(() => reject(signal.reason), graceMs)
    }
  })
  signal.addEventListener('abort', startTimer)
  if (signal.aborted) startTimer()
  try {
    return await Promise.race([answer, interrupted])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', startTimer)
  }
}

/**
 * The class of SQLSTATE that warnings have. Their severity, `WARNING`, is translated.
 * See https://www.postgresql.org/docs/current/errcodes-appendix.html.
 */
const warningClass = '01'

function createUnknownOutcomeError(what: string, firstStep: string, cause?: unknown): PlantsError {
  const message = `${what}: whether it is stored is unknown`
  const hint = `${firstStep} at what is stored before you repeat it`
  return new PlantsError('unknownOutcome', message, { hint, cause })
}
