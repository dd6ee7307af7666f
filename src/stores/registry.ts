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
} from './address.js'
import type { Access, TokenVerdict, WireRequest } from './http/types.js'
import type { StagedStore } from './staging.js'
import type {
  BackupOptions,
  CheckpointStore,
  Copy,
  CreateOptions,
  CreatePreview,
  DatabaseReport,
  FileReport,
  ManyStore,
  OpenOptions,
  PlantStore,
  ReadableStore,
  Restored,
  RestoreOptions,
  ServedStore,
} from './store.js'

export { shownAddress } from './address.js'

/** A store that this program opens itself, and does not ask a service for. */
type OwnStore = ReadableStore & ServedStore & CheckpointStore & StagedStore

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
  open(address: A, options: OpenOptions): Promise<PlantStore>
  openMany(address: A, options: OpenOptions): Promise<ManyStore>
  /** of a store that this program opens itself: it can be read, served, and backed up or staged */
  own?: {
    open(address: A, options: OpenOptions): Promise<OwnStore>
    /** undefined when there is none yet, and none is made */
    openExisting(address: A, options: OpenOptions): Promise<OwnStore | undefined>
    previewCreate(address: A, plant: NewPlant, create: CreateOptions, options: OpenOptions): Promise<CreatePreview>
  }
}

const sqlite: StoreKind<FileAddress>['own'] = {
  open: async (address, options) => (await import('./sqlite/store.js')).SqliteStore.open(address, options),
  openExisting: async (address, options) => (await import('./sqlite/store.js')).SqliteStore.openExisting(address, options),
  previewCreate: async (address, plant, create, options) => (await import('./sqlite/inspect.js')).dryRun(address, plant, create, options),
}

const postgres: StoreKind<PostgresAddress>['own'] = {
  open: async (address, options) => (await import('./postgres/store.js')).PostgresStore.open(address, options),
  openExisting: async (address, options) => (await import('./postgres/store.js')).PostgresStore.openExisting(address, options),
  previewCreate: async (address, plant, create, options) =>
    (await import('./postgres/inspect.js')).foresee(address, plant, create, options),
}

const openService = async (address: RemoteAddress, options: OpenOptions) =>
  (await import('./http/store.js')).RemoteStore.open(address, options)

const kinds: { [Kind in Address['kind']]: StoreKind<Extract<Address, { kind: Kind }>> } = {
  remote: {
    noun: 'a service',
    plural: 'stores behind HTTP',
    scheme: /^(https?|unix):/i,
    credential: 'token',
    credentialKey: ({ name }) => name,
    parse: parseService,
    open: openService,
    openMany: async (address, options) => ({ store: await openService(address, options), checkpoints: undefined }),
  },
  postgres: {
    noun: 'a database',
    plural: 'stores in PostgreSQL',
    scheme: /^postgres(ql)?:/i,
    credential: 'password',
    credentialKey: ({ login }) => login,
    parse: async (text, source, place) => (await import('./postgres/address.js')).parsePostgres(text, source, place),
    open: postgres.open,
    openMany: (address, options) => withCheckpoints(postgres.open(address, options)),
    own: postgres,
  },
  file: {
    noun: 'a file',
    plural: 'stores in files',
    scheme: undefined,
    credential: undefined,
    credentialKey: ({ name }) => name,
    parse: parseFile,
    open: sqlite.open,
    openMany: (address, options) => withCheckpoints(sqlite.open(address, options)),
    own: sqlite,
  },
}

async function withCheckpoints(opened: Promise<OwnStore>): Promise<ManyStore> {
  const store = await opened
  return { store, checkpoints: store }
}

type Kind = Address['kind']

function kindOf(address: Address): StoreKind<Address> {
  return kinds[address.kind] as StoreKind<Address> // an entry gets only addresses of its kind
}

/** The kind of store that the text of an address leads to. */
export function kindOfText(text: string): Kind {
  const names = Object.keys(kinds) as Kind[] // as its type says
  return names.find((name) => kinds[name].scheme?.test(text)) ?? 'file'
}

