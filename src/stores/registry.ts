import { join } from 'node:path'
import type { NewPlant } from '../plant/plant.js'
import { PlantsError } from '../platform/errors.js'
import { urlOf } from '../platform/network.js'
import { shownAddress } from './shown-address.js'
import type { StagedStore } from './staging.js'
import {
  type Access,
  type Address,
  type BackupOptions,
  type CheckpointStore,
  type Copy,
  type CreateOptions,
  type DatabaseReport,
  type FileAddress,
  type FileReport,
  type Foresight,
  longestSocketPath,
  type ManyStore,
  type OpenOptions,
  type OwnAddress,
  type Place,
  type PlantStore,
  type PostgresAddress,
  type ReadableStore,
  type RemoteAddress,
  type Restored,
  type RestoreOptions,
  type ServedStore,
  type TokenVerdict,
  type WireRequest,
} from './store.js'

export { shownAddress } from './shown-address.js'

/**
 * Reads a store's address.
 *
 * @param source where the address was given, such as `--store`
 * @throws {PlantsError} `malformed` for an address that leads nowhere
 */
export async function parseAddress(address: string, source: string, place: Place): Promise<Address> {
  const { resolvePath, dataFolder } = place
  if (address.includes('\0')) throw refuse(source, 'holds U+0000, which no address does')
  if (address === 'local') return fileAddress(join(await dataFolder(), 'plants.db'), true)
  if (address.includes('\uFFFD')) throw refuse(source, `is a path that is not UTF-8, or holds U+FFFD: ${shownAddress(address)}`)
  if (/^https?:/i.test(address)) return parseUrl(address, source)
  if (/^postgres(ql)?:/i.test(address)) return (await import('./postgres/address.js')).parsePostgres(address, source, place)
  const path = address.replace(/^sqlite:/i, '')
  const isSocket = /^unix:/i.test(address)
  if (path === address && !isSocket) checkScheme(path, source)
  if (shownAddress(address) !== address) throw refuse(source, 'holds what may be a password, and is the address of no store', uriHint)
  if (isSocket) return parseSocket(address, source, resolvePath)
  if (path === '') throw refuse(source, 'is empty')
  if (/^\/\/|^:memory:$/.test(path)) throw refuse(source, `is no file: ${JSON.stringify(address)}`)
  if (path === address) checkPath(path, source)
  return fileAddress(resolvePath(path), false)
}

function fileAddress(path: string, isDefault: boolean): FileAddress {
  return { kind: 'file', path, name: path, isDefault }
}

/** Refuses what belongs to another kind of store. */
function checkScheme(path: string, source: string): void {
  const scheme = /^([a-z][a-z\d+.-]*):\/\/|^(file|jdbc):/i.exec(path)
  if (scheme) throw refuse(source, `begins with ${scheme[0]}, which this version cannot open`)
}

/** Refuses a word that is no path. What is more than a word is not repeated: a part of it may be a password. */
function checkPath(path: string, source: string): void {
  if (/[/\\]|^[.~]|\.(db|sqlite)$/.test(path)) return
  const isWord = /^[\w-]+(\.[\w-]+)*(:\d+)?$/.test(path)
  const hint = isWord && /[.:]/.test(path) ? `If it is a service: https://${path}. ${addresses}` : addresses
  throw refuse(source, isWord ? `names no store: ${JSON.stringify(path)}` : 'names no store', hint)
}

