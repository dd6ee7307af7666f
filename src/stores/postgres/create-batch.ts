/**
 * Stores creates that arrive together in one transaction.
 *
 * A commit takes longer than an insert, and there are few connections. So creates join a batch
 * while the batch waits for a connection. When its transaction has begun, the batch is closed, and
 * the next create opens another one.
 *
 * A create may have to wait for another program, which has inserted the same id and not committed.
 * All creates of its batch would wait with it. So after a second, the batch is rolled back, and
 * each of its creates gets a separate transaction.
 *
 * docs/design/group-commit.md compares this with SQLite.
 */
import { assertDefined } from '../../errors.js'
import { type Create, isRepeatable, type Outcome } from '../change.js'
import type { PostgresChangeApplier } from './apply.js'
import type { PostgresConnection } from './connection.js'
import type { PostgresDatabase } from './database.js'
import { isLockTimeout } from './explain.js'

/** A batch of several creates waits for a lock no longer than this. */
const lockTimeoutMs = 1000

/** `locked` means that the batch had to wait too long for a lock, and nothing of it is stored. */
type BatchResult = Outcome[] | 'locked'

export class CreateBatch {
  readonly #creates: Create[] = []
  readonly #result: Promise<BatchResult>
  #isOpen = true

  constructor(
    private readonly database: PostgresDatabase,
    private readonly applier: PostgresChangeApplier,
  ) {
    this.#result = this.#storeAll()
  }

  /** This is true until the transaction begins. Call `add` only while it is true. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  async add(create: Create): Promise<Outcome> {
    const index = this.#creates.push(create) - 1
    const result = await this.#result
    return result === 'locked' ? this.#storeAlone(create) : assertDefined(result[index])
  }

  async #storeAll(): Promise<BatchResult> {
    // Even if a connection is free, this lets the creates of the same iteration of the event loop
    // join.
    await new Promise(setImmediate)
    try {
      return await this.database.change(
        (connection) => this.#storeInTransaction(connection),
        () => this.#creates.every(isRepeatable),
      )
    } finally {
      this.#isOpen = false
    }
  }

  #storeInTransaction(connection: PostgresConnection): Promise<BatchResult> {
    this.#isOpen = false
    const creates = this.#creates
    if (creates.length === 1)
      return connection.transaction(() => this.applier.apply(connection, creates))
    const store = () => this.#applyUnlessLocked(connection)
    return connection.transaction(store, (result) => result !== 'locked', lockTimeoutMs)
  }

  async #applyUnlessLocked(connection: PostgresConnection): Promise<BatchResult> {
    try {
      return await this.applier.apply(connection, this.#creates)
    } catch (error) {
      if (isLockTimeout(error)) return 'locked'
      throw error
    }
  }

  async #storeAlone(create: Create): Promise<Outcome> {
    const creates = [create]
    const [outcome] = await this.database.change(
      (connection) => connection.transaction(() => this.applier.apply(connection, creates)),
      () => creates.every(isRepeatable),
    )
    return assertDefined(outcome)
  }
}
