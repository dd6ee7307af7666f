import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { FieldName, NewPlant, PlantPatch } from '../../../src/plant/plant.js'
import { delimiters, readRecord, recordWriter } from '../../../src/plant/records.js'
import { Outcome } from '../../../src/stores/common/conflict.js'
import type {
  Block,
  BulkStore,
  CheckpointStore,
  CreateManyOptions,
  ReadableStore,
  SnapshotQuery,
} from '../../../src/stores/common/store.js'

import { batchOf } from '../../helpers/bulk.js'

type Store = BulkStore & ReadableStore

const fern: NewPlant = { id: 1n, name: 'Fern', tag: 'shade' }
const moss: NewPlant = { id: 2n, name: 'Moss' }
const ivy: NewPlant = { id: 3n, name: 'Ivy', tag: '' }

const { created, pending, skipped, exists, rejected, updated } = Outcome

/** What a store must do that takes many plants at once. `open` gives an empty one. */
export function describeManyStore(name: string, open: () => Promise<Store>): void {
  describe(`${name} takes many plants: it`, () => describeOutcomes(open))
}

/** What a store must do that gives all of its plants. `open` gives an empty one. */
export function describeSnapshotStore(name: string, open: () => Promise<Store>): void {
  describe(`${name} gives all of its plants: it`, () => describeSnapshots(open))
}

/** What a store does besides that sorts plants itself. */
export function describeSortedStore(name: string, open: () => Promise<Store>): void {
  const names = ['b', 'A', '', 'É', 'a', 'B', 'Z', 'ab', 'a,"b"', 'é', '蕨', '🌿']
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
    ['id', { desc: true }],
    ['id', { desc: true, search: 'b', limit: 2, after: 0n }],
    ['tag', { desc: true }],
    ['tag', { tag: 'none' }],
  ])(`${name} sorts by %s, then by id, with %o`, async (sort, query) => {
    const store = await open()
    for (const plant of plants) await store.create(plant)
    const { after = -(2n ** 63n), limit, tag, search = '' } = query
    const selected = plants
      .filter((plant) => plant.id > after && (tag === undefined || plant.tag === tag))
      .filter((plant) => [plant.name, plant.tag].some((text) => text?.toLowerCase().includes(search)))
    const sign = query.desc ? -1 : 1
    const byId = selected.toSorted((a, b) => (a.id < b.id ? -1 : 1) * (sort === 'id' ? sign : 1))
    const byText = (field: Exclude<FieldName, 'id'>) =>
      byId.toSorted((a, b) => {
        if ((a[field] === undefined) !== (b[field] === undefined)) return a[field] === undefined ? 1 : -1
        return Buffer.compare(keyOf(a[field]), keyOf(b[field])) * sign
      })
    const expected = (sort === 'id' ? byId : byText(sort)).slice(0, limit)
    for (const record of ['json', ','] as const) {
      const blocks: Block[] = []
      for await (const block of store.snapshot({ ...query, sort, record })) blocks.push(block)
      expect(blocks.map(({ text }) => text).join('\n')).toBe(expected.map(recordWriter(record)).join('\n'))
      expect(blocks.reduce((sum, block) => sum + block.plants, 0)).toBe(expected.length)
    }
  })

  test(`${name} sorts many, in blocks that stay small`, async () => {
    const store = await open()
    const many = Array.from({ length: 3000 }, (_, index) => ({
      id: BigInt(index),
      name: `Fern ${9999 - index} ${'x'.repeat(500)}`,
    }))
    expect(new Set(await createMany(store, many))).toEqual(new Set([created]))
    const ids: bigint[] = []
    for await (const { text } of store.snapshot({ sort: 'name', record: 'json' })) {
      expect(text.length).toBeLessThan(1_000_000)
      ids.push(...text.split('\n').flatMap((line) => readRecord(line)?.id ?? []))
    }
    expect(ids).toEqual(many.map(({ id }) => id).toReversed())
  })
}

