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
import type { StagedStore } from './common/staging.js'
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

/** What there is to know of a kind of store. Nothing else asks which kind an address is of. */
interface StoreKind<A extends Address> {
  /** such as "a file" */
  noun: string
  /** such as "stores in files" */
  plural: string
  /** how the text of an address begins; undefined for what no other kind takes */
  scheme: RegExp | undefined
  /** what lets one in */
  credential: 'token' | 'password' | undefined
  parse(text: string, source: string, place: AddressContext): A | Promise<A>
  /** Opens a store to create plants in it; it is made when it is not there, but for a service. */
  open(address: A, options: OpenOptions): Promise<ReadableStore & BulkStore>
  /** Opens a store to look into it before it is made; undefined when there is none yet. What a service offers, its store finds out. */
  openExisting(address: A, options: OpenOptions): Promise<ReadableStore | undefined>
}

/** A kind of store that this program opens itself, and does not ask a service for: it can be served, staged and previewed. */
interface OwnStoreKind<A extends Address> extends StoreKind<A> {
  open(address: A, options: OpenOptions): Promise<OwnStore>
  openExisting(address: A, options: OpenOptions): Promise<OwnStore | undefined>
  /** What a create would do; nothing is written. Throws what it would throw, as far as that can be told. */
  previewCreate(address: A, plant: NewPlant, create: CreateOptions, options: OpenOptions): Promise<CreatePreview>
}

type OwnStore = ServedStore & CheckpointStore & StagedStore

const openRemote = async (address: RemoteAddress, options: OpenOptions) =>
  (await import('./http/store.js')).RemoteStore.open(address, options)

const remote: StoreKind<RemoteAddress> = {
  noun: 'a service',
  plural: 'stores behind HTTP',
  scheme: /^(https?|unix):/i,
  credential: 'token',
  parse: parseService,
  open: openRemote,
  openExisting: openRemote,
}

const postgres: OwnStoreKind<PostgresAddress> = {
  noun: 'a database',
  plural: 'stores in PostgreSQL',
  scheme: /^postgres(ql)?:/i,
  credential: 'password',
  parse: async (...text) => (await import('./postgres/address.js')).parsePostgres(...text),
  open: async (address, options) => (await import('./postgres/store.js')).PostgresStore.open(address, options),
  openExisting: async (address, options) => (await import('./postgres/store.js')).PostgresStore.openExisting(address, options),
  previewCreate: async (...create) => (await import('./postgres/inspect.js')).foresee(...create),
}

const file: OwnStoreKind<FileAddress> = {
  noun: 'a file',
  plural: 'stores in files',
  scheme: undefined,
  credential: undefined,
  parse: parseFile,
  open: async (address, options) => (await import('./sqlite/store.js')).SqliteStore.open(address, options),
  openExisting: async (address, options) => (await import('./sqlite/store.js')).SqliteStore.openExisting(address, options),
  previewCreate: async (...create) => (await import('./sqlite/inspect.js')).dryRun(...create),
}

export const kinds = { remote, postgres, file }

export function kindOf(address: Address): StoreKind<Address> {
  return kinds[address.kind] as StoreKind<Address> // an entry gets only addresses of its kind
}

/** The kind of store that the text of an address leads to. */
export function kindOfText(text: string): Address['kind'] {
  const names = Object.keys(kinds) as Address['kind'][] // as its type says
  return names.find((name) => kinds[name].scheme?.test(text)) ?? 'file'
}

/** What a token or a password for a store is saved under: the address of a service, and of a database who logs in and where. */
export function loginAddress(address: Address): string {
  return address.kind === 'postgres' ? address.login : address.name
}

/** Whether this program opens the store itself, and does not ask a service for it. */
export function isOwn(address: Address): address is OwnAddress {
  return 'previewCreate' in kinds[address.kind]
}

/** Whether it is the store `local`. */
export function isDefaultStore(address: Address): boolean {
  return 'isDefault' in address && address.isDefault
}

export function takesCredential(address: Address): address is RemoteAddress | PostgresAddress {
  return takesToken(address) || takesPassword(address)
}

export function takesToken(address: Address): address is RemoteAddress {
  return kindOf(address).credential === 'token'
}

export function takesPassword(address: Address): address is PostgresAddress {
  return kindOf(address).credential === 'password'
}

/**
 * Reads a store's address.
 *
 * @param source where the address was given, such as `--store`
 * @throws {PlantsError} `malformed` for an address that leads nowhere
 */
export async function parseAddress(text: string, source: string, place: AddressContext): Promise<Address> {
  if (text.includes('\0')) throw refuse(source, 'holds U+0000, which no address does')
  if (text === 'local') return { kind: 'file', name: join(await place.dataFolder(), 'plants.db'), isDefault: true }
  if (text.includes('\uFFFD')) throw refuse(source, `is a path that is not UTF-8, or holds U+FFFD: ${shownAddress(text)}`)
  return kinds[kindOfText(text)].parse(text, source, place)
}

/** Opens a store to read it or to correct it; none is made. Undefined, for the default store, or throws `unavailable` when there is none yet. */
export async function openExistingStore(address: Address, options: OpenOptions): Promise<ReadableStore | undefined> {
  const store = await kindOf(address).openExisting(address, options)
  if (!store && !isDefaultStore(address)) throw noStore(address)
  return store
}

export function noStore({ name }: Address): PlantsError {
  const hint = 'Check the address. plants create creates a missing store'
  return new PlantsError('unavailable', `There is no store at ${name}`, { hint })
}

/** Opens a store to create many plants in it. With `staging`, it creates none of them before `commit`, or ever. */
export async function openManyStore(address: Address, options: OpenOptions, staging: 'check' | 'atomic' | undefined): Promise<ManyStore> {
  const own = isOwn(address) ? ownKindOf(address) : undefined
  if (staging) {
    const { Staging } = await import('./common/staging.js')
    const isAtomic = staging === 'atomic'
    const store = new Staging(await (isAtomic ? own?.open(address, options) : own?.openExisting(address, options)))
    return { store, checkpoints: undefined, commit: isAtomic ? () => store.commit() : undefined }
  }
  const store = await own?.open(address, options)
  return { store: store ?? (await kindOf(address).open(address, options)), checkpoints: store }
}

/** Whether a path leads to the file of a store, or to one that belongs to it. */
export async function isPartOf(address: Address, path: string): Promise<boolean> {
  if (address.kind !== 'file') return false
  const { isPartOf, realPathOf } = await import('./sqlite/file.js')
  return isPartOf(realPathOf(address.name), path)
}

/** @throws {PlantsError} `malformed` for a service */
export function ownKindOf(address: Address): OwnStoreKind<Address> {
  checkOwn(address)
  return kinds[address.kind] as OwnStoreKind<Address> // as in `kindOf`
}

/** @throws {PlantsError} `malformed` for a service */
export function checkOwn(address: Address): asserts address is OwnAddress {
  if (isOwn(address)) return
  const hint = 'Run the command on the host of the service, or select another store with --store'
  throw malformed(`${address.name} is a service, but this command needs direct access to the store`, hint)
}

/** The address of a store that can be backed up. Throws `malformed` for one that is no file; `instead` is the hint for a database. */
export function fileOf(address: Address, instead: string): FileAddress {
  checkOwn(address)
  if (address.kind === 'file') return address
  throw malformed(`${address.name} is a database, which has backups of its own`, instead)
}
