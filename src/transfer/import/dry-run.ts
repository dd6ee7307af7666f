import { equalFields, type NewPlant, newPlant, patchedPlant, valuesOf } from '../../plant/plant.js'
import { connect } from '../../platform/sqlite.js'
import {
  type Change,
  existingOutcome,
  idOf,
  missingOutcome,
  type Outcome,
  problem,
  unsent,
} from '../../stores/common/change.js'
import type { Store, WriteOptions } from '../../stores/common/store.js'

export interface PlannedChange {
  /** unless it would be created */
  before?: NewPlant
  after: NewPlant
}

interface DryRunOptions {
  /** undefined if there is none yet, or if it cannot be read */
  store: Pick<Store, 'get' | 'close'> | undefined
  /** whether an id that is not in the store is known not to exist */
  isReadable: boolean
  onPlanned(changes: PlannedChange[]): Promise<void>
}

/**
 * What an import would do. Reads the store, and remembers in a temporary table what the ids of the input would become.
 */
export class DryRun {
  readonly #options: DryRunOptions
  readonly #db = connect(':memory:', { readOnly: false })

  constructor(options: DryRunOptions) {
    this.#options = options
    this.#db.exec(
      'CREATE TEMP TABLE planned (id INTEGER PRIMARY KEY, name TEXT, tag TEXT); PRAGMA temp.cache_size=-16384',
    )
  }

  /** As the `write` of a store. */
  async write(changes: readonly Change[], { maxRejected = Infinity, signal }: WriteOptions = {}): Promise<Outcome[]> {
    const outcomes: Outcome[] = []
    let rejections = 0
    for (let from = 0; from < changes.length; from += changesAtOnce) {
      await new Promise(setImmediate)
      signal?.throwIfAborted()
      const some = changes.slice(from, from + changesAtOnce)
      const stored = await this.#options.store?.get(some.map(idOf))
      this.#db.exec('BEGIN')
      for (const change of some) {
        const outcome = rejections < maxRejected ? this.#plan(change, stored?.get(idOf(change))) : unsent
        if (outcome.type === 'rejected') rejections += 1
        outcomes.push(outcome)
      }
      this.#db.exec('COMMIT')
    }
    const planned = outcomes.flatMap((outcome) => {
      if (outcome.type === 'created') return { after: outcome.plant }
      if (outcome.type !== 'updated' || !outcome.before) return []
      return equalFields(outcome.before, outcome.plant) ? [] : { before: outcome.before, after: outcome.plant }
    })
    await this.#options.onPlanned(planned)
    return outcomes
  }

  #plan(change: Change, stored: NewPlant | undefined): Outcome {
    const id = idOf(change)
    const row = this.#db.prepare('SELECT name, tag FROM planned WHERE id = ?').get(id)
    const planned = row as { name: string; tag: string | null } | undefined // as `#remember` writes them
    const earlier = planned && newPlant(id, planned.name, planned.tag)
    const before = earlier ?? stored
    if (change.type === 'create') {
      if (!before) return { type: 'created', plant: this.#remember(change.plant) }
      const outcome = existingOutcome(change, before)
      if (!earlier || outcome.type === 'skipped') return outcome
      return { type: 'rejected', error: problem('conflict', `The id ${id} is in the input twice`) }
    }
    if (change.type === 'delete') throw new TypeError('An import deletes nothing')
    const known = before ?? (this.#options.isReadable ? undefined : { id, name: '' })
    const plant = patchedPlant(change.patch, known)
    if (!plant) return missingOutcome(change)
    this.#remember(plant)
    const isCreated = !before && (change.patch.name != null || !known)
    return isCreated ? { type: 'created', plant } : { type: 'updated', plant, before: known ?? plant }
  }

  #remember(plant: NewPlant): NewPlant {
    this.#db.prepare('REPLACE INTO planned (id, name, tag) VALUES (?, ?, ?)').run(...valuesOf(plant))
    return plant
  }

  async close(): Promise<void> {
    this.#db.close()
    await this.#options.store?.close()
  }
}

/** about 20 ms, after which signals are handled */
const changesAtOnce = 4000
