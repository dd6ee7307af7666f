/**
 * Stores creates that arrive together in one transaction.
 *
 * A commit takes longer than an insert, and there are few connections. So while a batch waits for
 * one, further creates join it. When its transaction has begun, the next create opens another.
 *
 * One create of a batch may have to wait for another program, which has locked its id. The others
 * would wait with it: after a second, the batch is given up, and each create gets a transaction of
 * its own.
 *
 * docs/design/group-commit.md compares this with SQLite.
 */
import { assertDefined } from '../../errors.js'
import type { Create, Outcome } from '../change.js'
import type { PostgresConnection } from './connection.js'
import type { PostgresDatabase } from './database.js'
import { isLockTimeout } from './errors.js'
import { makeChanges } from './write.js'

/** How long a batch of several creates waits for a lock. */
const lockTimeoutMs = 1000

/** Nothing of a batch that was `locked` is stored. */
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

  /** Whether `add` may be called: until the transaction begins. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  async add(create: Create): Promise<Outcome> {
    const index = this.#creates.push(create) - 1
    const result = await this.#result
    return result === 'locked' ? storeAlone(this.#database, create) : assertDefined(result[index])
  }

  async #storeAll(): Promise<BatchResult> {
    // The creates of this iteration of the event loop join, even if a connection is free.
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

async function storeAlone(database: PostgresDatabase, create: Create): Promise<Outcome> {
  const creates = [create]
  const [outcome] = await database.run(
    (connection) => connection.transaction(() => makeChanges(connection, creates)),
    () => mayRepeatCommit(creates),
  )
  return assertDefined(outcome)
}

/** With an idempotency key, a create that was made succeeds again. */
function mayRepeatCommit(creates: readonly Create[]): boolean {
  return creates.every(({ key }) => key !== undefined)
}