/** What people call a kind of store: "a file". */
export function kindNoun(kind: Kind): string {
  return kinds[kind].noun
}

/** What people call all stores of a kind: "stores in files". */
export function kindPlural(kind: Kind): string {
  return kinds[kind].plural
}

/** What lets one in to a kind of store. */
export function credentialOf(kind: Kind): 'token' | 'password' | undefined {
  return kinds[kind].credential
}

/** What a token or a password for a store is saved under: the address of a service, and of a database who logs in and where. */
export function loginAddress(address: Address): string {
  return kindOf(address).credentialKey(address)
}

/** Whether a store can be read, and not only be created in. */
export function isReadable(address: Address): address is OwnAddress {
  return kindOf(address).own !== undefined
}

/** Whether it is the store `local`. */
export function isDefaultStore(address: Address): boolean {
  return 'isDefault' in address && address.isDefault
}

/** Whether a store takes a token or a password. */
export function takesCredential(address: Address): address is RemoteAddress | PostgresAddress {
  return kindOf(address).credential !== undefined
}

/** Whether a store takes a token. */
export function takesToken(address: Address): address is RemoteAddress {
  return kindOf(address).credential === 'token'
}

/** Whether a store takes a password. */
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
  if (text === 'local') return fileAddress(join(await place.dataFolder(), 'plants.db'), true)
  if (text.includes('\uFFFD')) throw refuse(source, `is a path that is not UTF-8, or holds U+FFFD: ${shownAddress(text)}`)
  return kinds[kindOfText(text)].parse(text, source, place)
}

/** Opens a store to create plants in it; it is made when it is not there, but for a service. */
export async function openStore(address: Address, options: OpenOptions): Promise<PlantStore> {
  return kindOf(address).open(address, options)
}

/**
 * The request that a create would send to a service, which is not asked.
 *
 * @param idempotencyKey one is made when none is given, as a create does
 */
export async function describeCreate(
  address: RemoteAddress,
  access: Access,
  plant: NewPlant,
  idempotencyKey: string | undefined,
): Promise<WireRequest> {
  const request = await import('./http/request.js')
  return request.describeCreate(address, access, plant, idempotencyKey)
}

/** What a create would do in a store that can be read; nothing is written. Throws what it would throw, as far as that can be told. */
export async function previewCreate(
  address: OwnAddress,
  plant: NewPlant,
  create: CreateOptions,
  options: OpenOptions,
): Promise<CreatePreview> {
  return ownOf(address).previewCreate(address, plant, create, options)
}

/** Asks a remote store whether it accepts a token; no plant is made. Throws the reason of the clock's signal. */
export async function checkToken(address: RemoteAddress, access: Access, options: OpenOptions): Promise<TokenVerdict> {
  const remote = await import('./http/store.js')
  return remote.checkToken(address, access, options)
}

/** Logs in to a database to find out whether it accepts a password; nothing else is done there. Throws the reason of the clock's signal. */
export async function checkPassword(address: PostgresAddress, options: OpenOptions): Promise<TokenVerdict> {
  try {
    await inspectDatabase(address, { ...options, allowAsyncCommit: true })
    return { state: 'accepted' }
  } catch (error) {
    options.clock.signal.throwIfAborted()
    if (!(error instanceof PlantsError)) throw error
    return { state: error.kind === 'unauthorized' ? 'refused' : 'unknown', error }
  }
}

/** Looks at a store in a file, and changes nothing. Throws `unavailable` when it cannot be opened, as each command would. */
export async function inspectFile(address: FileAddress, options: OpenOptions): Promise<FileReport> {
  const { inspect } = await import('./sqlite/inspect.js')
  return inspect(address, options)
}

/** Looks at a database, and changes nothing. Throws `unavailable` when it cannot be reached, `unauthorized` when it lets nobody in. */
export async function inspectDatabase(address: PostgresAddress, options: OpenOptions): Promise<DatabaseReport> {
  const { inspectPostgres } = await import('./postgres/inspect.js')
  return inspectPostgres(address, options)
}

