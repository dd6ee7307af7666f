import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { NewPlant } from '../plant/plant.js'
import { malformed, PlantsError } from '../platform/errors.js'
import {
  type Address,
  type AddressContext,
  type FileAddress,
  type OwnAddress,
  type PostgresAddress,
  parseFile,
  parseService,
  type RemoteAddress,
  refuse,
  shownAddress,
} from './common/address.js'
import type { StagedStore, Staging } from './common/staging.js'
import type {
  BulkStore,
  CheckpointStore,
  CreateOptions,
  CreatePreview,
  ManyStore,
  OpenOptions,
  ReadableStore,
  ServedStore,
} from './common/store.js'

/** The stores of a scheme. The rest of the program does not ask for the scheme of an address. */
interface StoreScheme<A extends Address> {
  /** such as "a file" */
  noun: string
  /** such as "stores in files" */
  plural: string
  /** the beginning of an address of this scheme; undefined for the scheme of all other addresses */
  scheme: RegExp | undefined
  /** what gives access to the store */
  credential: 'token' | 'password' | undefined
  parse(text: string, source: string, place: AddressContext): A | Promise<A>
  /** Opens a store to create plants. Creates a missing store, except at a service. */
  open(address: A, options: OpenOptions): Promise<ReadableStore & BulkStore>
  /** Opens a store that exists; undefined if there is none. A service is not asked yet. */
  openExisting(address: A, options: OpenOptions): Promise<ReadableStore | undefined>
}

/** A scheme of stores that this program accesses directly, not through a service: it can be served, staged and previewed. */
interface OwnStoreScheme<A extends Address> extends StoreScheme<A> {
  open(address: A, options: OpenOptions): Promise<OwnStore>
  openExisting(address: A, options: OpenOptions): Promise<OwnStore | undefined>
  /** Determines what a create would do, without writing. Throws the errors of the create, as far as they can be predicted. */
  previewCreate(address: A, plant: NewPlant, create: CreateOptions, options: OpenOptions): Promise<CreatePreview>
}

type OwnStore = ServedStore & CheckpointStore & StagedStore

const openRemote = async (address: RemoteAddress, options: OpenOptions) =>
  (await import('./http/store.js')).RemoteStore.open(address, options)

const remote: StoreScheme<RemoteAddress> = {
  noun: 'a service',
  plural: 'stores behind HTTP',
  scheme: /^(https?|unix):/i,
  credential: 'token',
  parse: parseService,
  open: openRemote,
  openExisting: openRemote,
}

const postgres: OwnStoreScheme<PostgresAddress> = {
  noun: 'a database',
  plural: 'stores in PostgreSQL',
  scheme: /^postgres(ql)?:/i,
  credential: 'password',
  parse: async (...text) => (await import('./postgres/address.js')).parsePostgres(...text),
  open: async (address, options) => (await import('./postgres/store.js')).PostgresStore.open(address, options),
  openExisting: async (address, options) => (await import('./postgres/store.js')).PostgresStore.openExisting(address, options),
  previewCreate: async (...create) => (await import('./postgres/inspect.js')).previewCreate(...create),
}

const file: OwnStoreScheme<FileAddress> = {
  noun: 'a file',
  plural: 'stores in files',
  scheme: undefined,
  credential: undefined,
  parse: parseFile,
  open: async (address, options) => (await import('./sqlite/store.js')).SqliteStore.open(address, options),
  openExisting: async (address, options) => (await import('./sqlite/store.js')).SqliteStore.openExisting(address, options),
  previewCreate: async (...create) => (await import('./sqlite/inspect.js')).dryRun(...create),
}

export const schemes = { remote, postgres, file }

export function schemeOf(address: Address): StoreScheme<Address> {
  return schemes[address.scheme] as StoreScheme<Address> // an entry gets only addresses of its scheme
}

/** The scheme of an address. */
export function schemeOfText(text: string): Address['scheme'] {
  const names = Object.keys(schemes) as Address['scheme'][] // as its type says
  return names.find((name) => schemes[name].scheme?.test(text)) ?? 'file'
}

/** The address under which a credential is saved: that of the service, or the login part of that of the database. */
export function loginAddress(address: Address): string {
  return address.scheme === 'postgres' ? address.login : address.name
}

/** Whether this program accesses the store directly, not through a service. */
export function isOwn(address: Address): address is OwnAddress {
  return 'previewCreate' in schemes[address.scheme]
}

/** Whether it is the store `local`. */
export function isDefaultStore(address: Address): boolean {
  return 'isDefault' in address && address.isDefault
}

