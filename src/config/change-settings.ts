/*
 * A change of the settings file must never lose a token. So conf reads, changes and writes the
 * whole file under a lock, which ends with its process, and a copy of the file is kept until the
 * new one was read back: settings-copy.ts says why.
 */
import { closeSync, fchmodSync, fsyncSync, openSync, readFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type Conf from 'conf'
import { PlantsError, unlessSystemError, usageError } from '../errors.js'
import { toWriteError } from '../platform/atomic-file.js'
import { acquireLock } from '../platform/file-lock.js'
import { makeFolder, resolveLink } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import type { Address } from '../stores/address.js'
import { describeKindsWith, findKind, hasCapability } from '../stores/kinds.js'
import { getSetting, listSettings, type SettingName } from './setting-table.js'
import {
  copySettings,
  recoverSettings,
  removeCopy,
  removeTemporaryFiles,
  restoreCopy,
} from './settings-copy.js'
import { readLockedSettings, settingsPath } from './settings-file.js'
import type { SavedSettings, SavedStore } from './settings-schema.js'
import { parseSettings, toLockPath } from './settings-text.js'
import { isStoreName } from './store-name.js'

/** Reads and changes what is saved. Each call of `set` or `delete` writes the file. */
type Settings = Pick<Conf<SavedSettings>, 'get' | 'set' | 'has' | 'delete'>

/**
 * Returns what `change` returns. What it throws changes nothing.
 *
 * @throws {PlantsError} `unwritable`, `input` for an invalid file, and `unavailable` when the
 *   lock is not free before the timeout
 */
export async function changeSettings<Result>(
  io: Io,
  timeoutMs: number,
  change: (settings: Settings) => Result,
): Promise<Result> {
  const conf = await import('conf') // slow, so before the lock is acquired
  const path = await settingsPath(io)
  try {
    makeFolder(dirname(path))
    const target = resolveLink(path)
    const release = await acquireLock(toLockPath(target), timeoutMs, io)
    try {
      recoverSettings(target)
      await readLockedSettings(path, io) // conf would quote what is not valid
      return changeWithCopy(target, conf.default, change)
    } finally {
      release()
    }
  } catch (error) {
    const hint = 'Choose another directory with PLANTS_CONFIG_DIR'
    throw toWriteError(`The settings in ${path}`, path, error, hint)
  }
}

function changeWithCopy<Result>(
  target: string,
  ConfClass: typeof Conf,
  change: (settings: Settings) => Result,
): Result {
  let written: string | undefined
  copySettings(target)
  try {
    const settings = new ConfClass<SavedSettings>({
      cwd: dirname(target),
      configName: basename(target),
      fileExtension: '', // the name has it
      configFileMode: 0o600,
      accessPropertiesByDotNotation: false,
      serialize: (saved) => {
        written = JSON.stringify(Object.assign({ version: 1 }, saved), undefined, '\t')
        return written
      },
      deserialize: (text) => parseSettings(Buffer.from(text)) ?? throwCutError(target),
    })
    const result = change(settings)
    if (written !== undefined) assertWritten(target, written)
    removeCopy(target)
    return result
  } catch (error) {
    // What is left after a failure here, the next run finds.
    unlessSystemError(() => (written === undefined ? removeCopy(target) : restoreCopy(target)))
    throw error
  } finally {
    unlessSystemError(() => removeTemporaryFiles(target))
  }
}

/** conf does not always sync the file, or give one that it writes in place its mode. */
function assertWritten(target: string, text: string): void {
  const fd = openSync(target, 'r+') // Windows syncs no file that is open for reading only
  try {
    if (readFileSync(fd, 'utf8') !== text) throwCutError(target)
    fchmodSync(fd, 0o600)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

function throwCutError(target: string): never {
  const message = `The settings in ${target} were not saved, because only a part of them could be written`
  const hint = 'Free some space on the disk, then run the command again'
  throw new PlantsError('unwritable', message, { hint })
}

export function assertStoreName(name: string): void {
  if (isStoreName(name)) return
  // The name is not repeated: it may be an address with its password.
  throw usageError(
    'The name of the store is not valid',
    'Use up to 64 letters, digits, "-" and "_", of which the first is a letter or a digit. The name "local" is taken',
  )
}

/** Throws `usage` for a setting that has no effect at the address. */
export function assertSettingsFor(address: Address, saved: SavedStore): void {
  for (const name of listSettings('store')) {
    const { needs } = getSetting(name)
    if (saved[name] === undefined || needs === undefined || hasCapability(address, needs)) continue
    const others = describeKindsWith(needs)
    const message = `--${name} is for ${others}, and ${address.name} is ${findKind(address).noun}`
    throw usageError(message, `Leave --${name} out`)
  }
}

export function without<Fields extends object>(fields: Fields, name: string): Fields {
  const others = { ...fields }
  Reflect.deleteProperty(others, name)
  return others
}

/** True or false, the absolute path of a file, or the text unchanged. Throws `usage`. */
export async function parseSavedValue(
  name: SettingName,
  source: string,
  text: string,
  io: Io,
): Promise<string | boolean> {
  const { parse, isSwitch } = getSetting(name)
  const value = parse(source, text)
  if (isSwitch) return value === true
  if (name !== 'ca-cert') return text
  const path = io.resolvePath(text)
  const { readCertificates } = await import('../platform/certificates.js')
  readCertificates(path)
  return path
}
