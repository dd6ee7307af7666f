import { describe, expect, test } from 'vitest'
import { largestId, type NewPlant, smallestId } from '../../../src/plant/plant.js'
import { createNext } from '../../../src/stores/common/conflict.js'
import type {
  CountByQuery,
  CountQuery,
  ListQuery,
  PlantStore,
  ReadableStore,
} from '../../../src/stores/common/store.js'
import { gathered } from '../../helpers/store.js'

/** A store under test, and a look behind it that does not go through it. */
export interface Subject<Store extends PlantStore> {
  store: Store
  /** what a store opened afresh holds under an id */
  look(id: bigint): Promise<NewPlant | undefined>
}

export type Open<Store extends PlantStore> = () => Promise<Subject<Store>>

const fern: NewPlant = { id: 1n, name: 'Fern', tag: 'shade' }
const answer = { name: 'Fern', tag: 'shade' }
const moss: NewPlant = { id: 1n, name: 'Moss' }
const idempotencyKey = 'order-66'
const idTaken = { type: 'conflict', error: 409, message: 'A plant with id 1 already exists' }
const byId = (one: NewPlant, other: NewPlant) => (one.id < other.id ? -1 : 1)

const plantsOf = (count: number, plant: (index: number) => Partial<NewPlant> = () => ({})): NewPlant[] =>
  Array.from({ length: count }, (_, index) => ({ id: BigInt(index), name: `Fern ${index}`, ...plant(index) }))

/** What every store must do, wherever it keeps its plants. `open` gives an empty one. */
export function describePlantStore(name: string, open: Open<PlantStore>): void {
  describe(`${name} is a plant store: it`, () => {
    test('keeps ids and texts exactly', async () => {
      const { store, look } = await open()
      const texts = [
        '',
        '  Fern  ',
        'not composed: e\u0301 \u00e9',
        '蕨 🌿 \u{10ffff} \uffff \ufffd',
        '\u0001\t\n\r\u001b[31m\u007f\u009b',
        `"'\\%_?;--`,
        '🌿'.repeat(50_000),
      ]
      const ids = [smallestId, -1n, 0n, 1n, 2n, 9007199254740993n, largestId]
      for (const [index, text] of texts.entries()) {
        const plant = { id: ids[index] ?? 0n, name: text, tag: text }
        expect(await store.create(plant)).toStrictEqual({ name: text, tag: text })
        expect(await look(plant.id)).toStrictEqual(plant)
      }
    })

    test('rejects an id that is taken, with or without a key', async () => {
      const { store, look } = await open()
      await store.create(fern, { idempotencyKey })
      for (const plant of [fern, moss])
        for (const options of [{}, { idempotencyKey: 'another-key' }])
          await expect(store.create(plant, options)).rejects.toMatchObject(idTaken)
      expect(await look(1n)).toStrictEqual(fern)
    })

    test('accepts a repeated key for an equal plant only', async () => {
      const { store, look } = await open()
      for (const _ of [1, 2]) expect(await store.create(fern, { idempotencyKey })).toStrictEqual(answer)
      const keyTaken = { ...idTaken, message: 'This idempotency key was used for a different plant' }
      for (const plant of [
        { ...fern, id: 2n },
        { ...fern, name: 'Moss' },
        { ...fern, tag: 'sun' },
        { id: 1n, name: 'Fern' },
      ])
        await expect(store.create(plant, { idempotencyKey })).rejects.toMatchObject(keyTaken)
      expect([await look(1n), await look(2n)]).toStrictEqual([fern, undefined])
    })

    test('leaves a key free when its plant was rejected', async () => {
      const { store } = await open()
      await store.create(fern)
      await expect(store.create(moss, { idempotencyKey })).rejects.toMatchObject(idTaken)
      expect(await store.create({ ...fern, id: 2n }, { idempotencyKey })).toStrictEqual(answer)
    })

    test('gives an id to the first of many who want it', async () => {
      const { store, look } = await open()
      const plants = plantsOf(50, (index) => ({ id: BigInt(index % 2) }))
      const results = await Promise.allSettled(plants.map((plant) => store.create(plant)))
      expect(results.flatMap(({ status }, index) => (status === 'fulfilled' ? [index] : []))).toEqual([0, 1])
      expect([await look(0n), await look(1n)]).toStrictEqual(plants.slice(0, 2))
    })

    test('makes one plant of a key that comes twice at once', async () => {
      const { store } = await open()
      const create = () => store.create(fern, { idempotencyKey })
      expect(await Promise.all([create(), create()])).toStrictEqual([answer, answer])
    })
  })
}

