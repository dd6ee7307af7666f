import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { NewPlant } from '../../../../src/plant/plant.js'
import { existsPolicies } from '../../../../src/stores/common/conflict.js'
import type { ReadableStore } from '../../../../src/stores/common/store.js'
import { SqliteStore } from '../../../../src/stores/sqlite/sqlite-store.js'
import { newPlant } from '../../../helpers/any-plant.js'
import { batchOf, createAll, outcomesOf } from '../../../helpers/bulk.js'
import { fc } from '../../../helpers/fast-check.js'
import { Line, type Moment } from '../../../helpers/postgres/line.js'
import { freshDatabase, reusedDatabase } from '../../../helpers/postgres.js'
import { rounds } from '../../../helpers/rounds.js'
import { settled } from '../../../helpers/settled.js'
import { openShared, othersWait } from '../../../helpers/shared-store.js'
import { closedAfterTest, fileAddress, openOptions } from '../../../helpers/store.js'
import { temporaryFolder } from '../../../helpers/temporary.js'

const database = reusedDatabase()
const plants = (count: number, first = 0, name = 'Fern'): NewPlant[] =>
  Array.from({ length: count }, (_, index) => ({ id: BigInt(first + index), name: `${name} ${first + index}` }))
const count = 'SELECT count(*)::int, count(DISTINCT id)::int AS ids FROM plant_store.plants'

test('settles the same rows as an embedded store does', async () => {
  const plant = fc
    .tuple(newPlant(), fc.bigInt({ min: 0n, max: 9n }), fc.boolean())
    .map(([{ id: any, ...rest }, few, isFew]) => ({ id: isFew ? few : any, ...(isFew ? { name: 'Fern' } : rest) }))
  const some = fc.array(plant, { maxLength: 20 })
  const options = fc.record({
    ifExists: fc.constantFrom(...existsPolicies),
    stopsAtReject: fc.boolean(),
    checkpoint: fc.constant('import'),
  })
  const file = async () =>
    closedAfterTest(await SqliteStore.open(fileAddress(join(temporaryFolder(), 'plants.db')), openOptions()))
  await fc.assert(
    fc.asyncProperty(some, some, options, async (first, second, choice) => {
      const [one, other] = [await openShared(await database()), await file()]
      for (const batch of [first, second])
        expect(await createAll(one, batchOf(batch), choice)).toEqual(await createAll(other, batchOf(batch), choice))
      expect(await listed(one)).toStrictEqual(await listed(other))
      expect(await one.findCheckpoint('import')).toBe(await other.findCheckpoint('import'))
    }),
    { numRuns: rounds(6) },
  )
})

test('keeps the position of an import with the plants that it has created', async () => {
  const place = await database()
  const store = await openShared(place)
  const batch = batchOf([...plants(3), ...plants(1), ...plants(2, 10)])
  expect(await createAll(store, batch, { checkpoint: 'a' })).toEqual([
    'created',
    'created',
    'created',
    'exists',
    'created',
    'created',
  ])
  expect(await store.findCheckpoint('a')).toBe('111411')
})

test.each([
  ['COMMIT', 'before'],
  ['COMMIT', 'sent'],
  ['COMMIT', 'answered'],
  ['COPY plant_store', 'before'],
  ['COPY plant_store', 'sent'],
  ['Fern 9000', 'before'],
] as [string, Moment][])('creates each row once when the connection is cut at its %s, %s', async (text, moment) => {
  const place = await database()
  const line = await Line.to(place)
  const store = await openShared({ url: line.url, env: place.env })
  line.cut(text, moment)
  expect(new Set(await createAll(store, batchOf(plants(10_000)), { checkpoint: 'a' }))).toEqual(new Set(['created']))
  expect(line.cuts).toBe(1)
  expect(await place.sql(count)).toEqual([{ count: 10_000, ids: 10_000 }])
  expect(await store.findCheckpoint('a')).toBe('1'.repeat(10_000))
})

test.each<[Moment, string]>([
  ['before', 'updated'],
  ['answered', 'skipped'],
])('updates what is there once more when the connection is cut at its COMMIT, %s', async (moment, outcome) => {
  const place = await database()
  const line = await Line.to(place)
  const store = await openShared({ url: line.url, env: place.env })
  await createAll(store, batchOf(plants(2000)))
  line.cut('COMMIT', moment)
  const changed = plants(3000, 0, 'Moss')
  const outcomes = await createAll(store, batchOf([...changed, ...plants(1, 2500)]), {
    checkpoint: 'a',
    ifExists: 'update',
  })
  expect(line.cuts).toBe(1)
  expect(new Set(outcomes.slice(0, 2000))).toEqual(new Set([outcome]))
  expect(new Set(outcomes.slice(2000, 3000))).toEqual(new Set(['created']))
  expect(outcomes.at(-1)).toBe('updated')
  expect(await listed(store)).toStrictEqual(
    changed.map((plant) => (plant.id === 2500n ? { ...plant, name: 'Fern 2500' } : plant)),
  )
})

test('says that the outcome is unknown when the answer of a commit is lost, and nobody can be asked', async () => {
  const place = await database()
  const line = await Line.to(place)
  const store = await openShared({ url: line.url, env: place.env }, { timeout: 1000 })
  line.cut('COMMIT', 'answered')
  line.cut('', 'before', Infinity)
  const failure = createAll(store, batchOf(plants(10)), { checkpoint: 'a' })
  await expect(failure).rejects.toMatchObject({ type: 'unknownOutcome' })
})

