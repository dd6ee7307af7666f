import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  lstatSync,
  openSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { shellWord, systemCode } from '../../platform/errors.js'
import { linksOf, makeFolder, sharedReason, syncFolder } from '../../platform/files.js'
import type { FileAddress } from '../common/address.js'
import type { FileOptions } from '../common/store.js'
import { explainFailure, isFull, isWritable, notOurs, replacedStore } from './sqlite-errors.js'

/** For an `immutable` file, SQLite takes no locks and creates no -wal or -shm file: it can change during a read. */
export type OpenMode = 'rw' | 'ro' | 'immutable'

/** The file need not exist. SQLite keeps the write-ahead log beside the target of a link. */
export function realPathOf(path: string): string {
  const known = [path, dirname(path)].find((candidate) => existsSync(candidate))
  if (known === undefined) return path
  try {
    return join(realpathSync.native(known), relative(known, path))
  } catch (error) {
    throw explainFailure(error, path)
  }
}

/**
 * Mode 0600: SQLite would create the file readable for others. Does not open an existing file: closing it would drop
 * SQLite's locks on it in this process (https://sqlite.org/howtocorrupt.html, 2.2).
 */
export function makeFile(path: string, isInDefaultFolder = false): boolean {
  if (isInDefaultFolder) makeFolder(dirname(path))
  try {
    const fd = openSync(path, 'wx', 0o600)
    fchmodSync(fd, 0o600) // independent of the umask
    closeSync(fd)
    return true
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
    return false
  }
}

export function fileHasContent(path: string): boolean {
  return (statIfThere(path)?.size ?? 0) > 0
}

type Trust = Pick<FileOptions, 'trusts'>

/** Reports other users who own the file, or a link to it, or can put files beside it. */
export async function reportOwner(address: FileAddress, { onExposed, trusts }: FileOptions): Promise<void> {
  const path = realPathOf(address.name)
  const stats = statIfThere(path)
  if (!stats) return
  const owner = stats.uid
  if (!trusts(owner))
    await onExposed?.(`The store ${path} belongs to ${stranger(owner)} can read and change everything in it`)
  for (const link of linksOf(address.name)) {
    if (!trusts(link.uid))
      await onExposed?.(`The store ${link.path} is a link of ${stranger(link.uid)} can point it to another file`)
  }
  const reason = stats.isFile() ? sharedReason(dirname(path), (uid) => trusts(uid) || uid === owner) : undefined
  const advice = 'Move it to a directory that only you can write to'
  if (reason !== undefined) await onExposed?.(`The store ${path} is exposed to other users: ${reason}. ${advice}`)
}

export function stranger(uid: number): string {
  return `another user (uid ${uid}), who`
}

/** Whether another user can change a store, or put files beside it at any moment. */
export function isExposed(path: string, { trusts }: Trust): boolean {
  return !trusts(statSync(path).uid) || sharedReason(dirname(path), trusts) !== undefined
}

/** Not `throwIfNoEntry: false`: from Node 22 on, it also returns undefined for ENOTDIR, which must be reported. */
export function statIfThere(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
    return undefined
  }
}

/**
 * Immutable if there is no write-ahead log, and SQLite cannot create one, for lack of permission or space, or somebody
 * else could create it. Only `rw` can roll back a journal.
 */
export function readMode(path: string, trust: Trust): OpenMode {
  const left = ['-wal', '-journal'].map((suffix) => path + suffix).find(fileHasContent)
  if (left === undefined && (!isWritable(path) || isFull(path))) return 'immutable'
  if (isExposed(path, trust)) {
    assertNoJournal(path, trust)
    if (!existsSync(`${path}-wal`)) return 'immutable'
    if (isWritable(path)) return 'ro'
  } else if (isWritable(path)) return 'rw'
  if (fileHasContent(`${path}-shm`)) return 'ro'
  const why = `was not closed: its last changes are in ${left}, which can only be read in a writable directory`
  throw notOurs(path, why, 'Copy both files to such a directory')
}

/** Anybody can have made the journal of an exposed store, and SQLite would roll it back. */
export function assertNoJournal(path: string, trust: Trust): void {
  assertSafeToOpen(path, trust) // reports first whether it belongs to another user
  const journal = `${path}-journal`
  if (!fileHasContent(journal)) return
  const why = `cannot be used with ${journal}, where other users can create files`
  const hint = 'If the journal is yours, move both files to a directory that only you can write to. Otherwise remove it'
  throw notOurs(path, why, `${hint}: rm ${shellWord(journal)}`)
}

/** As device:inode; `none` if there is no file, else the system error code. */
export function identityOf(path: string): string {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return `${dev}:${ino}`
  } catch (error) {
    const code = systemCode(error) ?? 'unknown'
    return code === 'ENOENT' ? 'none' : code
  }
}

