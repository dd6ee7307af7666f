import { join } from 'node:path'
import { largestId, type NewPlant, newPlant, type Plant } from '../plant/plant.js'
import { malformed, PlantsError } from '../platform/errors.js'
import { must } from '../platform/values.js'
import {
  type Address,
  type AddressContext,
  addressError,
  type HttpAddress,
  type OwnAddress,
  type PostgresAddress,
  parseHttp,
  parseSqlite,
  type SqliteAddress,
} from './common/address.js'
import { changedBy } from './common/change.js'
import type { CheckOptions, CheckReport, OpenOptions, OwnStore, Store } from './common/store.js'

interface StoreScheme<A extends Address> {
  /** such as "a file" */
  noun: string
  /** undefined for the scheme of all other addresses */
  scheme: RegExp | undefined
  parse(text: string, source: string, place: AddressContext): A | Promise<A>
  /** Creates a missing file, and nothing else. */
  open(address: A, options: OpenOptions): Promise<Store>
  /** Returns undefined for a missing file. A service is not asked yet. */
  openExisting(address: A, options: OpenOptions): Promise<Store | undefined>
}

interface OwnStoreScheme<A extends Address> extends StoreScheme<A> {
  /** Creates a missing store, or migrates an older one. Returns whether it was missing. */
  init(address: A, options: OpenOptions): Promise<boolean>
  open(address: A, options: OpenOptions): Promise<OwnStore>
  openExisting(address: A, options: OpenOptions): Promise<OwnStore | undefined>
  /** Changes nothing. Throws `unavailable` for damage. Undefined for a missing file. */
  check(address: A, options: OpenOptions, check: CheckOptions): Promise<CheckReport | undefined>
}

const openHttp = async (address: HttpAddress, options: OpenOptions) =>
  (await import('./http/http-store.js')).HttpStore.open(address, options)

const http: StoreScheme<HttpAddress> = {
  noun: 'a service',
  scheme: /^(https?|unix):/i,
  parse: parseHttp,
  open: openHttp,
  openExisting: openHttp,
}

const postgresStore = async () => (await import('./postgres/postgres-store.js')).PostgresStore

const postgres: OwnStoreScheme<PostgresAddress> = {
  noun: 'a database',
  scheme: /^postgres(ql)?:/i,
  parse: async (...text) => (await import('./postgres/postgres-address.js')).parsePostgres(...text),
  init: async (...store) => (await postgresStore()).init(...store),
  open: async (...store) => (await postgresStore()).open(...store),
  openExisting: async (...store) => (await postgresStore()).openExisting(...store),
  check: async (address, options) => (await import('./postgres/postgres-schema.js')).check(address, options),
}

const sqliteStore = async () => (await import('./sqlite/sqlite-store.js')).SqliteStore

const sqlite: OwnStoreScheme<SqliteAddress> = {
  noun: 'a file',
  scheme: undefined,
  parse: parseSqlite,
  init: async (...store) => (await sqliteStore()).init(...store),
  open: async (...store) => (await sqliteStore()).open(...store),
  openExisting: async (...store) => (await sqliteStore()).openExisting(...store),
  check: async (...store) => (await import('./sqlite/sqlite-check.js')).check(...store),
}

export const schemes = { http, postgres, sqlite }

export function schemeOf(address: Address): StoreScheme<Address> {
  return schemes[address.scheme] as StoreScheme<Address> // an entry gets only addresses of its scheme
}

export function schemeOfText(text: string): Address['scheme'] {
  const names = Object.keys(schemes) as Address['scheme'][] // as its type says
  return names.find((name) => schemes[name].scheme?.test(text)) ?? 'sqlite'
}

export function loginAddress(address: Address): string {
  return address.scheme === 'postgres' ? address.login : address.name
}

/** The address that is saved: with the user and the parameters, but without the password. */
export function completeAddress(address: Address): string {
  return address.scheme === 'postgres' ? address.href : address.name
}

export function isOwn(address: Address): address is OwnAddress {
  return address.scheme !== 'http'
}

export function isDefaultStore(address: Address): boolean {
  return 'isDefault' in address && address.isDefault
}

export function takesCredential(address: Address): address is HttpAddress | PostgresAddress {
  return takesToken(address) || takesPassword(address)
}

export function takesToken(address: Address): address is HttpAddress {
  return address.scheme === 'http'
}

export function takesPassword(address: Address): address is PostgresAddress {
  return address.scheme === 'postgres'
}

