import { expect, test } from 'vitest'
import { writeOne } from '../../../../src/stores/common/change.js'
import type { PostgresStore } from '../../../../src/stores/postgres/store.js'
import { type Database, reusedDatabase } from '../../../helpers/postgres.js'
import { nameOf, openShared, othersWait, settled } from '../../../helpers/shared-store.js'
import { createPlant } from '../../../helpers/store.js'

const database = reusedDatabase()
const ids = (count: number) => Array.from({ length: count }, (_, index) => BigInt(index))
const ferns = (count: number) => ids(count).map((id) => ({ id, name: `Fern ${id}` }))
const keyTaken = 'conflict: This idempotency key was used for a different plant'

test('creates 5000 at once in one transaction', async () => {
  const place = await database()
  const store = await openShared(place, { parameters: 'max=1' })
  const answers = await Promise.all(ferns(5000).map((plant) => createPlant(store, plant)))
  expect(answers).toStrictEqual(ferns(5000))
  expect(await sizesOfBatches(place)).toEqual([5000])
  const count =
    "SELECT count(*), count(*) FILTER (WHERE name = 'Fern ' || id) AS good FROM plant_store.plants"
  expect(await place.sql(count)).toEqual([{ count: 5000n, good: 5000n }])
})

test('answers as usual after a deadlock', async () => {
  const place = await database()
  await place.admin(`ALTER DATABASE ${nameOf(place)} SET deadlock_timeout = '20ms'`)
  const [one, other] = [await openShared(place), await openShared(place)]
  const release = await place.hold("INSERT INTO plant_store.plants VALUES (2, '')")
  const both = (store: PostgresStore, id: bigint, ...keys: string[]) =>
    settled(keys.map((key, at) => createPlant(store, { id: id + BigInt(at), name: key }, key)))
  const first = both(one, 1n, 'a', 'b')
  await othersWait(place, 1)
  const second = both(other, 3n, 'b', 'a')
  await othersWait(place, 2)
  await release()
  const taken = [keyTaken, keyTaken]
  expect([
    [['a', 'b'].map((name, at) => ({ id: BigInt(1 + at), name })), taken],
    [taken, ['b', 'a'].map((name, at) => ({ id: BigInt(3 + at), name }))],
  ]).toContainEqual(await Promise.all([first, second]))
  await Promise.all([one.close(), other.close()]) // after which the server counts it
  const met = 'SELECT deadlocks > 0 AS met FROM pg_stat_database WHERE datname = current_database()'
  await expect.poll(() => place.admin(met), { interval: 5 }).toEqual([{ met: true }])
})

test('loses no change of two stores that have looked a plant up before either writes', async () => {
  const place = await database()
  const [one, other] = [await openShared(place), await openShared(place)]
  await createPlant(one, { id: 1n, name: 'Fern' })
  const release = await place.hold('SELECT FROM plant_store.plants FOR UPDATE')
  const first = writeOne(one, { type: 'update', patch: { id: 1n, name: 'Moss' } })
  await othersWait(place, 1)
  const second = writeOne(other, { type: 'update', patch: { id: 1n, tag: 'wet' } })
  await othersWait(place, 2)
  await release()
  await Promise.all([first, second])
  expect((await one.get([1n])).get(1n)).toEqual({ id: 1n, name: 'Moss', tag: 'wet' })
})

/** How many plants each transaction has stored. */
async function sizesOfBatches({ sql }: Database): Promise<number[]> {
  const rows = await sql('SELECT count(*) FROM plant_store.plants GROUP BY xmin ORDER BY min(id)')
  return rows.map(({ count }) => Number(count))
}
