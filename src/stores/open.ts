import { homedir } from 'node:os'
import { join } from 'node:path'
import { PlantsError } from '../errors.js'
import type { Address, OpenOptions, ReadableStore } from './store.js'

interface Place {
  resolvePath(path: string): string
  /** absolute path of the user's data directory */
  dataDirectory(): string
}

/**
 * Reads a store's address.
 *
 * @throws {PlantsError} `malformed` for an address that leads nowhere
 */
export function parseAddress(address: string, { resolvePath, dataDirectory }: Place): Address {
  if (address === 'local') return { path: join(dataDirectory(), 'plants.db'), isDefault: true }
  const path = address.startsWith('sqlite:') ? address.slice('sqlite:'.length) : address
  if (path === '') throw new PlantsError('malformed', 'The store has no address', { hint: addressHint })
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(path) || path.startsWith('unix:')) {
    throw new PlantsError('malformed', `This version cannot open ${path.slice(0, path.indexOf(':'))}: addresses`, { hint: addressHint })
  }
  if (path === address && !looksLikePath(path)) {
    throw new PlantsError('malformed', `There is no store named ${JSON.stringify(path)}`, { hint: addressHint })
  }
  return { path: resolvePath(path.replace(/^~(?=$|[\\/])/, () => homedir())), isDefault: false }
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

const addressHint = 'A store is "local", a path such as ./plants.db, or sqlite:PATH'

function looksLikePath(text: string): boolean {
  return text.includes('/') || text.includes('\\') || /^[.~]/.test(text) || /\.(db|sqlite)$/.test(text)
}
