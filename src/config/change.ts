import { chmodSync, existsSync, mkdtempSync, renameSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { moveIntoPlace, unwritableReasons } from '../platform/atomic-file.js'
import { malformed, PlantsError, shellWord, systemCode } from '../platform/errors.js'
import type { Lock } from '../platform/file-lock.js'
import { asOwnerOf, makeFolder, prefixFor, removeFolder, targetOf, tempFoldersBeside } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import { maxFileBytes, readSettings, type SavedSettings, settingsPath } from './file.js'

/** The settings before and after a change: the same object when nothing has changed. */
type Change = Record<'before' | 'after', SavedSettings>

/**
 * Changes the settings file atomically, under a lock: a concurrent reader, or a crash, sees either the old file or the new one. A change
 * that has no effect writes nothing, and needs no write permission. Throws `unwritable`, `malformed` for an invalid file, `unavailable`
 * when the lock is not free before the timeout, and the errors of `change`.
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
    const { default: Conf } = await import('conf') // takes 17 ms, so it is loaded before the lock is acquired
    const { holdLock } = await import('../platform/file-lock.js')
    path = await settingsPath(io)
    return await asOwnerOf(dirname(path), () => {
      makeFolder(dirname(path), (directory) => chmodSync(directory, 0o700))
      const target = targetOf(path, io)
      return holdLock(`${target}.lock`, { timeout: lockTimeout, clock: io, trusts: io.trusts }, async (lock) => {
        const made = await plan()
        if (made.after !== made.before) replace(target, made.after, Conf, lock)
        return made
      })
    })
  } catch (cause) {
    if (cause instanceof RangeError) {
      // The depth at which the stack overflows depends on the version of Node and on the layout of the JSON.
      const message = 'The settings are nested too deeply to be written'
      throw malformed(message, 'Fix the settings file, or move it away', cause)
    }
    if (cause instanceof PlantsError && (cause.kind === 'interrupted' || cause.kind === 'terminated'))
      throw new PlantsError(cause.kind, `${cause.message}, nothing was changed`, { cause })
    const code = systemCode(cause)
    if (code === undefined) throw cause
    const reason = code === 'ENOENT' ? 'their directory, or the directory that a link points to, does not exist' : unwritableReasons[code]
    const hint = 'Choose another directory with PLANTS_CONFIG_DIR, or use flags and variables instead'
    throw unwritable(path, reason ?? `system error ${code}`, hint, cause)
  }
}

function unwritable(path: string, reason: string, hint: string, cause?: unknown): PlantsError {
  return new PlantsError('unwritable', `The settings in ${path} could not be changed: ${reason}`, { hint, cause })
}

/**
 * conf writes to a new directory that nobody else can access. Then its file replaces the old one, unless the lock is
 * lost.
 */
function replace(target: string, settings: SavedSettings, Conf: typeof import('conf').default, lock: Lock): void {
  const old = statSync(target, { throwIfNoEntry: false })
  if (old && (old.mode & 0o200) === 0)
    throw unwritable(
      target,
      'the file is read-only',
      `Make the file writable: ${process.platform === 'win32' ? 'attrib -r' : 'chmod u+w'} ${shellWord(target)}`,
    )
  // Left by killed processes: nobody else writes while this process holds the lock.
  for (const left of tempFoldersBeside(target)) removeFolder(left)
  const folder = mkdtempSync(join(dirname(target), prefixFor(target)))
  try {
    chmodSync(folder, 0o700) // independent of the umask
    const conf = new Conf({ cwd: folder, configName: 'settings', configFileMode: 0o600, accessPropertiesByDotNotation: false })
    conf.store = { ...settings }
    if (statSync(conf.path).size > maxFileBytes)
      throw malformed(`The settings in ${target} would be larger than 1 MiB`, 'Remove something from them first')
    const ready = join(lock.directory, 'settings.json')
    try {
      renameSync(conf.path, ready)
      moveIntoPlace(ready, target)
    } catch (error) {
      lock.assertHeld()
      // Otherwise it is renamed, but not synced: only a crash could undo that.
      if (existsSync(conf.path) || existsSync(ready)) throw error
    }
  } finally {
    removeFolder(folder)
  }
}
