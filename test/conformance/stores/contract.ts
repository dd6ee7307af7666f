import { describe, expect, test } from 'vitest'
import type { NewPlant } from '../../../src/plant/plant.js'
import type { PlantsError } from '../../../src/platform/errors.js'
import { createNext } from '../../../src/stores/common/conflict.js'
import type {
  CountByQuery,
  CountQuery,
  ListQuery,
  PlantStore,
  ReadableStore,
} from '../../../src/stores/common/store.js'

/** A store under test, and a look behind it that does not go through it. */
export interface Subject<Store extends PlantStore> {
  store: Store
  /** what a store opened afresh holds under an id */
  look(id: bigint): Promise<NewPlant | undefined>
}

type Open<Store extends PlantStore> = () => Promise<Subject<Store>>

const fern: NewPlant = { id: 1n, name: 'Fern', tag: 'shade' }

/** What every store must do, wherever it keeps its plants. `open` gives an empty one. */
export function describePlantStore(name: string, open: Open<PlantStore>): void {
  describe(`${name} is a plant store: it`, () => {
    describeAnswers(open)
    describeRejections(open)
    describeKeys(open)
    describeCrowds(open)
  })
}

function describeAnswers(open: Open<PlantStore>): void {
  test('answers with the name, then the tag', async () => {
    const { store } = await open()
    expect(JSON.stringify(await store.create(fern))).toBe('{"name":"Fern","tag":"shade"}')
  })

  test('answers without a tag when none was given', async () => {
    const { store, look } = await open()
    expect(await store.create({ id: 1n, name: '' })).toStrictEqual({ name: '' })
    expect(await look(1n)).toStrictEqual({ id: 1n, name: '' })
  })

  test.each([-9223372036854775808n, -1n, 0n, 9007199254740993n, 9223372036854775807n])(
    'keeps the id %s exact',
    async (id) => {
      const { store, look } = await open()
      await store.create({ ...fern, id })
      expect(await look(id)).toStrictEqual({ ...fern, id })
    },
  )

  test.each([
    ['the empty one', ''],
    ['spaces at its ends', '  Fern  '],
    ['combining marks, not composed', 'e\u0301 \u00e9'],
    ['all planes', '蕨 🌿 \u{10ffff} \uffff \ufffd'],
    ['control characters', '\u0001\t\n\r\u001b[31m\u007f\u009b'],
    ['quotes and backslashes', `"'\\%_?;--`],
    ['a long one', '🌿'.repeat(50_000)],
  ])('keeps every code point of a name and a tag: %s', async (_, text) => {
    const { store, look } = await open()
    expect(await store.create({ id: 1n, name: text, tag: text })).toStrictEqual({ name: text, tag: text })
    expect(await look(1n)).toStrictEqual({ id: 1n, name: text, tag: text })
  })
}

function describeRejections(open: Open<PlantStore>): void {
  test.each([
    ['equal', fern],
    ['different', { ...fern, name: 'Moss' }],
  ])('rejects an id that is taken, by a plant that is %s', async (_, second) => {
    const { store, look } = await open()
    await store.create(fern)
    expect(await refusal(store.create(second))).toEqual({
      type: 'conflict',
      error: 409,
      message: 'A plant with id 1 already exists',
    })
    expect(await look(1n)).toStrictEqual(fern)
  })
}

function describeKeys(open: Open<PlantStore>): void {
  const idempotencyKey = 'order-66'
  const keyTaken = { type: 'conflict', error: 409, message: 'This idempotency key was used for a different plant' }

  test('answers a repeated key as it did the first time', async () => {
    const { store } = await open()
    const first = await store.create(fern, { idempotencyKey })
    expect(await store.create(fern, { idempotencyKey })).toStrictEqual(first)
  })

  test.each<[string, NewPlant]>([
    ['another id', { ...fern, id: 2n }],
    ['another name', { ...fern, name: 'Moss' }],
    ['another tag', { ...fern, tag: 'sun' }],
    ['no tag', { id: 1n, name: 'Fern' }],
  ])('rejects a repeated key with %s', async (_, second) => {
    const { store, look } = await open()
    await store.create(fern, { idempotencyKey })
    expect(await refusal(store.create(second, { idempotencyKey }))).toEqual(keyTaken)
    expect(await look(1n)).toStrictEqual(fern)
    expect(await look(2n)).toBeUndefined()
  })

  test.each([undefined, 'another-key'])(
    'rejects a taken id under the key %s, though the plants are equal',
    async (key) => {
      const { store } = await open()
      await store.create(fern, { idempotencyKey })
      expect(await refusal(store.create(fern, { idempotencyKey: key }))).toMatchObject({
        error: 409,
        message: 'A plant with id 1 already exists',
      })
    },
  )

  test('leaves a key free when its plant was rejected', async () => {
    const { store } = await open()
    await store.create(fern)
    await refusal(store.create({ ...fern, name: 'Moss' }, { idempotencyKey }))
    expect(await store.create({ ...fern, id: 2n }, { idempotencyKey })).toStrictEqual({ name: 'Fern', tag: 'shade' })
  })
}

