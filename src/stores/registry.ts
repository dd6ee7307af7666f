import { join } from 'node:path'
import type { NewPlant } from '../plant/plant.js'
import { PlantsError } from '../platform/errors.js'
import {
  type Address,
  type AddressContext,
  type FileAddress,
  fileAddress,
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
import type { BackupOptions } from './sqlite/backup.js'
import type { RestoreOptions } from './sqlite/restore.js'

export { shownAddress } from './common/address.js'

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
  /** what a credential is saved under */
  credentialKey(address: A): string
  parse(text: string, source: string, place: AddressContext): A | Promise<A>
  /** Opens a store to create plants in it; it is made when it is not there, but for a service. */
  open(address: A, options: OpenOptions): Promise<ReadableStore & BulkStore>
}

/** A kind of store that this program opens itself, and does not ask a service for: it can be served, staged and previewed. */
interface OwnStoreKind<A extends Address> extends StoreKind<A> {
  open(address: A, options: OpenOptions): Promise<OwnStore>
  /** undefined when there is none yet, and none is made */
  openExisting(address: A, options: OpenOptions): Promise<OwnStore | undefined>
  previewCreate(address: A, plant: NewPlant, create: CreateOptions, options: OpenOptions): Promise<CreatePreview>
}

type OwnStore = ServedStore & CheckpointStore & StagedStore

const remote: StoreKind<RemoteAddress> = {
  noun: 'a service',
  plural: 'stores behind HTTP',
  scheme: /^(https?|unix):/i,
  credential: 'token',
  credentialKey: ({ name }) => name,
  parse: parseService,
  open: async (address, options) => (await import('./http/store.js')).RemoteStore.open(address, options),
}

const postgres: OwnStoreKind<PostgresAddress> = {
  noun: 'a database',
  plural: 'stores in PostgreSQL',
  scheme: /^postgres(ql)?:/i,
  credential: 'password',
  credentialKey: ({ login }) => login,
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
  credentialKey: ({ name }) => name,
  parse: parseFile,
  open: async (address, options) => (await import('./sqlite/store.js')).SqliteStore.open(address, options),
  openExisting: async (address, options) => (await import('./sqlite/store.js')).SqliteStore.openExisting(address, options),
  previewCreate: async (...create) => (await import('./sqlite/inspect.js')).dryRun(...create),
}

const kinds = { remote, postgres, file }
type KindName = keyof typeof kinds

function kindOf(address: Address): StoreKind<Address> {
  return kinds[address.kind] as StoreKind<Address> // an entry gets only addresses of its kind
}

/** The kind of store that the text of an address leads to. */
export function kindOfText(text: string): KindName {
  const names = Object.keys(kinds) as KindName[] // as its type says
  return names.find((name) => kinds[name].scheme?.test(text)) ?? 'file'
}

/** What people call a kind of store: "a file". */
export function kindNoun(kind: KindName): string {
  return kinds[kind].noun
}

/** What people call all stores of a kind: "stores in files". */
export function kindPlural(kind: KindName): string {
  return kinds[kind].plural
}

/** What lets one in to a kind of store. */
export function credentialOf(kind: KindName): 'token' | 'password' | undefined {
  return kinds[kind].credential
}

/** What a token or a password for a store is saved under: the address of a service, and of a database who logs in and where. */
export function loginAddress(address: Address): string {
  return kindOf(address).credentialKey(address)
}

/** Whether this program opens the store itself, and does not ask a service for it. */
export function isOwn(address: Address): address is OwnAddress {
  return 'openExisting' in kinds[address.kind]
}

/** Whether it is the store `local`. */
export function isDefaultStore(address: Address): boolean {
  return 'isDefault' in address && address.isDefault
}

/** Whether a store takes a token or a password. */
export function takesCredential(address: Address): address is RemoteAddress | PostgresAddress {
  return takesToken(address) || takesPassword(address)
}

export function takesToken(address: Address): address is RemoteAddress {
  return credentialOf(address.kind) === 'token'
}

export function takesPassword(address: Address): address is PostgresAddress {
  return credentialOf(address.kind) === 'password'
}

/**
 * Reads a store's address.
 *
 * @param source where the address was given, such as `--store`
 * @throws {PlantsError} `malformed` for an address that leads nowhere
 */
export async function parseAddress(text: string, source: string, place: AddressContext): Promise<Address> {
  if (text.includes('\0')) throw refuse(source, 'holds U+0000, which no address does')
  if (text === 'local') return fileAddress(join(await place.dataFolder(), 'plants.db'), true)
  if (text.includes('\uFFFD')) throw refuse(source, `is a path that is not UTF-8, or holds U+FFFD: ${shownAddress(text)}`)
  return kinds[kindOfText(text)].parse(text, source, place)
}

