import { PlantsError } from '../../platform/errors.js'
import type { Call, ConnectionPool } from './pool.js'
import type { Connection } from './postgres-connection.js'
import { codeOf, fsyncIsOff, unknownCommit } from './postgres-errors.js'
import { literal, type Row } from './sql.js'

type Work<T> = (transaction: Transaction) => Promise<T>

/** Repeats a transaction until it is known to have committed, or the time is over. */
export function transact<T>(pool: ConnectionPool, work: Work<T>, call = pool.newCall()): Promise<T> {
  return pool.retry(call, async () => transactOnce(pool, await pool.lease(call), call, work))
}

/**
 * Releases the connection. When the answer to COMMIT is lost, asks over another one what became of it.
 *
 * @throws {PlantsError} `unknownOutcome` if the server does not report that
 */
export async function transactOnce<T>(
  pool: ConnectionPool,
  connection: Connection,
  { signal }: Call,
  work: Work<T>,
): Promise<T> {
  const transaction = new Transaction(connection)
  let result: T
  let failure: unknown
  try {
    result = await work(transaction)
    signal.throwIfAborted()
    failure = await connection.ask('COMMIT').then(
      () => undefined,
      (error: unknown) => error,
    )
  } catch (error) {
    await connection.rollBack()
    throw error
  } finally {
    pool.release(connection)
  }
  if (failure === undefined) return result
  const call = pool.newCall()
  const asking = pool.retry(call, () => pool.use(call, (other) => transaction.hasCommitted(other)))
  const hasCommitted = await asking.catch((error: unknown) => {
    throw unknownCommit(connection.address.name, error)
  })
  if (hasCommitted) return result
  throw failure
}

/** The statements of one transaction, which begins with the first of them. */
export class Transaction {
  readonly connection: Connection
  #number: string | undefined
  #server: string | undefined
  #isBegun = false
  /**
   * A query for what it has stored. A server that has crashed may give a number again that it has not written to
   * disk, so that a number alone does not prove that this transaction has committed.
   */
  evidence: string | undefined

  constructor(connection: Connection) {
    this.connection = connection
  }

  /** See `Connection.ask`. */
  async ask(text: string, plants?: number): Promise<Row[]> {
    if (this.#isBegun) return this.connection.ask(text, plants)
    this.#isBegun = true
    const identity = this.connection.canSettle ? `pg_current_xact_id(), (${server})` : 'NULL, NULL'
    const begin = `BEGIN; SELECT current_setting('fsync'), ${identity}`
    const [, [begun = []] = [], ...results] = await this.connection.askAll(`${begin}; ${text}`, plants)
    const [fsync, number, serverNow] = begun
    if (fsync === 'off') throw fsyncIsOff(this.connection.address.name)
    this.#number = number ?? undefined
    this.#server = serverNow ?? undefined
    return results.at(-1) ?? []
  }

  /**
   * If commits wait for standbys, the answer counts once a later commit has reached them, too.
   *
   * @throws {Error} for an outcome that is not known yet, or cannot be
   */
  async hasCommitted(connection: Connection): Promise<boolean> {
    if (this.#number === undefined || !connection.canSettle) throw new Error('The server does not report the outcome')
    const status = `SELECT CASE (${server}) WHEN ${literal(this.#server)} THEN pg_xact_status('${this.#number}') END`
    const question = [status, this.evidence ?? 'SELECT true', reachStandbys].join('; ')
    const answers = await connection.askAll(question).catch((error: unknown) => {
      if (codeOf(error) === unknownTransaction) return [[['aborted']]]
      throw error
    })
    const [[[state] = []] = [], [[evidence] = []] = []] = answers
    if (state === 'in progress')
      throw new PlantsError('unavailable', 'The commit is still in progress', { retryable: true })
    if (state === 'aborted') return false
    if (state === 'committed' && evidence === 't') return true
    throw new Error('The server does not report the outcome')
  }
}

/** Its commit was lost with the memory of a server. */
const unknownTransaction = '22023'

/** Changes with a promotion: the new server may have lost transactions, and gives their numbers again. */
const server = `SELECT system_identifier || ' ' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
  FROM pg_control_system()`

/** A commit that waits until the standbys have everything that was committed before, if commits wait for them. */
export const reachStandbys = `SELECT pg_logical_emit_message(true, 'plants', '')
  WHERE current_setting('synchronous_standby_names') <> ''`
