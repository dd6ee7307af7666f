import { closeSync, constants, existsSync, fchmodSync, openSync, readSync, realpathSync, type Stats, statSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { systemCode } from '../../platform/errors.js'
import { linksOf, makeFolder, syncFolder } from '../../platform/files.js'
import type { FileAddress } from '../address.js'
import type { OpenOptions } from '../store.js'
import { explainFailure, isFull, isWritable, notOurs } from './errors.js'

/** The real path of a file that may not be there yet: SQLite keeps the log beside the file that a link leads to. */
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
 * Makes the file of a store, empty and for its owner alone, unless it is there: SQLite would make it readable for others. One that exists
 * is not opened, because closing it would drop the locks that SQLite holds on it in this process (https://sqlite.org/howtocorrupt.html, 2.2).
 * Returns whether it was made.
 */
export function makeFile({ path, isDefault }: Pick<FileAddress, 'path' | 'isDefault'>): boolean {
  if (isDefault) makeFolder(dirname(path))
  try {
    const fd = openSync(path, 'wx', 0o600)
    fchmodSync(fd, 0o600) // whatever the umask takes away
    closeSync(fd)
    return true
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
    return false
  }
}

/** Whether there is a store to read: a file that is more than an empty one. */
export function fileHasContent(path: string): boolean {
  return (statIfThere(path)?.size ?? 0) > 0
}

/** Reports who owns the file of a store, and the links that lead to it. */
export async function reportOwner(address: Pick<FileAddress, 'path'>, { onOwner }: Pick<OpenOptions, 'onOwner'>): Promise<void> {
  const path = realPathOf(address.path)
  const owner = statIfThere(path)?.uid
  if (owner === undefined) return
  await onOwner?.(path, owner, 'store')
  for (const link of linksOf(address.path)) await onOwner?.(link.path, link.uid, 'link')
}

/** From Node 22 on, `throwIfNoEntry` says of a path through what is no folder, too, that nothing is there, and hides that nothing can be. */
export function statIfThere(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
    return undefined
  }
}

/**
 * Whether the file is all there is, and SQLite cannot make what it needs beside it, for lack of rights or of room.
 *
 * @throws {PlantsError} when a crash has left changes beside the file, which take a writer to bring in
 */
export function isImmutable(path: string): boolean {
  const left = ['-wal', '-journal'].map((suffix) => path + suffix).find(fileHasContent)
  if (left === undefined) return !isWritable(path) || isFull(path)
  if (isWritable(path) || fileHasContent(`${path}-shm`)) return false
  const why = `was not closed: its last changes are in ${left}, and reading them takes a folder that can be written`
  throw notOurs(path, why, 'Copy both files to such a folder')
}

/** Which file a path leads to now, as device:inode; `none`, or the system's error code, when that cannot be found out. */
export function identityOf(path: string): string {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return `${dev}:${ino}`
  } catch (error) {
    const code = systemCode(error) ?? 'unknown'
    return code === 'ENOENT' ? 'none' : code
  }
}

/** Whether a path leads to the file of a store, given by its real path, or to one that SQLite keeps beside it. */
export function isPartOf(store: string, path: string): boolean {
  const isOne = (one: string, other: string) => identityOf(one).includes(':') && identityOf(one) === identityOf(other)
  const isSame = (file: string) => file === path || (basename(file) === basename(path) && isOne(dirname(file), dirname(path)))
  return ['', '-wal', '-shm', '-journal'].some((suffix) => isSame(store + suffix) || isOne(store + suffix, path))
}

/** Changes whenever the file does, or its log. */
export function fileVersion(path: string): string {
  const versions = [path, `${path}-wal`].map((file) => statSync(file, { throwIfNoEntry: false, bigint: true }))
  return versions.map((stats) => stats && `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}`).join(' ')
}

/** Throws unless a path leads to a file that SQLite can be given. */
export function checkKind(path: string): void {
  const stats = statSync(path)
  if (stats.isDirectory()) throw Object.assign(new Error('is a directory'), { code: 'EISDIR' })
  if (!stats.isFile()) throw notOurs(path, 'is a device or a pipe, not a store')
  if (stats.nlink > 1)
    throw notOurs(path, 'has a second name (a hard link), and each name would have a log of its own', 'Copy the file instead')
  checkJournal(path)
}

/**
 * Refuses a file whose journal ends with the name of a super-journal: SQLite would delete the file of that name when it rolls back
 * (https://sqlite.org/fileformat2.html#the_rollback_journal). No store has one, because no transaction of ours spans two files.
 */
function checkJournal(path: string): void {
  const journal = `${path}-journal`
  const size = statIfThere(journal)?.size ?? 0
  const end = Buffer.alloc(superJournalMark.length)
  if (size < end.length) return
  let fd: number | undefined
  try {
    fd = openSync(journal, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)) // a pipe in its place must not hold us
    readSync(fd, end, 0, end.length, size - end.length)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error // whoever wrote it has committed
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
  if (end.equals(superJournalMark))
    throw notOurs(path, `is not a store of plants: ${journal} names another file, which SQLite would delete`)
}

const superJournalMark = Buffer.from('d9d505f920a163d7', 'hex')

/**
 * Makes the names of a new file and of its folders durable. Any of them may just have been made, by this process or by another that has not
 * come to this line yet; a folder that this user may not open was not made by this user.
 */
export function syncFolders(path: string): void {
  let folder = path
  do {
    folder = dirname(folder)
    syncFolder(folder)
  } while (folder !== dirname(folder))
}