/** Opens a store to create plants in it; it is made when it is not there, but for a service. */
export async function openStore(address: Address, options: OpenOptions): Promise<ReadableStore> {
  return kindOf(address).open(address, options)
}

/** What a create would do; nothing is written. Throws what it would throw, as far as that can be told. */
export async function previewCreate(
  address: OwnAddress,
  plant: NewPlant,
  create: CreateOptions,
  options: OpenOptions,
): Promise<CreatePreview> {
  return ownKindOf(address).previewCreate(address, plant, create, options)
}

/**
 * Opens a store to read it or to correct it; none is made. The default store is undefined when there is none yet. What a service offers, its
 * store finds out.
 *
 * @throws {PlantsError} `unavailable` when a store that was named is not there
 */
export async function openExistingStore(address: Address, options: OpenOptions): Promise<ReadableStore | undefined> {
  const store = await openIfThere(address, options)
  if (!store && !isDefaultStore(address)) throw noStore(address)
  return store
}

/** Opens a store to look into it before it is made; undefined when there is none yet. */
export async function openIfThere(address: Address, options: OpenOptions): Promise<ReadableStore | undefined> {
  return isOwn(address) ? ownKindOf(address).openExisting(address, options) : kindOf(address).open(address, options)
}

export function noStore({ name }: Address): PlantsError {
  return new PlantsError('unavailable', `There is no store at ${name}`, {
    hint: 'Check the address. plants create creates a missing store',
  })
}

/** Opens a store to put a service in front of it, or to manage who may use that. */
export async function openStoreWithTokens(address: Address, options: OpenOptions): Promise<ServedStore> {
  return ownKindOf(address).open(address, options)
}

/** Opens a store to create many plants in it. With `staging`, it creates none of them before `commit`, or ever. */
export async function openManyStore(address: Address, options: OpenOptions, staging: 'check' | 'atomic' | undefined): Promise<ManyStore> {
  const own = isOwn(address) ? ownKindOf(address) : undefined
  if (staging) {
    const { stage } = await import('./common/staging.js')
    return stage(await (staging === 'atomic' ? own?.open(address, options) : own?.openExisting(address, options)), staging)
  }
  const store = await own?.open(address, options)
  return { store: store ?? (await kindOf(address).open(address, options)), checkpoints: store }
}

/** Whether a path leads to the file of a store, or to one that belongs to it. */
export async function isPartOf(address: Address, path: string): Promise<boolean> {
  if (address.kind !== 'file') return false
  const { isPartOf, realPathOf } = await import('./sqlite/file.js')
  return isPartOf(realPathOf(address.path), path)
}

/**
 * Copies a store, as it is at this moment, into a file that can be used as a store itself; others may use the store meanwhile.
 *
 * @param path absolute; a store that is there already, and that nobody uses, is replaced, as a whole or not at all
 * @returns undefined when there is no store yet
 */
export async function backUpStore(address: Address, path: string, options: BackupOptions) {
  const { backUp } = await import('./sqlite/backup.js')
  return backUp(fileOf(address, 'Use pg_dump, or write its plants to a file: plants export --out FILE'), path, options)
}

/** Replaces what is in a store by a backup, which is left as it is, in one transaction; others may use the store meanwhile. */
export async function restoreStore(address: Address, path: string, options: RestoreOptions) {
  const { restore } = await import('./sqlite/restore.js')
  const instead = 'Use pg_restore, or create the plants of a store in it: plants export --store FILE | plants import'
  return restore(fileOf(address, instead), path, options)
}

/** @throws {PlantsError} `malformed` for a service */
function ownKindOf(address: Address): OwnStoreKind<Address> {
  checkOwn(address)
  return kinds[address.kind] as OwnStoreKind<Address> // as in `kindOf`
}

/** @throws {PlantsError} `malformed` for a service */
export function checkOwn(address: Address): asserts address is OwnAddress {
  if (isOwn(address)) return
  throw new PlantsError('malformed', `${address.name} is a service, but this command needs direct access to the store`, {
    hint: 'Run the command on the host of the service, or select another store with --store',
  })
}

/** @throws {PlantsError} `malformed` for a store that is no file */
function fileOf(address: Address, instead: string): FileAddress {
  ownKindOf(address)
  if (address.kind === 'file') return address
  throw new PlantsError('malformed', `${address.name} is a database, which has backups of its own`, { hint: instead })
}
