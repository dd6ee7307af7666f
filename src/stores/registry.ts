import { join } from 'node:path'
import {
  type Address,
  type AddressContext,
  addressError,
  type HttpAddress,
  type PostgresAddress,
  parseHttp,
  parseSqlite,
  type SqliteAddress,
} from './common/address.js'
import type { OwnStore, Store } from './common/store.js'
import type { HttpOptions } from './http/http-options.js'
import type { PostgresOptions } from './postgres/options.js'
import type { SqliteOptions } from './sqlite/connection.js'

interface StoreScheme {
  /** Such as "a file". */
  noun: string
  /** Undefined for the scheme of all other addresses. */
  pattern: RegExp | undefined
  parse(text: string, source: string, context: AddressContext): Address | Promise<Address>
}

export const schemes: Record<Address['scheme'], StoreScheme> = {
  http: { noun: 'a service', pattern: /^https?:/i, parse: parseHttp },
  postgres: {
    noun: 'a database',
    pattern: /^postgres(ql)?:/i,
    parse: async (...text) => (await import('./postgres/address.js')).parsePostgres(...text),
  },
  sqlite: { noun: 'a file', pattern: undefined, parse: parseSqlite },
}

export function schemeOfText(text: string): Address['scheme'] {
  const names = Object.keys(schemes) as Address['scheme'][] // as its type says
  return names.find((name) => schemes[name].pattern?.test(text)) ?? 'sqlite'
}

const maxAddress = 4096

/** @param source names the address in messages */
export async function parseAddress(
  text: string,
  source: string,
  context: AddressContext,
): Promise<Address> {
  if (text.includes('\0'))
    throw addressError(source, 'contains U+0000, which is not allowed in an address')
  if (text.length > maxAddress)
    throw addressError(source, `is longer than ${maxAddress} characters`)
  if (text === 'local')
    return {
      scheme: 'sqlite',
      name: join(await context.dataFolder(), 'plants.db'),
      isDefault: true,
    }
  if (text.includes('\uFFFD'))
    throw addressError(source, 'is a path that is not UTF-8, or holds U+FFFD')
  return schemes[schemeOfText(text)].parse(text, source, context)
}

/** Opens the store at an address, whose kind is loaded then. */
export interface StoreOpener {
  /** Creates a missing file, and nothing else. */
  open(): Promise<Store>
  /** Returns undefined for a missing file. A service is not asked yet. */
  openExisting(): Promise<Store | undefined>
}

export interface OwnStoreOpener extends StoreOpener {
  /** Creates a missing store, or migrates an older one. Returns whether it was missing. */
  init(): Promise<boolean>
  open(): Promise<OwnStore>
  openExisting(): Promise<OwnStore | undefined>
}

export function httpOpener(address: HttpAddress, options: HttpOptions): StoreOpener {
  const open = async () => (await import('./http/http-store.js')).HttpStore.open(address, options)
  return { open, openExisting: open }
}

export function postgresOpener(address: PostgresAddress, options: PostgresOptions): OwnStoreOpener {
  const store = async () => (await import('./postgres/store.js')).PostgresStore
  return {
    init: async () => (await store()).init(address, options),
    open: async () => (await store()).open(address, options),
    openExisting: async () => (await store()).open(address, options),
  }
}

export function sqliteOpener(address: SqliteAddress, options: SqliteOptions): OwnStoreOpener {
  const store = async () => (await import('./sqlite/store.js')).SqliteStore
  return {
    init: async () => (await store()).init(address, options),
    open: async () => (await store()).open(address, options),
    openExisting: async () => (await store()).openExisting(address, options),
  }
}
