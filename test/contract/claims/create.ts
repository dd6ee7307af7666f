import { expect, test } from 'vitest'
import { largestId, smallestId } from '../../../src/plant/fields.js'
import type { NewPlant } from '../../../src/plant/plant.js'
import type { Create } from '../../../src/stores/change.js'
import { createNext, findNextId } from '../../../src/stores/next-id.js'
import type { Store } from '../../../src/stores/store.js'
import { createPlant, gather, toCreates } from '../../helpers/sandbox/store.js'
import {
  buildFern,
  buildPlants,
  compareIds,
  difficultStrings,
  fern,
  ivy,
  moss,
  type OpenEmpty,
  otherFern,
  type Status,
  toCreate,
  wetMoss,
  writeForStatuses,
  writeModes,
} from './fixtures.js'

export function describeCreates(open: OpenEmpty<Store>): void {
  test.each(writeModes)('creates keep ids and strings exactly, $mode', async ({ write }) => {
    const { store, readBack } = await open()
    const ids = [largestId, smallestId, -1n, 0n, 1n, 9007199254740993n]
    const strings = ['🌿'.repeat(50_000), ...difficultStrings]
    const plants = strings.map((string, index): NewPlant => {
      const plant = { id: ids[index] ?? BigInt(index), name: string }
      return index === 1 ? plant : { ...plant, tag: string }
    })
    const created = plants.map((plant) => ({ type: 'created', plant }))
    expect(await write(store, toCreates(plants))).toStrictEqual(created)
    for (const plant of plants) expect(await readBack(plant.id)).toStrictEqual(plant)
    for (const query of [{}, { limit: 100 }])
      expect(await gather(store.read(query))).toStrictEqual(plants.toSorted(compareIds))
    expect(await write(store, [])).toEqual([])
    expect(await write(store, [toCreate(otherFern, { key: 'order-66' })])).toMatchObject([
      { type: 'rejected', problem: { kind: 'conflict', error: 409 } },
    ])
  })

  test.each<{ stored: string; ids: bigint[]; nextId: bigint }>([
    { stored: 'nothing', ids: [], nextId: 1n },
    { stored: 'negative ids', ids: [-5n, smallestId], nextId: -4n },
    { stored: 'the largest id but one', ids: [1n, largestId - 1n], nextId: largestId },
  ])('the next id is the greatest id plus 1 after $stored', async ({ ids, nextId }) => {
    const { store, readBack } = await open()
    for (const id of ids) await createPlant(store, buildFern(id))
    expect(await findNextId(store)).toBe(ids.length > 0 ? nextId : 1n)
    const { name, tag = '' } = fern
    const plant = { id: nextId, name, tag }
    expect(await createNext(store, { name, tag })).toStrictEqual(plant)
    expect(await readBack(nextId)).toStrictEqual(plant)
    if (nextId === largestId)
      await expect(createNext(store, fern)).rejects.toMatchObject({ kind: 'conflict' })
  })

  test('concurrent creates with the next id get consecutive ids', async () => {
    const { store } = await open()
    const created = await Promise.all(
      buildPlants(20).map(({ name }) => createNext(store, { name })),
    )
    const sorted = created.toSorted(compareIds)
    expect(sorted.map(({ id }) => id)).toEqual(created.map((_, index) => BigInt(index + 1)))
    expect(await gather(store.read())).toStrictEqual(sorted)
  })

  // `many` is the write of Fern, a wet Moss, Ivy and Ivy again, of which the store has the first
  // two ids. `oaks` is a write of one new plant three times.
  test.each<{ policy: string; ifExists?: Create['ifExists']; many: Status[]; oaks: Status[] }>([
    {
      policy: 'no ifExists',
      many: [409, 409, 'created', 409],
      oaks: ['created', 409, 409],
    },
    {
      policy: 'ifExists skip',
      ifExists: 'skip',
      many: ['skipped', 'skipped', 'created', 'skipped'],
      oaks: ['created', 'skipped', 'skipped'],
    },
    {
      policy: 'ifExists same',
      ifExists: 'same',
      many: ['skipped', 409, 'created', 'skipped'],
      oaks: ['created', 'skipped', 'skipped'],
    },
  ])(
    'a create of an existing id, in the store or in the same write, follows $policy',
    async ({ ifExists, many, oaks }) => {
      const { store } = await open()
      await store.write(toCreates([fern, moss]))
      const oak = buildFern(4n)
      const write = (...plants: NewPlant[]) =>
        writeForStatuses(store, ...plants.map((plant) => toCreate(plant, { ifExists })))
      const statuses = await Promise.all([write(fern, wetMoss, ivy, ivy), write(oak, oak, oak)])
      expect(statuses).toEqual([many, oaks])
      expect(await gather(store.read())).toStrictEqual([fern, moss, ivy, oak])
      // A write of one change comes to the same.
      expect([await write(fern), await write(wetMoss)]).toEqual([[many[0]], [many[1]]])
    },
  )
}