const maxAddress = 4096

/** @param source the option or setting with the address, such as `--store` */
export async function parseAddress(text: string, source: string, place: AddressContext): Promise<Address> {
  if (text.includes('\0')) throw addressError(source, 'contains U+0000, which is not allowed in an address')
  if (text.length > maxAddress) throw addressError(source, `is longer than ${maxAddress} characters`)
  if (text === 'local') return { scheme: 'sqlite', name: join(await place.dataFolder(), 'plants.db'), isDefault: true }
  if (text.includes('\uFFFD')) throw addressError(source, 'is a path that is not UTF-8, or holds U+FFFD')
  return schemes[schemeOfText(text)].parse(text, source, place)
}

export function idAfter(greatest: bigint | undefined, flag = '--id'): bigint {
  if (greatest === undefined) return 1n
  if (greatest < largestId) return greatest + 1n
  throw new PlantsError('conflict', `No id is left: a plant has the largest one, ${largestId}`, {
    hint: `Choose one with ${flag} NUMBER`,
  })
}

/** Undefined in an empty store. */
export async function greatestId(store: Pick<Store, 'read'>): Promise<bigint | undefined> {
  for await (const [plant] of store.read({ desc: true, limit: 1, inPages: true })) return plant?.id
  return undefined
}

/** Creates the plant with the greatest id plus 1, or the next one if another process creates that id first. */
export async function createNext(store: Pick<Store, 'read' | 'write'>, plant: Plant): Promise<NewPlant> {
  for (let tries = 0, tried: bigint | undefined; ; tries += 1) {
    const next = newPlant(idAfter(await greatestId(store)), plant.name, plant.tag)
    const isLast = next.id === tried || tries === maxTries
    const [outcome] = await store.write([{ type: 'create', plant: next }])
    const isTaken = outcome?.type === 'rejected' && outcome.error.type === 'conflict'
    if (!isTaken || isLast) return changedBy(must(outcome)).plant
    tried = next.id
  }
}

/** Each failed try means that another process has created a plant. */
const maxTries = 1000

/** The greatest id plus 1, or 1 if there is no store. The hint of the error names the flag. */
export async function nextIdIn(address: Address, options: OpenOptions, flag?: string): Promise<bigint> {
  const store = await schemeOf(address).openExisting(address, options)
  try {
    return idAfter(store && (await greatestId(store)), flag)
  } finally {
    await store?.close()
  }
}

export function noStore(
  { name }: Address,
  hint = 'Check the address. plants create creates a missing store',
): PlantsError {
  return new PlantsError('unavailable', `There is no store at ${name}`, { hint })
}

export function noStoreYet({ name }: Address): string {
  return `There is no store at ${name} yet: plants create creates it`
}

/** For a dry run. There may be no store yet, no token for a service, or no right to read it. */
export async function openToCompare(
  address: Address,
  options: OpenOptions,
): Promise<{ store: Store | undefined; isReadable: boolean }> {
  if (isOwn(address)) return { store: await schemeOf(address).openExisting(address, options), isReadable: true }
  try {
    const store = await openHttp(address, options)
    if (await store.isReadable()) return { store, isReadable: true }
    await store.close()
  } catch (error) {
    const isWithoutToken = error instanceof PlantsError && error.type === 'unauthorized' && error.status === undefined
    if (!isWithoutToken) throw error
  }
  return { store: undefined, isReadable: false }
}

/** True also for the files that SQLite keeps beside a store. */
export async function isPartOf(address: Address, path: string): Promise<boolean> {
  if (address.scheme !== 'sqlite') return false
  const { isPartOf, realPathOf } = await import('./sqlite/store-file.js')
  return isPartOf(realPathOf(address.name), realPathOf(path))
}

export function ownSchemeOf(address: Address): OwnStoreScheme<Address> {
  checkOwn(address)
  return schemes[address.scheme] as OwnStoreScheme<Address> // as in `schemeOf`
}

function checkOwn(address: Address): asserts address is OwnAddress {
  if (isOwn(address)) return
  const hint = 'Run the command on the host of the service, or select another store with --store'
  throw malformed(`${address.name} is a service, but this command needs direct access to the store`, hint)
}

/** `instead` is the hint for a database. */
export function fileOf(address: Address, instead: string): SqliteAddress {
  checkOwn(address)
  if (address.scheme === 'sqlite') return address
  throw malformed(`${address.name} is a database, which has backups of its own`, instead)
}
