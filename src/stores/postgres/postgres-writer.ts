import { textLength } from '../../plant/plant.js'
import { must } from '../../platform/values.js'
import type { Change, Outcome } from '../common/change.js'
import type { Call, ConnectionPool } from './pool.js'
import { isForeignConstraint } from './postgres-errors.js'
import { columns, plants, rowOf } from './sql.js'
import { transact, transactOnce } from './transaction.js'
import { compareIds, evidenceOf, makeChanges } from './write.js'

type Create = Extract<Change, { type: 'create' }>

interface Batch {
  creates: Create[]
  characters: number
  outcomes: Promise<Outcome[]>
}

/** maxima of one statement: creates, and characters of their texts */
const batchSize = 1000
const batchCharacters = 4_000_000

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

  async write(change: Create): Promise<Outcome> {
    const batch = this.#next ?? this.#newBatch()
    const index = batch.creates.push(change) - 1
    batch.characters += textLength(change.plant)
    if (batch.creates.length >= batchSize || batch.characters > batchCharacters) this.#next = undefined
    return must((await batch.outcomes)[index])
  }

  #newBatch(): Batch {
    const creates: Create[] = []
    const batch = { creates, characters: 0, outcomes: this.#send(creates) }
    this.#next = batch
    return batch
  }

  /** Also waits for the next turn of the event loop, so that simultaneous creates are in one batch. */
  async #send(creates: Create[]): Promise<Outcome[]> {
    const call = this.#pool.newCall()
    await new Promise(setImmediate)
    const created = await this.#pool.retry(call, () => this.#insert(creates, call))
    if (created.size > 0) this.#pool.options.onCommit?.(created.size)
    const others = creates.filter((create) => !created.has(create))
    const outcomes = others.length === 0 ? [] : await transact(this.#pool, (changes) => makeChanges(changes, others))
    return creates.map((create) =>
      created.has(create) ? { type: 'created', plant: create.plant } : must(outcomes.shift()),
    )
  }

  /** Returns those that conflict with nothing; none if one violates a constraint of somebody else. */
  async #insert(creates: Create[], call: Call): Promise<Set<Create>> {
    const connection = await this.#pool.lease(call).finally(() => {
      if (this.#next?.creates === creates) this.#next = undefined
    })
    const sorted = creates.toSorted((one, other) => compareIds(one.plant, other.plant))
    const rows = sorted.map(({ plant: { id, name, tag }, key }) => rowOf(id, name, tag, key))
    const insert = `INSERT INTO ${plants} (${columns}, idempotency_key) VALUES ${rows.join()}
      ON CONFLICT DO NOTHING RETURNING id`
    try {
      return await transactOnce(this.#pool, connection, call, async (transaction) => {
        const ids = new Set((await transaction.ask(insert)).map(String))
        const created = new Set(sorted.filter(({ plant }) => ids.delete(String(plant.id)))) // the first with each id
        for (const { plant } of created) transaction.evidence ??= evidenceOf({ type: 'created', plant })
        return created
      })
    } catch (error) {
      if (isForeignConstraint(error)) return new Set()
      throw error
    }
  }
}
