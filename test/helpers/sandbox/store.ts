import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { onTestFinished } from 'vitest'
import { assertDefined } from '../../../src/errors.js'
import type { NewPlant } from '../../../src/plant/plant.js'
import type { AddressContext, SqliteAddress } from '../../../src/stores/address.js'
import { type Change, writeOne } from '../../../src/stores/change.js'
import type { SqliteOptions } from '../../../src/stores/sqlite/connection.js'
import { SqliteStore } from '../../../src/stores/sqlite/store.js'
import type { Store } from '../../../src/stores/store.js'

type Writable = Pick<Store, 'write'>

/** Builds the options of a store, with a timeout that no test reaches. */
export function buildSqliteOptions(options: Partial<SqliteOptions> = {}): SqliteOptions {
  const { signal } = new AbortController()
  const now = () => performance.now()
  const runtime = { getStopSignal: () => signal, now, random: Math.random }
  return { timeoutMs: 3_600_000, runtime, ...options }
}

/** Creates a context for addresses without a home directory and an environment. */
export function createAddressContext(options: Partial<AddressContext> = {}): AddressContext {
  return {
    resolvePath: String,
    findDataFolder: () => Promise.reject(new Error('No folder is expected here')),
    env: {},
    findUserName: () => 'gardener',
    secrets: new Set(),
    isArgument: false,
    ...options,
  }
}

/** Creates the address of a file that is not the default store. */
export function createFileAddress(path: string): SqliteAddress {
  return { scheme: 'sqlite', name: path, isDefault: false }
}

/** Opens the store in a file, and creates it if it is missing. */
export async function openFile(
  path: string,
  options: Partial<SqliteOptions> = {},
): Promise<SqliteStore> {
  const address = createFileAddress(path)
  return assertDefined(await SqliteStore.open(address, 'write', buildSqliteOptions(options)))
}

export function closeAfterTest<Store extends { close(): Promise<void> }>(store: Store): Store {
  onTestFinished(() => store.close())
  return store
}

/** Frees statements of closed connections, which keep their locks until they are collected. */
export async function endConnections(): Promise<void> {
  collectGarbage()
  await new Promise(setImmediate)
}

export function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
}

export function toCreates(plants: NewPlant[]): Change[] {
  return plants.map((plant) => ({ type: 'create', plant }))
}

export async function createPlant(store: Writable, plant: NewPlant, key?: string) {
  return (await writeOne(store, { type: 'create', plant, key })).plant
}

export async function deletePlant(store: Writable, id: bigint): Promise<NewPlant> {
  return (await writeOne(store, { type: 'delete', id })).plant
}

export async function gather<Item>(pages: AsyncIterable<Item[]>): Promise<Item[]> {
  const items: Item[] = []
  for await (const page of pages) items.push(...page)
  return items
}
