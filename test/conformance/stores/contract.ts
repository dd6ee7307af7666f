import { describe, expect, test } from 'vitest'
import { createNext, greatestId } from '../../../src/cli/next-id.js'
import {
  type FieldName,
  largestId,
  type NewPlant,
  type PlantPatch,
  smallestId,
  textLength,
} from '../../../src/plant/plant.js'
import { must } from '../../../src/platform/errors.js'
import type { Change, Outcome } from '../../../src/stores/common/change.js'
import type { CountQuery, ListQuery, ReadQuery } from '../../../src/stores/common/query.js'
import { foldText } from '../../../src/stores/common/search.js'
import type {
  CheckpointChange,
  OwnStore,
  Store,
  Transaction,
} from '../../../src/stores/common/store.js'
import { fc } from '../../helpers/fast-check.js'
import { rounds, seed } from '../../helpers/rounds.js'
import { createPlant, deletePlant, gathered } from '../../helpers/store.js'
import { describeTokens } from './contract-tokens.js'

/** A store under test, and a look behind it that does not go through it. */
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
const key = 'order-66'
const idExists = (id: bigint | number) => `409 A plant with id ${id} already exists`
const differs = (id: bigint | number) => `409 A different plant with id ${id} already exists`
const otherName = (id: number) => `409 Plant ${id} has another name now`
const keyUsed = '409 This idempotency key was used for a different plant'
const missing = (id: bigint | number) => `404 No plant has id ${id}`
const byId = (one: NewPlant, other: NewPlant) => (one.id < other.id ? -1 : 1)

/** with what SQL, JSON, COPY and CSV take for something else */
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

/** A service does not tell what a plant was before. */
const updated = (store: Store, plant: NewPlant, before: NewPlant): Outcome => ({
  type: 'updated',
  plant,
  ...(store.transaction && { before }),
})

const plantOf = (id: bigint, tag?: string): NewPlant => ({
  id,
  name: 'Fern',
  ...(tag !== undefined && { tag }),
})

const firsts = <First>(pairs: readonly [First, unknown][]): First[] => pairs.map(([first]) => first)
const seconds = <Second>(pairs: readonly [unknown, Second][]): Second[] =>
  pairs.map(([, second]) => second)

/** Such as `created`, or `409 A plant with id 1 already exists`. */
function told(outcome: Outcome | undefined): string | undefined {
  if (!outcome || !('error' in outcome)) return outcome?.type
  return outcome.type === 'rejected'
    ? `${outcome.error.error} ${outcome.error.message}`
    : outcome.type
}

async function tell(store: Store, ...changes: Change[]): Promise<(string | undefined)[]> {
  return (await store.write(changes)).map(told)
}

async function idsOf(store: Store, query?: ReadQuery): Promise<bigint[]> {
  return (await gathered(store.read(query))).map(({ id }) => id)
}

/** What every store must do, wherever it keeps its plants. `open` gives an empty one. */
export function describeStore(name: string, open: Open<Store>): void {
  describe(`${name} creates: it`, () => describeCreates(open))
  describe(`${name} reads: it`, () => describeReads(open))
  describe(`${name} updates and deletes: it`, () => describeChanges(open))
  describe(`${name} makes many changes: it`, () => describeMany(open))
}

/** What a store must do besides that is no service. `open` gives an empty one. */
export function describeOwnStore(name: string, open: Open<OwnStore>): void {
  describeStore(name, open)
  describe(`${name} sorts: it`, () => describeOrder(open))
  describe(`${name} writes all or nothing: it`, () => describeTransactions(open))
  describeTokens(name, async () => (await open()).store)
}

