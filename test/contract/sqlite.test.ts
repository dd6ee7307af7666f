import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { assertDefined } from '../../src/errors.js'
import { Connection } from '../../src/stores/sqlite/connection.js'
import { readPlants } from '../../src/stores/sqlite/read.js'
import { SqliteStore } from '../../src/stores/sqlite/store.js'
import { queryFile } from '../helpers/sandbox/sqlite-file.js'
import {
  buildSqliteOptions,
  closeAfterTest,
  createFileAddress,
  createPlant,
  gather,
  openFile,
} from '../helpers/sandbox/store.js'
import { createTemporaryFolder } from '../helpers/sandbox/temporary-folder.js'
import type { Subject } from './claims/fixtures.js'
import { describeDirectStore } from './contract.js'

describeDirectStore('the embedded store', openEmpty)

async function openEmpty(): Promise<Subject<SqliteStore>> {
  const path = join(createTemporaryFolder(), 'plants.db')
  const store = closeAfterTest(await openFile(path))
  const readBack = async (id: bigint) => {
    const other = await SqliteStore.open(createFileAddress(path), 'read', buildSqliteOptions())
    const plant = (await other?.get([id]))?.get(id)
    await other?.close()
    return plant
  }
  return { store, readBack }
}

test('a search reads a SQLite file in steps, of one plant each if plants are large', async () => {
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

test('each read of a store without its table of plants says that it could not be used', async () => {
  const path = join(createTemporaryFolder(), 'plants.db')
  const store = closeAfterTest(await openFile(path))
  queryFile(path, 'DROP TABLE plants')
  const reads: [string, Promise<unknown>][] = [
    ['get', store.get([1n])],
    ['count', store.count()],
    ['count in steps', store.count({ inSteps: true })],
    ['count what a search finds', store.count({ search: 'x', inSteps: true })],
    ['count the plants of each tag', store.countBy('tag')],
    ['read', gather(store.read())],
    ['read in pages', gather(store.read({ inPages: true }))],
    ['sort', gather(store.read({ sort: 'name' }))],
  ]
  const failures = await Promise.all(
    reads.map(async ([name, read]) => [name, await read.catch(String)]),
  )
  const failure = `PlantsError: The store ${path} could not be used: no such table: plants`
  expect(failures).toEqual(reads.map(([name]) => [name, failure]))
})

test('a count reads a SQLite file in steps, of one plant each if plants are large', async () => {
  const { store } = await openEmpty()
  const name = 'x'.repeat(1_048_000)
  for (let id = 1n; id <= 10n; id += 1n) await createPlant(store, { id, name, tag: 'wet' })
  const controller = new AbortController()
  let iterations = 0
  const iterate = () => {
    iterations += 1
    if (iterations === 5) controller.abort(new Error('The client is gone'))
    if (iterations < 100) setImmediate(iterate)
  }
  const { signal } = controller
  setImmediate(iterate)
  const counts = [{}, { tag: 'wet' }, { tag: false as const }].map((query) =>
    store.count({ ...query, signal, inSteps: true }),
  )
  const ended = [...counts, store.countBy('tag', { signal })].map((count) =>
    expect(count).rejects.toThrow('The client is gone'),
  )
  await Promise.all(ended)
  expect(await store.count({ tag: 'wet', inSteps: true })).toBe(10n)
})

test('a read finds the end of its step in a few tries, also when the step is slightly too large', async () => {
  const path = join(createTemporaryFolder(), 'plants.db')
  const store = closeAfterTest(await openFile(path))
  const plants = Array.from({ length: 1000 }, (_, index) => ({
    id: BigInt(index),
    name: index < 2 ? 'x'.repeat(131_073) : '',
  }))
  await store.write(plants.map((plant) => ({ type: 'create', plant })))
  const connection = assertDefined(
    await Connection.open({ name: path }, 'read', buildSqliteOptions()),
  )
  const prepare = vi.spyOn(connection, 'prepare')
  const tries: number[] = []
  for await (const page of readPlants(connection, {})) {
    expect(page.length).toBeLessThan(500)
    tries.push(prepare.mock.calls.length - 1) // and one to read it
    prepare.mockClear()
  }
  connection.close()
  expect(tries.slice(0, 3)).toEqual([11, 1, 1])
  expect(tries.length).toBeLessThan(30)
  expect(await gather(store.read())).toEqual(plants)
})

test('each connection to a SQLite file waits at a commit until it is on the disk', async () => {
  const path = join(createTemporaryFolder(), 'plants.db')
  closeAfterTest(await openFile(path))
  const connection = assertDefined(
    await Connection.open({ name: path }, 'read', buildSqliteOptions()),
  )
  const [synchronous, fullfsync, checkpointFullfsync] = [
    'synchronous',
    'fullfsync',
    'checkpoint_fullfsync',
  ].map((name) => Number(connection.prepare(`PRAGMA ${name}`).get()[0]))
  connection.close()
  expect({ synchronous, fullfsync, checkpointFullfsync }).toEqual({
    synchronous: 3, // EXTRA
    fullfsync: 1,
    checkpointFullfsync: 1,
  })
})
