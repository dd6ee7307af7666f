import { expect, test } from 'vitest'
import { reusedDatabase } from '../../../helpers/postgres.js'
import { nameOf, openShared, othersWait, settled } from '../../../helpers/shared-store.js'

const database = reusedDatabase()
const ids = (count: number) => Array.from({ length: count }, (_, index) => BigInt(index))
const ferns = (count: number) => ids(count).map((id) => ({ id, name: `Fern ${id}` }))
const idTaken = (id: bigint | number) => `conflict: A plant with id ${id} already exists`
const keyTaken = 'conflict: This idempotency key was used for a different plant'
const [fern, moss, ivy] = [{ name: 'Fern' }, { name: 'Moss' }, { name: 'Ivy' }]
const [a, b, c] = ['a', 'b', 'c'].map((idempotencyKey) => ({ idempotencyKey }))

test('creates and replaces many in one statement, but each plant once', async () => {
  const commits: number[] = []
  const place = await database()
  const store = await openShared(place, { onCommit: (count) => commits.push(count) })
  const plants = ferns(64)
  await Promise.all(plants.map((plant) => store.create(plant)))
  expect(commits).toEqual([64])
  const calls = plants.map((plant) => store.replace({ id: plant.id, ...moss }, plant))
  const results = await Promise.all([...calls, store.replace({ id: 5n, ...ivy }, plants[5])])
  expect(results.filter(Boolean)).toHaveLength(64)
  expect(results.filter((result) => result?.id === 5n)).toEqual([await store.get(5n)])
  const query = "SELECT count(DISTINCT xmin::text)::int AS transactions FROM plant_store.plants WHERE name = 'Moss'"
  expect(await place.sql(query)).toEqual([{ transactions: 1 }])
})

test('creates 5000 at once over one connection in few statements', async () => {
  const commits: number[] = []
  const place = await database()
  const store = await openShared(place, { parameters: 'max=1', onCommit: (count) => commits.push(count) })
  const answers = await Promise.all(ferns(5000).map((plant) => store.create(plant)))
  expect(answers).toStrictEqual(ferns(5000).map(({ name }) => ({ name })))
  expect(commits).toEqual([1000, 1000, 1000, 1000, 1000])
  const count = "SELECT count(*), count(*) FILTER (WHERE name = 'Fern ' || id) AS good FROM plant_store.plants"
  expect(await place.sql(count)).toEqual([{ count: 5000n, good: 5000n }])
})

test('settles what has an id or a key in common in its order', async () => {
  const store = await openShared(await database())
  await store.create({ id: 9n, ...ivy })
  const calls = [
    store.create({ id: 1n, ...fern }),
    store.create({ id: 1n, ...moss }),
    store.create({ id: 2n, ...ivy }, a),
    store.create({ id: 3n, ...ivy }, a),
    store.create({ id: 2n, ...ivy }, a),
    store.create({ id: 1n, ...moss }, b),
    store.create({ id: 4n, ...moss }, b),
    store.create({ id: 9n, ...fern }, c),
    store.create({ id: 8n, ...fern }, c),
    store.create({ id: 8n, ...moss }), // overtakes nobody who waits for an id and a key
  ]
  const expected = [fern, idTaken(1), ivy, keyTaken, ivy, idTaken(1), moss, idTaken(9), fern, idTaken(8)]
  expect(await settled(calls)).toStrictEqual(expected)
})

test('lets two stores create the same ids in opposite order', async () => {
  const place = await database()
  const [first, second] = [await openShared(place), await openShared(place)]
  const other = settled(ids(5000).map((id) => second.create({ id: 4999n - id, name: 'Fern 1' })))
  const one = await settled(ids(5000).map((id) => first.create({ id, name: 'Fern 0' })))
  const others = (await other).reverse()
  const winners = one.map((result, id) => (result === idTaken(id) ? others[id] : result))
  expect(one.map((result, id) => (result === idTaken(id) ? result : others[id]))).toEqual(ids(5000).map(idTaken))
  expect(await place.sql('SELECT name FROM plant_store.plants ORDER BY id')).toEqual(winners)
})

test('answers as usual after a deadlock', async () => {
  const place = await database()
  await place.admin(`ALTER DATABASE ${nameOf(place)} SET deadlock_timeout = '20ms'`)
  const [one, other] = [await openShared(place), await openShared(place)]
  const release = await place.hold("INSERT INTO plant_store.plants VALUES (2, 0, '')")
  const first = settled([one.create({ id: 1n, ...fern }, a), one.create({ id: 2n, ...moss }, b)])
  await othersWait(place, 1)
  const second = settled([other.create({ id: 3n, ...moss }, b), other.create({ id: 4n, ...fern }, a)])
  await othersWait(place, 2)
  await release()
  const taken = [keyTaken, keyTaken]
  expect([
    [[fern, moss], taken],
    [taken, [moss, fern]],
  ]).toContainEqual(await Promise.all([first, second]))
  await Promise.all([one.close(), other.close()]) // after which the server counts it
  const met = 'SELECT deadlocks > 0 AS met FROM pg_stat_database WHERE datname = current_database()'
  await expect.poll(() => place.admin(met), { interval: 5 }).toEqual([{ met: true }])
})

test('creates large plants in statements of 4,000,000 characters', async () => {
  const commits: number[] = []
  const store = await openShared(await database(), { parameters: 'max=1', onCommit: (count) => commits.push(count) })
  await Promise.all(ids(8).map((id) => store.create({ id, name: `${id}`.padEnd(1_048_576, 'F') })))
  expect(commits).toEqual([4, 4])
})
