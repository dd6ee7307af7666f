import { join } from 'node:path'
import { expect, test } from 'vitest'
import { SqliteStore } from '../../../src/stores/sqlite/store.js'
import { closedAfterTest, createPlant, fileAddress, openOptions } from '../../helpers/store.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { describeOwnStore, type Subject } from './contract.js'

describeOwnStore('the embedded store', openEmpty)

async function openEmpty(): Promise<Subject<SqliteStore>> {
  const path = join(temporaryFolder(), 'plants.db')
  const store = closedAfterTest(await SqliteStore.open(fileAddress(path), openOptions()))
  const look = async (id: bigint) => {
    const other = await SqliteStore.openExisting(fileAddress(path), openOptions())
    const plant = (await other?.get([id]))?.get(id)
    await other?.close()
    return plant
  }
  return { store, look }
}

test('a search goes on in steps, of one plant where plants are large', async () => {
  const { store } = await openEmpty()
  for (let id = 1n; id <= 10n; id += 1n) await createPlant(store, { id, name: 'ι'.repeat(150_000) })
  let [turns, isOver] = [0, false]
  const count = () => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  for await (const page of store.read({ search: 'ιιx' })) expect(page).toEqual([])
  isOver = true
  expect(turns).toBeGreaterThanOrEqual(10)
})
