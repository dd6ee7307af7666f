import { describe, expect, test } from 'vitest'
import { assertDefined } from '../../../src/errors.js'
import { largestId, smallestId } from '../../../src/plant/fields.js'
import { foldText } from '../../../src/plant/folding.js'
import {
  buildPlant,
  measureFields,
  type NewPlant,
  type PlantPatch,
} from '../../../src/plant/plant.js'
import type { Change, Outcome } from '../../../src/stores/change.js'
import { createNext, findNextId } from '../../../src/stores/next-id.js'
import type { CountQuery, ReadQuery } from '../../../src/stores/query.js'
import type {
  CheckpointChange,
  DirectStore,
  Store,
  Transaction,
} from '../../../src/stores/store.js'
import { fc } from '../../helpers/expect/arbitraries.js'
import { countRounds, seed } from '../../helpers/sandbox/rounds.js'
import { createPlant, deletePlant, gather, toCreates } from '../../helpers/sandbox/store.js'
import { describeTokens } from './contract-tokens.js'
import { anyChanges, Model } from './model.js'

/** A store under test, and a look past it. */
export interface Subject<S extends Store> {
  store: S
  /** what a store opened afresh holds under an id */
  look(id: bigint): Promise<NewPlant | undefined>
}

export type Open<S extends Store> = () => Promise<Subject<S>>

const fern: NewPlant = { id: 1n, name: 'Fern', tag: 'shade' }
const moss: NewPlant = { id: 2n, name: 'Moss' }
const ivy: NewPlant = { id: 3n, name: 'Ivy', tag: '' }
const otherFern: NewPlant = { id: 1n, name: 'Moss' }
const wet = { ...moss, tag: 'wet' }
const key = 'order-66'
const byId = (one: NewPlant, other: NewPlant) => (one.id < other.id ? -1 : 1)

/** With what SQL, JSON, COPY and CSV take for something else. */
const texts = [
  '',
  ' Fern ',
  'not composed: e\u0301 \u00e9',
  '蕨 🌿 \u{10ffff} \uffff \ufffd',
  '\u0001\b\f\v\u001b[31m\u007f\u009b\u2028',
  `"'\\%_?;--,`,
  '\t\r\n',
  '\\N',
  '\\.',
]

const plantsOf = (
  count: number,
  plant: (index: number) => Partial<NewPlant> = () => ({}),
): NewPlant[] =>
  Array.from({ length: count }, (_, index) => ({
    id: BigInt(index),
    name: `Fern ${index}`,
    ...plant(index),
  }))

type Create = Extract<Change, { type: 'create' }>
type Update = Extract<Change, { type: 'update' }>

const creation = (plant: NewPlant, options: Omit<Create, 'type' | 'plant'> = {}): Change => ({
  type: 'create',
  plant,
  ...options,
})
const patching = (patch: PlantPatch, options: Omit<Update, 'type' | 'patch'> = {}): Change => ({
  type: 'update',
  patch,
  ...options,
})
const deletion = (id: bigint): Change => ({ type: 'delete', id })
const plantOf = (id: bigint): NewPlant => ({ id, name: 'Fern' })

/** A service does not tell what a plant was before. */
const updated = (store: Store, plant: NewPlant, before: NewPlant): Outcome => ({
  type: 'updated',
  plant,
  ...(store.transaction && { before }),
})

/** The type of an outcome, or the `error` of a rejected one. */
type Told = Outcome['type'] | number
const told = (outcome: Outcome): Told =>
  outcome.type === 'rejected' ? outcome.error.error : outcome.type
const whole = (outcome: Outcome) => ('error' in outcome ? told(outcome) : outcome)

const firsts = <First>(pairs: readonly [First, unknown][]): First[] => pairs.map(([first]) => first)
const seconds = <Second>(pairs: readonly [unknown, Second][]): Second[] =>
  pairs.map(([, second]) => second)

async function tell(store: Store, ...changes: Change[]): Promise<Told[]> {
  return (await store.write(changes)).map(told)
}

async function idsOf(store: Store, query?: ReadQuery): Promise<bigint[]> {
  return (await gather(store.read(query))).map(({ id }) => id)
}

/** What every store must do, wherever it keeps its plants. `open` gives an empty one. */
export function describeStore(name: string, open: Open<Store>): void {
  describe(`${name} creates: it`, () => describeCreates(open))
  describe(`${name} reads: it`, () => describeReads(open))
  describe(`${name} makes many changes: it`, () => describeMany(open))
}

