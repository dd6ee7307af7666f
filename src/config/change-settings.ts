/*
 * Changes the settings file. Two processes may change it at once, and either may be killed, but no
 * token may be lost. So conf reads, changes and writes the whole file under a lock, which the
 * system releases when the process ends. A copy of the file is kept until the new one was read
 * back: settings-copy.ts says why.
 */
import { closeSync, fchmodSync, fsyncSync, openSync, readFileSync, readlinkSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type Conf from 'conf'
import { createUsageError, getSystemCode, ignoreSystemError, PlantsError } from '../errors.js'
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
import { findSettingsPath, readLockedSettings } from './settings-file.js'
import type { SavedSettings, SavedStore } from './settings-schema.js'
import { parseSettings, toLockPath } from './settings-text.js'
import { isStoreName } from './store-name.js'

/**
 * The methods of conf that read and change settings. `set` and `delete` write the file each time.
 */
type Settings = Pick<Conf<SavedSettings>, 'get' | 'set' | 'has' | 'delete'>

/**
 * Changes the settings file, and returns what `change` returns. If `change` throws, the file stays
 * as it was.
 *
 * @param timeoutMs how long to wait for the lock
 * @throws {PlantsError} `unwritable`, `input` for an invalid file, and `unavailable` when the lock
 *   is not free before the timeout
 */
export async function changeSettings<Result>(
  io: Io,
  timeoutMs: number,
  change: (settings: Settings) => Result,
): Promise<Result> {
  // conf takes long to load, so it is loaded before the lock is taken.
  const conf = await import('conf')
  const path = await findSettingsPath(io)
  try {
    makeFolder(dirname(path))
    const target = resolveSettingsLink(path)
    const release = await acquireLock(toLockPath(target), timeoutMs, io)
    try {
      recoverSettings(target)
      // This rejects an invalid file. The error of conf would quote a part of the file, which may
      // be a token.
      await readLockedSettings(path, io)
      return changeWithCopy(target, conf.default, change)
    } finally {
      release()
    }
  } catch (error) {
    const hint = 'Choose another directory with PLANTS_CONFIG_DIR'
    throw toWriteError(`The settings in ${path}`, path, error, hint)
  }
}

/** @throws {PlantsError} `unwritable` for a link to nothing */
function resolveSettingsLink(path: string): string {
  try {
    return resolveLink(path)
  } catch (error) {
    if (getSystemCode(error) !== 'ENOENT') throw error
    const message = `The settings file ${path} is a link to a file that does not exist`
    const hint = `Delete the link, or create what it names: ${readlinkSync(path)}`
    throw new PlantsError('unwritable', message, { hint, cause: error })
  }
}

function changeWithCopy<Result>(
  target: string,
  ConfClass: typeof Conf,
  change: (settings: Settings) => Result,
): Result {
  let writtenContent: string | undefined
  copySettings(target)
  try {
    const settings = new ConfClass<SavedSettings>({
      cwd: dirname(target),
      configName: basename(target),
      fileExtension: '', // The name of the file ends with it already.
      configFileMode: 0o600,
      accessPropertiesByDotNotation: false,
      serialize: (saved) => {
        writtenContent = JSON.stringify(Object.assign({ version: 1 }, saved), undefined, '\t')
        return writtenContent
      },
      deserialize: (content) =>
        parseSettings(Buffer.from(content)) ?? throwPartialWriteError(target),
    })
    const result = change(settings)
    if (writtenContent !== undefined) verifyWrittenFile(target, writtenContent)
    removeCopy(target)
    return result
  } catch (error) {
    // If this fails, the copy stays, and the next run recovers the settings from it.
    ignoreSystemError(() =>
      writtenContent === undefined ? removeCopy(target) : restoreCopy(target),
    )
    throw error
  } finally {
    ignoreSystemError(() => removeTemporaryFiles(target))
  }
}

/**
 * Checks what conf has written, and completes it: conf does not always sync the file, and does not
 * set the mode of a file that it writes into.
 */
function verifyWrittenFile(target: string, content: string): void {
  const fd = openSync(target, 'r+') // Windows cannot sync a file that is open for reading only.
  try {
    if (readFileSync(fd, 'utf8') !== content) throwPartialWriteError(target)
    fchmodSync(fd, 0o600)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

function throwPartialWriteError(target: string): never {
  const message = `The settings in ${target} were not saved, because only a part of them could be written`
  const hint = 'Free some space on the disk, then run the command again'
  throw new PlantsError('unwritable', message, { hint })
}

export function assertStoreName(name: string): void {
  if (isStoreName(name)) return
  if (name === 'local')
    throw createUsageError('The name "local" belongs to the built-in store', 'Choose another name')
  // The name is not repeated: it may be an address with its password.
  throw createUsageError(
    'The name of the store is not valid',
    'A name has up to 64 letters, digits, "-" and "_", of which the first is a letter or a digit',
  )
}

/**
 * @throws {PlantsError} `usage` for a setting that has no effect at the address, such as a token
 *   command for a file
 */
export function assertSettingsFor(address: Address, saved: SavedStore): void {
  for (const name of listSettings('store')) {
    const { needs } = getSetting(name)
    if (saved[name] === undefined || needs === undefined || hasCapability(address, needs)) continue
    const kinds = describeKindsWith(needs)
    const message = `--${name} is for ${kinds}, and ${address.name} is ${findKind(address).noun}`
    throw createUsageError(message, `Leave --${name} out`)
  }
}

export function omitKey<Fields extends object>(fields: Fields, name: string): Fields {
  const remaining = { ...fields }
  Reflect.deleteProperty(remaining, name)
  return remaining
}

/**
 * Converts the value of a setting to the value that is saved: true or false for a switch, an
 * absolute path for a path, and any other value unchanged, such as `30s`.
 *
 * @throws {PlantsError} `usage` for an invalid value
 */
export async function parseSavedValue(
  name: SettingName,
  origin: string,
  rawValue: string,
  io: Io,
): Promise<string | boolean> {
  const { parse, isSwitch } = getSetting(name)
  const value = parse(origin, rawValue)
  if (isSwitch) return value === true
  if (name !== 'ca-cert') return rawValue
  const path = io.resolvePath(rawValue)
  const { readCertificates } = await import('../platform/certificates.js')
  readCertificates(path)
  return path
}