function parseUrl(address: string, source: string): RemoteAddress {
  const url = /^https?:\/\//i.test(address) ? urlOf(address) : undefined
  if (!url) throw refuse(source, 'is not a valid URL')
  // What stands in front of an @ is a password to be, and must not be shown again.
  if (url.username || url.password) throw refuse(source, 'holds a user name or a password; a store takes a token', tokenHint)
  if (url.search || url.hash || /[?#]/.test(address)) throw refuse(source, 'is a base url, which has no "?" and no "#"')
  url.pathname = url.pathname.replace(/\/+$/, '')
  return { kind: 'remote', name: url.href.replace(/\/$/, ''), url }
}

const tokenHint = 'Put the token into PLANTS_TOKEN, or save it with: plants auth login'

/** `unix:/path.sock`, or `unix:/path.sock:/base` */
function parseSocket(address: string, source: string, resolvePath: (path: string) => string): RemoteAddress {
  const [, path = '', base = ''] = /^unix:(.*?)(?::(\/.*))?$/is.exec(address) ?? []
  if (path === '' || path.startsWith('//')) throw refuse(source, 'names no socket', 'For example: unix:/run/plants.sock')
  const { url } = parseUrl(`http://localhost${base}`, source)
  const socketPath = resolvePath(path)
  if (Buffer.byteLength(socketPath) > longestSocketPath)
    throw refuse(source, `names a socket whose path is longer than ${longestSocketPath} bytes`, 'Sockets need shorter ones')
  if (socketPath.includes(':/'))
    throw refuse(source, 'names a socket whose path holds ":/", where a base path would begin', 'Give it another path')
  const basePath = url.pathname.replace(/\/$/, '')
  return { kind: 'remote', name: `unix:${socketPath}${basePath && `:${basePath}`}`, url, socketPath }
}

const addresses = 'A store is a saved name, "local", a path such as ./plants.db, sqlite:PATH, http(s)://…, unix:PATH or postgres://…'

const uriHint = 'A database is postgres://USER@HOST/DATABASE, a service is https://…, and a path with such characters begins with ./'

function refuse(source: string, why: string, hint = addresses): PlantsError {
  return new PlantsError('malformed', `${source} ${why}`, { hint })
}

/** Opens a store to create plants in it; it is made when it is not there, but for a service. */
export async function openStore(address: Address, options: OpenOptions): Promise<PlantStore> {
  if (address.kind !== 'remote') return openOwn(address, options)
  const { RemoteStore } = await import('./http/store.js')
  return RemoteStore.open(address, options)
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

/** What a create would do in a store of our own, where nothing is written. Throws what it would throw, as far as that can be told. */
export async function foreseeCreate(address: OwnAddress, plant: NewPlant, create: CreateOptions, options: OpenOptions): Promise<Foresight> {
  if (address.kind === 'file') return (await import('./sqlite/inspect.js')).dryRun(address, plant, create, options)
  return (await import('./postgres/foresee.js')).foresee(address, plant, create, options)
}

/** Asks a remote store whether it accepts a token; no plant is made. Throws the reason of the clock's signal. */
export async function checkToken(address: RemoteAddress, access: Access, options: OpenOptions): Promise<TokenVerdict> {
  const remote = await import('./http/check-token.js')
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
  const { initialise } = await import('./postgres/init.js')
  await initialise(address, options, role)
}

/** Whether a path leads to the file of a store, or to one that belongs to it. */
export async function isPartOf(address: Address, path: string): Promise<boolean> {
  if (address.kind !== 'file') return false
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
  return openExistingOwn(readable(address), options)
}

async function openExistingOwn(address: OwnAddress, options: OpenOptions): Promise<OwnStore | undefined> {
  if (address.kind === 'file') return (await import('./sqlite/store.js')).SqliteStore.openExisting(address, options)
  return (await import('./postgres/store.js')).PostgresStore.openExisting(address, options)
}

/**
 * Opens a store to create many plants in it.
 *
 * @param staging takes plants in, and creates none of them before `commit`, or ever
 */
export async function openManyStore(address: Address, options: OpenOptions, staging: 'check' | 'atomic' | undefined): Promise<ManyStore> {
  if (staging) return openStaging(address, options, staging)
  if (address.kind !== 'remote') {
    const store = await openOwn(address, options)
    return { store, checkpoints: store }
  }
  const { RemoteStore } = await import('./http/store.js')
  return { store: await RemoteStore.open(address, options), checkpoints: undefined }
}

async function openStaging(address: Address, options: OpenOptions, kind: 'check' | 'atomic'): Promise<ManyStore> {
  const { stage } = await import('./staging.js')
  if (address.kind === 'remote') return stage(undefined, kind)
  return stage(kind === 'atomic' ? await openOwn(address, options) : await openExistingOwn(address, options), kind)
}

/** Opens a store to put a service in front of it, or to manage who may use that. */
export async function openStoreWithTokens(address: Address, options: OpenOptions): Promise<ServedStore> {
  return openOwn(readable(address), options)
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
function readable(address: Address): OwnAddress {
  if (address.kind !== 'remote') return address
  throw new PlantsError('malformed', `${address.name} is a remote store, where plants can be created, and nothing else done`, {
    hint: 'Do this where its file is, or choose another store with --store',
  })
}

/** @throws {PlantsError} `malformed` for a store that is no file */
function fileOf(address: Address, instead: string): FileAddress {
  const own = readable(address)
  if (own.kind === 'file') return own
  throw new PlantsError('malformed', `${own.name} is a database, which has backups of its own`, { hint: instead })
}

type OwnStore = ReadableStore & ServedStore & CheckpointStore & StagedStore

async function openOwn(address: OwnAddress, options: OpenOptions): Promise<OwnStore> {
  if (address.kind === 'file') return (await import('./sqlite/store.js')).SqliteStore.open(address, options)
  return (await import('./postgres/store.js')).PostgresStore.open(address, options)
}
