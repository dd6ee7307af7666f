import { expect, test } from 'vitest'
import type { Store } from '../../../../src/stores/store.js'
import { createPlant, gather } from '../../../helpers/sandbox/store.js'
import {
  buildFern,
  expectStatuses,
  fern,
  ivy,
  moss,
  type OpenEmpty,
  otherFern,
  type StatusRow,
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
    'a create with the key of a stored plant succeeds again, if that has the id and the content, $mode',
    async ({ write }) => {
      const { store } = await open()
      await createPlant(store, ivy, 'a')
      const fifth = { ...ivy, id: 5n }
      const table: StatusRow[] = [
        { change: toCreate(ivy, { key: 'a' }), status: 'created' },
        { change: toCreate(fern), status: 'created' },
        { change: toCreate(fern), status: 409 },
        { change: toCreate(otherFern, { key: 'b' }), status: 409 },
        { change: toCreate(moss, { key: 'a' }), status: 'created' },
        { change: toCreate(fifth, { key: 'a' }), status: 'created' },
        { change: toCreate(ivy, { key: 'a' }), status: 'created' },
        { change: toDelete(2n), status: 'deleted' },
        { change: toCreate(moss, { key: 'c' }), status: 'created' },
        { change: toCreate(moss, { key: 'c' }), status: 'created' },
        { change: toCreate(moss, { key: 'd' }), status: 409 },
        { change: toCreate({ ...moss, name: 'Ivy' }, { key: 'c' }), status: 409 },
        { change: toCreate(wetMoss, { key: 'c' }), status: 409 },
        { change: toDelete(2n), status: 'deleted' },
        { change: toCreate(wetMoss, { key: 'c' }), status: 'created' },
        { change: toCreate(wetMoss, { key: 'c' }), status: 'created' },
        { change: toCreate(wetMoss, { key: 'e' }), status: 409 },
        { change: toCreate(buildFern(4n), { key: 'b' }), status: 'created' },
      ]
      await expectStatuses(table, (changes) => write(store, changes))
      const plants = [fern, wetMoss, ivy, buildFern(4n), fifth]
      expect(await gather(store.read())).toStrictEqual(plants)
    },
  )

  test.each(writeModes)(
    'a plant that was changed or deleted no longer has its key, $mode',
    async ({ write }) => {
      const { store } = await open()
      const creation = toCreate(wetMoss, { key: 'c' })
      const table: StatusRow[] = [
        { change: creation, status: 'created' },
        { change: creation, status: 'created' },
        { change: toUpdate({ ...wetMoss, tag: null }), status: 'updated' },
        { change: creation, status: 409 },
        { change: toUpdate(wetMoss), status: 'updated' },
        { change: creation, status: 409 },
        { change: toDelete(2n), status: 'deleted' },
        { change: creation, status: 'created' },
      ]
      await expectStatuses(table, (changes) => write(store, changes))
    },
  )
}
