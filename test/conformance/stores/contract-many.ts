import { describe, expect, test } from 'vitest'
import { type FieldName, largestId, type NewPlant, type PlantPatch, smallestId } from '../../../src/plant/plant.js'
import { delimiters, readRecord, recordWriter } from '../../../src/plant/records.js'
import { Outcome } from '../../../src/stores/common/conflict.js'
import type {
  Block,
  BulkStore,
  CheckpointStore,
  CreateManyOptions,
  ReadableStore,
  ServedStore,
  SnapshotQuery,
} from '../../../src/stores/common/store.js'
import { type BulkOptions, batchOf, createAll, outcomesOf } from '../../helpers/bulk.js'
import { gathered } from '../../helpers/store.js'
import { describePlantStore, describeReadableStore, type Open } from './contract.js'
import { describeServedStore } from './contract-tokens.js'

type Store = BulkStore & ReadableStore

const fern: NewPlant = { id: 1n, name: 'Fern', tag: 'shade' }
const moss: NewPlant = { id: 2n, name: 'Moss' }
const ivy: NewPlant = { id: 3n, name: 'Ivy', tag: '' }

const plantsOf = (count: number, plant: (index: number) => Partial<NewPlant> = () => ({})): NewPlant[] =>
  Array.from({ length: count }, (_, index) => ({ id: BigInt(index), name: 'F', ...plant(index) }))

/** What a store must do that is no service. `open` gives an empty one. */
export function describeOwnStore(name: string, open: Open<Store & CheckpointStore & ServedStore>): void {
  describePlantStore(name, open)
  describeReadableStore(name, open)
  const others = [describeManyStore, describeSnapshotStore, describeSortedStore, describeCheckpointStore]
  for (const describeStore of [...others, describeServedStore]) describeStore(name, async () => (await open()).store)
}

/** What a store must do that takes many plants at once. `open` gives an empty one. */
export function describeManyStore(name: string, open: () => Promise<Store>): void {
  describe(`${name} takes many plants: it`, () => describeOutcomes(open))
}

export function describeSnapshotStore(name: string, open: () => Promise<Store>): void {
  describe(`${name} gives all of its plants: it`, () => describeSnapshots(open))
}

/** What a store does besides that sorts plants itself. */
function describeSortedStore(name: string, open: () => Promise<Store>): void {
  const names = ['b', 'A', '', 'É', 'a', 'B', 'Z', 'ab', 'a,"b"', 'é', '\u009b蕨', '🌿']
  const plants = names.flatMap((text, index): NewPlant[] => [
    { id: BigInt(50 - index), name: text, ...(index % 3 > 0 && { tag: text }) },
    { id: BigInt(-index), name: 'Fern' },
  ])
  const keyOf = (text = '') => Buffer.from(text.replace(/[A-Z]/g, (letter) => letter.toLowerCase()))

  test.each<[FieldName, Partial<SnapshotQuery>]>([
    ['id', {}],
    ['name', {}],
    ['tag', {}],
    ['name', { limit: 5, after: 0n }],
    ['tag', { search: 'b', limit: 100 }],
    ['name', { tag: 'B' }],
    ['id', { desc: true, search: 'b', limit: 2, after: 0n }],
    ['tag', { desc: true }],
    ['tag', { tag: 'none' }],
  ])(`${name} sorts by %s, then by id, with %o`, async (sort, query) => {
    const store = await open()
    for (const plant of plants) await store.create(plant)
    const { after = smallestId, limit, tag, search = '' } = query
    const sign = query.desc ? -1 : 1
    const compare = (one: NewPlant, other: NewPlant) => {
      const ids = one.id < other.id ? -1 : 1
      if (sort === 'id') return ids * sign
      const [a, b] = [one[sort], other[sort]]
      if ((a === undefined) !== (b === undefined)) return a === undefined ? 1 : -1
      return Buffer.compare(keyOf(a), keyOf(b)) * sign || ids
    }
    const expected = plants
      .filter((plant) => plant.id > after && (tag === undefined || plant.tag === tag))
      .filter((plant) => [plant.name, plant.tag].some((text) => text?.toLowerCase().includes(search)))
      .toSorted(compare)
      .slice(0, limit)
    for (const record of ['json', ','] as const) {
      const blocks = await gatheredBlocks(store, { ...query, sort, record })
      expect(blocks.map(({ text }) => text).join('\n')).toBe(expected.map(recordWriter(record)).join('\n'))
      expect(blocks.reduce((sum, block) => sum + block.plants, 0)).toBe(expected.length)
    }
  })

  test(`${name} sorts many, in blocks that stay small`, async () => {
    const store = await open()
    const length = (index: number) => (index % 100 === 7 ? 100_000 : 500)
    const many = plantsOf(3000, (index) => ({ name: `Fern ${9999 - index} ${'é'.repeat(length(index))}` }))
    await createAll(store, batchOf(many))
    const blocks = await gatheredBlocks(store, { sort: 'name', record: 'json' })
    expect(Math.max(...blocks.map(({ text }) => text.length))).toBeLessThan(1_000_000)
    const ids = blocks.flatMap(({ text }) => text.split('\n').map((line) => readRecord(line)?.id))
    expect(ids).toEqual(many.map(({ id }) => id).toReversed())
  })
}

