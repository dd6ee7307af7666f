import { expect, test } from 'vitest'
import type { Change, Outcome } from '../../../src/stores/change.js'
import type { Store } from '../../../src/stores/store.js'
import { deletePlant, gather, toCreates } from '../../helpers/sandbox/store.js'
import { buildFern, fern, moss, readStatus, toCreate, toUpdate, wetMoss } from './fixtures.js'

/** The constraint that rejects a change, or its status. */
function readConstraint(outcome: Outcome): string | number | undefined {
  const isConstraint = outcome.type === 'rejected' && outcome.problem.error === 422
  if (!isConstraint) return readStatus(outcome)
  return /names|short/.exec(outcome.problem.message)?.[0]
}

/** `addConstraints` does what an owner of the store could: `names` are unique, and `short`. */
export function describeConstraints(
  storeName: string,
  open: () => Promise<{ store: Store; addConstraints(): Promise<void> }>,
): void {
  test(`${storeName} names the constraint, added by its owner, that rejects a change`, async () => {
    const { store, addConstraints } = await open()
    await store.write(toCreates([fern, moss]))
    await addConstraints()
    const oak = { id: 5n, name: 'Oak' }
    const longName = 'x'.repeat(100)
    const table: { change: Change; status: string | number }[] = [
      { change: toCreate(oak), status: 'created' },
      { change: toCreate(buildFern(6n)), status: 'names' },
      { change: toCreate({ id: 7n, name: longName }, { key: 'seven' }), status: 'short' },
      { change: toCreate({ id: 1n, name: 'Elm' }), status: 409 },
      { change: toUpdate({ id: 2n, name: 'Fern' }), status: 'names' },
      { change: toUpdate({ id: 9n, name: longName }, { ifMissing: 'create' }), status: 'short' },
      { change: toUpdate({ id: 2n, tag: 'wet' }), status: 'updated' },
    ]
    for (const { change, status } of table) {
      const outcomes = await store.write([change])
      expect({ change, statuses: outcomes.map(readConstraint) }).toEqual({
        change,
        statuses: [status],
      })
    }
    await deletePlant(store, 5n)
    const outcomes = await store.write(table.map(({ change }) => change))
    expect(outcomes.map(readConstraint)).toEqual(table.map(({ status }) => status))
    expect(await gather(store.read())).toStrictEqual([fern, wetMoss, oak])
  })
}
