import { expect, test } from 'vitest'
import { largestId, smallestId } from '../../../src/plant/fields.js'
import type { ReadQuery } from '../../../src/stores/query.js'
import type { Store } from '../../../src/stores/store.js'
import { check } from '../../helpers/expect/arbitraries.js'
import { createPlant, toCreates } from '../../helpers/sandbox/store.js'
import { anyQuery, selectedPlants } from '../model.js'
import {
  buildFern,
  buildPlants,
  compareIds,
  expectSelection,
  fern,
  ivy,
  measurePage,
  moss,
  type OpenEmpty,
  readIds,
  readPages,
} from './fixtures.js'

export function describeReads(open: OpenEmpty<Store>): void {
  test('a get finds plants by their ids, and leaves out ids that do not exist', async () => {
    const { store } = await open()
    const many = buildPlants(300, (index) => ({ id: BigInt(100 + index) }))
    await store.write(toCreates([fern, moss, ivy, ...many]))
    expect(await store.get([2n])).toStrictEqual(new Map([[2n, moss]]))
    expect([await store.get([]), await store.get([7n])]).toEqual([new Map(), new Map()])
    const found = await store.get([...many.map(({ id }) => id), 99n, 3n, smallestId])
    expect([...found.values()].toSorted(compareIds)).toStrictEqual([ivy, ...many])
  })

  test('each of several concurrent gets returns only the plants that it asked for', async () => {
    const { store } = await open()
    await store.write(toCreates([fern, moss, ivy]))
    const [fernAndMoss, onlyMoss, nothing] = await Promise.all([
      store.get([1n, 2n]),
      store.get([2n, 7n]),
      store.get([]),
    ])
    expect([fernAndMoss, onlyMoss, nothing]).toStrictEqual([
      new Map([
        [1n, fern],
        [2n, moss],
      ]),
      new Map([[2n, moss]]),
      new Map(),
    ])
    fernAndMoss.clear()
    expect(onlyMoss.size).toBe(1)
  })

  test('a read yields the selected plants in the order of their ids', async () => {
    const { store } = await open()
    for (const id of [9n, 0n, largestId, smallestId]) await createPlant(store, buildFern(id))
    for (const id of [10n, -2n]) await createPlant(store, { ...buildFern(id), tag: 'shade' })
    const table: { query: ReadQuery | undefined; ids: bigint[] }[] = [
      { query: undefined, ids: [smallestId, -2n, 0n, 9n, 10n, largestId] },
      { query: { after: 5n }, ids: [9n, 10n, largestId] },
      { query: { after: largestId }, ids: [] },
      { query: { limit: 2 }, ids: [smallestId, -2n] },
      { query: { tag: 'shade', after: -2n, limit: 1 }, ids: [10n] },
      { query: { tag: '' }, ids: [] },
      { query: { tag: false, search: 'fern', after: 0n, limit: 1 }, ids: [9n] },
      { query: { search: 'HAD' }, ids: [-2n, 10n] },
    ]
    for (const { query, ids } of table) {
      expect({ query, ids: await readIds(store, query) }).toEqual({ query, ids })
      // A limit makes a service send pages.
      const limited = { limit: 1000, ...query }
      expect({ query: limited, ids: await readIds(store, limited) }).toEqual({
        query: limited,
        ids,
      })
    }
  })

  test('a read and a count select by random queries as the model does', async () => {
    const { store } = await open()
    await store.write(toCreates(selectedPlants))
    await check(50, [anyQuery()], (query) => expectSelection(store, selectedPlants, query))
  })

  test('a read of many plants yields small pages', async () => {
    const { store } = await open()
    const plants = buildPlants(1210, (index) => ({
      name: index % 700 === 5 ? 'Fern' : 'M'.repeat(index < 30 ? 200_000 : 1),
      ...(index % 500 === 9 && { tag: 'x' }),
    }))
    await store.write(toCreates(plants))
    expect(await readIds(store, { search: 'fern' })).toEqual([5n, 705n])
    expect(await readIds(store, { tag: 'x', after: 9n, limit: 5 })).toEqual([509n, 1009n])
    const middleIds = plants.slice(200, 1205).map(({ id }) => id)
    expect(await readIds(store, { after: 199n, limit: 1005 })).toEqual(middleIds)
    for (const limit of [undefined, 1000]) {
      const pages = await readPages(store, { limit })
      expect(pages.flat()).toStrictEqual(plants.slice(0, limit))
      expect(Math.max(...pages.map(measurePage))).toBeLessThanOrEqual(1_200_000)
    }
  })
}