test('leaves all rows pending when nothing of them was stored', async () => {
  const place = await database()
  const store = await openShared(place, { timeout: 1000 })
  const release = await place.hold('LOCK TABLE plant_store.plants IN EXCLUSIVE MODE')
  const batch = batchOf(plants(10))
  await expect(createAll(store, batch, { checkpoint: 'a' })).rejects.toMatchObject({ type: 'unavailable' })
  expect(outcomesOf(batch)).toEqual(batch.rows.length > 0 ? Array.from({ length: 10 }, () => 'pending') : [])
  await release()
  expect(await place.sql(count)).toEqual([{ count: 0, ids: 0 }])
})

test('takes each id once of those that two imports and single creates want', async () => {
  const place = await database()
  const [one, other, third] = [await openShared(place), await openShared(place), await openShared(place)]
  const batches = [batchOf(plants(20_000, 0, 'one')), batchOf(plants(20_000, 0, 'other').reverse())]
  const singles = plants(500, 0, 'third').map((plant) =>
    third.create({ ...plant, id: plant.id * 40n }).then(
      () => 'created',
      () => 'exists',
    ),
  )
  const [a = [], b = []] = await Promise.all([
    createAll(one, batches[0] ?? batchOf([])),
    createAll(other, batches[1] ?? batchOf([])),
  ])
  const c = await Promise.all(singles)
  b.reverse()
  const winners = a.map(
    (outcome, id) =>
      [outcome, b[id], id % 40 === 0 ? c[id / 40] : 'exists'].filter((each) => each === 'created').length,
  )
  expect(new Set(winners)).toEqual(new Set([1]))
  const names = await place.sql(
    "SELECT split_part(name, ' ', 1) AS who, count(*)::int FROM plant_store.plants GROUP BY 1",
  )
  const sums = { one: a, other: b, third: c }
  for (const { who, count } of names)
    expect(count).toBe(sums[who as keyof typeof sums].filter((each) => each === 'created').length)
})

test('begins nothing behind a row that was rejected, even when another store comes in between', async () => {
  const place = await database()
  const store = await openShared(place)
  await createAll(store, batchOf([...plants(1, 7), { id: 1n, name: 'Moss' }]))
  const commit = await place.hold("INSERT INTO plant_store.plants VALUES (0, 0, 'Fern 0')")
  const batch = batchOf([7, 5, 0, 1, 2, 3].flatMap((id) => plants(1, id)))
  const outcomes = createAll(store, batch, { stopsAtReject: true, ifExists: 'same' })
  await othersWait(place, 1)
  await commit('COMMIT')
  expect(await outcomes).toEqual(['skipped', 'created', 'skipped', 'exists', 'pending', 'pending'])
  expect((await listed(store)).map(({ id }) => id)).toEqual([0n, 1n, 5n, 7n])
})

test('creates nothing of a batch when it is stopped before its commit', async () => {
  const place = await database()
  const store = await openShared(place)
  const release = await place.hold('LOCK TABLE plant_store.plants IN EXCLUSIVE MODE')
  const stop = new AbortController()
  const outcomes = createAll(store, batchOf(plants(10)), { stop: stop.signal, checkpoint: 'a' })
  await othersWait(place, 1)
  stop.abort()
  const own = "application_name = 'plants' AND datname = current_database()" // other tests use the same server
  await place.admin(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${own}`)
  expect(new Set(await outcomes)).toEqual(new Set(['pending']))
  await release()
  expect(await store.findCheckpoint('a')).toBeUndefined()
  expect(await place.sql(count)).toEqual([{ count: 0, ids: 0 }])
})

test('does not count as created what a trigger of somebody else leaves out', async () => {
  const place = await freshDatabase()
  const store = await openShared(place)
  await createAll(store, batchOf(plants(1, 100)))
  await place.sql(`CREATE FUNCTION leave_out() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN CASE WHEN NEW.id = 2 THEN NULL ELSE NEW END; END';
    CREATE TRIGGER leave_out BEFORE INSERT ON plant_store.plants FOR EACH ROW EXECUTE FUNCTION leave_out()`)
  const failure = { type: 'unavailable', message: expect.stringMatching(/^postgres:\S+ did not insert all plants$/) }
  for (const batch of [plants(3), [...plants(1, 100), ...plants(3)]]) {
    await expect(createAll(store, batchOf(batch))).rejects.toMatchObject(failure)
    expect((await listed(store)).map(({ id }) => id)).not.toContain(2n)
  }
  await expect(
    store.createAll(
      () => [plants(3)],
      () => false,
    ),
  ).rejects.toMatchObject(failure)
})

test('creates what another writer has taken and deleted in the meantime', async () => {
  const place = await freshDatabase()
  const store = await openShared(place)
  await place.sql(`CREATE SEQUENCE tries; CREATE FUNCTION come_and_go() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF nextval('public.tries') % 2 = 1 THEN RAISE unique_violation; END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER come_and_go BEFORE INSERT ON plant_store.plants FOR EACH ROW EXECUTE FUNCTION come_and_go()`)
  expect(await createAll(store, batchOf(plants(1)))).toEqual(['created'])
  const all = store.createAll(
    () => [plants(1, 9)],
    () => false,
  )
  expect(await settled([all])).toEqual([undefined])
  expect((await listed(store)).map(({ id }) => id)).toEqual([0n, 9n])
})

async function listed(store: ReadableStore): Promise<NewPlant[]> {
  const all: NewPlant[] = []
  for await (const page of store.list()) all.push(...page)
  return all
}
