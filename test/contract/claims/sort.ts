import { expect, test } from 'vitest'
import { fieldNames } from '../../../src/plant/fields.js'
import type { NewPlant } from '../../../src/plant/plant.js'
import type { ReadQuery } from '../../../src/stores/query.js'
import type { DirectStore } from '../../../src/stores/store.js'
import { check, fc } from '../../helpers/expect/arbitraries.js'
import { scaleRounds, seed } from '../../helpers/sandbox/rounds.js'
import { gather, toCreates } from '../../helpers/sandbox/store.js'
import { anyQuery, selectedPlants } from '../model.js'
import {
  buildPlants,
  expectSelection,
  measurePage,
  type OpenEmpty,
  readIds,
  readPages,
} from './fixtures.js'

const sortedNames =
  `! 1 A a Ä ä ähre Ähren éclair Éclairs istanbul İstanbul Österreich Oz ﬆ STRASSE strasse straße Strauß
  Zinnie Ørsted Μάρτιος ΟΔΟΣ οδος οδοσ май мак 蕨 가 \uffff 𐐀 𐐨 🌿`.split(/\s+/)

/** Plants in the order of their names, each beside one of the same name that has no tag. */
function buildTaggedAndUntagged() {
  const tagged = sortedNames.map((name, index) => ({ id: BigInt(-index), name, tag: name }))
  const toUntagged = ({ id, name }: NewPlant) => ({ id: id + 100n, name })
  const untagged = tagged.map(toUntagged)
  const interleave = (plants: NewPlant[]) => plants.flatMap((plant) => [plant, toUntagged(plant)])
  return { tagged, untagged, interleave }
}

function buildQueries(): { query: ReadQuery; plants: NewPlant[] }[] {
  const { tagged, untagged, interleave } = buildTaggedAndUntagged()
  const reversed = tagged.toReversed()
  const untaggedById = untagged.toReversed()
  return [
    { query: { sort: 'name' }, plants: interleave(tagged) },
    { query: { sort: 'name', desc: true }, plants: interleave(reversed) },
    { query: { sort: 'tag' }, plants: [...tagged, ...untaggedById] },
    { query: { sort: 'tag', desc: true }, plants: [...reversed, ...untaggedById] },
    { query: { sort: 'id', desc: true, limit: 3, after: 90n }, plants: untagged.slice(11, 14) },
  ]
}

export function describeOrder(open: OpenEmpty<DirectStore>): void {
  test('plants are sorted by folded strings, then by code points, then by id', async () => {
    const { store } = await open()
    const { tagged, interleave } = buildTaggedAndUntagged()
    await store.write(toCreates(interleave(tagged)))
    for (const { query, plants } of buildQueries())
      expect({ query, plants: await gather(store.read(query)) }).toStrictEqual({ query, plants })
  })

  test('every store sorts and finds random strings as the model does', async () => {
    const { store } = await open()
    const strings = fc.sample(anySortedString(), { numRuns: scaleRounds(400), seed })
    const plants = strings.map((text, index) => ({ id: BigInt(index), name: text, tag: text }))
    await store.write(toCreates(plants))
    const searches = strings.slice(0, 5).map((text) => Array.from(text).slice(0, 3).join(''))
    for (const query of [{ sort: 'name' as const }, ...searches.map((search) => ({ search }))])
      await expectSelection(store, plants, query)
  })

  test('every store selects and sorts by random queries as the model does', async () => {
    const { store } = await open()
    await store.write(toCreates(selectedPlants))
    await check(50, [anyQuery(fieldNames)], (query) =>
      expectSelection(store, selectedPlants, query),
    )
  })

  test('a sorted read of many plants yields small pages', async () => {
    const { store } = await open()
    const countLetters = (index: number) => (index % 100 === 7 ? 100_000 : 500)
    const plants = buildPlants(1200, (index) => ({
      name: `Fern ${9999 - index} ${'é'.repeat(countLetters(index))}`,
    }))
    await store.write(toCreates(plants))
    const ids = plants.map(({ id }) => id).toReversed()
    const pages = await readPages(store, { sort: 'name' })
    expect(Math.max(...pages.map(measurePage))).toBeLessThan(1_000_000)
    expect(pages.flat().map(({ id }) => id)).toEqual(ids)
    expect(await readIds(store, { desc: true })).toEqual(ids)
  })
}

/** Strings whose order may depend on a locale, or on a version of Unicode. */
function anySortedString(): fc.Arbitrary<string> {
  const letters =
    'aAäÄzZßẞſsøØİIıiñ\u0301\u0308\u0316\u0345\u20dd\u034fµμςσΣΆάϐяЯйЙи\u0306ґԱաᲐაᎠꭰӀӏﬆﬅǅǆǄŉÅΩKά가\u1100\u1161\u11a8蕨か\u3099ด้\uffff\ufffd𐐀𐐨🌿👩\u200d🌾 \u0001'
  const letter = fc.constantFrom(...letters)
  const isSurrogate = (code: number) => code >= 0xd800 && code <= 0xdfff
  const code = fc.integer({ min: 1, max: 0x10_ffff }).filter((value) => !isSurrogate(value))
  const character = code.map((value) => String.fromCodePoint(value))
  return fc.oneof(
    fc.string({ unit: letter, maxLength: 8 }),
    fc.tuple(letter, letter).map(([base, mark]) => base + mark.repeat(40)),
    fc.array(character, { maxLength: 6 }).map((characters) => characters.join('')),
  )
}
