import { chmodSync, closeSync, constants, existsSync, mkdtempSync, openSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { moveIntoPlace, unwritableReasons } from '../platform/atomic-file.js'
import { PlantsError, shellWord, systemCode } from '../platform/errors.js'
import { holdLock } from '../platform/file-lock.js'
import { giveToOwner, makeFolder, prefixFor, removeFolder, targetOf, tempFoldersBeside } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import { maxFileBytes, readSettings, type SavedSettings, settingsPath } from './file.js'

/** What was saved, and what is now: the very same object where nothing has changed. */
interface Change {
  before: SavedSettings
  after: SavedSettings
}

/**
 * Changes the settings file as a whole, under a lock: whoever reads it meanwhile, or is killed in the middle, finds or leaves the old one or
 * the new one. A change that changes nothing writes nothing, and nothing need be writable.
 *
 * @param lockTimeout milliseconds to wait for another process that changes the settings
 * @param change gets what is saved at that moment, and gives what is to be; what it throws leaves the file as it is
 * @throws {PlantsError} `unwritable` when the file cannot be replaced, `malformed` when it is broken, `unavailable` when the lock is not free in time
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
    makeFolder(dirname(path), finishFolder)
    const target = targetOf(path, io)
    return await holdLock(`${target}.lock`, { timeout: lockTimeout, clock: io, trusts: io.trusts }, async () => {
      const made = await plan()
      if (made.after !== made.before) replace(target, made.after, Conf)
      return made
    })
  } catch (error) {
    throw explain(error, path)
  }
}

function explain(cause: unknown, path: string): unknown {
  if (cause instanceof RangeError) {
    // How deep is too deep depends on the version of Node, and on how the JSON is laid out.
    const message = 'The settings hold lists or objects in one another, too deep to be written again'
    return new PlantsError('malformed', message, { hint: 'Fix the settings file, or move it away', cause })
  }
  if (cause instanceof PlantsError && (cause.kind === 'interrupted' || cause.kind === 'terminated'))
    return new PlantsError(cause.kind, `${cause.message}, nothing was changed`, { cause })
  const code = systemCode(cause)
  if (code === undefined) return cause
  const hint =
    code === readOnly
      ? `Make the file writable: chmod u+w ${shellWord(path)}`
      : 'Choose another folder with PLANTS_CONFIG_DIR, or use flags and variables instead'
  const reason = reasons[code] ?? `the system says ${code}`
  return new PlantsError('unwritable', `The settings in ${path} could not be changed: ${reason}`, { hint, cause })
}

/** The code for a file without its owner's right to write, which replacing it would not need. */
const readOnly = 'EREADONLY'

const reasons: Record<string, string> = {
  ...unwritableReasons,
  ENOENT: 'their folder is gone, or the one that a link leads to',
  ENOTDIR: 'what should be their folder is none',
  ELOOP: 'their links lead in a circle',
  EBUSY: 'the file is mounted by itself',
  [readOnly]: 'the file is read-only',
}

function finishFolder(folder: string): void {
  openToOwner(folder)
  give(folder, constants.O_DIRECTORY ?? 0, statSync(dirname(folder)))
}

/** Whatever the umask has taken away; else there is nothing to change. */
function openToOwner(folder: string): void {
  if ((statSync(folder).mode & 0o700) !== 0o700) chmodSync(folder, 0o700)
}

/** Gives what root has made, for a user with `sudo`, to the owner of its place: never by way of a link, which that user could put there. */
function give(path: string, kind: number, owner: { uid: number; gid: number }): void {
  if (process.platform === 'win32') return
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | kind)
  try {
    giveToOwner(fd, owner)
  } finally {
    closeSync(fd)
  }
}

/** conf writes into a folder that nobody else can enter, or has made before; its file then takes the place of the old one. */
function replace(target: string, settings: SavedSettings, Conf: typeof import('conf').default): void {
  const parent = dirname(target)
  const old = statSync(target, { throwIfNoEntry: false })
  if (old && (old.mode & 0o200) === 0) throw Object.assign(new Error('read-only'), { code: readOnly })
  // What a killed process has left: with the lock held, nobody else is writing.
  for (const left of tempFoldersBeside(target)) removeFolder(left)
  const folder = mkdtempSync(join(parent, prefixFor(target)))
  try {
    openToOwner(folder)
    const conf = new Conf({ cwd: folder, configName: 'settings', configFileMode: 0o600, accessPropertiesByDotNotation: false })
    conf.store = { ...settings }
    if (statSync(conf.path).size > maxFileBytes) {
      const hint = 'Remove something from them first'
      throw new PlantsError('malformed', `The settings in ${target} would be larger than 1 MiB`, { hint })
    }
    give(conf.path, 0, old ?? statSync(parent))
    try {
      moveIntoPlace(conf.path, target)
    } catch (error) {
      if (existsSync(conf.path)) throw error // else the change is in effect: only a crash could still undo it
    }
  } finally {
    removeFolder(folder)
  }
}
