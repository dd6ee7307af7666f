import { expect, test } from 'vitest'
import type { Store } from '../../../src/stores/store.js'
import { createPlant, gather, toCreates } from '../../helpers/sandbox/store.js'
import { type OpenEmpty, readIds } from './fixtures.js'

// A string with so many marks takes minutes to normalize as a whole.
const marks = '\u0301\u0316'.repeat(25_000)
const longGreek = '\u1f82'.repeat(200)

const searches: { search: string; names: string[] }[] = [
  { search: 'fERN', names: ['Fern'] },
  { search: 'ro\u0308s', names: ['Röse', 'rosé'] },
  { search: 'strasse', names: ['Straße'] },
  { search: 'ſt', names: ['Straße', 'Ørsted'] },
  { search: 'δοσ', names: ['ΟΔΟΣ'] },
  { search: 'маи', names: [] },
  { search: 'маи\u0306', names: ['май'] },
  { search: '🌾', names: ['👩‍🌾'] },
  { search: 'A%B_', names: ['a%b_c'] },
  { search: 'f*n', names: [] },
  { search: "\\]'*?^-", names: ["[\\]'*?^-"] },
  { search: 'ZZ', names: [`ж${marks}zz`] },
  { search: longGreek, names: [`x${longGreek.toUpperCase()}`] },
]

export function describeSearches(open: OpenEmpty<Store>): void {
  test('a tag matches in composed or decomposed form, but not in another case or without its accents', async () => {
    const { store } = await open()
    const tags = ['Schön', 'Scho\u0308n', 'schön', 'Schon']
    for (const [index, tag] of tags.entries())
      await createPlant(store, { id: BigInt(index), name: '', tag })
    for (const tag of tags.slice(0, 2)) {
      expect(await readIds(store, { tag })).toEqual([0n, 1n])
      expect(await store.count({ tag })).toBe(2n)
    }
  })

  test('a search finds folded names and tags, and no character of it is a pattern', async () => {
    const { store } = await open()
    const allNames = [...new Set(searches.flatMap(({ names }) => names))]
    const named = allNames.map((name, index) => ({ id: BigInt(index), name }))
    const tagged = allNames.map((tag, index) => ({ id: BigInt(-1 - index), name: '', tag }))
    await store.write(toCreates([...named, ...tagged]))
    for (const { search, names } of [...searches, { search: '', names: allNames }]) {
      const plants = await gather(store.read({ search }))
      expect(await gather(store.read({ search, limit: 1000 }))).toEqual(plants)
      const found = {
        search,
        names: plants.flatMap(({ name }) => name || []).toSorted(),
        tags: plants.flatMap(({ tag }) => tag ?? []).toSorted(),
        count: await store.count({ search }),
      }
      const sorted = names.toSorted()
      const count = BigInt(2 * names.length)
      expect(found).toEqual({ search, names: sorted, tags: sorted, count })
    }
  })
}
