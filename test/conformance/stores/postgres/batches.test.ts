import { expect, test } from 'vitest'
import { plantOf } from '../../../../src/plant/plant.js'
import { reusedDatabase } from '../../../helpers/postgres.js'
import { settled } from '../../../helpers/settled.js'
import { openShared, othersWait } from '../../../helpers/shared-store.js'

const database = reusedDatabase()
const ids = (count: number) => Array.from({ length: count }, (_, index) => BigInt(index))

test('sends what waits at the same moment as one statement', async () => {
  const commits: number[] = []
  const store = await openShared(await database(), { onCommit: (count) => commits.push(count) })
  await Promise.all(ids(300).map((id) => store.create({ id, name: `Fern ${id}` })))
  expect(commits).toEqual([300])
})

test('replaces what is asked for at the same moment in one transaction, but a plant only once', async () => {
  const place = await database()
  const store = await openShared(place)
  const plants = ids(64).map((id) => ({ id, name: 'Fern' }))
  await Promise.all(plants.map((plant) => store.create(plant)))
  const mosses = plants.map(({ id }) => ({ id, name: 'Moss' }))
  const calls = mosses.map((moss, index) => store.replace(moss, plants[index]))
  const late = store.replace({ id: 5n, name: 'Ivy' }, { id: 5n, name: 'Fern' })
  const results = await Promise.all([...calls, late])
  const winners = results.filter((result) => result?.id === 5n)
  expect({ changed: results.filter(Boolean).length, winners }).toEqual({ changed: 64, winners: [await store.get(5n)] })
  const query = "SELECT count(DISTINCT xmin::text)::int AS transactions FROM plant_store.plants WHERE name = 'Moss'"
  expect(await place.sql(query)).toEqual([{ transactions: 1 }])
})

test('creates 5000 at once over one connection, each with its own answer', async () => {
  const commits: number[] = []
  const place = await database()
  const store = await openShared(place, { parameters: 'max=1', onCommit: (count) => commits.push(count) })
  const answers = await Promise.all(ids(5000).map((id) => store.create({ id, name: `Fern ${id}` })))
  expect(answers).toStrictEqual(ids(5000).map((id) => ({ name: `Fern ${id}` })))
  expect(commits).toEqual([1000, 1000, 1000, 1000, 1000])
  expect(
    await place.sql("SELECT count(*), count(*) FILTER (WHERE name = 'Fern ' || id) AS good FROM plant_store.plants"),
  ).toEqual([{ count: 5000n, good: 5000n }])
})

test('settles what has an id or a key in common in the order in which it came', async () => {
  const store = await openShared(await database())
  const [fern, moss] = [
    { id: 1n, name: 'Fern' },
    { id: 1n, name: 'Moss' },
  ]
  const ivy = { id: 2n, name: 'Ivy' }
  const calls = [
    store.create(fern),
    store.create(moss),
    store.create(ivy, { idempotencyKey: 'a' }),
    store.create({ id: 3n, name: 'Ivy' }, { idempotencyKey: 'a' }),
    store.create(ivy, { idempotencyKey: 'a' }),
    store.create(moss, { idempotencyKey: 'b' }),
    store.create({ id: 4n, name: 'Moss' }, { idempotencyKey: 'b' }),
  ]
  expect(await settled(calls)).toStrictEqual([
    plantOf(fern),
    'conflict: A plant with id 1 already exists',
    plantOf(ivy),
    'conflict: This idempotency key was used for a different plant',
    plantOf(ivy),
    'conflict: A plant with id 1 already exists',
    { name: 'Moss' },
  ])
})

test('lets nobody overtake who waits for an id and a key, of which the key is on its way', async () => {
  const store = await openShared(await database())
  await store.create({ id: 9n, name: 'Ivy' })
  const calls = [
    store.create({ id: 9n, name: 'Fern' }, { idempotencyKey: 'a' }),
    store.create({ id: 1n, name: 'Fern' }, { idempotencyKey: 'a' }),
    store.create({ id: 1n, name: 'Moss' }),
  ]
  expect(await settled(calls)).toStrictEqual([
    'conflict: A plant with id 9 already exists',
    { name: 'Fern' },
    'conflict: A plant with id 1 already exists',
  ])
})

test('lets two stores create the same ids in opposite order, each one once', async () => {
  const place = await database()
  const stores = [await openShared(place), await openShared(place)]
  const orders = [ids(5000), ids(5000).toReversed()]
  const calls = stores.map((store, which) =>
    settled((orders[which] ?? []).map((id) => store.create({ id, name: `Fern ${which}` }))),
  )
  const [one = [], other = []] = await Promise.all(calls)
  other.reverse()
  const expected = ids(5000).map((id) => ['created', `conflict: A plant with id ${id} already exists`])
  const kinds = ids(5000).map((_, index) =>
    [one[index], other[index]].map((each) => (typeof each === 'string' ? each : 'created')).toSorted(),
  )
  expect(kinds).toEqual(expected.map((pair) => pair.toSorted()))
  const stored = await place.sql('SELECT name FROM plant_store.plants ORDER BY id')
  expect(stored).toEqual(ids(5000).map((_, index) => (typeof one[index] === 'string' ? other[index] : one[index])))
})

test('answers as ever when the database ends a statement because two wait for each other', async () => {
  const place = await database()
  const name = new URL(place.url).pathname.slice(1)
  await place.admin(`ALTER DATABASE ${name} SET deadlock_timeout = '20ms'`)
  const [one, other] = [await openShared(place), await openShared(place)]
  const release = await place.hold("INSERT INTO plant_store.plants VALUES (2, 0, '')")
  const first = settled([
    one.create({ id: 1n, name: 'A' }, { idempotencyKey: 'a' }),
    one.create({ id: 2n, name: 'B' }, { idempotencyKey: 'b' }),
  ])
  await othersWait(place, 1)
  const second = settled([
    other.create({ id: 3n, name: 'B' }, { idempotencyKey: 'b' }),
    other.create({ id: 4n, name: 'A' }, { idempotencyKey: 'a' }),
  ])
  await othersWait(place, 2)
  await release()
  const taken = 'conflict: This idempotency key was used for a different plant'
  expect([
    [
      [{ name: 'A' }, { name: 'B' }],
      [taken, taken],
    ],
    [
      [taken, taken],
      [{ name: 'B' }, { name: 'A' }],
    ],
  ]).toContainEqual(await Promise.all([first, second]))
  await Promise.all([one.close(), other.close()]) // after which the server counts it
  const met = 'SELECT deadlocks > 0 AS met FROM pg_stat_database WHERE datname = current_database()'
  await expect.poll(() => place.admin(met), { interval: 5 }).toEqual([{ met: true }])
})

test('creates plants of 1 MiB, many at the same moment', async () => {
  const place = await database()
  const store = await openShared(place)
  const plants = ids(24).map((id) => ({ id, name: `${id}\\"'`.padEnd(1_048_576, 'F'), tag: '🌿'.repeat(1000) }))
  const answers = await Promise.all(plants.map((plant) => store.create(plant)))
  expect(answers.every(({ name, tag }, index) => name === plants[index]?.name && tag === plants[index]?.tag)).toBe(true)
  expect((await store.get(23n))?.name === plants[23]?.name).toBe(true)
})