function describeCrowds(open: Open<PlantStore>): void {
  const ids = Array.from({ length: 50 }, (_, index) => BigInt(index))

  test('creates what comes at the same moment, each with its own answer', async () => {
    const { store, look } = await open()
    const answers = await Promise.all(ids.map((id) => store.create({ id, name: `Fern ${id}` })))
    expect(answers).toStrictEqual(ids.map((id) => ({ name: `Fern ${id}` })))
    expect(await Promise.all(ids.map(look))).toStrictEqual(ids.map((id) => ({ id, name: `Fern ${id}` })))
  })

  test('gives an id to one of those who want it at the same moment, and rejects the others', async () => {
    const { store, look } = await open()
    const results = await Promise.allSettled(ids.map((id) => store.create({ id: id % 2n, name: `Fern ${id}` })))
    expect(results.flatMap((result, index) => (result.status === 'fulfilled' ? [index] : []))).toEqual([0, 1])
    expect([await look(0n), await look(1n)]).toStrictEqual([
      { id: 0n, name: 'Fern 0' },
      { id: 1n, name: 'Fern 1' },
    ])
  })

  test('makes one plant of a key that comes twice at the same moment', async () => {
    const { store } = await open()
    const create = () => store.create(fern, { idempotencyKey: 'twice' })
    expect(await Promise.all([create(), create()])).toStrictEqual([
      { name: 'Fern', tag: 'shade' },
      { name: 'Fern', tag: 'shade' },
    ])
  })
}

