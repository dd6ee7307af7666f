import {
  closeSync,
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
import { isWindows, PlantsError, systemCode, unlessSystemError } from '../../platform/errors.js'
import {
  isSameFile,
  isTrusted,
  makeFolder,
  syncFolder,
  targetOf,
  whyOthersCanWrite,
} from '../../platform/files.js'
import { shellWord } from '../../platform/shell.js'
import { explainFailure, notOurs } from './sqlite-errors.js'

/** The file need not exist. SQLite keeps the write-ahead log beside the target of a link. */
export function realPathOf(path: string): string {
  const known = [path, dirname(path)].find((candidate) => existsSync(candidate))
  if (known === undefined) return path
  try {
    return join(realpathSync.native(known), relative(known, path))
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return path // a pipe, such as /dev/fd/63, has no other path
    throw explainFailure(error, path)
  }
}

/**
 * Mode 0600: SQLite would create the file readable for others. Does not open an existing file: closing it would drop
 * SQLite's locks on it in this process (https://sqlite.org/howtocorrupt.html, 2.2).
 */
export function makeFile(path: string, isInDefaultFolder: boolean): boolean {
  if (isInDefaultFolder) makeFolder(dirname(path))
  if (isWindows && statSync(path, { throwIfNoEntry: false })?.isFile() === false) return false // `wx` opens NUL
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

/** Not `throwIfNoEntry: false`: from Node 22 on, it also returns undefined for ENOTDIR, which must be reported. */
export function fileHasContent(path: string): boolean {
  try {
    const stats = statSync(path)
    return stats.size > 0 || stats.isDirectory() // whose size is 0 on Windows
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
    return false
  }
}

export function unmergedChanges(path: string): string | undefined {
  return ['-wal', '-journal'].map((suffix) => path + suffix).find(fileHasContent)
}

/** Why other users can create files beside a store: such a file could become a part of it. Undefined if they cannot. */
export function whyExposed(path: string): string | undefined {
  const directory = dirname(path)
  const why = whyOthersCanWrite(statSync(directory))
  return why && `The store ${path} is exposed to other users: ${directory} ${why}`
}

/** Returns device:inode, or the system error code. */
export function identityOf(path: string): string {
  try {
    const { dev, ino } = lstatSync(path, { bigint: true }) // the path was resolved: a link came later
    return `${dev}:${ino}`
  } catch (error) {
    return systemCode(error) ?? 'unknown'
  }
}

/**
 * Of a directory: its times are those of the last change of the names in it, or of its mode. As numbers, which take less
 * time than bigints, they are exact to a microsecond.
 */
export type DirectoryVersion = Pick<Stats, 'dev' | 'ino' | 'mtimeMs' | 'ctimeMs'>

/** Undefined if the directory is not there, or its file system keeps no times for it. */
export function directoryVersion(path: string): DirectoryVersion | undefined {
  const stats = unlessSystemError(() => statSync(path))
  return stats && stats.mtimeMs > noTime ? stats : undefined
}

/** FAT gives its root the beginning of a calendar: that of Unix, or its own, 1980. */
const noTime = Date.UTC(1981)

/** False once a file was created, renamed or deleted in it, at least a step of its file system's runtime later. */
export function isSameVersion(
  one: DirectoryVersion | undefined,
  other: DirectoryVersion | undefined,
): boolean {
  if (one?.ctimeMs !== other?.ctimeMs || one?.mtimeMs !== other?.mtimeMs) return false
  return one !== undefined && one.ino === other?.ino && one.dev === other.dev
}

/**
 * True also for the files that SQLite keeps beside a store. Compares files, not texts: a file system that ignores case has
 * more names for a file.
 */
export function isPartOf(store: string, path: string): boolean {
  const known = realPathOf(store)
  // Also of a link to a file that is not there yet.
  const other = realPathOf(unlessSystemError(() => targetOf(path)) ?? path)
  if (
    ['', ...sidecars].some(
      (suffix) => known + suffix === other || isSameFile(known + suffix, other),
    )
  )
    return true
  // A sidecar that does not exist yet.
  const base = other.replace(sidecarSuffix, '')
  const hasSuffix =
    sidecars.includes(other.slice(base.length)) || isSameFile(known, otherCase(known))
  return base !== other && hasSuffix && isSameFile(known, base)
}

const sidecarSuffix = /-(?:wal|shm|journal)$/i

function otherCase(path: string): string {
  const name = basename(path)
  return join(dirname(path), name === name.toUpperCase() ? name.toLowerCase() : name.toUpperCase())
}

export function assertUnchanged(path: string, version: string): void {
  if (fileVersion(path) !== version)
    throw new PlantsError('unavailable', `${path} was changed while it was read`, {
      hint: 'Try again',
    })
}

/** With the time of its last change, which nobody can set. */
export function fileVersion(path: string): string {
  const versions = [path, `${path}-wal`].map((file) =>
    statSync(file, { throwIfNoEntry: false, bigint: true }),
  )
  return versions
    .map(
      (stats) =>
        stats && [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join(':'),
    )
    .join(' ')
}

/** By the header alone (https://sqlite.org/fileformat2.html, 1.3): the file is not opened as a database. */
export function isStoreFile(path: string): boolean {
  return (
    bytesAt(path, 0, 16).toString() === 'SQLite format 3\0' &&
    bytesAt(path, 68, 4).toString() === 'plnt'
  )
}

/** https://sqlite.org/fileformat2.html, 1.3 */
export function isInWalMode(path: string): boolean {
  return bytesAt(path, 18, 1)[0] === 2
}

/** Zeros after the end of the file. */
function bytesAt(path: string, position: number, length: number): Buffer {
  const fd = openSync(path, 'r')
  try {
    const bytes = Buffer.alloc(length)
    readSync(fd, bytes, 0, length, position)
    return bytes
  } finally {
    closeSync(fd)
  }
}

export function assertSafeToOpen(path: string): void {
  const stats = statSync(path)
  if (stats.isDirectory()) throw Object.assign(new Error('is a directory'), { code: 'EISDIR' })
  if (!stats.isFile()) throw notOurs(path, 'is a device or a pipe, not a store')
  const linked = 'has more than one hard link, and each would have its own write-ahead log'
  if (stats.nlink > 1) throw notOurs(path, linked, 'Copy the file instead')
  // For SQLite, what another user has put into such a file belongs to the store.
  for (const file of sidecars.map((suffix) => path + suffix)) {
    const sidecar = lstatSync(file, { throwIfNoEntry: false })
    const isOurs = sidecar?.isFile() && (sidecar.uid === stats.uid || isTrusted(sidecar.uid))
    if (!sidecar || isOurs) continue
    const word = shellWord(file)
    if (!sidecar.isFile())
      throw notOurs(
        path,
        `cannot be used with ${file}, which is not a regular file`,
        `Remove it: ${isWindows ? 'del' : 'rm'} ${word}`,
      )
    const hint = `If you trust this user, change its owner: chown ${stats.uid} ${word}. Otherwise remove it: rm ${word}`
    throw notOurs(
      path,
      `cannot be used with ${file}, which belongs to another user (uid ${sidecar.uid})`,
      hint,
    )
  }
  assertNoSuperJournal(path)
}

const sidecars = ['-wal', '-shm', '-journal']

/**
 * A journal can end with the name of a super-journal, which SQLite deletes on rollback
 * (https://sqlite.org/fileformat2.html#the_rollback_journal). A store never has one: no transaction spans two files.
 */
function assertNoSuperJournal(path: string): void {
  const journal = `${path}-journal`
  const { length } = superJournalMark
  const { size } = statSync(journal, { throwIfNoEntry: false }) ?? { size: 0 }
  const end =
    size < length ? undefined : unlessSystemError(() => bytesAt(journal, size - length, length))
  if (end?.equals(superJournalMark))
    throw notOurs(
      path,
      `is not a store of plants: ${journal} names another file, which SQLite would delete`,
    )
}

const superJournalMark = Buffer.from('d9d505f920a163d7', 'hex')

/** Another process may have created any of the folders without a sync yet. */
export function syncFolders(path: string): void {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    syncFolder(folder)
    if (folder === dirname(folder)) return
  }
}
