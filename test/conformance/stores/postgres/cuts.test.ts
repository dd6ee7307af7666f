import { expect, test } from 'vitest'
import { Importer, plant } from '../../../helpers/import.js'
import {
  type Database,
  freshDatabase,
  ownServer,
  reusedDatabase,
} from '../../../helpers/postgres.js'
import {
  configure,
  createAll,
  creations,
  type Moment,
  openByLine,
  openShared,
  othersWait,
  settled,
} from '../../../helpers/shared-store.js'
import { createPlant, deletePlant, gathered } from '../../../helpers/store.js'

const database = reusedDatabase()
const insert = 'INSERT INTO plant_store.plants'
const moments: Moment[] = ['before', 'sent', 'answered']
const stored = 'SELECT id, idempotency_key AS key FROM plant_store.plants ORDER BY id'
const fern = { id: 1n, name: 'Fern' }
const taken = (id: number) => `conflict: A plant with id ${id} already exists`
const unknown = expect.stringMatching(
  /^unknownOutcome: The connection to .* was lost during a commit: whether it is stored is unknown$/,
)

test.each(moments)(
  'answers once, and right, when the connection is cut at an INSERT, %s',
  async (moment) => {
    const place = await database()
    const { line, store } = await openByLine(place)
    await createPlant(store, { id: 7n, name: 'Moss' })
    line.cut(insert, moment)
    const calls = [
      createPlant(store, fern),
      createPlant(store, { ...fern, id: 2n }, 'two'),
      createPlant(store, fern),
      createPlant(store, { id: 7n, name: 'Moss' }),
    ]
    expect(await settled(calls)).toStrictEqual([fern, { ...fern, id: 2n }, taken(1), taken(7)])
    expect(line.cuts).toBe(1)
    expect(await place.sql(stored)).toEqual([
      { id: 1n, key: null },
      { id: 2n, key: 'two' },
      { id: 7n, key: null },
    ])
  },
)

test.each(moments)(
  'repeats creates with keys, and only them, when the connection is cut at COMMIT, %s',
  async (moment) => {
    const place = await database()
    const { line, store } = await openByLine(place)
    line.cut('COMMIT', moment)
    const keyed = [1n, 2n].map((id) => createPlant(store, { ...fern, id }, `key ${id}`))
    expect(await settled(keyed)).toStrictEqual([fern, { ...fern, id: 2n }])
    line.cut('COMMIT', moment)
    const mixed = [3n, 4n].map((id) =>
      createPlant(store, { ...fern, id }, id === 3n ? 'key 3' : undefined),
    )
    expect(await settled(mixed)).toEqual([unknown, unknown])
    line.cut('COMMIT', moment)
    expect(await settled([deletePlant(store, 1n)])).toEqual([unknown])
    expect(line.cuts).toBe(3)
  },
)

test.each([
  ['08P01', unknown], // what PgBouncer says when it has lost the server
  ['40003', unknown],
  ['XX000', unknown],
  ['40001', taken(1)], // It says that nothing was stored, and the create is repeated.
])('a COMMIT that was made, and is answered with the error %s', async (code, told) => {
  const { line, store } = await openByLine(await database())
  line.answer('COMMIT', code)
  expect(await settled([createPlant(store, fern)])).toEqual([told])
  expect((await store.get([1n])).get(1n)).toEqual(fern)
})

test('an import is done even if its checkpoint cannot be removed', async () => {
  const place = await freshDatabase()
  const { line } = await openByLine(place)
  const user = new Importer()
  user.write('plants', plant(1) + plant(2))
  line.cut('DELETE FROM plant_store.imports', 'sent', 1000)
  const argv = ['import', 'plants', '--store', line.url, '--timeout', '1h', '--output', 'text']
  const now = () => (line.cuts < 2 ? 0 : 3_600_000)
  const { code, out, err } = await user.run(argv, { env: place.env, now })
  expect([code, out]).toEqual([0, 'Read 2 plants: 2 created\n'])
  expect(err).toMatch(/plants: The import is done, but its checkpoint may have been left: .*\n$/)
})