export function takesCredential(address: Address): address is RemoteAddress | PostgresAddress {
  return takesToken(address) || takesPassword(address)
}

export function takesToken(address: Address): address is RemoteAddress {
  return schemeOf(address).credential === 'token'
}

export function takesPassword(address: Address): address is PostgresAddress {
  return schemeOf(address).credential === 'password'
}

/**
 * Parses the address of a store.
 *
 * @param source the option or setting with the address, such as `--store`
 * @throws {PlantsError} `malformed` for an invalid address
 */
export async function parseAddress(text: string, source: string, place: AddressContext): Promise<Address> {
  if (text.includes('\0')) throw refuse(source, 'contains U+0000, which is not allowed in an address')
  if (text === 'local') return { scheme: 'file', name: join(await place.dataFolder(), 'plants.db'), isDefault: true }
  if (text.includes('\uFFFD')) throw refuse(source, `is a path that is not UTF-8, or holds U+FFFD: ${shownAddress(text)}`)
  return schemes[schemeOfText(text)].parse(text, source, place)
}

/** Opens a store to read or change it. If there is no store, returns undefined for the default store, and throws `unavailable` for any other. */
export async function openExistingStore(address: Address, options: OpenOptions): Promise<ReadableStore | undefined> {
  const store = await schemeOf(address).openExisting(address, options)
  if (!store && !isDefaultStore(address)) throw noStore(address)
  return store
}

/** @param hint by default how to make one with `create` */
export function noStore({ scheme, name }: Address, hint?: string): PlantsError {
  if (scheme === 'file' && existsSync(name))
    return new PlantsError('unavailable', `${name} is empty, and not a store yet`, { hint: hint ?? 'plants create makes it one' })
  const made = 'Check the address. plants create creates a missing store'
  return new PlantsError('unavailable', `There is no store at ${name}`, { hint: hint ?? made })
}

/** The note that the default store is missing, and therefore empty. */
export function noStoreYet({ name }: Address): string {
  return `There is no store at ${name} yet: plants create creates it`
}

/** Opens a store to create many plants. With `staging`, they are created by `commit`, or never. */
export async function openManyStore(address: Address, options: OpenOptions, staging: 'dryRun' | 'atomic' | undefined): Promise<ManyStore> {
  const own = isOwn(address) ? ownSchemeOf(address) : undefined
  if (staging) {
    const { Staging } = await import('./common/staging.js')
    const existing = await own?.openExisting(address, options)
    const store = new Staging(existing, own !== undefined)
    if (!own || staging === 'dryRun') return { store, checkpoints: undefined }
    try {
      await existing?.check() // early, not after the whole input was read
    } catch (error) {
      await store.close()
      throw error
    }
    return { store, checkpoints: undefined, commit: () => commitStaged(store, own, address, options) }
  }
  const store = await own?.open(address, options)
  return { store: store ?? (await schemeOf(address).open(address, options)), checkpoints: store }
}

/** Creates the staged plants. A store is created only for that, and reported once they are in it. */
async function commitStaged(staging: Staging, own: OwnStoreScheme<Address>, address: Address, options: OpenOptions): Promise<void> {
  let created: string | undefined
  const onCreated = async (path: string) => {
    created = path
  }
  await staging.commit(() => own.open(address, { ...options, onCreated }))
  if (created !== undefined) await options.onCreated?.(created)
}

/** Whether a path is the file of a store, or a file that SQLite keeps beside it. */
export async function isPartOf(address: Address, path: string): Promise<boolean> {
  if (address.scheme !== 'file') return false
  const { isPartOf, realPathOf } = await import('./sqlite/file.js')
  return isPartOf(realPathOf(address.name), path)
}

/** @throws {PlantsError} `malformed` for a service */
export function ownSchemeOf(address: Address): OwnStoreScheme<Address> {
  checkOwn(address)
  return schemes[address.scheme] as OwnStoreScheme<Address> // as in `schemeOf`
}

/** @throws {PlantsError} `malformed` for a service */
export function checkOwn(address: Address): asserts address is OwnAddress {
  if (isOwn(address)) return
  const hint = 'Run the command on the host of the service, or select another store with --store'
  throw malformed(`${address.name} is a service, but this command needs direct access to the store`, hint)
}

/** The address of a store that can be backed up. Throws `malformed` for any other than a file; `instead` is the hint for a database. */
export function fileOf(address: Address, instead: string): FileAddress {
  checkOwn(address)
  if (address.scheme === 'file') return address
  throw malformed(`${address.name} is a database, which has backups of its own`, instead)
}