function describeOutcomes(open: () => Promise<Store>): void {
  test('creates them all, whatever their texts and their order', async () => {
    const store = await open()
    const plants = [
      { id: 2n ** 63n - 1n, name: '\u{1f33f}'.repeat(100), tag: '"\\,;\t\n' },
      ivy,
      { id: -(2n ** 63n), name: '' },
      moss,
    ]
    expect(await createMany(store, plants)).toEqual([created, created, created, created])
    expect(await all(store)).toStrictEqual(plants.toSorted((a, b) => (a.id < b.id ? -1 : 1)))
  })

  test.each<[CreateManyOptions['ifExists'], number[]]>([
    ['error', [exists, exists, created, exists]],
    ['skip', [skipped, skipped, created, skipped]],
    ['same', [skipped, exists, created, skipped]],
    ['update', [skipped, updated, created, skipped]],
  ])('holds ids that are taken, there or in the input, against the policy "%s"', async (ifExists, outcomes) => {
    const store = await open()
    await store.create(fern)
    await store.create(moss, { idempotencyKey: 'key' })
    expect(await createMany(store, [fern, { ...moss, tag: 'wet' }, ivy, ivy], { ifExists })).toEqual(outcomes)
    expect(await all(store)).toStrictEqual([fern, ifExists === 'update' ? { ...moss, tag: 'wet' } : moss, ivy])
  })

  test('updates in the order of the input, and takes the keys of what it updates', async () => {
    const store = await open()
    await store.create(moss, { idempotencyKey: 'key' })
    const input = [
      fern,
      { ...moss, name: 'one' },
      { ...fern, name: 'two' },
      moss,
      { ...fern, name: 'two' },
      { ...moss, name: 'three' },
    ]
    expect(await createMany(store, input, { ifExists: 'update' })).toEqual([
      created,
      updated,
      updated,
      updated,
      skipped,
      updated,
    ])
    expect(await all(store)).toStrictEqual([
      { ...fern, name: 'two' },
      { ...moss, name: 'three' },
    ])
    await expect(store.create(moss, { idempotencyKey: 'key' })).rejects.toMatchObject({
      message: 'A plant with id 2 already exists',
    })
  })

  test('changes what a record has, and nothing else, record by record', async () => {
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
    await store.createMany(batch, manyOptions({ ifExists: 'update' }))
    expect([...batch.outcomes]).toEqual([
      updated,
      updated,
      rejected,
      skipped,
      updated,
      created,
      skipped,
      updated,
      skipped,
    ])
    expect([...batch.rejections].map(([row, { error, message }]) => ({ row, error, message }))).toEqual([
      { row: 2, error: 422, message: 'Invalid plant: name must be a string, but is missing, and no plant has id 4' },
    ])
    const now: NewPlant[] = [
      { id: 1n, name: 'Bracken' },
      { ...moss, tag: 'wet' },
      ivy,
      { id: 5n, name: 'Oak', tag: 'tall' },
    ]
    expect(await all(store)).toStrictEqual(now)
    // its key is still there
    expect(await store.create(ivy, { idempotencyKey: 'key-3' })).toEqual({ name: 'Ivy', tag: '' })
    for (const [plant, idempotencyKey] of [
      [fern, 'key-1'],
      [moss, 'key-2'],
    ] as const)
      await expect(store.create(plant, { idempotencyKey })).rejects.toMatchObject({
        message: expect.stringContaining('already exists'),
      })
    expect(await all(store)).toStrictEqual(now)
  })

  test('begins nothing after a record that lacks a name, and whose plant does not exist, when that ends it', async () => {
    const store = await open()
    await store.create(moss)
    const input = [{ id: 2n, tag: 'wet' }, { id: 4n, tag: 'tall' }, fern]
    expect(await createMany(store, input, { ifExists: 'update', stopsAtReject: true })).toEqual([
      updated,
      rejected,
      pending,
    ])
    expect(await all(store)).toStrictEqual([{ ...moss, tag: 'wet' }])
  })

  test.each<[CreateManyOptions['ifExists'], number]>([
    ['error', exists],
    ['skip', skipped],
    ['same', skipped],
    ['update', skipped],
  ])('takes null for no tag with the policy "%s"', async (ifExists, again) => {
    const store = await open()
    expect(await createMany(store, [{ ...moss, tag: null }, moss, { ...moss, tag: null }], { ifExists })).toEqual([
      created,
      again,
      again,
    ])
    expect(await all(store)).toStrictEqual([moss])
  })

  test('does not skip a plant whose assigned number another one has', async () => {
    const store = await open()
    for (const id of [4n, 5n, 6n]) await store.create({ id, name: 'Oak' })
    const input = [
      { id: 4n, name: 'Elm' },
      { id: 5n, name: 'Elm' },
      { id: 6n, name: 'Oak' },
      { id: 7n, name: 'Ash' },
    ]
    expect(await createMany(store, input, { ifExists: 'skip', assignedFrom: 5n })).toEqual([
      skipped,
      exists,
      skipped,
      created,
    ])
    expect((await all(store)).map(({ name }) => name)).toEqual(['Oak', 'Oak', 'Oak', 'Ash'])
  })

  test('begins nothing after one that was rejected, when that ends it', async () => {
    const store = await open()
    await store.create(moss)
    expect(await createMany(store, [ivy, moss, fern], { stopsAtReject: true })).toEqual([created, exists, pending])
    expect(await all(store)).toStrictEqual([moss, ivy])
  })

  test('creates nothing when it was told to stop', async () => {
    const store = await open()
    expect(await createMany(store, [ivy], { stop: AbortSignal.abort() })).toEqual([pending])
    expect(await all(store)).toEqual([])
  })

  test('shares the ids with whoever creates at the same moment, so that each is given once', async () => {
    const store = await open()
    const plants = Array.from({ length: 1000 }, (_, index) => ({ id: BigInt(index), name: `Fern ${index}` }))
    const single = plants.filter(({ id }) => id % 7n === 0n)
    const [many, ...each] = await Promise.all([
      createMany(store, plants),
      ...single.map((plant) =>
        store.create({ ...plant, tag: 'single' }).then(
          () => plant.id,
          () => undefined,
        ),
      ),
    ])
    const ofSingle = new Set(each.filter((id) => id !== undefined))
    expect(many).toEqual(plants.map(({ id }) => (ofSingle.has(id) ? exists : created)))
    expect(await all(store)).toStrictEqual(
      plants.map((plant) => (ofSingle.has(plant.id) ? { ...plant, tag: 'single' } : plant)),
    )
  })
}

