/** Finds the permission that a user lacks to use the file of a store. */
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { getSystemCode } from '../../errors.js'
import { findExistingPath, isThisUser } from '../../platform/files.js'

interface MissingPermission {
  reason: string
  hint: string
}

export const anotherFolderHint = 'Choose a file in another directory'
const readOnlyDiskHint = 'Choose a file on another disk'
const permissionHint = 'Grant this permission with chmod or chown'

/** @returns undefined if this user has all permissions that a store needs */
export function findMissingPermission(path: string): MissingPermission | undefined {
  const { X_OK, R_OK, W_OK } = constants
  // The directory of the default store is created, in the nearest directory that exists.
  const folder = findExistingPath(dirname(path))
  const neededPermissions = [
    ...listFoldersAbove(path).map((name) => ({
      target: name,
      mode: X_OK,
      action: `enter the directory ${name}`,
    })),
    { target: path, mode: R_OK, action: 'read it' },
    { target: path, mode: W_OK, action: 'write to it' },
    // SQLite keeps a log next to a store, and an index of the log.
    { target: folder, mode: W_OK, action: `write to the directory ${folder}` },
    ...['-wal', '-shm'].map((suffix) => ({
      target: path + suffix,
      mode: R_OK | W_OK,
      action: `read and write ${path}${suffix}`,
    })),
  ]
  for (const { target, mode, action } of neededPermissions) {
    const code = findAccessError(target, mode)
    if (code === 'EROFS')
      return { reason: `its disk is read-only: nobody may ${action}`, hint: readOnlyDiskHint }
    if (code === 'EACCES' || code === 'EPERM')
      return { reason: `this user may not ${action}`, hint: choosePermissionHint(target, path) }
  }
  return undefined
}

/**
 * Chooses the hint for a missing permission. A new store does not belong in a directory of the
 * system, such as /etc, whose permissions should stay as they are.
 */
function choosePermissionHint(target: string, path: string): string {
  const { uid } = statSync(target)
  const isOfSystem = uid === 0 && !isThisUser(uid)
  return isOfSystem && !existsSync(path) ? anotherFolderHint : permissionHint
}

/** Lists the folders that lead to a file, from the root of the file system downwards. */
function listFoldersAbove(path: string): string[] {
  const folder = dirname(path)
  return folder === path ? [] : [...listFoldersAbove(folder), folder]
}

/**
 * Checks a permission without opening the file: when a process closes any descriptor of a file,
 * POSIX releases all locks of the process on the file, and so the locks of SQLite.
 */
function findAccessError(path: string, mode: number): string | undefined {
  try {
    accessSync(path, mode)
    return undefined
  } catch (error) {
    return getSystemCode(error)
  }
}
