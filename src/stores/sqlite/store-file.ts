/**
 * Prepares the file of a store, chooses how it is opened, by what this user may do with it and
 * whether others have it open, and watches whether it still has its name. It does not use files
 * that another user may have put next to the store as a trap.
 */
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readdirSync,
  readlinkSync,
  type Stats,
  statSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { getSystemCode, ignoreSystemError, PlantsError } from '../../errors.js'
import {
  explainWriteAccess,
  findFileIdentity,
  ignoreMissingFile,
  isSameFile,
  isThisUser,
  isWritableFile,
  makeFolder,
  readBytes,
  resolveRealPath,
  syncFolder,
} from '../../platform/files.js'
import type { Purpose } from '../store-kind.js'
import { createUnusableStoreError, explainSqliteError } from './explain.js'

/**
 * Creates the file of a store if it is missing. SQLite would create a file that others can read.
 *
 * @returns true if the file was missing
 */
export function createFileIfMissing(path: string, isInDefaultFolder: boolean): boolean {
  try {
    if (isInDefaultFolder) makeFolder(dirname(path))
    closeSync(openSync(path, 'wx', 0o600))
    syncFolder(dirname(path))
    return true
  } catch (error) {
    if (getSystemCode(error) === 'EEXIST') return false
    throw explainSqliteError(error, path)
  }
}

/**
 * Removes the permissions of other users from an empty file that becomes a store. The log and its
 * index get the permissions of the store from SQLite.
 */
export function restrictToOwner(path: string, { mode }: Stats): void {
  if ((mode & 0o077) !== 0) chmodSync(path, mode & 0o700)
}

/** A journal that contains the name of a super-journal ends with these bytes. */
const journalMagic = 'd9d505f920a163d7'

/**
 * A rollback journal can contain the name of a super-journal, which SQLite deletes when it rolls
 * back. SQLite does not check what kind of file this is. So somebody who can write next to the
 * store could make this user delete any file
 * (https://sqlite.org/fileformat2.html#the_rollback_journal). This program never writes a journal
 * with a super-journal, so such a store is not opened.
 */
export function assertNoSuperJournal(path: string): void {
  const journal = `${path}-journal`
  const stats = statSync(journal, { throwIfNoEntry: false })
  if (!stats?.isFile() || stats.size < 8) return
  // Another process may have finished its transaction, and so deleted the journal, in the meantime.
  const lastBytes = ignoreMissingFile(() => readBytes(journal, stats.size - 8, 8))
  if (lastBytes?.toString('hex') !== journalMagic) return
  throw createUnusableStoreError(
    path,
    `cannot be used: SQLite would delete a file that ${journal} names`,
  )
}

/**
 * Other users who can create files next to the store can put a log there, and SQLite would take the
 * contents of this log for changes of the store.
 *
 * @returns a warning, or undefined if nobody else can create files there
 */
export function explainExposure(path: string): string | undefined {
  const folder = dirname(resolveRealPath(path))
  const exposureReason = explainWriteAccess(statSync(folder))
  const sentence = `The store ${path} is exposed to other users: ${folder} ${exposureReason}`
  return exposureReason && `${sentence}. Move it to a directory that only you can write to`
}

/** Returns true for a path of the store, or of a file that SQLite may keep next to it. */
export function belongsToStore(store: string, path: string): boolean {
  const realStore = resolveRealPath(store)
  const realPath = join(resolveRealPath(dirname(path)), basename(path))
  return ['', '-wal', '-shm', '-journal'].some((suffix) => {
    const hasItsName = path === store + suffix || realPath === realStore + suffix
    return hasItsName || isSameFile(path, realStore + suffix)
  })
}

export const writeMode = 'mode=rw'
/** With this parameter, SQLite also reads the log, and creates its files if they are missing. */
export const readMode = 'mode=ro'
/** With these parameters of a URI, SQLite takes no locks, and looks for no log or journal. */
export const immutableParameters = 'mode=ro&immutable=1'

export interface OpenMode {
  /** The parameters of the URI. */
  parameters: string
  /** What an immutable file was before it was read. */
  fingerprint?: string | undefined
}

export function mayCreate(purpose: Purpose): boolean {
  return purpose === 'write' || purpose === 'init'
}

/**
 * With `mode=ro`, SQLite sees what others commit, but creates the log of the store and its index if
 * they are missing. A service needs that. A command that only reads must not do that: the owner of
 * the store could not write to files of another user. So where nobody has the store open, it reads
 * the file as one that never changes.
 *
 * @throws the error of the system if the file must be written to, and this user may not do that
 */
