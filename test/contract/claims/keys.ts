import { expect, test } from 'vitest'
import type { Store } from '../../../src/stores/store.js'
import { createPlant, gather } from '../../helpers/sandbox/store.js'
import {
  buildFern,
  expectOutcomes,
  fern,
  ivy,
  moss,
  type OpenEmpty,
  type OutcomeRow,
  otherFern,
  toCreate,
  toDelete,
  toUpdate,
  wetMoss,
  writeForStatuses,
  writeModes,
} from './fixtures.js'

export function describeKeys(open: OpenEmpty<Store>): void {
  test('two creates with one key at the same time both succeed', async () => {
    const { store } = await open()
    const create = () => writeForStatuses(store, toCreate(fern, { key: 'order-66' }))
    expect(await Promise.all([create(), create()])).toEqual([['created'], ['created']])
  })

  test.each(writeModes)(
    'a repeated create with the same key, id and content succeeds, $mode',
    async ({ write }) => {
      const { store } = await open()
      await createPlant(store, ivy, 'a')
      const fifth = { ...ivy, id: 5n }
      const table: OutcomeRow[] = [
        { change: toCreate(ivy, { key: 'a' }), outcome: 'created' },
        { change: toCreate(fern), outcome: 'created' },
        { change: toCreate(fern), outcome: 409 },
        { change: toCreate(otherFern, { key: 'b' }), outcome: 409 },
        { change: toCreate(moss, { key: 'a' }), outcome: 'created' },
        { change: toCreate(fifth, { key: 'a' }), outcome: 'created' },
        { change: toCreate(ivy, { key: 'a' }), outcome: 'created' },
        { change: toDelete(2n), outcome: 'deleted' },
        { change: toCreate(moss, { key: 'c' }), outcome: 'created' },
        { change: toCreate(moss, { key: 'c' }), outcome: 'created' },
        { change: toCreate(moss, { key: 'd' }), outcome: 409 },
        { change: toCreate({ ...moss, name: 'Ivy' }, { key: 'c' }), outcome: 409 },
        { change: toCreate(wetMoss, { key: 'c' }), outcome: 409 },
        { change: toDelete(2n), outcome: 'deleted' },
        { change: toCreate(wetMoss, { key: 'c' }), outcome: 'created' },
        { change: toCreate(wetMoss, { key: 'c' }), outcome: 'created' },
        { change: toCreate(wetMoss, { key: 'e' }), outcome: 409 },
        { change: toCreate(buildFern(4n), { key: 'b' }), outcome: 'created' },
      ]
      await expectOutcomes(table, (changes) => write(store, changes))
      const plants = [fern, wetMoss, ivy, buildFern(4n), fifth]
      expect(await gather(store.read())).toStrictEqual(plants)
    },
  )

  test.each(writeModes)(
    'a plant that was changed or deleted no longer has its key, $mode',
    async ({ write }) => {
      const { store } = await open()
      const creation = toCreate(wetMoss, { key: 'c' })
      const table: OutcomeRow[] = [
        { change: creation, outcome: 'created' },
        { change: creation, outcome: 'created' },
        { change: toUpdate({ ...wetMoss, tag: null }), outcome: 'updated' },
        { change: creation, outcome: 409 },
        { change: toUpdate(wetMoss), outcome: 'updated' },
        { change: creation, outcome: 409 },
        { change: toDelete(2n), outcome: 'deleted' },
        { change: creation, outcome: 'created' },
      ]
      await expectOutcomes(table, (changes) => write(store, changes))
    },
  )
}