/** What a store must do besides that can be read. */
export function describeReadableStore(name: string, open: Open<ReadableStore>): void {
  describe(`${name} is a readable store: it`, () => {
    describeQueries(open)
    describeChanges(open)
    describeNextIds(open)
  })
}

function describeQueries(open: Open<ReadableStore>): void {
  test('lists plants in the order of ids', async () => {
    const { store } = await open()
    const ids = [10n, 9n, -2n, 0n, largestId, smallestId]
    for (const id of ids) await store.create({ id, name: 'Fern', ...([10n, -2n].includes(id) && { tag: 'shade' }) })
    const queries: [ListQuery | undefined, bigint[]][] = [
      [undefined, [smallestId, -2n, 0n, 9n, 10n, largestId]],
      [{ after: -2n }, [0n, 9n, 10n, largestId]],
      [{ after: 5n }, [9n, 10n, largestId]],
      [{ after: largestId }, []],
      [{ limit: 2 }, [smallestId, -2n]],
      [{ tag: 'shade' }, [-2n, 10n]],
      [{ tag: 'shade', after: -2n, limit: 1 }, [10n]],
      [{ tag: '' }, []],
      [{ tag: false }, [smallestId, 0n, 9n, largestId]],
      [{ tag: false, search: 'fern', after: 0n, limit: 1 }, [9n]],
      [{ search: 'HAD' }, [-2n, 10n]],
      [{ search: 'fe', after: 0n, limit: 2 }, [9n, 10n]],
    ]
    for (const [query, expected] of queries)
      expect({ query, ids: (await gathered(store.list(query))).map(({ id }) => id) }).toEqual({ query, ids: expected })
  })

  test('finds texts in any case, composed or decomposed', async () => {
    const { store } = await open()
    const others = ['Straße', 'ΟΔΟΣ', 'Сосна', 'a%b_c', '[\\]', "'", 'x*?^-', 'ſ']
    const names = ['Fern', 'Röse', 'ETE\u0301', 'été', 'İ', 'ı', ...others]
    await Promise.all(names.map((text, index) => store.create({ id: BigInt(index), name: text })))
    await Promise.all(names.map((text, index) => store.create({ id: BigInt(index + 20), name: '', tag: text })))
    const searches: Record<string, string[]> = {
      ...{ '': names, fERN: ['Fern'], RÖSE: ['Röse'], 'ro\u0308s': ['Röse'], 'f*n': [], 'f[e]': [] },
      ...{ É: ['ETE\u0301', 'été'], 'te\u0301': ['ETE\u0301', 'été'], ete: ['ETE\u0301'] },
      ...{ i: [], İ: ['İ'], I: [], ı: ['ı'], STRAẞE: ['Straße'], SS: [], s: ['Röse', 'Straße', 'ſ'] },
      ...{ οδος: ['ΟΔΟΣ'], δοσ: ['ΟΔΟΣ'], СОСна: ['Сосна'], c: ['a%b_c'], '%': ['a%b_c'], 'A%B_': ['a%b_c'] },
      ...{ '\\]': ['[\\]'], "'": ["'"], '[': ['[\\]'], 'X*?^-': ['x*?^-'] },
    }
    for (const [search, expected] of Object.entries(searches)) {
      const found = await gathered(store.list({ search }))
      const texts = { names: found.flatMap((plant) => plant.name || []), tags: found.flatMap(({ tag }) => tag ?? []) }
      const count = await store.count({ search })
      const all = search === '' ? names.length : expected.length
      expect({ search, ...texts, count }).toEqual({ search, names: expected, tags: expected, count: BigInt(2 * all) })
    }
  })

  test('finds a text of as many characters as can be sought', async () => {
    const { store } = await open()
    const text = '\u1f82'.repeat(200)
    await store.create({ id: 1n, name: `x${text.toUpperCase()}`, tag: text.normalize('NFD') })
    expect(await store.count({ search: text })).toBe(1n)
  })

  test('finds a few plants among many, and lists them in small pages', async () => {
    const { store } = await open()
    const name = (index: number) => (index % 700 === 5 ? 'Fern' : 'M'.repeat(index < 30 ? 200_000 : 1))
    const plants = plantsOf(3030, (index) => ({ name: name(index), ...(index % 1000 === 9 && { tag: 'x' }) }))
    await Promise.all(plants.map((plant) => store.create(plant)))
    const idsOf = async (query: ListQuery) => (await gathered(store.list(query))).map(({ id }) => id)
    expect(await idsOf({ search: 'fern' })).toEqual([5n, 705n, 1405n, 2105n, 2805n])
    expect(await idsOf({ tag: 'x', after: 9n, limit: 5 })).toEqual([1009n, 2009n, 3009n])
    const pages: NewPlant[][] = []
    for await (const page of store.list()) pages.push(page)
    expect(pages.flat()).toStrictEqual(plants)
    expect(Math.max(...pages.map((page) => page.length))).toBeLessThanOrEqual(1000)
    const sizes = pages.map((page) => page.reduce((sum, plant) => sum + plant.name.length, 0))
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1_200_000)
  })

  test('counts all plants, those with a tag, and those with a text', async () => {
    const { store } = await open()
    expect(await store.count()).toBe(0n)
    for (const [index, tag] of ['shade', 'SHADE', ''].entries())
      await store.create({ id: BigInt(index), name: 'Fern', tag })
    await store.create({ id: 3n, name: 'shady' })
    const tags: CountQuery[] = [{ tag: 'shade' }, { tag: '' }, { tag: false }]
    const queries: CountQuery[] = [{}, ...tags, { search: 'Shad' }, { tag: 'shade', search: 'fern' }, { search: 'x' }]
    const counts = await Promise.all(queries.map((query) => store.count(query)))
    expect(counts).toEqual([4n, 1n, 1n, 1n, 3n, 1n, 0n])
  })

  test('counts plants by their texts', async () => {
    const { store } = await open()
    const texts = [undefined, undefined, undefined, 'a', 'a', '🌿', '🌿', '\uffff', '\uffff', '']
    for (const [index, tag] of texts.entries())
      await store.create({ id: BigInt(index), name: index % 2 ? 'Fern' : 'fern', ...(tag !== undefined && { tag }) })
    await store.create({ id: 10n, name: '"é"' })
    const check = async (query: CountByQuery, ...counts: string[]) => {
      const lines: string[] = []
      for await (const { text } of store.countBy(query)) lines.push(...text.split('\n'))
      expect(lines.map((line) => Object.entries(JSON.parse(line)).join(' '))).toEqual(counts)
    }
    const names = ['name,Fern count,5', 'name,fern count,5', 'name,"é" count,1']
    const tags = ['count,4', 'tag,a count,2', 'tag,\uffff count,2', 'tag,🌿 count,2', 'tag, count,1']
    await check({ by: 'name' }, ...names)
    await check({ by: 'tag' }, ...tags)
    await check({ by: 'name', min: 2, limit: 2 }, ...names.slice(0, 2))
    await check({ by: 'tag', min: 2, limit: 2 }, ...tags.slice(0, 2))
    await check({ by: 'name', tag: 'a' }, 'name,Fern count,1', 'name,fern count,1')
    await check({ by: 'name', search: 'É', tag: false }, 'name,"é" count,1')
    await check({ by: 'tag', search: 'none' })
  })
}

