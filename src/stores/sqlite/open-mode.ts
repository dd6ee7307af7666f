/**
 * Chooses how the file of a store is opened, by what this user may do with it, and whether others
 * have it open.
 */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { ignoreSystemError, PlantsError } from '../../errors.js'
import { isThisUser, isWritableFile, readBytes, resolveRealPath } from '../../platform/files.js'
import type { Purpose } from '../store-kind.js'
import { createUnusableStoreError } from './explain.js'

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