/** What a store must do that keeps the positions of imports. `open` gives an empty one. */
export function describeCheckpointStore(name: string, open: () => Promise<CheckpointStore & ReadableStore>): void {
  describe(`${name} keeps the positions of imports: it`, () => describeCheckpoints(open))
}

function describeCheckpoints(open: () => Promise<CheckpointStore & ReadableStore>): void {
  test('keeps, finds and removes them', async () => {
    const store = await open()
    await store.keepCheckpoint({ id: 'one', state: '{"at":1}' })
    await store.keepCheckpoint({ id: 'one', state: `{"at":"'\\"}` })
    await store.keepCheckpoint({ id: 'two', state: '' })
    await store.removeCheckpoint('two')
    expect([await store.findCheckpoint('one'), await store.findCheckpoint('two')]).toEqual([`{"at":"'\\"}`, undefined])
  })

  test('asks for a position when it knows the outcomes, and keeps it with the plants', async () => {
    const store = await open()
    await store.create(moss)
    const batch = batchOf([fern, moss, ivy])
    const checkpoint = () => ({ id: 'one', state: Array.from(batch.outcomes).join() })
    await store.createMany(batch, manyOptions({ checkpoint }))
    expect(await store.findCheckpoint('one')).toBe([created, exists, created].join())
  })
}

