import { chmodSync, closeSync, constants, existsSync, fchownSync, fstatSync, mkdtempSync, openSync, type Stats, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { moveIntoPlace, unwritableReasons } from '../platform/atomic-file.js'
import { malformed, PlantsError, shellWord, systemCode } from '../platform/errors.js'
import { holdLock } from '../platform/file-lock.js'
import { makeFolder, prefixFor, removeFolder, targetOf, tempFoldersBeside } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import { maxFileBytes, readSettings, type SavedSettings, settingsPath } from './file.js'

/** What was saved, and what is now: the very same object where nothing has changed. */
type Change = Record<'before' | 'after', SavedSettings>

/**
 * Changes the settings file as a whole, under a lock: whoever reads it meanwhile, or is killed in the middle, finds or leaves the old
 * one or the new one. A change that changes nothing writes nothing, and nothing need be writable. Throws `unwritable`, `malformed` for
 * a broken file, `unavailable` when the lock is not free in time, and what the change throws.
 */
export async function changeSettings(
  io: Io,
  { lockTimeout }: { lockTimeout: number },
  change: (saved: SavedSettings) => SavedSettings | Promise<SavedSettings>,
): Promise<Change> {
  const plan = async (): Promise<Change> => {
    const { saved: before } = await readSettings(io)
    const after = await change(before)
    return { before, after: JSON.stringify(before) === JSON.stringify(after) ? before : after }
  }
  let path = ''
  try {
    const planned = await plan()
    if (planned.after === planned.before) return planned
    const { default: Conf } = await import('conf') // 17 ms, in which nobody should wait for the lock
    path = await settingsPath(io)
    makeFolder(dirname(path), (folder) => {
      chmodSync(folder, 0o700)
      giveToOwner(folder, statSync(dirname(folder)))
    })
    const target = targetOf(path, io)
    return await holdLock(`${target}.lock`, { timeout: lockTimeout, clock: io, trusts: io.trusts }, async () => {
      const made = await plan()
      if (made.after !== made.before) replace(target, made.after, Conf)
      return made
    })
  } catch (cause) {
    if (cause instanceof RangeError) {
      // How deep is too deep depends on the version of Node, and on how the JSON is laid out.
      const message = 'The settings hold lists or objects in one another, too deep to be written again'
      throw malformed(message, 'Fix the settings file, or move it away', cause)
    }
    if (cause instanceof PlantsError && (cause.kind === 'interrupted' || cause.kind === 'terminated'))
      throw new PlantsError(cause.kind, `${cause.message}, nothing was changed`, { cause })
    const code = systemCode(cause)
    if (code === undefined) throw cause
    const reason = code === 'ENOENT' ? 'their folder is gone, or the one that a link leads to' : unwritableReasons[code]
    const hint = 'Choose another folder with PLANTS_CONFIG_DIR, or use flags and variables instead'
    throw unwritable(path, reason ?? `the system says ${code}`, hint, cause)
  }
}

function unwritable(path: string, reason: string, hint: string, cause?: unknown): PlantsError {
  return new PlantsError('unwritable', `The settings in ${path} could not be changed: ${reason}`, { hint, cause })
}

/** Gives what root has made, for a user with `sudo`, to the owner of its place: never a file that this user has linked there instead. */
function giveToOwner(path: string, { uid, gid }: Stats): void {
  if (process.platform === 'win32' || uid === 0) return
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0))
  try {
    const made = fstatSync(fd)
    if (made.uid === 0 && (made.isDirectory() || made.nlink === 1)) fchownSync(fd, uid, gid)
  } finally {
    closeSync(fd)
  }
}

/** conf writes into a folder that nobody else can enter, or has made before; its file then takes the place of the old one. */
function replace(target: string, settings: SavedSettings, Conf: typeof import('conf').default): void {
  const old = statSync(target, { throwIfNoEntry: false })
  if (old && (old.mode & 0o200) === 0)
    throw unwritable(target, 'the file is read-only', `Make the file writable: chmod u+w ${shellWord(target)}`)
  // What a killed process has left: with the lock held, nobody else is writing.
  for (const left of tempFoldersBeside(target)) removeFolder(left)
  const folder = mkdtempSync(join(dirname(target), prefixFor(target)))
  try {
    chmodSync(folder, 0o700) // whatever the umask has taken away
    const conf = new Conf({ cwd: folder, configName: 'settings', configFileMode: 0o600, accessPropertiesByDotNotation: false })
    conf.store = { ...settings }
    if (statSync(conf.path).size > maxFileBytes)
      throw malformed(`The settings in ${target} would be larger than 1 MiB`, 'Remove something from them first')
    giveToOwner(conf.path, old ?? statSync(dirname(target)))
    try {
      moveIntoPlace(conf.path, target)
    } catch (error) {
      if (existsSync(conf.path)) throw error // else the change is in effect: only a crash could still undo it
    }
  } finally {
    removeFolder(folder)
  }
}
