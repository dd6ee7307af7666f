import { equalFields, type NewPlant, newPlant, patchedPlant, valuesOf } from '../../plant/plant.js'
import { connect } from '../../platform/sqlite.js'
import {
  type Change,
  existingOutcome,
  idOf,
  missingOutcome,
  type Outcome,
  otherNameOutcome,
  problem,
  rejected,
  unsent,
} from '../../stores/common/change.js'
import type { Store, WriteOptions } from '../../stores/common/store.js'
import { twin } from './map.js'

export interface PlannedChange {
  /** unless it would be created */
  before?: NewPlant
  after: NewPlant
}

/**
 * Has the `write` of a store, but only reads that, and remembers in a temporary table what its ids would become.
 *
 * @param store undefined if there is none yet, or if it cannot be read
 * @param isReadable whether an id that is not in the store is known not to exist
 */
export function dryRunOf(
  store: Store | undefined,
  isReadable: boolean,
  onPlanned: (changes: PlannedChange[]) => Promise<void>,
): Pick<Store, 'write' | 'close'> {
  const db = connect(':memory:', { readOnly: false })
  db.exec('CREATE TEMP TABLE planned (id INTEGER PRIMARY KEY, name TEXT, tag TEXT); PRAGMA temp.cache_size=-16384')
  const find = db.prepare('SELECT name, tag FROM planned WHERE id = ?')
  const remember = db.prepare('REPLACE INTO planned (id, name, tag) VALUES (?, ?, ?)')

  function plan(change: Change, stored: NewPlant | undefined): Outcome {
    const id = idOf(change)
    const row = find.get(id) as { name: string; tag: string | null } | undefined // as `remember` writes them
    const earlier = row && newPlant(id, row.name, row.tag)
    const before = earlier ?? stored
    if (change.type === 'create') {
      if (earlier) return repeatedOutcome(change, earlier)
      if (stored) return existingOutcome(change, stored)
      remember.run(...valuesOf(change.plant))
      return { type: 'created', plant: change.plant }
    }
    if (change.type === 'delete') throw new TypeError('An import deletes nothing')
    const other = otherNameOutcome(change, before)
    if (other) return other
    const known = before ?? (isReadable ? undefined : { id, name: '' })
    const plant = patchedPlant(change.patch, known)
    if (!plant) return missingOutcome(change)
    remember.run(...valuesOf(plant))
    const isCreated = !before && (change.patch.name != null || !known)
    return isCreated ? { type: 'created', plant } : { type: 'updated', plant, before: known ?? plant }
  }

  async function write(changes: readonly Change[], { maxRejected = Infinity, signal }: WriteOptions = {}) {
    const outcomes: Outcome[] = []
    const planned: PlannedChange[] = []
    let rejections = 0
    for (let from = 0; from < changes.length; from += changesAtOnce) {
      await new Promise(setImmediate)
      signal?.throwIfAborted()
      const some = changes.slice(from, from + changesAtOnce)
      const stored = await store?.get(some.map(idOf))
      db.exec('BEGIN')
      for (const change of some) {
        const outcome = rejections < maxRejected ? plan(change, stored?.get(idOf(change))) : unsent
        outcomes.push(outcome)
        if (outcome.type === 'rejected') rejections += 1
        if (outcome.type === 'created') planned.push({ after: outcome.plant })
        if (outcome.type === 'updated' && outcome.before && !equalFields(outcome.before, outcome.plant))
          planned.push({ before: outcome.before, after: outcome.plant })
      }
      db.exec('COMMIT')
    }
    await onPlanned(planned)
    return outcomes
  }

  return {
    write,
    close: async () => {
      db.close()
      await store?.close()
    },
  }
}

function repeatedOutcome(change: Extract<Change, { type: 'create' }>, earlier: NewPlant): Outcome {
  const outcome = existingOutcome(change, earlier)
  if (outcome.type === 'skipped') return outcome
  return rejected(problem('conflict', `${twin(change)} is in the input twice`))
}

/** about 20 ms, after which signals are handled */
const changesAtOnce = 4000
