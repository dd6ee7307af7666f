import { join } from 'node:path'
import { PlantsError } from '../errors.js'
import type { Address, OpenOptions, ReadableStore } from './store.js'

interface Place {
  resolvePath(path: string): string
  /** absolute path of the folder of the store `local` */
  dataFolder(): Promise<string>
}

/**
 * Reads a store's address.
 *
 * @param source where the address was given, such as `--store`
 * @throws {PlantsError} `malformed` for an address that leads nowhere
 */
export async function parseAddress(address: string, source: string, { resolvePath, dataFolder }: Place): Promise<Address> {
  if (address === 'local') return { path: join(await dataFolder(), 'plants.db'), isDefault: true }
  const path = address.replace(/^sqlite:/i, '')
  if (path === '') throw refuse(source, 'is empty')
  if (/^\/\/|^:memory:$/.test(path)) throw refuse(source, `is no file: ${JSON.stringify(address)}`)
  if (path === address) checkPath(path, source)
  if (path.includes('\uFFFD')) throw refuse(source, `is a path that is not UTF-8, or holds U+FFFD: ${path}`)
  return { path: resolvePath(path), isDefault: false }
}

/** Refuses a word that is no path, and what belongs to another kind of store. */
function checkPath(path: string, source: string): void {
  const scheme = /^([a-z][a-z\d+.-]*):\/\/|^(https?|unix|file|postgres|postgresql):/i.exec(path)
  if (scheme) throw refuse(source, `begins with ${scheme[0]}, which this version cannot open`)
  if (!/[/\\]|^[.~]|\.(db|sqlite)$/.test(path)) throw refuse(source, `names no store: ${JSON.stringify(path)}`)
}

function refuse(source: string, why: string): PlantsError {
  return new PlantsError('malformed', `${source} ${why}`, { hint: 'A store is "local", a path such as ./plants.db, or sqlite:PATH' })
}

/** Opens a store to create plants in it; the file is made when it is not there. */
export async function openStore(address: Address, options: OpenOptions): Promise<ReadableStore> {
  const { SqliteStore } = await import('./sqlite.js')
  return SqliteStore.open(address, options)
}

/** Opens a store to read it or to remove from it; undefined when there is none yet, and none is made. */
export async function openExistingStore(address: Address, options: OpenOptions): Promise<ReadableStore | undefined> {
  const { SqliteStore } = await import('./sqlite.js')
  return SqliteStore.openExisting(address, options)
}
