import { chmodSync, closeSync, constants, existsSync, mkdtempSync, openSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Conf from 'conf'
import { moveIntoPlace, unwritableReasons } from '../platform/atomic-file.js'
import { PlantsError, shellWord, systemCode } from '../platform/errors.js'
import { holdLock } from '../platform/file-lock.js'
import { giveToOwner, makeFolder, prefixFor, removeFolder, targetOf, tempFoldersBeside } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import { maxFileBytes, type SavedSettings, settingsPath } from './file.js'

/**
 * Runs an action while nobody else can replace the settings file, and gives it the means to do so: for the file's owner alone,
 * and as a whole. Whoever reads it meanwhile, or is killed in the middle, finds or leaves the old one or the new one.
 *
 * @param patience milliseconds that others may take before
 * @throws {PlantsError} `unwritable` when the file cannot be replaced, `unavailable` when others took too long; what the action throws
 */
export async function whileLocked<T>(io: Io, patience: number, action: (replace: Replace) => Promise<T>): Promise<T> {
  const path = await settingsPath(io)
  try {
    makeFolder(dirname(path), finishFolder)
    const target = targetOf(path, io)
    const run = () => action((settings) => replace(target, settings))
    return await holdLock(`${target}.lock`, { timeout: patience, clock: io, trusts: io.trusts }, run)
  } catch (error) {
    if (error instanceof PlantsError && (error.kind === 'interrupted' || error.kind === 'terminated')) {
      throw new PlantsError(error.kind, `${error.message}, nothing was changed`, { cause: error })
    }
    const code = systemCode(error)
    if (code === undefined) throw error
    throw new PlantsError('unwritable', `The settings in ${path} could not be changed: ${reasons[code] ?? `the system says ${code}`}`, {
      hint:
        code === readOnly
          ? `Make the file writable: chmod u+w ${shellWord(path)}`
          : 'Choose another folder with PLANTS_CONFIG_DIR, or use flags and variables instead',
      cause: error,
    })
  }
}

type Replace = (settings: SavedSettings) => void

const reasons: Record<string, string> = {
  ...unwritableReasons,
  ENOENT: 'their folder is gone, or the one that a link leads to',
  ENOTDIR: 'what should be their folder is none',
  ELOOP: 'their links lead in a circle',
  EBUSY: 'the file is mounted by itself',
  EREADONLY: 'the file is read-only',
}

/** What we say of a file that lacks its owner's right to write: to replace it would take no such right. */
const readOnly = 'EREADONLY'

function finishFolder(folder: string): void {
  openToOwner(folder)
  give(folder, constants.O_DIRECTORY ?? 0)
}

/** Whatever the umask has taken away; else there is nothing to change. */
function openToOwner(folder: string): void {
  if ((statSync(folder).mode & 0o700) !== 0o700) chmodSync(folder, 0o700)
}

/** Gives what root has made, for a user with `sudo`, to whoever owns its place: never by way of a link, which that user could put there. */
function give(path: string, kind: number, owner = statSync(dirname(path))): void {
  if (process.platform === 'win32') return
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | kind)
  try {
    giveToOwner(fd, owner)
  } finally {
    closeSync(fd)
  }
}

/** conf writes into a folder that nobody else can enter, or has made before; its file then takes the place of the old one. */
function replace(target: string, settings: SavedSettings): void {
  const old = statSync(target, { throwIfNoEntry: false })
  if (old && (old.mode & 0o200) === 0) throw Object.assign(new Error('read-only'), { code: readOnly })
  // What a process has left that was killed: with the lock held, nobody else is writing.
  for (const left of tempFoldersBeside(target)) removeFolder(left)
  const folder = mkdtempSync(join(dirname(target), prefixFor(target)))
  try {
    openToOwner(folder)
    const conf = new Conf({ cwd: folder, configName: 'settings', configFileMode: 0o600, accessPropertiesByDotNotation: false })
    conf.store = { ...settings }
    if (statSync(conf.path).size > maxFileBytes) {
      throw new PlantsError('malformed', `The settings in ${target} would be larger than 1 MiB`, {
        hint: 'Remove something from them first',
      })
    }
    give(conf.path, 0, old ?? statSync(dirname(target)))
    try {
      moveIntoPlace(conf.path, target)
    } catch (error) {
      if (existsSync(conf.path)) throw error // else the change is in effect: only a crash could still undo it
    }
  } finally {
    removeFolder(folder)
  }
}
