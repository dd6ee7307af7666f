/*
 * Keeps a copy of the settings file while conf writes it, so that no token is ever lost.
 *
 * conf may leave the file truncated. It takes a short write, as on a full disk, for a success. And
 * where the variable SNAP is set, or where a rename would cross file systems, it writes into the
 * file itself instead of replacing it. So a change has three steps, all under the lock:
 *
 * 1. `copySettings` copies settings.json to settings.json.copy.
 * 2. conf writes settings.json, which is then read back.
 * 3. `removeCopy` removes the copy. If step 2 failed, `restoreCopy` makes it the settings again.
 *
 * In each function, `target` is the path of settings.json itself, and not of a link to it.
 *
 * A process that holds the lock and sees a copy therefore knows that another process was killed
 * between these steps. Then a valid settings.json is complete, and its copy is removed, because it
 * may hold a token that was removed from the settings. An invalid settings.json is replaced by its
 * copy. docs/design/decisions.md says why conf is used nevertheless, and what the lock is.
 */
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { ignoreSystemError, PlantsError } from '../errors.js'
import { AtomicFile, replaceFile } from '../platform/atomic-file.js'
import { acquireLock } from '../platform/file-lock.js'
import { explainWriteAccess, readSmallFile, resolveLink, syncFolder } from '../platform/files.js'
import type { Runtime } from '../platform/runtime.js'
import { parseSettings, toCopyPath, toLockPath } from './settings-text.js'

/**
 * Copies the settings, or creates an empty copy if there are none. On a full disk, this fails
 * before the settings are changed.
 */
export function copySettings(target: string): void {
  const copy = toCopyPath(target)
  const file = new AtomicFile(copy, { path: toTemporaryPath(copy) })
  try {
    writeFileSync(file.fd, existsSync(target) ? readFileSync(target) : '')
    file.commit()
  } finally {
    file.discard()
  }
}

/** Makes the copy the settings again. An empty copy says that there was no file. */
export function restoreCopy(target: string): void {
  const copy = toCopyPath(target)
  if (statSync(copy).size > 0) replaceFile(copy, target)
  else {
    rmSync(target, { force: true })
    removeCopy(target)
  }
}

export function removeCopy(target: string): void {
  rmSync(toCopyPath(target), { force: true })
  syncFolder(dirname(target))
}

/** Completes the change of a process that was killed. The caller holds the lock. */
export function recoverSettings(target: string): void {
  if (existsSync(toCopyPath(target))) {
    if (hasValidSettings(target)) removeCopy(target)
    else if (isOwnCopy(toCopyPath(target))) restoreCopy(target)
  }
  removeTemporaryFiles(target)
}

function hasValidSettings(target: string): boolean {
  const file = ignoreSystemError(() => readSmallFile(target))
  return file !== undefined && parseSettings(file.bytes) !== undefined
}

/**
 * Returns true for a copy that a change of this user has left. A file that another user could have
 * written must not become the settings, and neither must a file without valid settings.
 */
function isOwnCopy(copy: string): boolean {
  const file = ignoreSystemError(() => readSmallFile(copy))
  if (file === undefined || explainWriteAccess(file.stats) !== undefined) return false
  return file.bytes.length === 0 || parseSettings(file.bytes) !== undefined
}

/**
 * Removes the temporary files that killed processes have left. conf gives its temporary files names
 * such as `settings.json.tmp-1764347755f3a09c`: with the time in seconds and six random digits.
 */
export function removeTemporaryFiles(target: string): void {
  const folder = dirname(target)
  const name = basename(target)
  const confSuffix = /^\.tmp-\d{10}[\da-f]{6}$/
  for (const file of readdirSync(folder))
    if (file.startsWith(name) && confSuffix.test(file.slice(name.length)))
      rmSync(join(folder, file), { force: true })
  rmSync(toTemporaryPath(toCopyPath(target)), { force: true })
}

function toTemporaryPath(copy: string): string {
  return `${copy}.tmp`
}

/**
 * Waits for a change that another process is making, and completes one whose process was killed. A
 * user who may not write into the folder can complete nothing, and reads the file as it is.
 *
 * @throws {PlantsError} `unavailable` after the timeout
 */
export async function recoverForReader(
  path: string,
  timeoutMs: number,
  runtime: Runtime,
): Promise<void> {
  const target = ignoreSystemError(() => resolveLink(path))
  // Every change creates the lock file, so without one there is nothing to complete.
  if (target === undefined || !existsSync(toLockPath(target))) return
  let release: () => void
  try {
    release = await acquireLock(toLockPath(target), timeoutMs, runtime)
  } catch (error) {
    if (error instanceof PlantsError && error.kind === 'unwritable') return
    throw error
  }
  try {
    ignoreSystemError(() => recoverSettings(target))
  } finally {
    release()
  }
}
