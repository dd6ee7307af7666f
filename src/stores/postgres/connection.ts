import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { must, PlantsError } from '../../platform/errors.js'
import { type Access, explained, wasRolledBack } from './errors.js'

export type Row = (string | null)[]
type Result = pg.QueryArrayResult<Row>

/** What a call says over a connection. Each statement has the timeout, and fails with a `PlantsError`. */
export class Connection {
  /** Of the database, for messages. */
  readonly name: string
  readonly #client: pg.ClientBase
  readonly #access: Access
  readonly #timeoutMs: number

  constructor(client: pg.ClientBase, access: Access) {
    this.name = access.address.name
    this.#client = client
    this.#access = access
    this.#timeoutMs = Math.ceil(access.options.timeout)
  }

  /** Reads in a transaction of its own, which is one message. That has no parameters: values are literals. */
  async read(select: string): Promise<Row[]> {
    const { rows } = await this.query(`${this.#settings()}; ${select}`)
    return rows
  }

  /** Returns the result of the last statement; there is only one if there are values. */
  async query(text: string, values?: unknown[]): Promise<Result> {
    const query: pg.QueryArrayConfig = { text, rowMode: 'array', ...(values && { values }) }
    const answer: Promise<Result | Result[]> = this.#client.query<Row>(query)
    const result = await this.#inTime(answer)
    return Array.isArray(result) ? must(result.at(-1)) : result
  }

  /**
   * Commits what `work` does, or rolls it back if `commits` returns false, or by the end of the connection if it throws.
   *
   * @throws {PlantsError} `unknownOutcome` when COMMIT was sent, and no answer says what became of it
   */
  async transaction<T>(
    work: () => Promise<T>,
    commits: (result: T) => boolean = () => true,
  ): Promise<T> {
    await this.query(`BEGIN; ${this.#settings()}; SAVEPOINT changes`)
    const result = await work()
    if (!commits(result)) {
      await this.query('ROLLBACK')
      return result
    }
    await this.query('COMMIT').catch((cause: unknown) => {
      if (wasRolledBack(cause)) throw cause
      const message = `The connection to ${this.name} was lost during a commit: whether it is stored is unknown`
      const hint =
        'When the database is available again, look at what is stored before you repeat it'
      throw new PlantsError('unknownOutcome', message, { hint, cause })
    })
    return result
  }

  /** In a transaction: stores rows in the text format of COPY. Returns their number. */
  async copyIn(table: string, rows: Iterable<string>): Promise<number> {
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
      SET LOCAL statement_timeout = ${this.#timeoutMs}; SET CONSTRAINTS ALL IMMEDIATE`
  }

  /**
   * Rejects if there is no answer some time after a working server has cancelled the statement. The driver's own
   * `query_timeout` would end a stream of COPY while it is read, and keep the process running after that.
   */
  #inTime<T>(answer: Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('no answer in time')), this.#timeoutMs + graceMs)
    })
    return Promise.race([answer, late])
      .catch((error: unknown) => {
        throw explained(error, this.#access)
      })
      .finally(() => clearTimeout(timer))
  }
}

const graceMs = 1000

/** A text in a message without parameters. */
export const literal = pg.escapeLiteral