export function chooseMode(path: string, purpose: Purpose, hasLostLog: boolean): OpenMode {
  if (mayCreate(purpose))
    for (const target of [dirname(path), path]) accessSync(target, constants.W_OK)
  if (isWritableFile(path)) return { parameters: writeMode }
  if (purpose === 'serve') {
    assertSeesCommits(path)
    return { parameters: readMode }
  }
  // The fingerprint is read before the log is looked for. So a file without a log is complete as
  // long as it has this fingerprint.
  const fingerprint = readFingerprint(path)
  const hasChanges = findUnmergedFile(path) !== undefined
  const isInUse = !hasLostLog && existsSync(`${path}-shm`)
  return hasChanges || isInUse
    ? { parameters: readMode }
    : { parameters: immutableParameters, fingerprint }
}

/**
 * If a store has a log, SQLite finds the commits of others in its index, to which readers write,
 * too. A service that may not write to the store may create this index if the owner of the
 * store can use it, as root can.
 */
function assertSeesCommits(path: string): void {
  if (!hasLogFormat(path)) return
  const { uid } = statSync(path)
  const ownerCanUseIndex = uid === 0 || isThisUser(uid)
  if (ownerCanUseIndex && isWritableFile(`${path}-shm`)) return
  throw createUnusableStoreError(
    path,
    'cannot be served: without write access to it and its directory, a service misses changes',
    'Give this user write access to the directory and the file, or serve a backup',
  )
}

/** Returns whether the header of a file says that it has a write-ahead log. */
export function hasLogFormat(path: string): boolean {
  return readBytes(path, 18, 1)[0] === 2
}

/**
 * @returns a string that changes when the file is written to or replaced; undefined for a file that
 *   is missing
 */
export function readFingerprint(path: string): string | undefined {
  const stats = ignoreSystemError(() => statSync(path, { bigint: true }))
  return stats && [stats.dev, stats.ino, stats.size, stats.mtimeNs].join()
}

/** @param subject such as "The store /srv/a.db" */
export function createChangedFileError(subject: string): PlantsError {
  const message = `${subject} was changed while it was read`
  return new PlantsError('unavailable', message, { hint: 'Try again' })
}

/** Finds the log or the journal of a store, if it holds changes that are not in the store yet. */
export function findUnmergedFile(name: string): string | undefined {
  const path = resolveRealPath(name)
  const files = [`${path}-wal`, `${path}-journal`]
  return files.find((file) => statSync(file, { throwIfNoEntry: false })?.size)
}

const descriptorFolder = '/proc/self/fd'

/**
 * Call this after SQLite has opened the store, its log and the index of the log.
 *
 * @returns a function that returns true while these files have their names
 */
export function createFileNameCheck(store: string): () => boolean {
  const openFiles = findOpenFiles()
  const checks = [store, `${store}-wal`, `${store}-shm`].map((path) => {
    const [file, furtherFile] = openFiles.filter(({ target }) => target === path)
    // If this process has opened the path more than once, as for a snapshot, nothing tells which of
    // the descriptors is the writer's.
    const isOnlyOne = file !== undefined && furtherFile === undefined
    return isOnlyOne ? createDescriptorCheck(file.link, path) : createIdentityCheck(path)
  })
  return () => checks.every((hasItsName) => hasItsName())
}

/**
 * On Linux, the link of a descriptor says which name its file has now. That is cheaper than `stat`,
 * which updates the times of the file, so that the next fsync writes them, too: a sixth of the time
 * of a commit.
 */
function createDescriptorCheck(link: string, path: string): () => boolean {
  return () => readLink(link) === path
}

function createIdentityCheck(path: string): () => boolean {
  // A store that was opened to read may have no log yet. So the first identity that is found becomes
  // the expected one.
  let expectedIdentity = findFileIdentity(path)
  return () => {
    const currentIdentity = findFileIdentity(path)
    expectedIdentity ??= currentIdentity
    return currentIdentity === expectedIdentity
  }
}

/** A descriptor of this process. */
interface OpenFile {
  /** The path of its link, such as `/proc/self/fd/21`. */
  link: string
  /** The path to which the link leads, which is the name of the open file. */
  target: string | undefined
}

/** Returns no files where there is no /proc. */
function findOpenFiles(): OpenFile[] {
  const names = ignoreSystemError(() => readdirSync(descriptorFolder)) ?? []
  const links = names.map((name) => `${descriptorFolder}/${name}`)
  return links.map((link) => ({ link, target: readLink(link) }))
}

function readLink(link: string): string | undefined {
  return ignoreSystemError(() => readlinkSync(link))
}