function describeOutcomes(open: () => Promise<Store>): void {
  test('creates them all, whatever their texts and their order', async () => {
    const plants = [
      { id: largestId, name: '\u{1f33f}'.repeat(100), tag: '"\\,;\t\n' },
      ivy,
      { id: smallestId, name: '' },
      moss,
    ]
    const store = await open()
    expect(await createMany(store, plants)).toBe('created created created created')
    expect(await gathered(store.list())).toStrictEqual(plants.toSorted((a, b) => (a.id < b.id ? -1 : 1)))
  })

  test.each<[CreateManyOptions['ifExists'], string, string]>([
    ['error', 'exists exists created exists', 'created exists exists'],
    ['skip', 'skipped skipped created skipped', 'created skipped skipped'],
    ['same', 'skipped exists created skipped', 'created skipped skipped'],
    ['update', 'skipped updated created skipped', 'created skipped skipped'],
  ])('applies "%s" to ids in the store or the input', async (ifExists, ...outcomes) => {
    const store = await open()
    await createMany(store, [fern, moss])
    const [oak, wet] = [
      { id: 4n, name: 'Oak' },
      { ...moss, tag: 'wet' },
    ]
    const none = { ...oak, tag: null }
    const told = [
      [fern, wet, ivy, ivy],
      [none, oak, none],
    ].map((plants) => createMany(store, plants, { ifExists }))
    expect(await Promise.all(told)).toEqual(outcomes)
    expect(await gathered(store.list())).toStrictEqual([fern, ifExists === 'update' ? wet : moss, ivy, oak])
  })

  test('updates in the order of the input, and takes the keys of what it updates', async () => {
    const store = await open()
    await store.create(moss, { idempotencyKey: 'key' })
    const two = { ...fern, name: 'two' }
    const three = { ...moss, name: 'three' }
    const input = [fern, { ...moss, name: 'one' }, two, moss, two, three]
    const outcomes = 'created updated updated updated skipped updated'
    expect(await createMany(store, input, { ifExists: 'update' })).toBe(outcomes)
    expect(await gathered(store.list())).toStrictEqual([two, three])
    await expect(store.create(moss, { idempotencyKey: 'key' })).rejects.toThrow('A plant with id 2 already exists')
  })

  test('changes what a record has, and nothing else', async () => {
    const store = await open()
    for (const plant of [fern, moss, ivy]) await store.create(plant, { idempotencyKey: `key-${plant.id}` })
    const batch = batchOf([
      { id: 1n, name: 'Bracken' },
      { id: 2n, tag: 'wet' },
      { id: 4n, tag: 'tall' },
      { id: 3n, name: 'Ivy' },
      { id: 1n, tag: null },
      { id: 5n, name: 'Oak', tag: null },
      { id: 1n, name: 'Bracken' },
      { id: 5n, tag: 'tall' },
      { id: 3n },
    ])
    const outcomes = 'updated updated rejected skipped updated created skipped updated skipped'
    expect((await createAll(store, batch, { ifExists: 'update' })).join(' ')).toBe(outcomes)
    const message = 'Invalid plant: name must be a string, but is missing, and no plant has id 4'
    expect([...batch.rejections]).toMatchObject([[2, { error: 422, message }]])
    const now: NewPlant[] = [
      { id: 1n, name: 'Bracken' },
      { ...moss, tag: 'wet' },
      ivy,
      { id: 5n, name: 'Oak', tag: 'tall' },
    ]
    expect(await gathered(store.list())).toStrictEqual(now)
    // its key is still there
    expect(await store.create(ivy, { idempotencyKey: 'key-3' })).toEqual({ name: 'Ivy', tag: '' })
    for (const plant of [fern, moss])
      await expect(store.create(plant, { idempotencyKey: `key-${plant.id}` })).rejects.toThrow('already exists')
    expect(await gathered(store.list())).toStrictEqual(now)
  })

  test('skips no plant whose assigned id another one has', async () => {
    const store = await open()
    for (const id of [4n, 5n, 6n]) await store.create({ id, name: 'Oak' })
    const input = ['Elm', 'Elm', 'Oak', 'Ash'].map((name, index) => ({ id: BigInt(4 + index), name }))
    const options = { ifExists: 'skip', assignedFrom: 5n } as const
    expect(await createMany(store, input, options)).toBe('skipped exists skipped created')
    expect((await gathered(store.list())).map(({ name }) => name)).toEqual(['Oak', 'Oak', 'Oak', 'Ash'])
  })

  test('begins nothing after a rejected record, when that ends it', async () => {
    const store = await open()
    await store.create(moss)
    expect(await createMany(store, [ivy, moss, fern], { stopsAtReject: true })).toBe('created exists pending')
    const input = [{ id: 2n, tag: 'wet' }, { id: 4n, tag: 'tall' }, fern]
    const options = { ifExists: 'update', stopsAtReject: true } as const
    expect(await createMany(store, input, options)).toBe('updated rejected pending')
    expect(await gathered(store.list())).toStrictEqual([{ ...moss, tag: 'wet' }, ivy])
  })

  test('creates nothing when it was stopped before', async () => {
    const store = await open()
    expect(await createMany(store, [ivy], { stop: AbortSignal.abort() })).toBe('pending')
    expect(await gathered(store.list())).toEqual([])
  })

  test('gives each id once, also when others create meanwhile', async () => {
    const store = await open()
    const plants = plantsOf(1000)
    const batch = batchOf(plants)
    const singles = plants.filter(({ id }) => id % 7n === 0n).map((plant) => ({ ...plant, tag: 'single' }))
    const [, ...results] = await Promise.all([
      createAll(store, batch),
      ...singles.map((plant) => store.create(plant).then(Boolean, () => false)),
    ])
    const created = new Map(singles.filter((_, index) => results[index]).map((plant) => [plant.id, plant]))
    expect(outcomesOf(batch)).toEqual(plants.map(({ id }) => (created.has(id) ? 'exists' : 'created')))
    expect(await gathered(store.list())).toStrictEqual(plants.map((plant) => created.get(plant.id) ?? plant))
  })
}

