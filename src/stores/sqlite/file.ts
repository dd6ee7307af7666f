import { closeSync, constants, existsSync, fchmodSync, openSync, readSync, realpathSync, type Stats, statSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { PlantsError, systemCode } from '../../platform/errors.js'
import { linksOf, makeFolder, syncFolder } from '../../platform/files.js'
import { connect, type Database, uriOf } from '../../platform/sqlite.js'
import type { FileAddress, OpenOptions } from '../store.js'
import { explainFailure, isFull, isWritable, notOurs } from './failure.js'

/**
 * The real path of a file that may not be there yet. SQLite keeps the log beside the file that a link leads to, so
 * everything that looks for the log must go by this path.
 *
 * @throws {PlantsError} `unavailable` when the system does not tell it
 */
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
 * Makes the file of a store, empty and for its owner alone, unless it is there. The file is made before SQLite sees it,
 * because SQLite would make it readable for others. It is never opened here once it exists: closing it again would
 * drop the locks that SQLite holds on it in this process (https://sqlite.org/howtocorrupt.html, 2.2).
 */
export function makeFile({ path, isDefault }: Pick<FileAddress, 'path' | 'isDefault'>): void {
  if (isDefault) makeFolder(dirname(path))
  try {
    const fd = openSync(path, 'wx', 0o600)
    fchmodSync(fd, 0o600) // whatever the umask takes away
    closeSync(fd)
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
  }
}

/** Whether there is a store to read: a file that is more than an empty one. */
export function fileHasContent(path: string): boolean {
  return (statIfThere(path)?.size ?? 0) > 0
}

/** Reports who owns the file of a store that is there, and who owns the links that lead to it. */
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

/** Connects to an existing file to write to it. */
export function openToWrite(path: string): Database {
  checkKind(path)
  return connect(uriOf(path, 'mode=rw'), { readOnly: false })
}

/**
 * Connects to an existing file; where nothing may be written, for reading alone.
 *
 * @param frozen what `isFrozen` said of it; asked once, because a log may come or go at any moment
 */
export function openToRead(path: string, frozen: boolean): Database {
  checkKind(path)
  if (frozen) return connect(uriOf(path, 'mode=ro&immutable=1'), { readOnly: true })
  return isWritable(path) ? openToWrite(path) : connect(uriOf(path, 'mode=ro'), { readOnly: true })
}

/** Connects to an existing file for a look that leaves no trace. */
export function openToPeek(path: string): Database {
  checkKind(path)
  if (statSync(path).isDirectory()) return openToWrite(path) // which says so
  return connect(peekUriOf(path), { readOnly: true })
}

/** The URI of a file to be read without a trace: where there is no log, SQLite would make one. */
export function peekUriOf(path: string): string {
  return uriOf(path, existsSync(`${path}-wal`) ? 'mode=ro' : 'mode=ro&immutable=1')
}

/**
 * Whether the file is all there is, and SQLite cannot make what it needs beside it, for lack of rights or of room: "immutable"
 * then spares it that. Without a lock it cannot see that somebody else writes, see `stampOf`.
 *
 * @throws {PlantsError} when a crash has left changes beside the file, which take a writer to bring in
 */
export function isFrozen(path: string): boolean {
  const left = ['-wal', '-journal'].map((suffix) => path + suffix).find(fileHasContent)
  if (left === undefined) return !isWritable(path) || isFull(path)
  if (isWritable(path)) return false
  if (fileHasContent(`${path}-shm`)) return false
  const why = `was not closed: its last changes are in ${left}, and reading them takes a folder that can be written`
  throw notOurs(path, why, 'Copy both files to such a folder')
}

/** Which file a path leads to now; why that cannot be told, where the system will not say. */
export function identityOf(path: string): string {
  try {
    const { dev, ino } = statSync(path, { bigint: true })
    return `${dev}:${ino}`
  } catch (error) {
    const code = systemCode(error) ?? 'unknown'
    return code === 'ENOENT' ? 'none' : code
  }
}

/**
 * Whether a path leads to the file of a store, or to one that SQLite keeps beside it.
 *
 * @param store the real path of the store
 */
export function isPartOf(store: string, path: string): boolean {
  const isOne = (one: string, other: string) => identityOf(one).includes(':') && identityOf(one) === identityOf(other)
  const isSame = (file: string) => file === path || (basename(file) === basename(path) && isOne(dirname(file), dirname(path)))
  return ['', '-wal', '-shm', '-journal'].some((suffix) => isSame(store + suffix) || isOne(store + suffix, path))
}

/** Changes whenever the file does, or its log. */
export function stampOf(path: string): string {
  const stamps = [path, `${path}-wal`].map((file) => statSync(file, { throwIfNoEntry: false, bigint: true }))
  return stamps.map((stats) => stats && `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}`).join(' ')
}

/**
 * Throws `unavailable` when what was read without a lock, or without a trace, is of no use, because somebody has written meanwhile.
 *
 * @param stamp of the file from before; of one that was read with a lock there is none
 */
export function checkStamp(path: string, stamp: string | undefined, cause?: unknown): void {
  if (stamp === undefined || stamp === stampOf(path)) return
  throw new PlantsError('unavailable', `${path} was changed while it was read`, { hint: 'Try again', retryable: true, cause })
}

function checkKind(path: string): void {
  const stats = statSync(path)
  if (!stats.isFile() && !stats.isDirectory()) throw notOurs(path, 'is a device or a pipe, not a store')
  if (stats.isFile() && stats.nlink > 1) {
    throw notOurs(path, 'has a second name (a hard link), and each name would have a log of its own', 'Copy the file instead')
  }
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
 * Makes a connection durable. It can be called again when SQLite was busy.
 * EXTRA is FULL, and holds also where somebody has turned the write-ahead log off.
 */
export function secure(db: Database): void {
  db.exec('PRAGMA synchronous=EXTRA; PRAGMA fullfsync=1; PRAGMA checkpoint_fullfsync=1')
}

/**
 * Makes the names of a new file and of its folders durable. Any of them may just have been made, by this process or by
 * one that has not come to this line yet, so all of them are synced; a folder that this user may not open was not made by this user.
 */
export function syncFolders(path: string): void {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    syncFolder(folder)
    if (folder === dirname(folder)) return
  }
}
