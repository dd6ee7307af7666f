import { join } from 'node:path'
import { usageError } from '../errors.js'
import {
  type Address,
  type AddressContext,
  addressError,
  type HttpAddress,
  type PostgresAddress,
  parseHttp,
  parseSqlite,
  type SqliteAddress,
} from './address.js'
import type { HttpOptions } from './http/http-options.js'
import type { PostgresOptions } from './postgres/address.js'
import type { SqliteOptions } from './sqlite/connection.js'
import type { OwnStore, Store } from './store.js'

export const schemeNouns: Record<Address['scheme'], string> = {
  http: 'a service',
  postgres: 'a database',
  sqlite: 'a file',
}

/** @param source names the address in messages */
export async function parseAddress(
  text: string,
  source: string,
  context: AddressContext,
): Promise<Address> {
  if (/\0|%00/.test(text))
    throw addressError(source, 'contains U+0000, which is not allowed in an address')
  if (text === 'local') {
    const name = join(await context.dataFolder(), 'plants.db')
    return { scheme: 'sqlite', name, isDefault: true }
  }
  if (/^https?:/i.test(text)) return parseHttp(text, source)
  if (/^postgres(ql)?:/i.test(text)) {
    const { parsePostgres } = await import('./postgres/address.js')
    return parsePostgres(text, source, context)
  }
  return parseSqlite(text, source, context)
}

/** The module of the store is loaded when it is opened. */
export interface StoreOpener {
  /** Creates a missing file, and nothing else. */
  open(): Promise<Store>
  /** Returns undefined for a missing file. A service is not asked yet. */
  openExisting(): Promise<Store | undefined>
}

export interface OwnStoreOpener extends StoreOpener {
  /** Creates a missing store. Returns whether it was missing. */
  init(): Promise<boolean>
  open(): Promise<OwnStore>
  openExisting(): Promise<OwnStore | undefined>
  /** @throws {PlantsError} `usage` if the address has no room for the requests of a service */
  assertCanServe(): void
}

export function httpOpener(address: HttpAddress, options: HttpOptions): StoreOpener {
  const open = async () => new (await import('./http/http-store.js')).HttpStore(address, options)
  return { open, openExisting: open }
}

export function postgresOpener(address: PostgresAddress, options: PostgresOptions): OwnStoreOpener {
  const store = async () => (await import('./postgres/store.js')).PostgresStore
  const open = async () => (await store()).open(address, options)
  return {
    init: async () => (await store()).init(address, options),
    open,
    openExisting: open,
    assertCanServe: () => {
      if (address.max >= 2) return
      const message = `A service needs at least 2 connections to ${address.name}, but max is 1`
      throw usageError(message, 'Remove max from the address, or set it to 2 or more: ?max=4')
    },
  }
}

export function sqliteOpener(address: SqliteAddress, options: SqliteOptions): OwnStoreOpener {
  const store = async () => (await import('./sqlite/store.js')).SqliteStore
  return {
    init: async () => (await store()).init(address, options),
    open: async () => (await store()).open(address, options),
    openExisting: async () => (await store()).openExisting(address, options),
    assertCanServe: () => undefined,
  }
}
