import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { must, PlantsError } from '../../platform/errors.js'
import { timeIsOver } from '../../platform/runtime.js'
import { type Account, closesConnection, explained, wasRolledBack } from './errors.js'

export type Row = (string | null)[]
type Result = pg.QueryArrayResult<Row>

/** What a call says over a connection. Each statement has the timeout, and fails with a `PlantsError`. */
export class Connection {
  /** Of the database, for messages. */
  readonly name: string
  /** Whether it is closed, still waits for an answer, or leads to a server that is read-only. */
  isLost = false
  readonly #account: Account
  readonly #client: pg.ClientBase
  readonly #timeoutMs: number
  /** What begins a transaction, until its first statement, with which it shares a message. */
  #begin = ''

  constructor(client: pg.ClientBase, account: Account, timeoutMs: number) {
    this.name = account.address.name
    this.#account = account
    this.#client = client
    this.#timeoutMs = timeoutMs
  }

  /** Reads in a transaction of its own, which is one message. That has no parameters: values are literals. */
  async read(select: string): Promise<Row[]> {
    const { rows } = await this.query(`${this.#settings()}; ${select}`)
    return rows
  }

  /** In a transaction. Returns the result of the last statement; one with parameters is a message alone. */
  async query(statement: string, values?: unknown[]): Promise<Result> {
    const begin = this.#begin
    this.#begin = ''
    if (values && begin !== '') await this.query(begin)
    const text = values ? statement : begin + statement
    const query = values ? { text, values } : { text }
    const answer: Promise<Result | Result[]> = this.#client.query<Row>({
      ...query,
      rowMode: 'array',
    })
    const result = await this.#inTime(answer)
    return Array.isArray(result) ? must(result.at(-1)) : result
  }

  /**
   * Commits what `work` does, or rolls it back if it throws or `commits` returns false.
   *
   * @throws {PlantsError} `unknownOutcome` when COMMIT was sent, and no answer says what became of it
   */
  async transaction<T>(
    work: () => Promise<T>,
    commits: (result: T) => boolean = () => true,
  ): Promise<T> {
    this.#begin = `BEGIN; ${this.#settings()}; SAVEPOINT changes;`
    const result = await work().catch(async (error: unknown) => {
      await this.query('ROLLBACK').catch(() => undefined) // The pool drops the connection then.
      throw error
    })
    if (!commits(result)) {
      await this.query('ROLLBACK')
      return result
    }
    await this.query('COMMIT').catch((cause: unknown) => {
      if (wasRolledBack(cause)) throw cause
      const why = `The connection to ${this.name} was lost during a commit`
      const hint =
        'When the database is available again, look at what is stored before you repeat it'
      throw new PlantsError('unknownOutcome', `${why}: whether it is stored is unknown`, {
        hint,
        cause,
      })
    })
    return result
  }

  /** In a transaction: stores rows in the text format of COPY. Returns their number. */
  async copyIn(table: string, rows: Iterable<string>): Promise<number> {
    await this.query('')
    const stream = this.#client.query(copyFrom(`COPY ${table} FROM STDIN`))
    await this.#inTime(pipeline(rows, stream))
    return stream.rowCount
  }

  /** One consistent snapshot in the text format of COPY. Each piece has the timeout. */
  async *copyOut(select: string): AsyncGenerator<Buffer> {
    await this.query(`BEGIN; ${this.#settings()}; SET LOCAL statement_timeout = 0`)
    const stream = this.#client.query(copyTo(`COPY (${select}) TO STDOUT`))
    const pieces: AsyncIterator<Buffer> = stream[Symbol.asyncIterator]()
    for (;;) {
      const { value, done } = await this.#inTime(pieces.next())
      if (done) break
      yield value
    }
    await this.query('COMMIT')
  }

  /**
   * For each transaction, because behind PgBouncer the next one may have another session. What has no schema is found in
   * PostgreSQL's own alone, a commit returns when it is on disk, and a plant that violates a constraint fails itself.
   */
  #settings(): string {
    return `SET LOCAL search_path = pg_catalog; SET LOCAL synchronous_commit = on;
      SET LOCAL statement_timeout = ${Math.ceil(this.#timeoutMs)}; SET CONSTRAINTS ALL IMMEDIATE`
  }

  /**
   * Rejects if there is no answer some time after a working server has cancelled the statement. The driver's own
   * `query_timeout` would end a stream of COPY while it is read, and keep the process running after that.
   */
  #inTime<T>(answer: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(timeIsOver()), this.#timeoutMs + graceMs)
    })
    return Promise.race([answer, late])
      .catch((error: unknown) => {
        this.isLost ||= closesConnection(error)
        throw explained(error, this.#account)
      })
      .finally(() => clearTimeout(timer))
  }
}

const graceMs = 1000

/** A text in a message without parameters. */
export const literal = pg.escapeLiteral