/** @param store a real path */
export function isPartOf(store: string, path: string): boolean {
  const isOne = (one: string, other: string) => identityOf(one).includes(':') && identityOf(one) === identityOf(other)
  const isSame = (file: string) =>
    file === path || (basename(file) === basename(path) && isOne(dirname(file), dirname(path)))
  return ['', ...sidecars].some((suffix) => isSame(store + suffix) || isOne(store + suffix, path))
}

export function fileVersion(path: string): string {
  const versions = [path, `${path}-wal`].map((file) => statSync(file, { throwIfNoEntry: false, bigint: true }))
  return versions.map((stats) => stats && `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}`).join(' ')
}

/**
 * Creates the write-ahead log of an exposed store, and its index, before another user can. Only then may SQLite open
 * them: as root, it makes the owner of the store the owner of any log that it finds.
 */
export function claimLog(path: string, trust: Trust): string {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    for (const suffix of logSuffixes) makeFile(path + suffix)
    assertSafeToOpen(path, trust)
    const version = logVersion(path, trust)
    if (version !== undefined) return version
  }
  throw replacedStore(path)
}

/** Changes when the log or its index is replaced. Undefined when one is missing, or belongs to another user. */
export function logVersion(path: string, trust: Trust): string | undefined {
  const trusts = trustOf(path, trust)
  const files = logSuffixes.map((suffix) => lstatSync(path + suffix, { throwIfNoEntry: false }))
  return files.every((stats) => stats && trusts(stats.uid))
    ? files.map((stats) => `${stats?.dev}:${stats?.ino}`).join(' ')
    : undefined
}

const logSuffixes = ['-wal', '-shm']

/** Whose files may be beside a store: also its owner's. */
function trustOf(path: string, { trusts }: Trust): (uid: number) => boolean {
  const { uid: owner } = statSync(path)
  return (uid) => uid === owner || trusts(uid)
}

/** https://sqlite.org/fileformat2.html, 1.3 */
export function isInWalMode(path: string): boolean {
  return bytesAt(path, 18, 1)[0] === 2
}

/** Zeros after the end of the file. */
function bytesAt(path: string, position: number, length: number): Buffer {
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)) // a pipe in its place must not block
  try {
    const bytes = Buffer.alloc(length)
    readSync(fd, bytes, 0, length, position)
    return bytes
  } finally {
    closeSync(fd)
  }
}

export function assertSafeToOpen(path: string, trust: Trust): void {
  const stats = statSync(path)
  if (stats.isDirectory()) throw Object.assign(new Error('is a directory'), { code: 'EISDIR' })
  if (!stats.isFile()) throw notOurs(path, 'is a device or a pipe, not a store')
  const linked = 'has more than one hard link, and each would have its own write-ahead log'
  if (stats.nlink > 1) throw notOurs(path, linked, 'Copy the file instead')
  const trusts = trustOf(path, trust)
  for (const suffix of sidecars) checkSidecar(path, path + suffix, trusts)
  checkJournal(path)
}

const sidecars = [...logSuffixes, '-journal']

/** For SQLite, what another user has put into such a file belongs to the store. */
function checkSidecar(path: string, file: string, trusts: (uid: number) => boolean): void {
  const stats = lstatSync(file, { throwIfNoEntry: false })
  if (!stats) return
  const reject = (what: string, hint = 'Remove it: ') =>
    notOurs(path, `cannot be used with ${file}, which ${what}`, `${hint}rm ${shellWord(file)}`)
  if (!stats.isFile()) throw reject('is not a regular file')
  if (stats.nlink > 1) throw reject('has more than one hard link')
  if (trusts(stats.uid)) return
  const give = `chown ${statSync(path).uid} ${shellWord(file)}`
  const hint = `If you trust this user, change its owner: ${give}. Otherwise remove it: `
  throw reject(`belongs to another user (uid ${stats.uid})`, hint)
}

/**
 * A journal can end with the name of a super-journal, which SQLite deletes on rollback
 * (https://sqlite.org/fileformat2.html#the_rollback_journal). A store never has one: no transaction spans two files.
 */
function checkJournal(path: string): void {
  const journal = `${path}-journal`
  const start = (statIfThere(journal)?.size ?? 0) - superJournalMark.length
  try {
    if (start < 0 || !bytesAt(journal, start, superJournalMark.length).equals(superJournalMark)) return
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
    return // its writer has committed
  }
  throw notOurs(path, `is not a store of plants: ${journal} names another file, which SQLite would delete`)
}

const superJournalMark = Buffer.from('d9d505f920a163d7', 'hex')

/**
 * Makes the directory entries of a new file and its folders durable. Another process may have created any of them
 * without a sync yet. A folder that this user cannot open was not created by this user.
 */
export function syncFolders(path: string): void {
  let folder = path
  do {
    folder = dirname(folder)
    syncFolder(folder)
  } while (folder !== dirname(folder))
}
