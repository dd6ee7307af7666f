import { equalFields, type NewPlant, plantFrom, valuesOf } from '../../plant/plant.js'
import { must } from '../../platform/errors.js'
import { connect } from '../../platform/sqlite.js'
import { type Change, idOf, type Outcome, problem, rejected } from '../../stores/common/change.js'
import { planOf } from '../../stores/common/plan.js'
import type { Store, WriteOptions } from '../../stores/common/store.js'
import { twin } from './map.js'

export interface PlannedChange {
  /** Undefined if it would be created. */
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
  db.exec(
    'CREATE TEMP TABLE planned (id INTEGER PRIMARY KEY, name TEXT, tag TEXT); PRAGMA temp.cache_size=-16384',
  )
  const find = db.prepare(
    'SELECT id, name, tag FROM planned WHERE id IN (SELECT value FROM json_each(?))',
  )
  const remember = db.prepare('REPLACE INTO planned (id, name, tag) VALUES (?, ?, ?)')

  function plannedPlants(ids: readonly bigint[]): Map<bigint, NewPlant> {
    const rows = find.all(`[${ids.join()}]`) as { id: bigint; name: string; tag: string | null }[] // of `remember`
    return new Map(rows.map(({ id, name, tag }) => [id, plantFrom(id, name, tag)]))
  }

  /** The outcomes of changes, of which only a store that is readable knows what they change. */
  async function outcomesOf(changes: readonly Change[], maxRejected: number): Promise<Outcome[]> {
    const ids = changes.map(idOf)
    const planned = plannedPlants(ids)
    const stored = await store?.get(ids)
    const known = new Map<bigint, NewPlant | undefined>()
    const seen = new Set(planned.keys())
    for (const change of changes) {
      const id = idOf(change)
      if (known.has(id)) continue
      const isUnknown = !isReadable && change.type === 'update' && change.patch.name == null
      known.set(
        id,
        planned.get(id) ?? stored?.get(id) ?? (isUnknown ? { id, name: '' } : undefined),
      )
    }
    const plants = [...known.values()].flatMap((plant) => (plant ? { plant } : []))
    return planOf(plants, changes, maxRejected).outcomes.map((outcome, index) => {
      const change = must(changes[index])
      const id = idOf(change)
      if (outcome.type === 'created' || outcome.type === 'updated') seen.add(id)
      if (outcome.type !== 'rejected' || change.type !== 'create' || !seen.has(id)) return outcome
      return rejected({
        ...problem('conflict', `${twin(change)} is in the input twice`),
        isTwin: true,
      })
    })
  }

  async function write(
    changes: readonly Change[],
    { maxRejected = Infinity, signal }: WriteOptions = {},
  ) {
    const outcomes: Outcome[] = []
    const planned: PlannedChange[] = []
    let left = maxRejected
    for (let from = 0; from < changes.length; from += changesAtOnce) {
      await new Promise(setImmediate)
      signal?.throwIfAborted()
      const some = await outcomesOf(changes.slice(from, from + changesAtOnce), left)
      db.exec('BEGIN')
      for (const outcome of some) {
        if (outcome.type === 'rejected') left -= 1
        if (outcome.type === 'created' || outcome.type === 'updated')
          remember.run(...valuesOf(outcome.plant))
        if (outcome.type === 'created') planned.push({ after: outcome.plant })
        if (
          outcome.type === 'updated' &&
          outcome.before &&
          !equalFields(outcome.before, outcome.plant)
        )
          planned.push({ before: outcome.before, after: outcome.plant })
      }
      db.exec('COMMIT')
      outcomes.push(...some)
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

/** About 20 ms, after which signals are handled. */
const changesAtOnce = 4000