/** What a store must do besides, when it also tells what it holds. */
export function describeReadableStore(name: string, open: Open<ReadableStore>): void {
  describe(`${name} is a readable store: it`, () => {
    test('gives a plant back as it was given', async () => {
      const { store } = await open()
      await store.create(fern)
      expect(await store.get(1n)).toStrictEqual(fern)
      expect(await store.get(2n)).toBeUndefined()
    })

    test.each<[string, ListQuery | undefined, bigint[]]>([
      ['all', undefined, [-9223372036854775808n, -2n, 0n, 10n, 9n, 9223372036854775807n]],
      ['those after an id', { after: -2n }, [0n, 9n, 10n, 9223372036854775807n]],
      ['those after an id that is not there', { after: 5n }, [9n, 10n, 9223372036854775807n]],
      ['none after the last id', { after: 9223372036854775807n }, []],
      ['so many', { limit: 2 }, [-9223372036854775808n, -2n]],
      ['those with a tag', { tag: 'shade' }, [-2n, 10n]],
      ['so many with a tag after an id', { tag: 'shade', after: -2n, limit: 1 }, [10n]],
      ['none with a tag that no plant has', { tag: '' }, []],
      ['those without a tag', { tag: false }, [-9223372036854775808n, 0n, 9n, 9223372036854775807n]],
      ['so many without a tag, with a text', { tag: false, search: 'fern', after: 0n, limit: 1 }, [9n]],
      ['those with a text in the tag, in either case', { search: 'HAD' }, [-2n, 10n]],
      ['those with a text in the name, after an id', { search: 'fe', after: 0n, limit: 2 }, [9n, 10n]],
    ])('lists %s, in the order of ids', async (_, query, expected) => {
      const { store } = await open()
      for (const id of [10n, 9n, -2n, 0n, 9223372036854775807n, -9223372036854775808n]) {
        await store.create(id === 10n || id === -2n ? { id, name: 'Fern', tag: 'shade' } : { id, name: 'Fern' })
      }
      expect((await listed(store, query)).map((plant) => plant.id)).toEqual(
        expected.toSorted((a, b) => (a < b ? -1 : 1)),
      )
    })

    const names = [
      'Fern',
      'Röse',
      'ETE\u0301',
      'été',
      'İ',
      'ı',
      'Straße',
      'ΟΔΟΣ',
      'Сосна',
      'a%b_c',
      '[\\]',
      "'",
      'x*?^-',
      'ſ',
    ]
    test.each<[string, string[]]>([
      ['', names],
      ['fERN', ['Fern']],
      ['RÖSE', ['Röse']],
      ['ro\u0308s', ['Röse']],
      ['É', ['ETE\u0301', 'été']],
      ['te\u0301', ['ETE\u0301', 'été']],
      ['ete', ['ETE\u0301']],
      ['i', []],
      ['İ', ['İ']],
      ['I', []],
      ['ı', ['ı']],
      ['STRAẞE', ['Straße']],
      ['SS', []],
      ['s', ['Röse', 'Straße', 'ſ']],
      ['οδος', ['ΟΔΟΣ']],
      ['δοσ', ['ΟΔΟΣ']],
      ['СОСна', ['Сосна']],
      ['c', ['a%b_c']],
      ['%', ['a%b_c']],
      ['A%B_', ['a%b_c']],
      ['\\]', ['[\\]']],
      ["'", ["'"]],
      ['[', ['[\\]']],
      ['X*?^-', ['x*?^-']],
      ['f*n', []],
      ['f[e]', []],
    ])('finds the text "%s" in any case, composed or decomposed', async (search, expected) => {
      const { store } = await open()
      await Promise.all(names.map((name, index) => store.create({ id: BigInt(index), name })))
      await Promise.all(names.map((tag, index) => store.create({ id: BigInt(index + 20), name: '', tag })))
      const found = await listed(store, { search })
      expect(found.flatMap(({ name }) => (name === '' ? [] : name))).toEqual(expected)
      expect(found.flatMap(({ tag }) => tag ?? [])).toEqual(expected)
      expect(await store.count({ search })).toBe(BigInt(search === '' ? 2 * names.length : 2 * expected.length))
    })

    test('finds a few plants among many', async () => {
      const { store } = await open()
      const ids = Array.from({ length: 3000 }, (_, index) => BigInt(index))
      await Promise.all(
        ids.map((id) =>
          store.create({ id, name: id % 700n === 5n ? 'Fern' : 'Moss', ...(id % 1000n === 9n && { tag: 'x' }) }),
        ),
      )
      expect((await listed(store, { search: 'fern' })).map(({ id }) => id)).toEqual([5n, 705n, 1405n, 2105n, 2805n])
      expect((await listed(store, { tag: 'x', after: 9n, limit: 5 })).map(({ id }) => id)).toEqual([1009n, 2009n])
    })

    test('lists in pages that stay small for many plants and for large ones', async () => {
      const { store } = await open()
      const large = Array.from({ length: 30 }, (_, index) => ({ id: BigInt(index), name: 'F'.repeat(200_000) }))
      const small = Array.from({ length: 3000 }, (_, index) => ({ id: BigInt(index + 100), name: 'F' }))
      await Promise.all([...large, ...small].map((plant) => store.create(plant)))
      const pages: NewPlant[][] = []
      for await (const page of store.list()) pages.push(page)
      expect(pages.flat()).toStrictEqual([...large, ...small])
      expect(Math.max(...pages.map((page) => page.length))).toBeLessThanOrEqual(1000)
      expect(
        Math.max(...pages.map((page) => page.reduce((sum, plant) => sum + plant.name.length, 0))),
      ).toBeLessThanOrEqual(1_200_000)
    })

    test('replaces the name and the tag of a plant, and gives it back as it is now', async () => {
      const { store, look } = await open()
      await store.create(fern)
      expect(await store.replace({ id: 1n, name: "it's", tag: '' })).toStrictEqual({ id: 1n, name: "it's", tag: '' })
      expect(await store.replace({ id: 1n, name: 'Moss' })).toStrictEqual({ id: 1n, name: 'Moss' })
      expect(await look(1n)).toStrictEqual({ id: 1n, name: 'Moss' })
    })

    test('replaces no plant that is not there, or that is another than it was', async () => {
      const { store, look } = await open()
      expect(await store.replace(fern)).toBeUndefined()
      await store.create(fern)
      const moss = { id: 1n, name: 'Moss' }
      for (const only of [
        { ...fern, name: 'fern' },
        { ...fern, tag: '' },
        { id: 1n, name: 'Fern' },
      ])
        expect(await store.replace(moss, only)).toBeUndefined()
      expect(await look(1n)).toStrictEqual(fern)
      expect(await store.replace(moss, fern)).toStrictEqual(moss)
      expect(await store.replace(fern, moss)).toStrictEqual(fern)
      expect(await look(2n)).toBeUndefined()
    })

    test('replaces a plant once for many who have seen the same one', async () => {
      const { store, look } = await open()
      await store.create(fern)
      const plants = Array.from({ length: 20 }, (_, index) => ({ id: 1n, name: `Moss ${index}` }))
      const replaced = (await Promise.all(plants.map((plant) => store.replace(plant, fern)))).filter(
        (plant) => plant !== undefined,
      )
      expect(replaced).toStrictEqual([await look(1n)])
    })

    test('changes many at the same moment, each with its own answer', async () => {
      const { store } = await open()
      const plants = Array.from({ length: 200 }, (_, index) => ({ ...fern, id: BigInt(index) }))
      await Promise.all(plants.map((plant) => store.create(plant)))
      const moss = { name: 'Moss' }
      const changes: ((plant: NewPlant) => [call: Promise<NewPlant | undefined>, result: NewPlant | undefined])[] = [
        (plant) => [store.replace({ ...moss, id: plant.id }), { id: plant.id, ...moss }],
        (plant) => [store.replace({ ...moss, id: plant.id }, plant), { id: plant.id, ...moss }],
        ({ id }) => [store.replace({ ...moss, id }, { ...moss, id }), undefined],
        ({ id }) => [store.replace({ ...moss, id: id + 1000n }), undefined],
        (plant) => [store.delete(plant.id), plant],
        (plant) => [store.delete(plant.id, plant), plant],
        ({ id }) => [store.delete(id, { ...moss, id }), undefined],
        ({ id }) => [store.delete(id + 1000n), undefined],
        (plant) => [store.get(plant.id), plant],
        ({ id }) => [store.get(id + 1000n), undefined],
      ]
      const made = plants.flatMap((plant, index) =>
        changes.slice(index % changes.length, 1 + (index % changes.length)).map((change) => change(plant)),
      )
      expect(await Promise.all(made.map(([call]) => call))).toStrictEqual(made.map(([, result]) => result))
      const left = plants.flatMap((plant, index) => {
        if ([4, 5].includes(index % changes.length)) return []
        return [0, 1].includes(index % changes.length) ? [{ id: plant.id, ...moss }] : [plant]
      })
      expect(await listed(store)).toStrictEqual(left)
    })

    test('takes the key of a plant that it replaces: a late retry of its create is a conflict', async () => {
      const { store, look } = await open()
      const idempotencyKey = 'order-66'
      await store.create(fern, { idempotencyKey })
      await store.replace({ ...fern, name: 'Moss' })
      expect(await refusal(store.create(fern, { idempotencyKey }))).toMatchObject({
        message: 'A plant with id 1 already exists',
      })
      expect(await look(1n)).toStrictEqual({ ...fern, name: 'Moss' })
    })

    test('shows no plant whose create is rejected, while many are in flight', async () => {
      const { store } = await open()
      const ids = Array.from({ length: 40 }, (_, index) => BigInt(index))
      const seen: NewPlant[] = []
      let isOver = false
      const watch = async (look: () => Promise<NewPlant[]>) => {
        for (; !isOver; await new Promise(setImmediate)) seen.push(...(await look()))
      }
      const getAll = async () =>
        (await Promise.all(ids.map((id) => store.get(id)))).filter((plant) => plant !== undefined)
      const watching = [watch(getAll), watch(() => listed(store))]
      const creates = Array.from({ length: 400 }, (_, index) => ({ id: BigInt(index % 40), name: `Fern ${index}` }))
      const results = await Promise.allSettled(creates.map((plant) => store.create(plant)))
      isOver = true
      await Promise.all(watching)
      const stored = creates.filter((_, index) => results[index]?.status === 'fulfilled')
      expect(stored).toHaveLength(40)
      expect(stored.map(({ name }) => name)).toEqual(expect.arrayContaining([...new Set(seen.map(({ name }) => name))]))
    })

    test('counts all plants, those with a tag, and those with a text', async () => {
      const { store } = await open()
      expect(await store.count()).toBe(0n)
      const tags = ['shade', 'SHADE', '', undefined]
      for (const [index, tag] of tags.entries())
        await store.create({
          id: BigInt(index),
          name: index === 3 ? 'shady' : 'Fern',
          ...(tag !== undefined && { tag }),
        })
      const queries: CountQuery[] = [
        {},
        { tag: 'shade' },
        { tag: '' },
        { tag: false },
        { search: 'Shad' },
        { tag: 'shade', search: 'fern' },
        { search: 'x' },
      ]
      expect(await Promise.all(queries.map((query) => store.count(query)))).toEqual([4n, 1n, 1n, 1n, 3n, 1n, 0n])
    })

    test.each<[Omit<CountByQuery, 'by'>, string[], string[]]>([
      [
        {},
        [
          '{"count":4}',
          '{"tag":"a","count":2}',
          '{"tag":"\uffff","count":2}',
          '{"tag":"🌿","count":2}',
          '{"tag":"","count":1}',
        ],
        ['{"name":"Fern","count":5}', '{"name":"fern","count":5}', '{"name":"\\"é\\"","count":1}'],
      ],
      [
        { min: 2, limit: 2 },
        ['{"count":4}', '{"tag":"a","count":2}'],
        ['{"name":"Fern","count":5}', '{"name":"fern","count":5}'],
      ],
      [{ tag: 'a' }, ['{"tag":"a","count":2}'], ['{"name":"Fern","count":1}', '{"name":"fern","count":1}']],
      [{ search: 'É', tag: false }, ['{"count":1}'], ['{"name":"\\"é\\"","count":1}']],
      [{ search: 'none' }, [], []],
    ])('counts plants by their texts, with %o', async (query, tags, names) => {
      const { store } = await open()
      const texts = [undefined, undefined, undefined, 'a', 'a', '🌿', '🌿', '\uffff', '\uffff', '']
      for (const [index, tag] of texts.entries())
        await store.create({
          id: BigInt(index),
          name: index % 2 > 0 ? 'Fern' : 'fern',
          ...(tag !== undefined && { tag }),
        })
      await store.create({ id: 10n, name: '"é"' })
      const counted = async (by: CountByQuery['by']) => {
        const lines: string[] = []
        for await (const { text } of store.countBy({ ...query, by })) lines.push(...text.split('\n'))
        return lines
      }
      expect({ tags: await counted('tag'), names: await counted('name') }).toEqual({ tags, names })
    })

    test('finds a text of as many characters as can be sought', async () => {
      const { store } = await open()
      const text = '\u1f82'.repeat(200)
      await store.create({ id: 1n, name: `x${text.toUpperCase()}`, tag: text.normalize('NFD') })
      expect(await store.count({ search: text })).toBe(1n)
    })

    test.each([
      ['nothing', [], 1n],
      ['a negative id', [-5n, -9223372036854775808n], -4n],
      ['ids that are far apart', [1n, 4_000_000_000n, -3n], 4_000_000_001n],
      ['the last id but one', [9223372036854775806n], 9223372036854775807n],
    ])('creates a plant under the greatest id plus 1: after %s', async (_, ids: bigint[], next) => {
      const { store, look } = await open()
      for (const id of ids) await store.create({ id, name: 'Fern' })
      expect(await store.greatestId()).toBe(ids.toSorted((a, b) => (a < b ? 1 : -1))[0])
      expect(await createNext(store, { name: 'Moss', tag: '' })).toStrictEqual({ id: next, name: 'Moss', tag: '' })
      expect(await look(next)).toStrictEqual({ id: next, name: 'Moss', tag: '' })
    })

    test('has no next id after the last one', async () => {
      const { store } = await open()
      await store.create({ ...fern, id: 9223372036854775807n })
      expect(await refusal(createNext(store, fern))).toMatchObject({
        type: 'conflict',
        message: 'There is no id after 9223372036854775807, which a plant has',
      })
    })

    test('gives one next id after the other to those who want one at the same moment', async () => {
      const { store } = await open()
      const created = await Promise.all(
        Array.from({ length: 20 }, (_, index) => createNext(store, { name: `Fern ${index}` })),
      )
      expect(created.map(({ id }) => id).toSorted((a, b) => (a < b ? -1 : 1))).toEqual(
        created.map((_, index) => BigInt(index + 1)),
      )
      expect(await listed(store)).toStrictEqual(created.toSorted((a, b) => (a.id < b.id ? -1 : 1)))
    })

    test('gives back what it deletes, and frees its id and its key', async () => {
      const { store, look } = await open()
      await store.create(fern, { idempotencyKey: 'again' })
      expect(await store.delete(1n)).toStrictEqual(fern)
      expect(await store.delete(1n)).toBeUndefined()
      expect(await look(1n)).toBeUndefined()
      expect(await store.create({ ...fern, name: 'Moss' }, { idempotencyKey: 'again' })).toStrictEqual({
        name: 'Moss',
        tag: 'shade',
      })
    })
  })
}

async function listed(store: ReadableStore, query?: ListQuery): Promise<NewPlant[]> {
  const plants: NewPlant[] = []
  for await (const page of store.list(query)) plants.push(...page)
  return plants
}

async function refusal(create: Promise<unknown>): Promise<Pick<PlantsError, 'type' | 'error' | 'message'>> {
  const failure: unknown = await create.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  const { type, error, message } = failure as PlantsError
  return { type, error, message }
}
