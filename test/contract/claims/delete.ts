import { expect, test } from 'vitest'
import type { Store } from '../../../src/stores/store.js'
import { gather, toCreates } from '../../helpers/sandbox/store.js'
import {
  expectOutcomes,
  fern,
  ivy,
  moss,
  type OpenEmpty,
  type OutcomeRow,
  otherFern,
  toCreate,
  toDelete,
  writeModes,
} from './fixtures.js'

export function describeDeletes(open: OpenEmpty<Store>): void {
  test.each(writeModes)(
    'a delete reports the plant, removes no other, and frees its id, $mode',
    async ({ write }) => {
      const { store, readBack } = await open()
      await store.write(toCreates([fern, moss, ivy]))
      const table: OutcomeRow[] = [
        { change: toDelete(1n), outcome: { type: 'deleted', plant: fern } },
        { change: toDelete(1n), outcome: 404 },
        { change: toCreate(otherFern), outcome: { type: 'created', plant: otherFern } },
        { change: toDelete(3n), outcome: { type: 'deleted', plant: ivy } },
        { change: toDelete(9n), outcome: 404 },
      ]
      await expectOutcomes(table, (changes) => write(store, changes))
      expect(await gather(store.read())).toStrictEqual([otherFern, moss])
      expect(await readBack(3n)).toBeUndefined()
    },
  )
}