function describeGroups(open: Open<DirectStore>): void {
  test('of each text that differs, and of plants without one', async () => {
    const { store } = await open()
    expect(await store.countBy('tag')).toEqual(new Map())
    const tags = ['Schön', 'Scho\u0308n', 'schön', '', undefined, undefined, 'Schön', '\\N\t\n']
    await store.write(toCreates(tags.map((tag, id) => buildPlant(BigInt(id), 'Fern', tag))))
    const byTag = new Map([
      ['Schön', 2n],
      ['Scho\u0308n', 1n],
      ['schön', 1n],
      ['', 1n],
      [undefined, 2n],
      ['\\N\t\n', 1n],
    ])
    expect(await store.countBy('tag')).toEqual(byTag)
    expect(await store.countBy('name')).toEqual(new Map([['Fern', 8n]]))
    expect(await store.countBy('name', { tag: false })).toEqual(new Map([['Fern', 2n]]))
    const found = new Map([
      ['Schön', 2n],
      ['Scho\u0308n', 1n],
      ['schön', 1n],
    ])
    expect(await store.countBy('tag', { search: 'SCHON' })).toEqual(found)
    expect(await store.countBy('tag', { tag: 'schön', search: 'x' })).toEqual(new Map())
  })

  test('of more plants than one step has, until its signal aborts', async () => {
    const { store } = await open()
    const tags = ['a', 'b', 'c']
    const plants = plantsOf(25_000, (index) => ({ tag: assertDefined(tags[index % 3]) }))
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

/** What a store must do besides that is no service. `open` gives an empty one. */
export function describeDirectStore(name: string, open: Open<DirectStore>): void {
  describeStore(name, open)
  describe(`${name} sorts: it`, () => describeOrder(open))
  describe(`${name} counts the plants`, () => describeGroups(open))
  describe(`${name} writes all or nothing: it`, () => describeTransactions(open))
  describeTokens(name, async () => (await open()).store)
}

/** A write of several changes takes other ways than writes of one. */
const ways: [string, (store: Store, changes: Change[]) => Promise<Outcome[]>][] = [
  ['at once', (store, changes) => store.write(changes)],
  [
    'one by one',
    async (store, changes) => {
      const outcomes: Outcome[] = []
      for (const change of changes) outcomes.push(...(await store.write([change])))
      return outcomes
    },
  ],
]

function describeCreates(open: Open<Store>): void {
  test.each(ways)('keeps ids and texts exactly, %s', async (_, write) => {
    const { store, look } = await open()
    const ids = [largestId, smallestId, -1n, 0n, 1n, 9007199254740993n]
    const plants = ['🌿'.repeat(50_000), ...texts].map(
      (text, index): NewPlant => ({
        ...{ id: ids[index] ?? BigInt(index), name: text },
        ...(index !== 1 && { tag: text }),
      }),
    )
    const created = plants.map((plant) => ({ type: 'created', plant }))
    expect(await write(store, toCreates(plants))).toStrictEqual(created)
    for (const plant of plants) expect(await look(plant.id)).toStrictEqual(plant)
    for (const query of [{}, { limit: 100 }])
      expect(await gather(store.read(query))).toStrictEqual(plants.toSorted(byId))
    expect(await write(store, [])).toEqual([])
    expect(await write(store, [creation(otherFern, { key })])).toMatchObject([
      { type: 'rejected', error: { kind: 'conflict', error: 409 } },
    ])
  })

  test('makes one plant of a key that comes twice at once', async () => {
    const { store } = await open()
    const once = () => tell(store, creation(fern, { key }))
    expect(await Promise.all([once(), once()])).toEqual([['created'], ['created']])
  })

  test.each<[string, bigint[], bigint]>([
    ['nothing', [], 1n],
    ['negative ids', [-5n, smallestId], -4n],
    ['the last id but one', [1n, largestId - 1n], largestId],
  ])('creates a plant with the greatest id plus 1: after %s', async (_, ids, id) => {
    const { store, look } = await open()
    for (const each of ids) await createPlant(store, plantOf(each))
    expect(await findNextId(store)).toBe(ids.length > 0 ? id : 1n)
    const { name, tag = '' } = fern
    expect(await createNext(store, { name, tag })).toStrictEqual({ id, name, tag })
    expect(await look(id)).toStrictEqual({ id, name, tag })
    if (id === largestId)
      await expect(createNext(store, fern)).rejects.toMatchObject({ kind: 'conflict' })
  })

  test('gives one next id after the other to those who want one at once', async () => {
    const { store } = await open()
    const created = await Promise.all(plantsOf(20).map(({ name }) => createNext(store, { name })))
    const sorted = created.toSorted(byId)
    expect(sorted.map(({ id }) => id)).toEqual(created.map((_, index) => BigInt(index + 1)))
    expect(await gather(store.read())).toStrictEqual(sorted)
  })
}

function describeReads(open: Open<Store>): void {
  test('gets plants by their ids, without those that do not exist', async () => {
    const { store } = await open()
    const many = plantsOf(300, (index) => ({ id: BigInt(100 + index) }))
    await store.write(toCreates([fern, moss, ivy, ...many]))
    expect(await store.get([2n])).toStrictEqual(new Map([[2n, moss]]))
    expect([await store.get([]), await store.get([7n])]).toEqual([new Map(), new Map()])
    const found = await store.get([...many.map(({ id }) => id), 99n, 3n, smallestId])
    expect([...found.values()].toSorted(byId)).toStrictEqual([ivy, ...many])
  })

  test('gives each of those who get plants at once only the plants that it asked for', async () => {
    const { store } = await open()
    await store.write(toCreates([fern, moss, ivy]))
    const [first, second, third] = await Promise.all([
      store.get([1n, 2n]),
      store.get([2n, 7n]),
      store.get([]),
    ])
    expect([first, second, third]).toStrictEqual([
      new Map([
        [1n, fern],
        [2n, moss],
      ]),
      new Map([[2n, moss]]),
      new Map(),
    ])
    first.clear()
    expect(second.size).toBe(1)
  })

  test('reads plants in the order of ids', async () => {
    const { store } = await open()
    for (const id of [10n, 9n, -2n, 0n, largestId, smallestId])
      await createPlant(store, { ...plantOf(id), ...([10n, -2n].includes(id) && { tag: 'shade' }) })
    const queries: [ReadQuery | undefined, bigint[]][] = [
      [undefined, [smallestId, -2n, 0n, 9n, 10n, largestId]],
      [{ after: 5n }, [9n, 10n, largestId]],
      [{ after: largestId }, []],
      [{ limit: 2 }, [smallestId, -2n]],
      [{ tag: 'shade', after: -2n, limit: 1 }, [10n]],
      [{ tag: '' }, []],
      [{ tag: false, search: 'fern', after: 0n, limit: 1 }, [9n]],
      [{ search: 'HAD' }, [-2n, 10n]],
    ]
    for (const [query, expected] of queries) {
      expect({ query, ids: await idsOf(store, query) }).toEqual({ query, ids: expected })
      const limited = { limit: 1000, ...query } // in pages
      expect({ limited, ids: await idsOf(store, limited) }).toEqual({ limited, ids: expected })
    }
  })

  test('finds a tag composed or decomposed, in its case and with its marks', async () => {
    const { store } = await open()
    const tags = ['Schön', 'Scho\u0308n', 'schön', 'Schon']
    for (const [index, tag] of tags.entries())
      await createPlant(store, { id: BigInt(index), name: '', tag })
    for (const tag of tags.slice(0, 2)) {
      expect(await idsOf(store, { tag })).toEqual([0n, 1n])
      expect(await store.count({ tag })).toBe(2n)
    }
  })

  test('finds a text in names and tags as they are folded, and no pattern', async () => {
    const { store } = await open()
    const marks = '\u0301\u0316'.repeat(25_000) // which would take minutes to normalize
    const found: Record<string, string[]> = {
      fERN: ['Fern'],
      'ro\u0308s': ['Röse', 'rosé'],
      strasse: ['Straße'],
      ſt: ['Straße', 'Ørsted'],
      δοσ: ['ΟΔΟΣ'],
      маи: [],
      'маи\u0306': ['май'],
      '🌾': ['👩‍🌾'],
      'A%B_': ['a%b_c'],
      'f*n': [],
      "\\]'*?^-": ["[\\]'*?^-"],
      ZZ: [`ж${marks}zz`],
      ['\u1f82'.repeat(200)]: [`x${'\u1f82'.repeat(200).toUpperCase()}`],
    }
    const names = [...new Set(Object.values(found).flat())]
    const named = names.map((name, index) => ({ id: BigInt(index), name }))
    const tagged = names.map((tag, index) => ({ id: BigInt(-1 - index), name: '', tag }))
    await store.write(toCreates([...named, ...tagged]))
    for (const [search, expected] of Object.entries({ ...found, '': names })) {
      const plants = await gather(store.read({ search }))
      const sought = { search, limit: 1000 }
      expect(await gather(store.read(sought))).toEqual(plants)
      expect({ sought, names: plants.flatMap(({ name }) => name || []).toSorted() }).toEqual({
        sought,
        names: expected.toSorted(),
      })
      expect(plants.flatMap(({ tag }) => tag ?? []).toSorted()).toEqual(expected.toSorted())
      expect(await store.count({ search })).toBe(BigInt(2 * expected.length))
    }
  })

  test('finds a few plants among many, and reads them in parts that stay small', async () => {
    const { store } = await open()
    const plants = plantsOf(1210, (index) => ({
      name: index % 700 === 5 ? 'Fern' : 'M'.repeat(index < 30 ? 200_000 : 1),
      ...(index % 500 === 9 && { tag: 'x' }),
    }))
    await store.write(toCreates(plants))
    expect(await idsOf(store, { search: 'fern' })).toEqual([5n, 705n])
    expect(await idsOf(store, { tag: 'x', after: 9n, limit: 5 })).toEqual([509n, 1009n])
    const some = plants.slice(200, 1205).map(({ id }) => id)
    expect(await idsOf(store, { after: 199n, limit: 1005 })).toEqual(some)
    for (const limit of [undefined, 1000]) {
      const parts: NewPlant[][] = []
      for await (const part of store.read({ limit })) parts.push(part)
      expect(parts.flat()).toStrictEqual(plants.slice(0, limit))
      expect(Math.max(...parts.map(sizeOf))).toBeLessThanOrEqual(1_200_000)
    }
  })

  test('counts all plants, those with a tag, and those with a text', async () => {
    const { store } = await open()
    expect(await store.count()).toBe(0n)
    const shaded = { id: 4n, name: 'shady', tag: 'SHADE' }
    await store.write(toCreates([fern, moss, ivy, shaded]))
    const count = (query: CountQuery) => store.count(query)
    expect([await count({}), await count({ tag: '' }), await count({ tag: false })]).toEqual([
      4n,
      1n,
      1n,
    ])
    expect(await count({ tag: 'shade', search: 'fern' })).toBe(1n)
    expect(await count({ search: 'x' })).toBe(0n)
    for (const query of [{}, { tag: '' }, { tag: false as const }, { search: 'SHADE' }])
      expect(await count({ ...query, inSteps: true })).toBe(await count(query))
  })
}

const sizeOf = (some: NewPlant[]) => some.reduce((sum, plant) => sum + measureFields(plant), 0)

function describeMany(open: Open<Store>): void {
  test('makes those of many writers at the same moment, each with its own outcome', async () => {
    const { store } = await open()
    const plants = plantsOf(200)
    await Promise.all(plants.map((plant) => createPlant(store, plant)))
    // what is changed, its outcome, and what is stored then
    type Made = [Change, Outcome | number, NewPlant?]
    const changes: ((plant: NewPlant, moss: NewPlant) => Made)[] = [
      (plant, moss) => [patching(moss), updated(store, moss, plant), moss],
      (plant) => {
        const tagged = { ...plant, tag: 'x' }
        return [patching({ id: plant.id, tag: 'x' }), updated(store, tagged, plant), tagged]
      },
      (plant, moss) => [patching({ ...moss, tag: null }), updated(store, moss, plant), moss],
      (plant) => [patching({ ...moss, id: plant.id + 1000n }), 404, plant],
      (plant) => [deletion(plant.id), { type: 'deleted', plant }],
      (plant) => [creation(plant), 409, plant],
    ]
    const made = plants.map((plant, index) =>
      assertDefined(changes[index % changes.length])(plant, { ...moss, id: plant.id }),
    )
    const outcomes = await Promise.all(made.map(([change]) => store.write([change])))
    expect(outcomes.flat().map(whole)).toStrictEqual(made.map(([, outcome]) => outcome))
    expect(await gather(store.read())).toStrictEqual(made.flatMap(([, , left]) => left ?? []))
  })

  test('loses none of two that change one plant at once', async () => {
    const { store, look } = await open()
    await createPlant(store, moss)
    const changes = [patching({ id: 2n, name: 'Fern' }), patching({ id: 2n, tag: 'wet' })]
    const outcomes = await Promise.all(changes.map((change) => tell(store, change)))
    expect(outcomes).toEqual([['updated'], ['updated']])
    expect(await look(2n)).toStrictEqual({ ...wet, name: 'Fern' })
  })

  test.each<[Create['ifExists'], Told[], Told[]]>([
    [undefined, [409, 409, 'created', 409], ['created', 409, 409]],
    ['skip', ['skipped', 'skipped', 'created', 'skipped'], ['created', 'skipped', 'skipped']],
    ['same', ['skipped', 409, 'created', 'skipped'], ['created', 'skipped', 'skipped']],
  ])('creates ids that exist in the store or the changes with "%s"', async (ifExists, ...all) => {
    const { store } = await open()
    await store.write(toCreates([fern, moss]))
    const oak = plantOf(4n)
    const write = (...plants: NewPlant[]) =>
      tell(store, ...plants.map((plant) => creation(plant, { ifExists })))
    expect(await Promise.all([write(fern, wet, ivy, ivy), write(oak, oak, oak)])).toEqual(all)
    expect(await gather(store.read())).toStrictEqual([fern, moss, ivy, oak])
    expect([...(await write(fern)), ...(await write(wet))]).toEqual(all[0]?.slice(0, 2)) // without others
  })

  test.each(ways)('makes those of a few ids %s, and removes keys', async (_, write) => {
    const { store } = await open()
    const kept = { ...ivy, id: 7n }
    const ash = plantOf(8n)
    const elm = { ...ash, name: 'Elm' }
    for (const plant of [moss, kept, ash]) await createPlant(store, plant, `${key}-${plant.id}`)
    const creates = { ifMissing: 'create' } as const
    const tall = { id: 5n, name: 'Tall' }
    const [two, three, oak] = [
      { ...fern, name: 'two' },
      { ...moss, name: 'three' },
      { ...ivy, name: 'Oak' },
    ]
    const changes: [Change, Outcome | number][] = [
      [patching(fern, creates), { type: 'created', plant: fern }],
      [patching({ id: 5n, tag: 'tall' }, creates), 422],
      [patching({ ...tall, tag: null }, creates), { type: 'created', plant: tall }],
      [patching({ id: 7n }, creates), updated(store, kept, kept)],
      [patching(elm), updated(store, elm, ash)],
      [patching({ ...moss, name: 'one' }), updated(store, { ...moss, name: 'one' }, moss)],
      [patching({ id: 1n, name: 'two' }), updated(store, two, fern)],
      [patching(moss), updated(store, moss, { ...moss, name: 'one' })],
      [patching({ id: 1n, tag: null }), updated(store, { id: 1n, name: 'two' }, two)],
      [creation(otherFern), 409],
      [patching({ id: 9n, name: 'none' }), 404],
      [deletion(3n), 404],
      [creation(ivy), { type: 'created', plant: ivy }],
      [deletion(3n), { type: 'deleted', plant: ivy }],
      [creation(oak), { type: 'created', plant: oak }],
      [deletion(2n), { type: 'deleted', plant: moss }],
      [creation(three), { type: 'created', plant: three }],
    ]
    expect((await write(store, firsts(changes))).map(whole)).toStrictEqual(seconds(changes))
    const left = [{ id: 1n, name: 'two' }, three, oak, tall, kept, elm]
    expect(await gather(store.read())).toStrictEqual(left)
    const again = [three, elm, kept].map((plant) => creation(plant, { key: `${key}-${plant.id}` }))
    expect(await tell(store, ...again)).toEqual([409, 409, 'created']) // the last has its key
  })

  test.each(ways)('keeps what has an id, but not the matched name, %s', async (_, write) => {
    const { store } = await open()
    for (const plant of [fern, moss, ivy]) await createPlant(store, plant, `key-${plant.id}`)
    const isFoundByName = true
    const creates = { ifMissing: 'create', isFoundByName } as const
    const changes: [Change, Told][] = [
      [patching({ ...fern, tag: 'wet' }, creates), 'updated'],
      [patching({ ...wet, name: 'Fern' }, creates), 409],
      [patching(ivy, creates), 'updated'],
      [patching(plantOf(4n), creates), 'created'],
      [patching({ ...wet, id: 4n }, creates), 409],
      [creation({ ...wet, name: 'Fern' }, { ifExists: 'skip', isFoundByName }), 409],
      [creation(wet, { ifExists: 'skip', isFoundByName }), 'skipped'],
      [creation(wet, { ifExists: 'same', isFoundByName }), 409],
      [creation(moss, { ifExists: 'same', isFoundByName }), 'skipped'],
      [creation(moss, { isFoundByName }), 409],
      [creation(plantOf(5n), { isFoundByName }), 'created'],
    ]
    expect((await write(store, firsts(changes))).map(told)).toEqual(seconds(changes))
    const now = [{ ...fern, tag: 'wet' }, moss, ivy, plantOf(4n), plantOf(5n)]
    expect(await gather(store.read())).toStrictEqual(now)
    expect(await tell(store, creation(ivy, { key: 'key-3' }))).toEqual(['created']) // with its key
  })

  test.each(ways)(
    'compares a key only with that of the plant with the id, %s',
    async (_, write) => {
      const { store } = await open()
      await createPlant(store, ivy, 'a')
      const changes: [Change, Told][] = [
        [creation(ivy, { key: 'a' }), 'created'],
        [creation(fern), 'created'],
        [creation(fern), 409],
        [creation(otherFern, { key: 'b' }), 409],
        [creation(moss, { key: 'a' }), 'created'],
        [creation({ ...ivy, id: 5n }, { key: 'a' }), 'created'],
        [creation(ivy, { key: 'a' }), 'created'],
        [deletion(2n), 'deleted'],
        [creation(moss, { key: 'c' }), 'created'],
        [creation(moss, { key: 'c' }), 'created'],
        [creation(moss, { key: 'd' }), 409],
        [creation({ ...moss, name: 'Ivy' }, { key: 'c' }), 409],
        [creation(wet, { key: 'c' }), 409],
        [deletion(2n), 'deleted'],
        [creation(wet, { key: 'c' }), 'created'],
        [creation(wet, { key: 'c' }), 'created'],
        [creation(wet, { key: 'e' }), 409],
        [creation(plantOf(4n), { key: 'b' }), 'created'],
      ]
      expect((await write(store, firsts(changes))).map(told)).toEqual(seconds(changes))
      const plants = [fern, wet, ivy, plantOf(4n), { ...ivy, id: 5n }]
      expect(await gather(store.read())).toStrictEqual(plants)
      expect(await tell(store, creation(wet, { key: 'c' }))).toEqual(['created'])
      await store.write([patching({ ...wet, tag: null })])
      expect(await tell(store, creation(wet, { key: 'c' }))).toEqual([409])
      await store.write([deletion(2n)])
      expect(await tell(store, creation(wet, { key: 'c' }))).toEqual(['created'])
    },
  )

  test.each(ways)('makes random changes as its rules say, %s', async (_, write) => {
    const { store } = await open()
    const model = new Model({ isService: store.transaction === undefined })
    for (const changes of fc.sample(anyChanges(), { numRuns: countRounds(10), seed })) {
      const expected = changes.map((change) => model.apply(change))
      expect((await write(store, changes)).map(told), `seed ${seed}`).toEqual(expected)
    }
    expect(await gather(store.read())).toStrictEqual(model.plants)
  })

  test('makes none when its signal was aborted before', async () => {
    const { store } = await open()
    await store.write([creation(fern)], { signal: new AbortController().signal })
    const signal = AbortSignal.abort(new Error('stopped'))
    const written = store.write(toCreates([ivy, moss]), { signal })
    await expect(written).rejects.toThrow('stopped')
    expect(await gather(store.read())).toStrictEqual([fern])
  })
}

function describeOrder(open: Open<DirectStore>): void {
  test('by a text without its case and marks, then by code points, then by id', async () => {
    const { store } = await open()
    const sorted =
      `! 1 A a Ä ä ähre Ähren éclair Éclairs istanbul İstanbul Österreich Oz ﬆ STRASSE strasse straße Strauß
      Zinnie Ørsted Μάρτιος ΟΔΟΣ οδος οδοσ май мак 蕨 가 \uffff 𐐀 𐐨 🌿`.split(/\s+/)
    const tagged = sorted.map((name, index) => ({ id: BigInt(-index), name, tag: name }))
    const twin = ({ id, name }: NewPlant) => ({ id: id + 100n, name })
    const twins = (plants: NewPlant[]) => plants.flatMap((plant) => [plant, twin(plant)])
    const [byName, down] = [twins(tagged), tagged.toReversed()]
    const untagged = tagged.map(twin).toReversed()
    const contains = ({ name }: NewPlant) => foldText(name).includes('str')
    const queries: [ReadQuery, NewPlant[]][] = [
      [{ sort: 'name' }, byName],
      [{ sort: 'name', desc: true }, twins(down)],
      [{ sort: 'name', limit: 5, after: 80n }, byName.filter(({ id }) => id > 80n).slice(0, 5)],
      [{ sort: 'tag' }, [...tagged, ...untagged]],
      [{ sort: 'tag', desc: true }, [...down, ...untagged]],
      [{ sort: 'tag', search: 'sTr', limit: 3 }, tagged.filter(contains).slice(0, 3)],
      [{ sort: 'id', desc: true, limit: 3, after: 90n }, untagged.toReversed().slice(11, 14)],
      [{ desc: true, tag: false, search: 'str' }, untagged.filter(contains).toReversed()],
    ]
    await store.write(toCreates(byName))
    for (const [query, expected] of queries)
      expect({ query, plants: await gather(store.read(query)) }).toStrictEqual({
        query,
        plants: expected,
      })
  })

  test('any texts alike in all stores', async () => {
    const { store } = await open()
    const samples = fc.sample(anySortedText(), { numRuns: countRounds(400), seed })
    const many = samples.map((text, index) => ({ id: BigInt(index), name: text, tag: text }))
    await store.write(toCreates(many))
    const keys = new Map(samples.map((text) => [text, Buffer.from(foldText(text))]))
    const expected = many.toSorted(
      ({ name, id }, other) =>
        assertDefined(keys.get(name)).compare(assertDefined(keys.get(other.name))) ||
        Buffer.from(name).compare(Buffer.from(other.name)) ||
        Number(id - other.id),
    )
    const names = (found: NewPlant[]) => found.map(({ name, id }) => `${name.slice(0, 100)} ${id}`)
    expect(names(await gather(store.read({ sort: 'name' })))).toEqual(names(expected))
    for (const text of samples.slice(0, 5)) {
      const search = Array.from(text).slice(0, 3).join('')
      const contains = ({ name }: NewPlant) =>
        assertDefined(keys.get(name)).includes(foldText(search))
      const ids = many.filter(contains).map(({ id }) => id)
      expect({ search, ids: await idsOf(store, { search }) }).toEqual({ search, ids })
    }
  })

  test('many, in parts that stay small', async () => {
    const { store } = await open()
    const length = (index: number) => (index % 100 === 7 ? 100_000 : 500)
    const many = plantsOf(1200, (index) => ({
      name: `Fern ${9999 - index} ${'é'.repeat(length(index))}`,
    }))
    await store.write(toCreates(many))
    const ids = many.map(({ id }) => id).toReversed()
    const parts: NewPlant[][] = []
    for await (const some of store.read({ sort: 'name' })) parts.push(some)
    expect(Math.max(...parts.map(sizeOf))).toBeLessThan(1_000_000)
    expect(parts.flat().map(({ id }) => id)).toEqual(ids)
    expect(await idsOf(store, { desc: true })).toEqual(ids)
  })
}

/** Texts whose order may depend on a locale, or on a version of Unicode. */
function anySortedText(): fc.Arbitrary<string> {
  const letters =
    'aAäÄzZßẞſsøØİIıiñ\u0301\u0308\u0316\u0345\u20dd\u034fµμςσΣΆάϐяЯйЙи\u0306ґԱաᲐაᎠꭰӀӏﬆﬅǅǆǄŉÅΩKά가\u1100\u1161\u11a8蕨か\u3099ด้\uffff\ufffd𐐀𐐨🌿👩\u200d🌾 \u0001'
  const letter = fc.constantFrom(...letters)
  const code = fc.integer({ min: 1, max: 0x10_ffff }).filter((one) => one < 0xd800 || one > 0xdfff)
  const anyCharacter = code.map((one) => String.fromCodePoint(one))
  return fc.oneof(
    fc.string({ unit: letter, maxLength: 8 }),
    fc.tuple(letter, letter).map(([a, b]) => a + b.repeat(40)),
    fc.array(anyCharacter, { maxLength: 6 }).map((characters) => characters.join('')),
  )
}

function describeTransactions(open: Open<DirectStore>): void {
  test('shows each reader the plants of one moment, while others read and write', async () => {
    const { store } = await open()
    const named = (index: number) => `${texts[index % texts.length]} `.repeat(100)
    const plants = plantsOf(1500, (index) => ({ name: named(index) })) // several pages
    await store.write(toCreates(plants))
    const read = async () => {
      const reader = store.read()[Symbol.asyncIterator]()
      const parts = [await reader.next()]
      return async () => {
        while (parts.at(-1)?.done === false) parts.push(await reader.next())
        return parts.flatMap(({ value }): NewPlant[] => value ?? [])
      }
    }
    const finish = await read()
    const last = plantOf(1500n)
    await createPlant(store, last)
    const finishOther = await read()
    await deletePlant(store, 1500n)
    expect([await store.count(), await store.get([1500n])]).toEqual([1500n, new Map()])
    const created = createPlant(store, plantOf(6000n))
    const [all, others] = await Promise.all([finish(), finishOther(), created])
    expect(all).toStrictEqual(plants)
    expect(others).toStrictEqual([...plants, last])
  })

  test('keeps a checkpoint with its changes, and removes it with others', async () => {
    const { store } = await open()
    await createPlant(store, moss)
    const write = (changes: Change[], change: CheckpointChange) =>
      store.transaction(
        async (transaction) => {
          const outcomes = await transaction.write(changes)
          await transaction.saveCheckpoint(change)
          return outcomes.map(told)
        },
        { isRepeatable: true },
      )
    const saved = () => Promise.all(['one', 'two'].map((id) => store.findCheckpoint(id)))
    const from = `{"at":"'\\"}`
    const outcomes = await write(toCreates([fern, moss, ivy]), {
      id: 'one',
      from: undefined,
      to: from,
    })
    expect(outcomes).toEqual(['created', 409, 'created'])
    await write([], { id: 'two', from: undefined, to: '' })
    expect(await saved()).toEqual([from, ''])
    await write([patching({ id: 1n, tag: null })], { id: 'one', from, to: '{"at":2}' })
    await write([deletion(3n)], { id: 'two', from: '', to: undefined })
    expect(await saved()).toEqual(['{"at":2}', undefined])
    expect(await gather(store.read())).toStrictEqual([plantOf(1n), moss])
  })

  test.each<[string | undefined, string | undefined]>([
    [undefined, 'c'],
    ['b', 'c'],
    ['b', undefined],
  ])('stores nothing when the checkpoint is no longer %s', async (from, to) => {
    const { store } = await open()
    await store.transaction(({ saveCheckpoint }) =>
      saveCheckpoint({ id: 'one', from: undefined, to: 'a' }),
    )
    const failed = store.transaction(
      async ({ write, saveCheckpoint }) => {
        await write([creation(fern)])
        await saveCheckpoint({ id: 'one', from, to })
      },
      { isRepeatable: true },
    )
    await expect(failed).rejects.toMatchObject({ kind: 'accessDenied' })
    expect([await gather(store.read()), await store.findCheckpoint('one')]).toStrictEqual([[], 'a'])
  })

  test.each(['throws', 'is not to commit', 'is to commit'])(
    'stores a transaction or nothing of it: one that %s',
    async (what) => {
      const { store, look } = await open()
      await createPlant(store, ivy)
      const work = async ({ write, saveCheckpoint }: Transaction) => {
        const first = await write(toCreates([fern, moss]))
        expect(await look(1n)).toBeUndefined()
        const second = await write([creation(fern), patching({ id: 2n, tag: 'wet' }), deletion(3n)])
        await saveCheckpoint({ id: 'one', from: undefined, to: 'all' })
        if (what === 'throws') throw new Error(what)
        return [...first, ...second].map(told)
      }
      const asked: unknown[] = []
      const shouldCommit = (result: unknown) => {
        asked.push(result)
        return what === 'is to commit'
      }
      const outcomes = ['created', 'created', 409, 'updated', 'deleted']
      const done = store.transaction(work, { shouldCommit })
      if (what === 'throws') await expect(done).rejects.toThrow(what)
      else expect(await done).toEqual(outcomes)
      expect(asked).toEqual(what === 'throws' ? [] : [outcomes])
      const stored = [await gather(store.read()), await store.findCheckpoint('one')]
      const isStored = what === 'is to commit'
      expect(stored).toStrictEqual(isStored ? [[fern, wet], 'all'] : [[ivy], undefined])
      expect(await tell(store, creation(fern))).toEqual([isStored ? 409 : 'created'])
    },
  )

  test('lets a create wait for a transaction, and does not undo it', async () => {
    const { store } = await open()
    const ended: string[] = []
    let one: Promise<unknown> = Promise.resolve()
    const failed = store.transaction(async ({ write }) => {
      await write([creation(fern)])
      one = createPlant(store, otherFern).then(() => ended.push('created'))
      for (const part of [0, 1000, 2000])
        await write(toCreates(plantsOf(1000, (index) => ({ id: BigInt(10 + part + index) }))))
      ended.push('rejected')
      throw new Error('rejected')
    })
    // Its answer may be later than that of the create: each has a connection of its own.
    await expect(failed).rejects.toThrow('rejected')
    await one
    expect(ended).toEqual(['rejected', 'created'])
    expect(await gather(store.read())).toStrictEqual([otherFern])
  })
}

/** `alter` adds constraints as the owner of the store would: `names` are unique, and `short`. */
export function describeConstraints(
  name: string,
  open: () => Promise<{ store: Store; alter(): Promise<void> }>,
): void {
  test(`${name} rejects what a constraint that somebody added forbids, and names it`, async () => {
    const { store, alter } = await open()
    await store.write(toCreates([fern, moss]))
    await alter()
    const long = 'x'.repeat(100)
    const changes: [Change, string | number][] = [
      [creation({ id: 5n, name: 'Oak' }), 'created'],
      [creation(plantOf(6n)), 'names'],
      [creation({ id: 7n, name: long }, { key: 'seven' }), 'short'],
      [creation({ id: 1n, name: 'Elm' }), 409],
      [patching({ id: 2n, name: 'Fern' }), 'names'],
      [patching({ id: 9n, name: long }, { ifMissing: 'create' }), 'short'],
      [patching({ id: 2n, tag: 'wet' }), 'updated'],
    ]
    const named = (outcome: Outcome) =>
      told(outcome) === 422 && 'error' in outcome
        ? /names|short/.exec(outcome.error.message)?.[0]
        : told(outcome)
    for (const [change, expected] of changes)
      expect((await store.write([change])).map(named)).toEqual([expected])
    await deletePlant(store, 5n)
    expect((await store.write(firsts(changes))).map(named)).toEqual(seconds(changes))
    expect(await gather(store.read())).toStrictEqual([fern, wet, { id: 5n, name: 'Oak' }])
  })
}
