/*
 * The settings file holds tokens, and conf may leave it cut: a short write, as on a full disk, is
 * no error to it, and where SNAP is set, or where a rename would cross file systems, it writes in
 * place. So the file is copied to a name next to it before conf writes it, and the copy stays
 * until the new file was read back. Whoever finds a copy while holding the lock follows a process
 * that was killed in between: a valid file is complete, and a copy next to it may hold a token
 * that was removed: see docs/design/decisions.md.
 */
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { PlantsError, unlessSystemError } from '../errors.js'
import { AtomicFile, replaceFile } from '../platform/atomic-file.js'
import { acquireLock } from '../platform/file-lock.js'
import { explainWriteAccess, readSmallFile, resolveLink, syncFolder } from '../platform/files.js'
import type { Runtime } from '../platform/runtime.js'
import { parseSettings, toCopyPath, toLockPath } from './settings-text.js'

/** Copies the settings. If the disk has no room for them, this fails before they are changed. */
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
    if (isValid(target)) removeCopy(target)
    else if (isOwnCopy(toCopyPath(target))) restoreCopy(target)
  }
  removeTemporaryFiles(target)
}

function isValid(target: string): boolean {
  const file = unlessSystemError(() => readSmallFile(target))
  return file !== undefined && parseSettings(file.bytes) !== undefined
}

/**
 * Whether this user's change made the copy. A file of anybody else must not become the settings.
 */
function isOwnCopy(copy: string): boolean {
  const file = unlessSystemError(() => readSmallFile(copy))
  if (file === undefined || explainWriteAccess(file.stats) !== undefined) return false
  return file.bytes.length === 0 || parseSettings(file.bytes) !== undefined
}

/**
 * Removes the temporary files of killed processes: that of the copy, and those of conf, whose names
 * end with a time and six random digits.
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
 * user who may not write there changes nothing, and reads the file as it is.
 *
 * @throws {PlantsError} `unavailable` after the timeout
 */
export async function recoverForReader(
  path: string,
  timeoutMs: number,
  runtime: Runtime,
): Promise<void> {
  const target = unlessSystemError(() => resolveLink(path))
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
    unlessSystemError(() => recoverSettings(target))
  } finally {
    release()
  }
}
