import { PlantsError } from '../../platform/errors.js'
import type { Call, ConnectionPool } from './pool.js'
import type { Connection } from './postgres-connection.js'
import { codeOf, statementCanceled } from './postgres-errors.js'
import { literal, type Row } from './sql.js'

type Work<T> = (transaction: PostgresTransaction) => Promise<T>

/** Repeats a transaction until it is known to have committed, or the call ends. */
export function transact<T>(
  pool: ConnectionPool,
  work: Work<T>,
  call = pool.newCall(),
): Promise<T> {
  return pool.retry(call, async () => transactOnce(pool, await pool.lease(call), call, work))
}

/**
 * Releases the connection. When the answer to COMMIT is lost, asks over another one what became of it: a third of the
 * time that is left before COMMIT is kept for that.
 *
 * @throws {PlantsError} `unknownOutcome` if the server does not report that
 */
export async function transactOnce<T>(
  pool: ConnectionPool,
  connection: Connection,
  call: Call,
  work: Work<T>,
): Promise<T> {
  const { runtime, timeout } = pool.options
  const transaction = new PostgresTransaction(pool, connection, call)
  const rollBack = () => connection.ask('ROLLBACK').catch(() => connection.destroy())
  let commit = call
  let result: T
  let failure: unknown
  try {
    result = await work(transaction)
    call.signal.throwIfAborted()
    if (!transaction.isCommitted) {
      await rollBack()
      return result
    }
    if (call.isLong) commit = pool.newCall()
    const left = commit.end - runtime.now()
    if (left < timeout * minShare)
      throw connection.failure(statementCanceled, 'too little time is left for the commit')
    connection.deadline = commit.end - left / 3
    failure = await connection.ask('COMMIT').then(
      () => undefined,
      (error: unknown) => error,
    )
  } catch (error) {
    await rollBack()
    throw error
  } finally {
    pool.release(connection)
  }
  if (failure === undefined) return result
  const question = { ...commit, signal: runtime.handleSignals() }
  const hasCommitted = await pool
    .run((other) => transaction.hasCommitted(other), question)
    .catch((cause: unknown) => {
      const { name } = connection.address
      const message = `The connection to ${name} was lost during a commit: whether it is stored is unknown`
      const hint =
        'When the database is available again, look at what is stored before you repeat it'
      throw new PlantsError('unknownOutcome', message, { hint, cause })
    })
  if (hasCommitted) return result
  throw failure
}

/** A part of the timeout: a commit with less would hardly be answered in time, and its outcome stay unknown. */
const minShare = 0.02

/** The statements of one transaction, which begins with the first of them. */
export class PostgresTransaction {
  readonly connection: Connection
  /** Whether it ends with a commit. */
  isCommitted = true
  /**
   * Conditions that hold if all that it has stored is there. A server that has crashed may give a number again that it
   * has not written to disk, so that a number alone does not prove that this transaction has committed; nor does a part
   * of what it has stored, which another client may have stored under the same number.
   */
  evidence: (() => string)[] = []
  /** Its number, and its server. */
  #identity: Row | undefined
  readonly #deferred = begin()
  readonly #pool: ConnectionPool
  readonly #call: Call

  constructor(pool: ConnectionPool, connection: Connection, call: Call) {
    this.#pool = pool
    this.connection = connection
    this.#call = call
  }

  get isBegun(): boolean {
    return !this.#deferred.includes('BEGIN')
  }

  /** Undoes all of it. A savepoint would take a number of its own for every commit. */
  async restart(): Promise<void> {
    await this.connection.ask('ROLLBACK')
    this.#deferred.push(...begin())
    this.#identity = undefined
  }

  /** A statement that is sent with the next one that is asked. */
  defer(statement: string): void {
    this.#deferred.push(statement)
  }

  /** See `Connection.ask`. */
  async ask(text: string, plants?: number): Promise<Row[]> {
    if (this.#call.isLong) this.#pool.renew(this.connection)
    const statements = [...this.#deferred.splice(0), text]
    if (this.#identity) return this.connection.ask(statements.join('; '), plants)
    const identity = this.connection.canSettle ? `pg_current_xact_id(), (${server})` : 'NULL, NULL'
    statements.push(`SELECT ${identity}, current_setting('fsync')`)
    const results = await this.connection.askAll(statements.join('; '), plants)
    const [row = []] = results.pop() ?? []
    if (row[2] === 'off') throw this.connection.fsyncIsOff()
    this.#identity = row
    return results.at(-1) ?? []
  }

  /**
   * If commits wait for standbys, the answer counts once a later commit has reached them, too.
   *
   * @throws {Error} for an outcome that is not known yet, or cannot be
   */
  async hasCommitted(connection: Connection): Promise<boolean> {
    const [number, itsServer] = this.#identity ?? []
    if (!number) throw new Error('The server does not report the outcome')
    const status = `SELECT CASE (${server}) WHEN ${literal(itsServer)} THEN pg_xact_status('${number}') END`
    const isStored = `SELECT ${['true', ...this.evidence.map((condition) => condition())].join(' AND ')}`
    const answers = await connection
      .askAll(`${status}; ${isStored}; ${reachStandbys}`)
      .catch((error: unknown) => {
        if (codeOf(error) === unknownTransaction) return [[['aborted']]]
        throw error
      })
    const [[[state] = []] = [], [[evidence] = []] = []] = answers
    if (state === 'aborted') return false
    if (state === 'committed' && evidence === 't') return true
    throw new PlantsError(
      state === 'in progress' ? 'unavailable' : 'inaccessible',
      `The server reports: ${state}`,
    )
  }
}

/** A constraint of somebody else's is checked with the plant that violates it, not at the end for all of them. */
function begin(): string[] {
  return ['BEGIN', 'SET CONSTRAINTS ALL IMMEDIATE']
}

/** Its commit was lost with the memory of a server. */
const unknownTransaction = '22023'

/** Changes with a promotion: the new server may have lost transactions, and gives their numbers again. */
const server = `SELECT system_identifier || ' ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
  FROM pg_control_system()`

/** A commit that waits until the standbys have everything that was committed before, if commits wait for them. */
export const reachStandbys = `SELECT pg_logical_emit_message(true, 'plants', '')
  WHERE current_setting('synchronous_standby_names') <> ''`
