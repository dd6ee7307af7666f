import { textLength } from '../../plant/plant.js'
import { must } from '../../platform/values.js'
import type { Change, Outcome } from '../common/change.js'
import type { ConnectionPool } from './pool.js'
import { transactOnce } from './transaction.js'
import { makeChanges, maxCharacters, maxInserted } from './write.js'

interface Batch {
  changes: Change[]
  characters: number
  outcomes: Promise<Outcome[]>
}

/**
 * Group commit: creates that wait for a connection share one statement and one commit. Several batches run
 * concurrently. A caller gets its result once the commit is on disk.
 */
export class PostgresWriter {
  readonly #pool: ConnectionPool
  /** the batch that waits for a connection */
  #next: Batch | undefined

  constructor(pool: ConnectionPool) {
    this.#pool = pool
  }

  async write(create: Extract<Change, { type: 'create' }>): Promise<Outcome> {
    this.#next ??= this.#newBatch()
    const batch = this.#next
    const index = batch.changes.push(create) - 1
    batch.characters += textLength(create.plant)
    if (batch.changes.length >= maxInserted || batch.characters > maxCharacters) this.#next = undefined
    return must((await batch.outcomes)[index])
  }

  #newBatch(): Batch {
    const changes: Change[] = []
    return { changes, characters: 0, outcomes: this.#send(changes) }
  }

  /** Also waits for the next turn of the event loop, so that simultaneous creates are in one batch. */
  async #send(changes: Change[]): Promise<Outcome[]> {
    const call = this.#pool.newCall()
    await new Promise(setImmediate)
    const outcomes = await this.#pool.retry(call, async () => {
      const connection = await this.#pool.lease(call).finally(() => {
        if (this.#next?.changes === changes) this.#next = undefined
      })
      return transactOnce(this.#pool, connection, call, (transaction) => makeChanges(transaction, changes))
    })
    const created = outcomes.filter(({ type }) => type === 'created').length
    if (created > 0) this.#pool.options.onCommit?.(created)
    return outcomes
  }
}