function describeChanges(open: Open<ReadableStore>): void {
  test('replaces a plant that has not changed, and returns it as it is now', async () => {
    const { store, look } = await open()
    expect([await store.replace(fern), await store.get(1n)]).toEqual([undefined, undefined])
    await store.create(fern)
    const others: NewPlant[] = [
      { ...fern, name: 'fern' },
      { ...fern, tag: '' },
      { id: 1n, name: 'Fern' },
    ]
    for (const only of others) expect(await store.replace(moss, only)).toBeUndefined()
    expect(await look(1n)).toStrictEqual(fern)
    for (const plant of [{ id: 1n, name: "it's", tag: '' }, moss]) {
      expect(await store.replace(plant)).toStrictEqual(plant)
      expect([await store.get(1n), await look(1n)]).toStrictEqual([plant, plant])
    }
    expect(await store.replace(fern, moss)).toStrictEqual(fern)
  })

  test('replaces a plant once for many who have seen the same one', async () => {
    const { store, look } = await open()
    await store.create(fern)
    const plants = plantsOf(20, () => ({ id: 1n }))
    const replaced = await Promise.all(plants.map((plant) => store.replace(plant, fern)))
    expect(replaced.filter((plant) => plant !== undefined)).toStrictEqual([await look(1n)])
  })

  test('changes many at the same moment, each with its own answer', async () => {
    const { store } = await open()
    const plants = plantsOf(200)
    const answers = await Promise.all(plants.map((plant) => store.create(plant)))
    expect(answers).toStrictEqual(plants.map(({ name }) => ({ name })))
    // what is called, its result, and what is stored then
    const changes: ((plant: NewPlant, moss: NewPlant) => [call: Promise<unknown>, unknown?, NewPlant?])[] = [
      (_, moss) => [store.replace(moss), moss, moss],
      (plant, moss) => [store.replace(moss, plant), moss, moss],
      (plant, moss) => [store.replace(moss, moss), undefined, plant],
      (plant, { id }) => [store.replace({ ...moss, id: id + 1000n }), undefined, plant],
      (plant, { id }) => [store.delete(id), plant],
      (plant, { id }) => [store.delete(id, plant), plant],
      (plant, moss) => [store.delete(moss.id, moss), undefined, plant],
      (plant, { id }) => [store.delete(id + 1000n), undefined, plant],
      (plant, { id }) => [store.get(id), plant, plant],
      (plant, { id }) => [store.get(id + 1000n), undefined, plant],
    ]
    const made = plants.map((plant, index) => changes[index % 10]?.(plant, { ...moss, id: plant.id }) ?? [])
    expect(await Promise.all(made.map(([call]) => call))).toStrictEqual(made.map(([, result]) => result))
    expect(await gathered(store.list())).toStrictEqual(made.flatMap(([, , left]) => left ?? []))
  })

  test('takes the key of a plant that it replaces', async () => {
    const { store, look } = await open()
    await store.create(fern, { idempotencyKey })
    await store.replace(moss)
    await expect(store.create(fern, { idempotencyKey })).rejects.toMatchObject(idTaken)
    expect(await look(1n)).toStrictEqual(moss)
  })

  test('returns what it deletes, and frees its id and its key', async () => {
    const { store, look } = await open()
    await store.create(fern, { idempotencyKey })
    expect([await store.delete(1n), await store.delete(1n), await look(1n)]).toStrictEqual([fern, undefined, undefined])
    expect(await store.create(moss, { idempotencyKey })).toStrictEqual({ name: 'Moss' })
  })

  test('shows no plant whose create is rejected, while many are in flight', async () => {
    const { store } = await open()
    const ids = plantsOf(40).map(({ id }) => id)
    const seen = new Set<string | undefined>()
    let isOver = false
    const watch = async (look: () => Promise<(NewPlant | undefined)[]>) => {
      for (; !isOver; await new Promise(setImmediate)) for (const plant of await look()) seen.add(plant?.name)
    }
    const watching = [watch(() => Promise.all(ids.map((id) => store.get(id)))), watch(() => gathered(store.list()))]
    const creates = plantsOf(400, (index) => ({ id: BigInt(index % 40) }))
    const results = await Promise.allSettled(creates.map((plant) => store.create(plant)))
    isOver = true
    await Promise.all(watching)
    const stored = creates.filter((_, index) => results[index]?.status === 'fulfilled').map(({ name }) => name)
    expect(stored).toHaveLength(40)
    expect([undefined, ...stored]).toEqual(expect.arrayContaining([...seen]))
  })
}

