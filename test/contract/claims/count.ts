import { expect, test } from 'vitest'
import { assertDefined } from '../../../src/errors.js'
import { buildPlant } from '../../../src/plant/plant.js'
import type { CountQuery } from '../../../src/stores/query.js'
import type { DirectStore, Store } from '../../../src/stores/store.js'
import { toCreates } from '../../helpers/sandbox/store.js'
import { buildPlants, fern, ivy, moss, type OpenEmpty } from './fixtures.js'

export function describeCounts(open: OpenEmpty<Store>): void {
  test('a count is the number of all plants, of plants with a tag, or of plants that a search finds', async () => {
    const { store } = await open()
    expect(await store.count()).toBe(0n)
    const shady = { id: 4n, name: 'shady', tag: 'SHADE' }
    await store.write(toCreates([fern, moss, ivy, shady]))
    const table: { query: CountQuery; count: bigint }[] = [
      { query: {}, count: 4n },
      { query: { tag: '' }, count: 1n },
      { query: { tag: false }, count: 1n },
      { query: { tag: 'shade', search: 'fern' }, count: 1n },
      { query: { search: 'SHADE' }, count: 2n },
      { query: { search: 'x' }, count: 0n },
    ]
    for (const { query, count } of table) {
      expect({ query, count: await store.count(query) }).toEqual({ query, count })
      const inSteps = await store.count({ ...query, inSteps: true })
      expect({ query, inSteps }).toEqual({ query, inSteps: count })
    }
  })
}

export function describeGroups(open: OpenEmpty<DirectStore>): void {
  test('plants are counted by each different name or tag, and without a tag', async () => {
    const { store } = await open()
    expect(await store.countBy('tag')).toEqual(new Map())
    const tags = ['Schön', 'Scho\u0308n', 'schön', '', undefined, undefined, 'Schön', '\\N\t\n']
    await store.write(toCreates(tags.map((tag, id) => buildPlant(BigInt(id), 'Fern', tag))))
    const schöns: [string, bigint][] = [
      ['Schön', 2n],
      ['Scho\u0308n', 1n],
      ['schön', 1n],
    ]
    const byTag = new Map<string | undefined, bigint>([
      ...schöns,
      ['', 1n],
      [undefined, 2n],
      ['\\N\t\n', 1n],
    ])
    expect(await store.countBy('tag')).toEqual(byTag)
    expect(await store.countBy('name')).toEqual(new Map([['Fern', 8n]]))
    expect(await store.countBy('name', { tag: false })).toEqual(new Map([['Fern', 2n]]))
    expect(await store.countBy('tag', { search: 'SCHON' })).toEqual(new Map(schöns))
    expect(await store.countBy('tag', { tag: 'schön', search: 'x' })).toEqual(new Map())
  })

  test('a count adds up many steps, and stops when its signal is aborted', async () => {
    const { store } = await open()
    const tags = ['a', 'b', 'c']
    const plants = buildPlants(25_000, (index) => ({ tag: assertDefined(tags[index % 3]) }))
    await store.write(toCreates(plants))
    const counts = new Map([
      ['a', 8334n],
      ['b', 8333n],
      ['c', 8333n],
    ])
    expect(await store.countBy('tag')).toEqual(counts)
    expect(await store.count({ inSteps: true })).toBe(25_000n)
    expect(await store.count({ inSteps: true, tag: 'a' })).toBe(8334n)
    const signal = AbortSignal.abort(new Error('stopped'))
    await expect(store.countBy('tag', { signal })).rejects.toThrow('stopped')
  })
}