/** Makes the store in a database, and grants to a role that is there what a service needs. What is there already stays. */
export async function initialiseDatabase(address: PostgresAddress, options: OpenOptions, role: string | undefined): Promise<void> {
  const { initialise } = await import('./postgres/schema.js')
  await initialise(address, options, role)
}

/** Whether a path leads to the file of a store, or to one that belongs to it. */
export async function isPartOf(address: Address, path: string): Promise<boolean> {
  if (!isFile(address)) return false
  const file = await import('./sqlite/file.js')
  return file.isPartOf(file.realPathOf(address.path), path)
}

/** Which SQLite is used, and what connects to it. Throws `unavailable` when there is none. */
export async function describeSqlite(): Promise<{ version: string; driver: string }> {
  const { describeDriver } = await import('../platform/sqlite.js')
  return describeDriver()
}

/** Opens a store to read it or to remove from it; undefined when there is none yet, and none is made. */
export async function openExistingStore(address: Address, options: OpenOptions): Promise<ReadableStore | undefined> {
  return ownOf(address).openExisting(address, options)
}

/**
 * Opens a store to create many plants in it.
 *
 * @param staging takes plants in, and creates none of them before `commit`, or ever
 */
export async function openManyStore(address: Address, options: OpenOptions, staging: 'check' | 'atomic' | undefined): Promise<ManyStore> {
  const kind = kindOf(address)
  if (!staging) return kind.openMany(address, options)
  const { stage } = await import('./staging.js')
  return stage(await (staging === 'atomic' ? kind.own?.open(address, options) : kind.own?.openExisting(address, options)), staging)
}

/** Opens a store to put a service in front of it, or to manage who may use that. */
export async function openStoreWithTokens(address: Address, options: OpenOptions): Promise<ServedStore> {
  return ownOf(address).open(address, options)
}

/**
 * Copies a store, as it is at this moment, into a file that can be used as a store itself; others may use the store meanwhile.
 *
 * @param file absolute path; a store that is there already, and that nobody uses, is replaced, as a whole or not at all
 * @returns undefined when there is no store yet
 * @throws {PlantsError} `malformed` for a file that is anything else, or a link of another user, `unwritable` when it could not be
 * written, `unavailable` when the store could not be read, or is damaged
 */
export async function backUpStore(address: Address, file: string, options: BackupOptions): Promise<Copy | undefined> {
  const { backUp } = await import('./sqlite/backup.js')
  return backUp(fileOf(address, 'Use pg_dump, or write its plants to a file: plants export --out FILE'), file, options)
}

/**
 * Puts what is in a backup in the place of what is in a store, in one transaction; others may use the store meanwhile.
 *
 * @param file absolute path of a store that is left as it is
 * @throws {PlantsError} `malformed` for a file that is no backup, or damaged; `conflict` when there are plants and `force` is not given;
 * `unavailable` or `unwritable` when nothing was changed; `unknownOutcome` when that could not be found out
 */
export async function restoreStore(address: Address, file: string, options: RestoreOptions): Promise<Restored> {
  const { restore } = await import('./sqlite/restore.js')
  return restore(
    fileOf(address, 'Use pg_restore, or create the plants of a store in it: plants export --store FILE | plants import'),
    file,
    options,
  )
}

/** @throws {PlantsError} `malformed` for a store that can do nothing but create */
function ownOf(address: Address): NonNullable<StoreKind<Address>['own']> {
  const { own } = kindOf(address)
  if (own) return own
  throw new PlantsError('malformed', `${address.name} is a remote store, where plants can be created, and nothing else done`, {
    hint: 'Do this where its file is, or choose another store with --store',
  })
}

function isFile(address: Address): address is FileAddress {
  return address.kind === 'file'
}

/** @throws {PlantsError} `malformed` for a store that is no file */
function fileOf(address: Address, instead: string): FileAddress {
  ownOf(address)
  if (isFile(address)) return address
  throw new PlantsError('malformed', `${address.name} is a database, which has backups of its own`, { hint: instead })
}