export function describeCreates(open: Open<Store>): void {
  test('keeps ids and texts exactly', async () => {
    const { store, look } = await open()
    const ids = [smallestId, -1n, 0n, 1n, 9007199254740993n, largestId]
    for (const [index, text] of ['🌿'.repeat(50_000), ...texts].entries()) {
      const plant = { id: ids[index] ?? BigInt(index), name: text, tag: text }
      expect(await store.write([creation(plant)])).toStrictEqual([{ type: 'created', plant }])
      expect(await look(plant.id)).toStrictEqual(plant)
    }
    expect(await store.write([creation(otherFern, { key })])).toStrictEqual([
      { type: 'rejected', error: expect.objectContaining({ kind: 'conflict', error: 409 }) },
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
  ])('creates a plant with the greatest id plus 1: after %s', async (_, ids, next) => {
    const { store, look } = await open()
    for (const id of ids) await createPlant(store, { id, name: 'Fern' })
    expect(await greatestId(store)).toBe(ids.length > 0 ? next - 1n : undefined)
    expect(await createNext(store, { name: 'Fern', tag: 'shade' })).toStrictEqual({
      ...fern,
      id: next,
    })
    expect(await look(next)).toStrictEqual({ ...fern, id: next })
  })

  test('has no next id after the last one', async () => {
    const { store } = await open()
    await createPlant(store, { ...fern, id: largestId })
    await expect(createNext(store, fern)).rejects.toThrow(
      'No id is left: a plant has the largest one, 9223372036854775807',
    )
  })

  test('gives one next id after the other to those who want one at once', async () => {
    const { store } = await open()
    const created = await Promise.all(plantsOf(20).map(({ name }) => createNext(store, { name })))
    expect(created.toSorted(byId).map(({ id }) => id)).toEqual(
      created.map((_, index) => BigInt(index + 1)),
    )
    expect(await gathered(store.read())).toStrictEqual(created.toSorted(byId))
  })
}

function describeReads(open: Open<Store>): void {
  test('gets plants by their ids, without those that do not exist', async () => {
    const { store } = await open()
    await store.write([fern, moss, ivy].map((plant) => creation(plant)))
    expect(await store.get([2n])).toStrictEqual(new Map([[2n, moss]]))
    expect([await store.get([]), await store.get([7n])]).toEqual([new Map(), new Map()])
    const many = plantsOf(300, (index) => ({ id: BigInt(100 + index) }))
    await store.write(many.map((plant) => creation(plant)))
    const found = await store.get([...many.map(({ id }) => id), 99n, 3n, smallestId])
    expect([...found.values()].toSorted(byId)).toStrictEqual([ivy, ...many])
  })

  test('reads plants in the order of ids', async () => {
    const { store } = await open()
    for (const id of [10n, 9n, -2n, 0n, largestId, smallestId])
      await createPlant(store, plantOf(id, [10n, -2n].includes(id) ? 'shade' : undefined))
    const queries: [ListQuery | undefined, bigint[]][] = [
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

  test('finds texts in any case, without the marks of Latin letters, composed or decomposed', async () => {
    const { store } = await open()
    const names = [
      'Fern',
      'Röse',
      'rosé',
      'ETE\u0301',
      'ı',
      'Straße',
      'Ørsted',
      'ΟΔΟΣ',
      'май',
      '👩‍🌾',
      'a%b_c',
      "[\\]'*?^-",
    ]
    await Promise.all(
      names.map((text, index) => createPlant(store, { id: BigInt(index), name: text })),
    )
    await Promise.all(
      names.map((text, index) =>
        createPlant(store, { id: BigInt(index + 30), name: '', tag: text }),
      ),
    )
    const pairs: [search: string, found: string[]][] = [
      ['', names],
      ['fERN', ['Fern']],
      ['RÖSE', ['Röse', 'rosé']],
      ['ro\u0308s', ['Röse', 'rosé']],
      ['ete', ['ETE\u0301']],
      ['ı', ['ı']],
      ['STRAẞE', ['Straße']],
      ['strasse', ['Straße']],
      ['ras', ['Straße']],
      ['ſt', ['Straße', 'Ørsted']],
      ['orsted', []],
      ['δοσ', ['ΟΔΟΣ']],
      ['маи\u0306', ['май']],
      ['маи', []],
      ['🌾', ['👩‍🌾']],
      ['A%B_', ['a%b_c']],
      ['f*n', []],
      ["\\]'*?^-", ["[\\]'*?^-"]],
    ]
    for (const [search, expected] of pairs) {
      const found = await gathered(store.read({ search }))
      expect(await gathered(store.read({ search, limit: 1000 }))).toEqual(found)
      const texts = {
        names: found.flatMap((plant) => plant.name || []),
        tags: found.flatMap(({ tag }) => tag ?? []),
      }
      const count = await store.count({ search })
      expect({ search, ...texts, count }).toEqual({
        ...{ search, names: expected, tags: expected },
        count: BigInt(2 * expected.length),
      })
    }
  })

  test('finds texts with runs of marks of any length, which it does not normalize beyond 30 marks', async () => {
    const { store } = await open()
    const length = 100_000
    const run = (marks: string, count: number) =>
      marks.repeat(Math.ceil(count / marks.length)).slice(0, count)
    const names = [
      `A${run('\u0301', length / 2)}${run('\u0316', length / 2)}zz`, // accents
      `A${run('\u0301\u0316', length)}zz`,
      `\u05d0${run('\u05b9\u05b0\u05bc', length)}zz`, // Hebrew points
      `\u0f40${run('\u0f73', length)}zz`, // each is two marks, but none itself
      `\u1e69${run('\u0344', length)}zz`, // the same, after a letter with two marks
      `x${run('\u{1d16d}\u{1d165}', length)}zz`, // stems and dots of notes, beyond the first plane
      `${run('\u1100\u1161\u11a8', length)}zz`, // jamo
      `ж${run('\u0301\u0316', 30)}zz`,
      `ж${run('\u0301\u0316', 32)}zz`,
    ]
    for (const [index, name] of names.entries())
      await createPlant(store, { id: BigInt(index), name })
    const pairs: [search: string, found: bigint[]][] = [
      ['ZZ', names.map((_, index) => BigInt(index))],
      ['azz', []],
      [`A${run('\u0301', 31)}`, [0n]],
      [`${run('\u05b9\u05b0\u05bc', 34)}Z`, [2n]],
      ['각각각', [6n]],
      [`Ж${run('\u0301', 15)}${run('\u0316', 15)}Z`, [7n]],
      [`Ж${run('\u0301', 16)}${run('\u0316', 16)}Z`, []],
      [`Ж${run('\u0301\u0316', 32)}Z`, [8n]],
      ['яzz', []],
    ]
    for (const [search, expected] of pairs)
      expect({ search, ids: await idsOf(store, { search, limit: names.length }) }).toEqual({
        search,
        ids: expected,
      })
  })

  test('finds a text of as many characters as can be sought', async () => {
    const { store } = await open()
    const text = '\u1f82'.repeat(200)
    await createPlant(store, { id: 1n, name: `x${text.toUpperCase()}`, tag: text.normalize('NFD') })
    expect(await store.count({ search: text })).toBe(1n)
  })

  test('finds a few plants among many, and reads them in parts that stay small', async () => {
    const { store } = await open()
    const name = (index: number) =>
      index % 700 === 5 ? 'Fern' : 'M'.repeat(index < 30 ? 200_000 : 1)
    const plants = plantsOf(1330, (index) => ({
      name: name(index),
      ...(index % 500 === 9 && { tag: 'x' }),
    }))
    await store.write(plants.map((plant) => creation(plant)))
    expect(await idsOf(store, { search: 'fern' })).toEqual([5n, 705n])
    expect(await idsOf(store, { tag: 'x', after: 9n, limit: 5 })).toEqual([509n, 1009n])
    expect(await idsOf(store, { after: 199n, limit: 1100 })).toEqual(
      plants.slice(200, 1300).map(({ id }) => id),
    )
    const parts: NewPlant[][] = []
    for await (const some of store.read()) parts.push(some)
    const pages: NewPlant[][] = []
    for await (const page of store.read({ limit: 1000 })) pages.push(page)
    expect([parts.flat(), pages.flat()]).toStrictEqual([plants, plants.slice(0, 1000)])
    expect(Math.max(...pages.map((page) => page.length))).toBeLessThanOrEqual(1000)
    const sizeOf = (some: NewPlant[]) => some.reduce((sum, plant) => sum + textLength(plant), 0)
    expect(Math.max(...[...parts, ...pages].map(sizeOf))).toBeLessThanOrEqual(1_200_000)
  })

  test('counts all plants, those with a tag, and those with a text', async () => {
    const { store } = await open()
    expect(await store.count()).toBe(0n)
    for (const [index, tag] of ['shade', 'SHADE', ''].entries())
      await createPlant(store, { id: BigInt(index), name: 'Fern', tag })
    await createPlant(store, { id: 3n, name: 'shady' })
    const queries: CountQuery[] = [
      {},
      { tag: '' },
      { tag: false },
      { tag: 'shade', search: 'fern' },
      { search: 'x' },
    ]
    const counts = await Promise.all(queries.map((query) => store.count(query)))
    expect(counts).toEqual([4n, 1n, 1n, 1n, 0n])
  })
}

function describeChanges(open: Open<Store>): void {
  test('loses no change of many who change one plant at once', async () => {
    const { store, look } = await open()
    await createPlant(store, fern)
    const changes = [patching({ id: 1n, name: 'Moss' }), patching({ id: 1n, tag: 'wet' })]
    expect(await Promise.all(changes.map((change) => tell(store, change)))).toEqual([
      ['updated'],
      ['updated'],
    ])
    expect(await look(1n)).toStrictEqual({ id: 1n, name: 'Moss', tag: 'wet' })
  })

  test('changes many at the same moment, each with its own outcome', async () => {
    const { store } = await open()
    const plants = plantsOf(200)
    await Promise.all(plants.map((plant) => createPlant(store, plant)))
    // what is changed, its outcome, and what is stored then
    const changes: ((plant: NewPlant, moss: NewPlant) => [Change, Outcome | string, NewPlant?])[] =
      [
        (plant, moss) => [patching(moss), updated(store, moss, plant), moss],
        (plant) => [
          patching({ id: plant.id, tag: 'x' }),
          updated(store, { ...plant, tag: 'x' }, plant),
          { ...plant, tag: 'x' },
        ],
        (plant, moss) => [patching({ ...moss, tag: null }), updated(store, moss, plant), moss],
        (plant, { id }) => [patching({ ...moss, id: id + 1000n }), missing(id + 1000n), plant],
        (plant, { id }) => [deletion(id), { type: 'deleted', plant }],
        (plant) => [creation(plant), idExists(plant.id), plant],
      ]
    const made = plants.map((plant, index) =>
      must(changes[index % changes.length])(plant, { ...moss, id: plant.id }),
    )
    const outcomes = await Promise.all(made.map(([change]) => store.write([change])))
    const known = outcomes.flat().map((outcome) => ('error' in outcome ? told(outcome) : outcome))
    expect(known).toStrictEqual(made.map(([, outcome]) => outcome))
    expect(await gathered(store.read())).toStrictEqual(made.flatMap(([, , left]) => left ?? []))
  })
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

function describeMany(open: Open<Store>): void {
  test('makes them all, whatever their texts and their order', async () => {
    const odd = texts.map((text, index) => ({ id: BigInt(10 + index), name: text, tag: text }))
    const all = [
      { id: largestId, name: '\u{1f33f}'.repeat(100) },
      ivy,
      { id: smallestId, name: '' },
      moss,
      ...odd,
    ]
    const { store } = await open()
    expect(await store.write(all.map((plant) => creation(plant)))).toStrictEqual(
      all.map((plant) => ({ type: 'created', plant })),
    )
    for (const query of [{}, { limit: 100 }])
      expect(await gathered(store.read(query))).toStrictEqual(all.toSorted(byId))
    expect(await store.write([])).toEqual([])
  })

  test.each<[Create['ifExists'], string[], string[]]>([
    [
      'error',
      [idExists(1), idExists(2), 'created', idExists(3)],
      ['created', idExists(4), idExists(4)],
    ],
    ['skip', ['skipped', 'skipped', 'created', 'skipped'], ['created', 'skipped', 'skipped']],
    ['same', ['skipped', differs(2), 'created', 'skipped'], ['created', 'skipped', 'skipped']],
  ])(
    'creates ids that exist in the store or the changes with "%s"',
    async (ifExists, ...outcomes) => {
      const { store } = await open()
      await store.write([creation(fern), creation(moss)])
      const [oak, wet] = [plantOf(4n), { ...moss, tag: 'wet' }]
      const write = (...plants: NewPlant[]) =>
        tell(store, ...plants.map((plant) => creation(plant, { ifExists })))
      expect(await Promise.all([write(fern, wet, ivy, ivy), write(oak, oak, oak)])).toEqual(
        outcomes,
      )
      expect(await gathered(store.read())).toStrictEqual([fern, moss, ivy, oak])
      expect([...(await write(fern)), ...(await write(wet))]).toEqual(outcomes[0]?.slice(0, 2)) // without others
    },
  )

  test.each(ways)(
    'makes changes of one id %s, and removes the keys of what it updates',
    async (_, write) => {
      const { store } = await open()
      await createPlant(store, moss, key)
      const [two, three, oak] = [
        { ...fern, name: 'two' },
        { ...moss, name: 'three' },
        { ...ivy, name: 'Oak' },
      ]
      const changes: [Change, Outcome | string][] = [
        [patching(fern, { ifMissing: 'create' }), { type: 'created', plant: fern }],
        [patching({ ...moss, name: 'one' }), updated(store, { ...moss, name: 'one' }, moss)],
        [patching({ id: 1n, name: 'two' }), updated(store, two, fern)],
        [patching(moss), updated(store, moss, { ...moss, name: 'one' })],
        [patching({ id: 1n, tag: null }), updated(store, { id: 1n, name: 'two' }, two)],
        [creation(otherFern), idExists(1)],
        [patching({ id: 9n, name: 'none' }), missing(9)],
        [deletion(3n), missing(3)],
        [creation(ivy), { type: 'created', plant: ivy }],
        [deletion(3n), { type: 'deleted', plant: ivy }],
        [creation(oak), { type: 'created', plant: oak }],
        [deletion(2n), { type: 'deleted', plant: moss }],
        [creation(three), { type: 'created', plant: three }],
      ]
      const outcomes = await write(store, firsts(changes))
      const known = outcomes.map((outcome) => ('error' in outcome ? told(outcome) : outcome))
      expect(known).toStrictEqual(seconds(changes))
      expect(await gathered(store.read())).toStrictEqual([{ id: 1n, name: 'two' }, three, oak])
      expect(await tell(store, creation(three, { key }))).toEqual([idExists(2)])
    },
  )

  test.each(ways)(
    'changes what patches name, and creates what is complete, %s',
    async (_, write) => {
      const { store } = await open()
      for (const plant of [fern, moss, ivy]) await createPlant(store, plant, `key-${plant.id}`)
      const incomplete =
        '422 Invalid plant: name must be a string of Unicode text without U+0000, but is missing, and no plant has id 4'
      const patches: [PlantPatch, string][] = [
        [{ id: 1n, name: 'Bracken', tag: null }, 'updated'],
        [{ id: 2n, tag: 'wet' }, 'updated'],
        [{ id: 4n, tag: 'tall' }, incomplete],
        [{ id: 5n, name: 'Oak', tag: null }, 'created'],
        [{ id: 5n, tag: '' }, 'updated'],
        [{ id: 3n }, 'updated'],
      ]
      const changes = patches.map(([patch]) => patching(patch, { ifMissing: 'create' }))
      expect((await write(store, changes)).map(told)).toEqual(seconds(patches))
      const now = [
        { id: 1n, name: 'Bracken' },
        { ...moss, tag: 'wet' },
        ivy,
        { id: 5n, name: 'Oak', tag: '' },
      ]
      expect(await gathered(store.read())).toStrictEqual(now)
      expect(await tell(store, creation(ivy, { key: 'key-3' }))).toEqual(['created']) // its key is still there
      for (const plant of [fern, moss])
        expect(await tell(store, creation(plant, { key: `key-${plant.id}` }))).toEqual([
          idExists(plant.id),
        ])
    },
  )

  test.each(ways)(
    'keeps what has an id, but not the name by which that was found, %s',
    async (_, write) => {
      const { store } = await open()
      for (const plant of [fern, moss, ivy]) await createPlant(store, plant, `key-${plant.id}`)
      const creates = { ifMissing: 'create', isMatched: true } as const
      const wet = { ...moss, tag: 'wet' }
      const changes: [Change, string][] = [
        [patching({ ...fern, tag: 'wet' }, creates), 'updated'],
        [patching({ ...wet, name: 'Fern' }, creates), otherName(2)],
        [patching(ivy, creates), 'updated'],
        [patching(plantOf(4n), creates), 'created'],
        [patching({ ...wet, id: 4n }, creates), otherName(4)],
        [creation({ ...wet, name: 'Fern' }, { ifExists: 'skip', isMatched: true }), otherName(2)],
        [creation(wet, { ifExists: 'skip', isMatched: true }), 'skipped'],
        [
          creation(wet, { ifExists: 'same', isMatched: true }),
          '409 Plant 2 has this name, but its tag differs',
        ],
        [creation(moss, { ifExists: 'same', isMatched: true }), 'skipped'],
        [creation(moss, { isMatched: true }), '409 Plant 2 has this name'],
        [creation(plantOf(5n), { isMatched: true }), 'created'],
      ]
      expect((await write(store, firsts(changes))).map(told)).toEqual(seconds(changes))
      const now = [{ ...fern, tag: 'wet' }, moss, ivy, plantOf(4n), plantOf(5n)]
      expect(await gathered(store.read())).toStrictEqual(now)
      expect(await tell(store, creation(ivy, { key: 'key-3' }))).toEqual(['created']) // its key is still there
    },
  )

  test.each(ways)('keeps keys, %s', async (_, write) => {
    const { store } = await open()
    await createPlant(store, ivy, 'a')
    const wet = { ...moss, tag: 'wet' }
    const changes: [Change, string][] = [
      [creation(ivy, { key: 'a' }), 'created'],
      [creation(fern), 'created'],
      [creation(fern), idExists(1)],
      [creation(otherFern, { key: 'b' }), idExists(1)],
      [creation(moss, { key: 'a' }), keyUsed],
      [creation(moss, { key: 'c' }), 'created'],
      [creation(moss, { key: 'c' }), 'created'],
      [creation(moss, { key: 'd' }), idExists(2)],
      [creation({ ...moss, name: 'Ivy' }, { key: 'c' }), keyUsed],
      [creation(wet, { key: 'c' }), keyUsed],
      [deletion(2n), 'deleted'],
      [creation(wet, { key: 'c' }), 'created'],
    ]
    const outcomes = await write(store, firsts(changes))
    expect(outcomes.map(told)).toEqual(seconds(changes))
    const again = [
      creation(wet, { key: 'c' }),
      creation(wet, { key: 'e' }),
      creation(plantOf(4n), { key: 'b' }),
    ]
    expect(await tell(store, ...again)).toEqual(['created', idExists(2), 'created'])
    expect(await gathered(store.read())).toStrictEqual([fern, wet, ivy, plantOf(4n)])
  })

  test('makes no change when its signal was aborted before', async () => {
    const { store } = await open()
    const signal = AbortSignal.abort(new Error('stopped'))
    await expect(store.write([creation(ivy), creation(moss)], { signal })).rejects.toThrow(
      'stopped',
    )
    expect(await gathered(store.read())).toEqual([])
  })

  test('gives each id once, also when others create meanwhile', async () => {
    const { store } = await open()
    const plants = plantsOf(1000)
    const singles = plants
      .filter(({ id }) => id % 7n === 0n)
      .map((plant) => ({ ...plant, tag: 'single' }))
    const [outcomes, ...results] = await Promise.all([
      tell(store, ...plants.map((plant) => creation(plant))),
      ...singles.map((plant) => tell(store, creation(plant))),
    ])
    const created = new Map(
      singles
        .filter((_, index) => results[index]?.[0] === 'created')
        .map((plant) => [plant.id, plant]),
    )
    expect(outcomes).toEqual(plants.map(({ id }) => (created.has(id) ? idExists(id) : 'created')))
    expect(await gathered(store.read())).toStrictEqual(
      plants.map((plant) => created.get(plant.id) ?? plant),
    )
  })
}

function describeOrder(open: Open<OwnStore>): void {
  const names = ['b', 'A', '', 'É', 'a', 'B', 'Z', 'ab', 'é', '\u009b蕨', '🌿']
  const plants = names.flatMap((text, index): NewPlant[] => [
    { id: BigInt(50 - index), name: text, ...(index % 3 > 0 && { tag: text }) },
    { id: BigInt(-index), name: 'Fern' },
  ])
  const compareTexts = (a = '', b = '') =>
    Buffer.compare(Buffer.from(foldText(a)), Buffer.from(foldText(b))) ||
    Buffer.compare(Buffer.from(a), Buffer.from(b))

  test.each<[FieldName, ReadQuery]>([
    ['name', {}],
    ['tag', {}],
    ['name', { limit: 5, after: 0n }],
    ['tag', { search: 'b', limit: 100 }],
    ['id', { desc: true, search: 'b', limit: 2, after: 45n }],
    ['id', { desc: true, tag: false, after: 0n }],
    ['tag', { desc: true }],
  ])('by %s, then by id, with %o', async (sort, query) => {
    const { store } = await open()
    await store.write(plants.map((plant) => creation(plant)))
    const { after, limit, tag, search = '', desc } = query
    const sign = desc ? -1 : 1
    const compare = (one: NewPlant, other: NewPlant) => {
      const ids = byId(one, other)
      if (sort === 'id') return ids * sign
      const [a, b] = [one[sort], other[sort]]
      if ((a === undefined) !== (b === undefined)) return a === undefined ? 1 : -1
      return compareTexts(a, b) * sign || ids
    }
    const isAfter = ({ id }: NewPlant) =>
      after === undefined || (desc && sort === 'id' ? id < after : id > after)
    const expected = plants
      .filter(
        (plant) =>
          isAfter(plant) && (tag === undefined || plant.tag === (tag === false ? undefined : tag)),
      )
      .filter((plant) =>
        [plant.name, plant.tag].some((text) => text?.toLowerCase().includes(search)),
      )
      .toSorted(compare)
      .slice(0, limit)
    expect(await gathered(store.read({ ...query, sort }))).toStrictEqual(expected)
  })

  test('by texts without their case and marks, then by code points', async () => {
    const { store } = await open()
    const sorted =
      `! 1 A a Ä ä ähre Ähren éclair Éclairs istanbul İstanbul Österreich Oz ﬆ STRASSE strasse straße Strauß
      Zinnie Ørsted Μάρτιος ΟΔΟΣ οδος οδοσ май мак 蕨 가 \uffff 𐐀 𐐨 🌿`.split(/\s+/)
    const shuffled = sorted.toReversed().map((name, index) => ({ id: BigInt(index), name }))
    await store.write(shuffled.map((plant) => creation(plant)))
    expect((await gathered(store.read({ sort: 'name' }))).map(({ name }) => name)).toEqual(sorted)
    expect(
      (await gathered(store.read({ sort: 'name', desc: true }))).map(({ name }) => name),
    ).toEqual(sorted.toReversed())
  })

  test('any texts alike in all stores', async () => {
    const { store } = await open()
    const samples = fc.sample(anySortedText(), { numRuns: rounds(400), seed })
    const many = plantsOf(samples.length, (index) => ({
      name: samples[index] ?? '',
      tag: samples[index] ?? '',
    }))
    await store.write(many.map((plant) => creation(plant)))
    const keys = new Map(samples.map((text) => [text, Buffer.from(foldText(text))]))
    const expected = many.toSorted(
      ({ name, id }, other) =>
        must(keys.get(name)).compare(must(keys.get(other.name))) ||
        Buffer.from(name).compare(Buffer.from(other.name)) ||
        Number(id - other.id),
    )
    const names = (found: NewPlant[]) => found.map(({ name, id }) => `${name.slice(0, 100)} ${id}`)
    expect(names(await gathered(store.read({ sort: 'name' })))).toEqual(names(expected))
    const parts = samples.slice(0, 10).map((text) => Array.from(text).slice(0, 3).join(''))
    for (const search of parts) {
      const contains = ({ name }: NewPlant) => must(keys.get(name)).includes(foldText(search))
      expect({ search, ids: await idsOf(store, { search }) }).toEqual({
        search,
        ids: many.filter(contains).map(({ id }) => id),
      })
    }
  })

  test('many, in parts that stay small', async () => {
    const { store } = await open()
    const length = (index: number) => (index % 100 === 7 ? 100_000 : 500)
    const many = plantsOf(3000, (index) => ({
      name: `Fern ${9999 - index} ${'é'.repeat(length(index))}`,
    }))
    await store.write(many.map((plant) => creation(plant)))
    const parts: NewPlant[][] = []
    for await (const some of store.read({ sort: 'name' })) parts.push(some)
    const sizes = parts.map((some) => some.reduce((sum, plant) => sum + textLength(plant), 0))
    expect(Math.max(...sizes)).toBeLessThan(1_000_000)
    expect(parts.flat().map(({ id }) => id)).toEqual(many.map(({ id }) => id).toReversed())
    expect(await idsOf(store, { desc: true })).toEqual(many.map(({ id }) => id).toReversed())
  })
}

/** Texts whose order may depend on a locale, or on a version of Unicode. */
function anySortedText(): fc.Arbitrary<string> {
  const letters =
    'aAäÄzZßẞſsøØİIıiñ\u0301\u0308\u0316\u0345\u20dd\u034fµμςσΣΆάϐяЯйЙи\u0306ґԱաᲐაᎠꭰӀӏﬆﬅǅǆǄŉÅΩKά가\u1100\u1161\u11a8蕨か\u3099ด้\uffff\ufffd𐐀𐐨🌿👩\u200d🌾 \u0001'
  return fc.oneof(
    fc.string({ unit: fc.constantFrom(...letters), maxLength: 8 }),
    fc
      .tuple(fc.constantFrom(...letters), fc.constantFrom(...letters))
      .map(([a, b]) => a + b.repeat(40)),
    fc.string({ unit: 'binary', maxLength: 6 }).map((text) => text.replaceAll('\0', '')),
  )
}

function describeTransactions(open: Open<OwnStore>): void {
  test('shows each reader the plants of one moment, while others read and write', async () => {
    const { store } = await open()
    const plants = plantsOf(1500, (index) => ({ name: `${index} `.repeat(100) })) // several pages
    await store.write(plants.map((plant) => creation(plant)))
    const read = async () => {
      const reader = store.read()[Symbol.asyncIterator]()
      const parts = [await reader.next()]
      return async () => {
        while (parts.at(-1)?.done === false) parts.push(await reader.next())
        return parts.flatMap(({ value }): NewPlant[] => value ?? [])
      }
    }
    const finish = await read()
    const last = { id: 1500n, name: 'F' }
    await createPlant(store, last)
    const finishOther = await read()
    await deletePlant(store, 1500n)
    expect([await store.count(), await store.get([1500n])]).toEqual([1500n, new Map()])
    const [all, others] = await Promise.all([
      finish(),
      finishOther(),
      createPlant(store, { id: 6000n, name: 'F' }),
    ])
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
          return outcomes
        },
        { isRepeatable: true },
      )
    const changes = [fern, moss, ivy].map((plant) => creation(plant))
    const first = `{"at":"'\\"}`
    const outcomes = await write(changes, { id: 'one', from: undefined, to: first })
    expect(outcomes.map(told)).toEqual(['created', idExists(2), 'created'])
    await write([], { id: 'two', from: undefined, to: '' })
    expect([await store.checkpoint('one'), await store.checkpoint('two')]).toEqual([first, ''])
    await write([patching({ id: 1n, tag: null })], { id: 'one', from: first, to: '{"at":2}' })
    await write([deletion(3n)], { id: 'two', from: '', to: undefined })
    expect([await store.checkpoint('one'), await store.checkpoint('two')]).toEqual([
      '{"at":2}',
      undefined,
    ])
    expect(await gathered(store.read())).toStrictEqual([{ id: 1n, name: 'Fern' }, moss])
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
    await expect(failed).rejects.toMatchObject({ kind: 'inaccessible' })
    expect([await gathered(store.read()), await store.checkpoint('one')]).toStrictEqual([[], 'a'])
  })

  test('keeps the newest checkpoints of what is done, and all others', async () => {
    const { store } = await open()
    const save = (id: string, to: string) =>
      store.transaction(({ saveCheckpoint }) => saveCheckpoint({ id, from: undefined, to }))
    await save('open', '{"version":2}')
    for (let day = 100; day <= 201; day += 1) await save(`${day}`, `{"done":"${day}"}`)
    const found = await Promise.all(
      ['open', '100', '101', '102', '201'].map((id) => store.checkpoint(id)),
    )
    expect(found).toEqual([
      '{"version":2}',
      undefined,
      undefined,
      '{"done":"102"}',
      '{"done":"201"}',
    ])
  })

  test('stores nothing of a write that throws', async () => {
    const { store } = await open()
    const { signal } = new AbortController()
    await store.write([creation(fern)], { signal })
    const stopped = AbortSignal.abort(new Error('stopped'))
    const written = store.write([creation(moss), creation(ivy)], { signal: stopped })
    await expect(written).rejects.toThrow('stopped')
    expect(await gathered(store.read())).toStrictEqual([fern])
  })

  test('stores all that a transaction writes', async () => {
    const { store, look } = await open()
    const result = await store.transaction(async ({ write, saveCheckpoint }) => {
      const first = await write([creation(fern), creation(moss)])
      expect(await look(1n)).toBeUndefined()
      const second = await write([creation(fern), patching({ id: 2n, tag: 'wet' })])
      await saveCheckpoint({ id: 'one', from: undefined, to: 'done' })
      return [...first, ...second].map(told)
    })
    expect(result).toEqual(['created', 'created', idExists(1), 'updated'])
    expect(await gathered(store.read())).toStrictEqual([fern, { ...moss, tag: 'wet' }])
    expect(await store.checkpoint('one')).toBe('done')
  })

  test('stores nothing of a transaction that throws', async () => {
    const { store } = await open()
    await createPlant(store, ivy)
    const failed = store.transaction(async ({ write, saveCheckpoint }) => {
      await write([creation(fern), deletion(3n)])
      await saveCheckpoint({ id: 'one', from: undefined, to: 'half' })
      throw new Error('rejected')
    })
    await expect(failed).rejects.toThrow('rejected')
    expect([await gathered(store.read()), await store.checkpoint('one')]).toStrictEqual([
      [ivy],
      undefined,
    ])
    expect(await tell(store, creation(fern))).toEqual(['created'])
  })

  test.each([false, true])(
    'stores a transaction if it commits by its result: %s',
    async (isCommitted) => {
      const { store } = await open()
      const work = async ({ write, saveCheckpoint }: Transaction) => {
        const outcomes = await write([creation(fern)])
        await saveCheckpoint({ id: 'one', from: undefined, to: 'all' })
        return outcomes.map(told)
      }
      const asked: unknown[] = []
      const commits = (result: unknown) => {
        asked.push(result)
        return isCommitted
      }
      expect(await store.transaction(work, { commits })).toEqual(['created'])
      const stored = [await gathered(store.read()), await store.checkpoint('one')]
      expect({ asked, stored }).toStrictEqual({
        asked: [['created']],
        stored: isCommitted ? [[fern], 'all'] : [[], undefined],
      })
      expect(await tell(store, creation(fern))).toEqual([isCommitted ? idExists(1) : 'created'])
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
        await write(
          plantsOf(1000, (index) => ({ id: BigInt(10 + part + index) })).map((plant) =>
            creation(plant),
          ),
        )
      ended.push('rejected')
      throw new Error('rejected')
    })
    // Its answer may be later than that of the create: each has a connection of its own.
    await expect(failed).rejects.toThrow('rejected')
    await one
    expect(ended).toEqual(['rejected', 'created'])
    expect(await gathered(store.read())).toStrictEqual([otherFern])
  })
}

/** `alter` adds constraints to the store, as its owner would: `name` unique, and shorter than 100 characters. */
export function describeConstraints(
  name: string,
  open: () => Promise<{ store: Store; alter(): Promise<void> }>,
): void {
  test(`${name} rejects what a constraint that somebody added forbids, and names it`, async () => {
    const { store, alter } = await open()
    await store.write([creation(fern), creation(moss)])
    await alter()
    const long = 'x'.repeat(100)
    const forbidden = (id: number, constraint: string) =>
      expect.stringMatching(
        new RegExp(`^422 The store does not accept plant ${id}: .*${constraint}`),
      )
    const changes: [Change, unknown][] = [
      [creation({ id: 5n, name: 'Oak' }), 'created'],
      [creation({ id: 6n, name: 'Fern' }), forbidden(6, 'names')],
      [creation({ id: 7n, name: long }, { key: 'seven' }), forbidden(7, 'short')],
      [creation({ id: 1n, name: 'Elm' }), idExists(1)],
      [patching({ id: 2n, name: 'Fern' }), forbidden(2, 'names')],
      [patching({ id: 9n, name: long }, { ifMissing: 'create' }), forbidden(9, 'short')],
      [patching({ id: 2n, tag: 'wet' }), 'updated'],
    ]
    for (const [change, outcome] of changes)
      expect((await store.write([change])).map(told)).toEqual([outcome])
    await deletePlant(store, 5n)
    expect(await tell(store, ...firsts(changes))).toEqual(seconds(changes))
    expect(await gathered(store.read())).toStrictEqual([
      fern,
      { ...moss, tag: 'wet' },
      { id: 5n, name: 'Oak' },
    ])
  })
}