test.each(moments)(
  'an import whose commits are cut %s goes on, and keeps all once',
  async (moment) => {
    const place = await freshDatabase()
    const { line } = await openByLine(place)
    const user = new Importer()
    const lines = Array.from({ length: 3000 }, (_, id) => (id % 3 === 2 ? 'bad\n' : plant(id)))
    user.write('plants', lines.join(''))
    const argv = ['import', 'plants', '--rejects', 'bad', '--store', line.url]
    for (const expected of [5, 5, 6]) {
      if (expected === 5) line.cut('COMMIT', moment)
      const { code } = await user.run(argv, { env: place.env })
      expect(code).toBe(expected)
    }
    expect(line.cuts).toBe(2)
    expect(await place.sql('SELECT count(*)::int FROM plant_store.plants')).toEqual([
      { count: 2000 },
    ])
    expect(user.rejected('bad').map(({ line: at }) => at)).toEqual(
      Array.from({ length: 1000 }, (_, index) => 3 * index + 3),
    )
  },
)

test('waits no longer than its time for what is silent', async () => {
  const place = await database()
  const { line, store } = await openByLine(place, { timeout: 1000 })
  line.silence()
  expect(await settled([createPlant(store, fern)])).toEqual([
    expect.stringMatching(/^unavailable: .*Query read timeout$/),
  ])
  line.mend()
  await expect.poll(() => settled([store.check()]), { interval: 5 }).toEqual([undefined])
  const many = Array.from({ length: 600 }, (_, id) => ({ id: BigInt(10 + id), name: 'Oak' }))
  const copied = store.transaction(async ({ write }) => {
    await write(creations([{ id: 9n, name: 'Oak' }]))
    line.silence()
    return write(creations(many)) // by COPY
  })
  expect(await settled([copied])).toEqual([
    expect.stringMatching(/^unavailable: .*aborted due to timeout$/),
  ])
  line.mend()
  const moss = { id: 2n, name: 'Moss' }
  await expect
    .poll(() => settled([createPlant(store, moss, 'key')]), { interval: 5 })
    .toEqual([moss])
})

test('an export that is cut in the middle fails, and the next one is complete', async () => {
  const { line, store } = await openByLine(await database())
  const name = 'long '.repeat(200_000)
  const plants = Array.from({ length: 40 }, (_, id) => ({ id: BigInt(id), name }))
  await createAll(store, plants)
  const read: bigint[] = []
  const cut = async () => {
    for await (const page of store.read()) {
      read.push(...page.map(({ id }) => id))
      if (read.length === 2) line.cutAll()
    }
  }
  await expect(cut()).rejects.toMatchObject({
    kind: 'unavailable',
    message: expect.stringMatching(/^Could not reach postgres:/),
  })
  expect(read.length).toBeLessThan(plants.length)
  expect(await gathered(store.read())).toStrictEqual(plants)
})

test('does not take for its own what another has deleted', async () => {
  const place = await database()
  const store = await openShared(place)
  await createPlant(store, fern)
  const commit = await place.hold('DELETE FROM plant_store.plants')
  const deleted = settled([deletePlant(store, 1n)])
  await othersWait(place, 1)
  await commit('COMMIT')
  expect(await deleted).toEqual(['notFound: No plant has id 1'])
})

async function waitFor(database: Database, standby: '' | 'absent'): Promise<void> {
  await configure(database, `synchronous_standby_names = '${standby}'`)
  const awaited = async () => (await database.admin('SHOW synchronous_standby_names'))[0]
  await expect.poll(awaited).toEqual({ synchronous_standby_names: standby })
}

test('a create is not answered before the plant is on the standby', async () => {
  const database = await ownServer()
  await database.admin('ALTER ROLE plants SET synchronous_commit = off')
  const store = await openShared(database, { timeout: 1000 })
  await waitFor(database, 'absent')
  const create = () => createPlant(store, fern, 'fern')
  expect(await settled([create()])).toEqual([unknown])
  await waitFor(database, '')
  await expect.poll(() => create().catch(() => undefined)).toEqual(fern)
})

test('a checkpoint is read after a transaction that replaces it', async () => {
  const place = await freshDatabase()
  const [store, other] = [await openShared(place), await openShared(place)]
  await store.transaction(({ saveCheckpoint }) =>
    saveCheckpoint({ id: 'one', from: undefined, to: 'a' }),
  )
  let read: Promise<string | undefined> = Promise.resolve(undefined)
  await store.transaction(async ({ saveCheckpoint }) => {
    await saveCheckpoint({ id: 'one', from: 'a', to: 'b' })
    read = other.checkpoint('one')
    await expect.poll(() => place.sql('SELECT FROM pg_locks WHERE NOT granted')).toHaveLength(1)
  })
  expect(await read).toBe('b')
})
