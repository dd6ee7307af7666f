/**
 * Stores creates that arrive together in one transaction.
 *
 * A commit takes longer than an insert, and there are few connections. So creates join a batch
 * while that waits for a connection. When its transaction has begun, the batch is closed, and the
 * next create opens another one.
 *
 * A create may have to wait for another program, which has inserted the same id and not committed.
 * All creates of its batch would wait with it. So after a second, the batch is rolled back, and
 * each of its creates gets a separate transaction.
 *
 * docs/design/group-commit.md compares this with SQLite.
 */
import { assertDefined } from '../../errors.js'
import type { Create, Outcome } from '../change.js'
import type { PostgresConnection } from './connection.js'
import type { PostgresDatabase } from './database.js'
import { isLockTimeout } from './errors.js'
import { makeChanges } from './write.js'

/** A batch of several creates waits no longer for a lock. */
const lockTimeoutMs = 1000

/** `locked` means that the batch had to wait too long for a lock, and nothing of it is stored. */
type BatchResult = Outcome[] | 'locked'

export class CreateBatch {
  readonly #database: PostgresDatabase
  readonly #creates: Create[] = []
  readonly #result: Promise<BatchResult>
  #isOpen = true

  constructor(database: PostgresDatabase) {
    this.#database = database
    this.#result = this.#storeAll()
  }

  /** Call `add` only while this is true, which is until the transaction begins. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  async add(create: Create): Promise<Outcome> {
    const index = this.#creates.push(create) - 1
    const result = await this.#result
    if (result === 'locked') return storeSeparately(this.#database, create)
    return assertDefined(result[index])
  }

  async #storeAll(): Promise<BatchResult> {
    // Even if a connection is free, this lets the creates of the same iteration of the event loop
    // join.
    await new Promise(setImmediate)
    try {
      return await this.#database.run(
        (connection) => this.#storeOn(connection),
        () => mayRepeatCommit(this.#creates),
      )
    } finally {
      this.#isOpen = false
    }
  }

  #storeOn(connection: PostgresConnection): Promise<BatchResult> {
    this.#isOpen = false
    const creates = this.#creates
    if (creates.length === 1) return connection.transaction(() => makeChanges(connection, creates))
    const store = () => makeUnlessLocked(connection, creates)
    return connection.transaction(store, (result) => result !== 'locked', lockTimeoutMs)
  }
}

async function makeUnlessLocked(
  connection: PostgresConnection,
  creates: readonly Create[],
): Promise<BatchResult> {
  try {
    return await makeChanges(connection, creates)
  } catch (error) {
    if (isLockTimeout(error)) return 'locked'
    throw error
  }
}

async function storeSeparately(database: PostgresDatabase, create: Create): Promise<Outcome> {
  const creates = [create]
  const [outcome] = await database.run(
    (connection) => connection.transaction(() => makeChanges(connection, creates)),
    () => mayRepeatCommit(creates),
  )
  return assertDefined(outcome)
}

/**
 * If nobody knows whether a commit happened, it may be repeated only if every create has an
 * idempotency key: a create that was stored then succeeds again. Without a key, it would find its
 * own plant, and report a conflict.
 */
function mayRepeatCommit(creates: readonly Create[]): boolean {
  return creates.every(({ key }) => key !== undefined)
}
