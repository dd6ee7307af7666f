import { expect, test } from 'vitest'
import { reusedDatabase } from '../../../helpers/postgres.js'
import { nameOf, openShared, othersWait, settled } from '../../../helpers/shared-store.js'
import { createPlant } from '../../../helpers/store.js'

const database = reusedDatabase()
const ids = (count: number) => Array.from({ length: count }, (_, index) => BigInt(index))
const ferns = (count: number) => ids(count).map((id) => ({ id, name: `Fern ${id}` }))
const idTaken = (id: bigint | number) => `conflict: A plant with id ${id} already exists`
const keyTaken = 'conflict: This idempotency key was used for a different plant'
const [fern, moss, ivy] = [{ name: 'Fern' }, { name: 'Moss' }, { name: 'Ivy' }]
const [a, b, c] = ['a', 'b', 'c']

test('creates many in one statement', async () => {
  const commits: number[] = []
  const store = await openShared(await database(), { onCommit: (count) => commits.push(count) })
  await Promise.all(ferns(64).map((plant) => createPlant(store, plant)))
  expect(commits).toEqual([64])
})

test('creates 5000 at once over one connection in few statements', async () => {
  const commits: number[] = []
  const place = await database()
  const store = await openShared(place, { parameters: 'max=1', onCommit: (count) => commits.push(count) })
  const answers = await Promise.all(ferns(5000).map((plant) => createPlant(store, plant)))
  expect(answers).toStrictEqual(ferns(5000))
  expect(commits).toEqual([1000, 1000, 1000, 1000, 1000])
  const count = "SELECT count(*), count(*) FILTER (WHERE name = 'Fern ' || id) AS good FROM plant_store.plants"
  expect(await place.sql(count)).toEqual([{ count: 5000n, good: 5000n }])
})

test('settles what has an id or a key in common in its order', async () => {
  const store = await openShared(await database())
  await createPlant(store, { id: 9n, ...ivy })
  const calls = [
    createPlant(store, { id: 1n, ...fern }),
    createPlant(store, { id: 1n, ...moss }),
    createPlant(store, { id: 2n, ...ivy }, a),
    createPlant(store, { id: 3n, ...ivy }, a),
    createPlant(store, { id: 2n, ...ivy }, a),
    createPlant(store, { id: 1n, ...moss }, b),
    createPlant(store, { id: 4n, ...moss }, b),
    createPlant(store, { id: 9n, ...fern }, c),
    createPlant(store, { id: 8n, ...fern }, c),
    createPlant(store, { id: 8n, ...moss }),
  ]
  const two = { id: 2n, ...ivy }
  const [four, eight] = [
    { id: 4n, ...moss },
    { id: 8n, ...fern },
  ]
  const expected = [
    { id: 1n, ...fern },
    idTaken(1),
    two,
    keyTaken,
    two,
    idTaken(1),
    four,
    idTaken(9),
    eight,
    idTaken(8),
  ]
  expect(await settled(calls)).toStrictEqual(expected)
})

test('lets two stores create the same ids in opposite order', async () => {
  const place = await database()
  const [first, second] = [await openShared(place), await openShared(place)]
  const other = settled(ids(5000).map((id) => createPlant(second, { id: 4999n - id, name: 'Fern 1' })))
  const one = await settled(ids(5000).map((id) => createPlant(first, { id, name: 'Fern 0' })))
  const others = (await other).reverse()
  const winners = one.map((result, id) => (result === idTaken(id) ? others[id] : result))
  expect(one.map((result, id) => (result === idTaken(id) ? result : others[id]))).toEqual(ids(5000).map(idTaken))
  expect(await place.sql('SELECT id, name FROM plant_store.plants ORDER BY id')).toEqual(winners)
})

test('answers as usual after a deadlock', async () => {
  const place = await database()
  await place.admin(`ALTER DATABASE ${nameOf(place)} SET deadlock_timeout = '20ms'`)
  const [one, other] = [await openShared(place), await openShared(place)]
  const release = await place.hold("INSERT INTO plant_store.plants VALUES (2, 0, '')")
  const first = settled([createPlant(one, { id: 1n, ...fern }, a), createPlant(one, { id: 2n, ...moss }, b)])
  await othersWait(place, 1)
  const second = settled([createPlant(other, { id: 3n, ...moss }, b), createPlant(other, { id: 4n, ...fern }, a)])
  await othersWait(place, 2)
  await release()
  const taken = [keyTaken, keyTaken]
  expect([
    [
      [
        { id: 1n, ...fern },
        { id: 2n, ...moss },
      ],
      taken,
    ],
    [
      taken,
      [
        { id: 3n, ...moss },
        { id: 4n, ...fern },
      ],
    ],
  ]).toContainEqual(await Promise.all([first, second]))
  await Promise.all([one.close(), other.close()]) // after which the server counts it
  const met = 'SELECT deadlocks > 0 AS met FROM pg_stat_database WHERE datname = current_database()'
  await expect.poll(() => place.admin(met), { interval: 5 }).toEqual([{ met: true }])
})

test('creates large plants in statements of 4,000,000 characters', async () => {
  const commits: number[] = []
  const store = await openShared(await database(), { parameters: 'max=1', onCommit: (count) => commits.push(count) })
  await Promise.all(ids(8).map((id) => createPlant(store, { id, name: `${id}`.padEnd(1_048_576, 'F') })))
  expect(commits).toEqual([4, 4])
})