function describeNextIds(open: Open<ReadableStore>): void {
  test.each<[string, bigint[], bigint]>([
    ['nothing', [], 1n],
    ['a negative id', [-5n, smallestId], -4n],
    ['ids that are far apart', [1n, 4_000_000_000n, -3n], 4_000_000_001n],
    ['the last id but one', [largestId - 1n], largestId],
  ])('creates a plant under the greatest id plus 1: after %s', async (_, ids, next) => {
    const { store, look } = await open()
    for (const id of ids) await store.create({ id, name: 'Fern' })
    expect(await store.greatestId()).toBe(ids.length > 0 ? next - 1n : undefined)
    expect(await createNext(store, answer)).toStrictEqual({ ...fern, id: next })
    expect(await look(next)).toStrictEqual({ ...fern, id: next })
  })

  test('has no next id after the last one', async () => {
    const { store } = await open()
    await store.create({ ...fern, id: largestId })
    await expect(createNext(store, fern)).rejects.toThrow('There is no id after 9223372036854775807')
  })

  test('gives one next id after the other to those who want one at once', async () => {
    const { store } = await open()
    const created = await Promise.all(plantsOf(20).map(({ name }) => createNext(store, { name })))
    expect(created.toSorted(byId).map(({ id }) => id)).toEqual(created.map((_, index) => BigInt(index + 1)))
    expect(await gathered(store.list())).toStrictEqual(created.toSorted(byId))
  })
}