function describeSnapshots(open: () => Promise<Store>): void {
  const odd = [
    '',
    ' ',
    '"',
    ',',
    ';',
    'a|b',
    '\t',
    '\r',
    '\n',
    '\\',
    "'",
    '\u0001\u001b\u007f\u009b\u2028',
    'é\u{10ffff}',
    'a,"b"\n',
    '=1+1',
    ' a',
    'a ',
    '\ta',
    'a\t',
    'a b',
    '" ',
  ]

  test.each<[SnapshotQuery['record'], string]>([
    ['json', '{"id":1,"name":"Fern","tag":"shade"}\n{"id":2,"name":"Moss"}\n{"id":3,"name":"Ivy","tag":""}'],
    [',', '1,Fern,shade\n2,Moss,\n3,Ivy,""'],
    ['\t', '1\tFern\tshade\n2\tMoss\t\n3\tIvy\t""'],
  ])('writes them as %s', async (record, text) => {
    const store = await open()
    await createMany(store, [ivy, moss, fern])
    expect(await textOf(store, { record })).toBe(text)
  })

  test('writes texts of every kind as JSON does', async () => {
    const store = await open()
    const plants = odd.map((name, index) => ({ id: BigInt(index), name, tag: name }))
    await createMany(store, plants)
    const text = await textOf(store, { record: 'json' })
    expect(JSON.parse(`[${text.replaceAll('\n', ',')}]`)).toEqual(
      plants.map(({ id, ...texts }) => ({ id: Number(id), ...texts })),
    )
    expect(text.match(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028]/)).toBeNull()
  })

  test('quotes the cells of a table that need it', async () => {
    const store = await open()
    await createMany(
      store,
      odd.map((name, index) => ({ id: BigInt(index), name })),
    )
    const quoted = (separator: string) => (text: string) =>
      text === '' || /^[ \t]|[ \t]$|["\r\n]/.test(text) || text.includes(separator)
        ? `"${text.replaceAll('"', '""')}"`
        : text
    for (const record of delimiters)
      expect(await textOf(store, { record })).toBe(
        odd.map((text, index) => [index, quoted(record)(text), ''].join(record)).join('\n'),
      )
  })

  test('chooses them as a list does', async () => {
    const store = await open()
    await createMany(
      store,
      Array.from({ length: 3000 }, (_, index) => ({
        id: BigInt(index),
        name: 'F',
        ...(index % 3 === 0 && { tag: 'x' }),
      })),
    )
    const text = await textOf(store, { record: ',', after: 10n, limit: 1500, tag: 'x' })
    expect(text.split('\n')).toEqual(Array.from({ length: 996 }, (_, index) => `${12 + 3 * index},F,x`))
    expect(await textOf(store, { record: ',', limit: 900, search: 'X' })).toBe(
      Array.from({ length: 900 }, (_, index) => `${3 * index},F,x`).join('\n'),
    )
    expect(await textOf(store, { record: ',', search: 'nothing' })).toBe('')
  })

  test('shows each reader the plants of one moment, while others read and write', async () => {
    const store = await open()
    const plants = Array.from({ length: 5000 }, (_, index) => ({ id: BigInt(index), name: 'F' }))
    const query = { record: ',' } as const
    const textOfAll = (count: number) => Array.from({ length: count }, (_, index) => `${index},F,`).join('\n')
    await createMany(store, plants)
    const first = store.snapshot(query)[Symbol.asyncIterator]()
    const blocks = [await first.next()]
    await store.create({ id: 5000n, name: 'F' })
    const second = store.snapshot(query)[Symbol.asyncIterator]()
    const others = [await second.next()]
    await store.delete(5000n)
    expect(await all(store)).toHaveLength(5000)
    expect(await store.get(5000n)).toBeUndefined()
    const rest = async (reader: AsyncIterator<Block>, read: IteratorResult<Block>[]) => {
      while (read.at(-1)?.done === false) read.push(await reader.next())
      return read.flatMap(({ value }) => value?.text ?? []).join('\n')
    }
    const [one, other] = await Promise.all([
      rest(first, blocks),
      rest(second, others),
      store.create({ id: 6000n, name: 'F' }),
    ])
    expect([one === textOfAll(5000), other === textOfAll(5001)]).toEqual([true, true])
    await first.return?.()
    await second.return?.()
  })
}

function manyOptions(options: Partial<CreateManyOptions>): CreateManyOptions {
  const usual = {
    ifExists: 'error',
    stopsAtReject: false,
    checkpoint: undefined,
    stop: new AbortController().signal,
  } as const
  return { ...usual, keyOf: () => randomUUID(), onProgress: () => undefined, ...options }
}

async function createMany(
  store: Store,
  plants: PlantPatch[],
  options: Partial<CreateManyOptions> = {},
): Promise<number[]> {
  const batch = batchOf(plants)
  await store.createMany(batch, manyOptions(options))
  return Array.from(batch.outcomes)
}

async function all(store: Store): Promise<NewPlant[]> {
  const plants: NewPlant[] = []
  for await (const page of store.list()) plants.push(...page)
  return plants
}

async function textOf(store: Store, query: SnapshotQuery): Promise<string> {
  const blocks: string[] = []
  for await (const { text } of store.snapshot(query)) blocks.push(text)
  return blocks.join('\n')
}