/** What a store must do that keeps the positions of imports. `open` gives an empty one. */
function describeCheckpointStore(name: string, open: () => Promise<CheckpointStore & ReadableStore>): void {
  describe(`${name} keeps the positions of imports: it`, () => {
    test('keeps, finds and removes them', async () => {
      const store = await open()
      await store.keepCheckpoint({ id: 'one', state: '{"at":1}' })
      await store.keepCheckpoint({ id: 'one', state: `{"at":"'\\"}` })
      await store.keepCheckpoint({ id: 'two', state: '' })
      await store.removeCheckpoint('two')
      expect([await store.findCheckpoint('one'), await store.findCheckpoint('two')]).toEqual([
        `{"at":"'\\"}`,
        undefined,
      ])
    })

    test('keeps a position of the outcomes with the plants', async () => {
      const store = await open()
      await store.create(moss)
      await createAll(store, batchOf([fern, moss, ivy]), { checkpoint: 'one' })
      const { created, exists } = Outcome
      expect(await store.findCheckpoint('one')).toBe([created, exists, created].join(''))
    })
  })
}

function describeSnapshots(open: () => Promise<Store>): void {
  const odd = [
    ...['', ' ', '"', ',', ';', 'a|b', '\t', '\r', '\n', '\\', "'", '\u0001\u001b\u007f\u009b\u2028', 'é\u{10ffff}'],
    ...['a,"b"\n', '=1+1', ' a', 'a ', '\ta', 'a\t', 'a b', '" ', '\b\f\v'],
  ]

  test('writes texts of every kind, as JSON and as quoted cells', async () => {
    const store = await open()
    await createMany(store, [
      { id: 99n, name: 'Moss' },
      ...odd.map((name, id) => ({ id: BigInt(id), name, tag: name })),
    ])
    const text = await textOf(store, { record: 'json' })
    const expected = odd.map((name, id) => ({ id, name, tag: name }))
    const records = text.split('\n')
    expect(records.pop()).toBe('{"id":99,"name":"Moss"}')
    expect(records.map((record) => JSON.parse(record))).toEqual(expected)
    expect(text.match(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028]/)).toBeNull()
    for (const record of delimiters) {
      const needsQuotes = (name: string) => name === '' || /^[ \t]|[ \t]$|["\r\n]/.test(name) || name.includes(record)
      const cells = odd.map((name) => (needsQuotes(name) ? `"${name.replaceAll('"', '""')}"` : name))
      const lines = cells.map((cell, id) => [id, cell, cell].join(record))
      expect(await textOf(store, { record })).toBe([...lines, `99${record}Moss${record}`].join('\n'))
    }
  })

  test('chooses them as a list does', async () => {
    const store = await open()
    await createMany(
      store,
      plantsOf(3000, (index) => (index % 3 === 0 ? { tag: 'x' } : {})),
    )
    const lines = (count: number, first: number) => Array.from({ length: count }, (_, row) => `${first + 3 * row},F,x`)
    const tagged = await textOf(store, { record: ',', after: 10n, limit: 1500, tag: 'x' })
    expect(tagged.split('\n')).toEqual(lines(996, 12))
    expect((await textOf(store, { record: ',', limit: 900, search: 'X' })).split('\n')).toEqual(lines(900, 0))
    expect(await textOf(store, { record: ',', search: 'nothing' })).toBe('')
  })

  test('shows each reader the plants of one moment, while others read and write', async () => {
    const store = await open()
    await createMany(store, plantsOf(5000))
    const read = async () => {
      const reader = store.snapshot({ record: ',' })[Symbol.asyncIterator]()
      const blocks = [await reader.next()]
      return async () => {
        while (blocks.at(-1)?.done === false) blocks.push(await reader.next())
        return blocks.flatMap(({ value }) => value?.text ?? []).join('\n')
      }
    }
    const finish = await read()
    await store.create({ id: 5000n, name: 'F' })
    const finishOther = await read()
    await store.delete(5000n)
    expect([await store.count(), await store.get(5000n)]).toEqual([5000n, undefined])
    const [text, other] = await Promise.all([finish(), finishOther(), store.create({ id: 6000n, name: 'F' })])
    const all = plantsOf(5001).map(({ id }) => `${id},F,`)
    expect([text === all.slice(0, 5000).join('\n'), other === all.join('\n')]).toEqual([true, true])
  })
}

async function createMany(store: Store, plants: PlantPatch[], options?: BulkOptions): Promise<string> {
  return (await createAll(store, batchOf(plants), options)).join(' ')
}

async function gatheredBlocks(store: Store, query: SnapshotQuery): Promise<Block[]> {
  const blocks: Block[] = []
  for await (const block of store.snapshot(query)) blocks.push(block)
  return blocks
}

async function textOf(store: Store, query: SnapshotQuery): Promise<string> {
  return (await gatheredBlocks(store, query)).map(({ text }) => text).join('\n')
}
