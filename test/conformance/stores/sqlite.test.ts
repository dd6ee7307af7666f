import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SqliteStore } from '../../../src/stores/sqlite/sqlite-store.js'
import { batchOf, createAll, outcomesOf } from '../../helpers/bulk.js'
import { closedAfterTest, fileAddress, openOptions } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import type { Subject } from './contract.js'
import { describeOwnStore } from './contract-many.js'

describeOwnStore('the embedded store', openEmpty)

async function openEmpty(): Promise<Subject<SqliteStore>> {
  const path = join(temporaryFolder(), 'plants.db')
  const store = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))
  const look = async (id: bigint) => {
    const other = await SqliteStore.openExisting(fileAddress(path), openOptions())
    const plant = await other?.get(id)
    await other?.close()
    return plant
  }
  return { store, look }
}

test('a create waits for a transaction of many plants, and is not rolled back with it', async () => {
  const { store } = await openEmpty()
  const settled: string[] = []
  let one: Promise<unknown> = Promise.resolve()
  function* pages() {
    for (let page = 0n; page < 30n; page += 1n) {
      if (page === 1n) one = store.create({ id: -1n, name: 'Moss' }).then(() => settled.push('created'))
      yield Array.from({ length: 4000 }, (_, index) => ({ id: 4000n * page + BigInt(index), name: 'Fern' }))
    }
    yield [{ id: 1n, name: 'Ivy' }]
  }
  const reject = () => {
    throw new Error('rejected')
  }
  await store.createAll(pages, reject).catch((error: Error) => settled.push(error.message))
  await one
  expect(settled).toEqual(['rejected', 'created'])
  expect([await store.count(), await store.get(-1n)]).toEqual([1n, { id: -1n, name: 'Moss' }])
})

test('many plants that exist are interrupted, and nothing of them stays', async () => {
  const { store } = await openEmpty()
  const plants = Array.from({ length: 4000 }, (_, index) => ({ id: BigInt(index), name: 'Fern' }))
  await createAll(store, batchOf(plants))
  const stop = new AbortController()
  const batch = batchOf(plants.map((plant) => ({ ...plant, name: 'Moss' })))
  const done = createAll(store, batch, { ifExists: 'update', stop: stop.signal })
  setImmediate(() => stop.abort(new Error('stopped')))
  await done
  expect(new Set(outcomesOf(batch))).toEqual(new Set(['pending']))
  expect(await store.get(3999n)).toEqual(plants.at(-1))
})

test('a search goes on in steps, of one plant where plants are large', async () => {
  const { store } = await openEmpty()
  for (let id = 1n; id <= 10n; id += 1n) await store.create({ id, name: 'ι'.repeat(150_000) })
  let [turns, isOver] = [0, false]
  const count = () => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  for await (const page of store.list({ search: 'ιιx' })) expect(page).toEqual([])
  isOver = true
  expect(turns).toBeGreaterThanOrEqual(10)
})
