import { constants, copyFileSync, existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { unwritableReasons } from '../platform/atomic-file.js'
import { isWindows, malformed, PlantsError, shellWord, systemCode, unlessSystemError } from '../platform/errors.js'
import { asOwnerOf, makeFolder, syncFolder, targetOf, unsetSnap } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import { maxFileBytes, readSettings, type SavedSettings, settingsPath } from './settings-file.js'

/** The same object when nothing has changed. */
type Change = Record<'before' | 'after', SavedSettings>

/**
 * Atomic, under a lock. A change that has no effect needs no write permission. Throws `unwritable`, `malformed` for an
 * invalid file, `unavailable` when the lock is not free before the timeout, and the errors of `change`.
 */
export async function changeSettings(
  io: Io,
  { timeout }: { timeout: number },
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
    const { default: Conf } = await import('conf') // slow, so loaded before the lock is acquired
    const { holdLock } = await import('../platform/file-lock.js')
    path = await settingsPath(io)
    return await asOwnerOf(dirname(path), () => {
      makeFolder(dirname(path))
      const target = targetOf(path, io)
      return holdLock(`${target}.lock`, { timeout, clock: io, trusts: io.trusts }, async (lock) => {
        const made = await plan()
        if (made.after !== made.before) {
          assertWritable(target)
          lock.assertHeld()
          try {
            write(target, made.after, Conf, join(lock.directory, 'settings.json'))
          } finally {
            lock.assertHeld()
          }
        }
        return made
      })
    })
  } catch (error) {
    throw explain(error, path)
  }
}

function explain(cause: unknown, path: string): unknown {
  // the depth at which the stack overflows depends on the version of Node
  if (cause instanceof RangeError)
    return malformed(
      'The settings are nested too deeply to be written',
      'Fix the settings file, or move it away',
      cause,
    )
  if (cause instanceof PlantsError && cause.isInterruption)
    return new PlantsError(cause.type, `${cause.message}, nothing was changed`, { cause })
  const code = systemCode(cause)
  if (code === undefined) return cause
  const noFolder = 'their directory, or the directory that a link points to, does not exist'
  const reason = code === 'ENOENT' ? noFolder : unwritableReasons[code]
  const hint = 'Choose another directory with PLANTS_CONFIG_DIR, or use flags and variables instead'
  return unwritable(path, reason ?? `system error ${code}`, hint, cause)
}

function unwritable(path: string, reason: string, hint: string, cause?: unknown): PlantsError {
  return new PlantsError('unwritable', `The settings in ${path} could not be changed: ${reason}`, { hint, cause })
}

function assertWritable(target: string): void {
  const { mode = 0o200 } = statSync(target, { throwIfNoEntry: false }) ?? {}
  if ((mode & 0o200) !== 0) return
  const command = isWindows ? 'attrib -r' : 'chmod u+w'
  throw unwritable(target, 'the file is read-only', `Make the file writable: ${command} ${shellWord(target)}`)
}

function write(target: string, settings: SavedSettings, Conf: typeof import('conf').default, copy: string): void {
  const [folder, name] = [dirname(target), basename(target)]
  // What conf has left in processes that were killed may contain tokens. Nobody else writes under the lock.
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const isLeft = entry.name.startsWith(`${name}.tmp-`) && /\.tmp-\d{10}[\da-f]{6}$/.test(entry.name)
    if (isLeft && entry.isFile()) unlessSystemError(() => rmSync(join(folder, entry.name)))
  }
  const text = JSON.stringify(settings, undefined, '\t')
  const length = Buffer.byteLength(text)
  if (length > maxFileBytes)
    throw malformed(`The settings in ${target} would be larger than 1 MiB`, 'Remove something from them first')
  unsetSnap()
  const conf = new Conf({
    cwd: folder,
    configName: name,
    fileExtension: '',
    configFileMode: 0o600,
    accessPropertiesByDotNotation: false,
    serialize: () => text,
    deserialize: () => ({ ...settings }), // the old ones are read and checked already
  })
  // conf replaces the file also by one that did not fit on a full disk.
  if (existsSync(target)) copyFileSync(target, copy, constants.COPYFILE_EXCL)
  conf.store = { ...settings }
  if (statSync(target).size < length) {
    if (existsSync(copy)) renameSync(copy, target)
    else rmSync(target)
    throw Object.assign(new Error('The file is incomplete'), { code: 'ENOSPC' })
  }
  // conf has synced the file, but not its name. If that fails, the file is replaced all the same.
  unlessSystemError(() => syncFolder(folder))
}
