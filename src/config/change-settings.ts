/*
 * Changes the settings file. Two processes may change it at once, and either may be killed, but no
 * token may be lost. So conf changes the settings under a lock, which the system releases when the
 * process ends. conf takes a short write, as on a full disk, for a success. It therefore writes a
 * new file, settings.json.new, which takes the place of settings.json when it was read back.
 */
import { readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type Conf from 'conf'
import { createUsageError, ignoreSystemError, PlantsError } from '../errors.js'
import { replaceFile, toWriteError } from '../platform/atomic-file.js'
import { acquireLock } from '../platform/file-lock.js'
import { makeFolder, resolveLink } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import type { Address } from '../stores/address.js'
import { findKind } from '../stores/kinds.js'
import { getSetting, listSettings, type SettingName } from './setting-table.js'
import { findSettingsPath, readSettings } from './settings-file.js'
import {
  isStoreName,
  parseSettings,
  type SavedSettings,
  type SavedStore,
} from './settings-schema.js'

/** The methods of conf that read and change settings. */
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
  const { default: ConfClass } = await import('conf')
  const path = await findSettingsPath(io)
  try {
    makeFolder(dirname(path))
    const target = resolveLink(path)
    // The lock file is never removed: a process that waits for the lock of a removed file would
    // not see the lock of its successor.
    const release = await acquireLock(`${target}.lock`, timeoutMs, io)
    try {
      removeTemporaryFiles(target)
      const { savedSettings } = await readSettings(io)
      return replaceSettings(target, savedSettings, ConfClass, change)
    } finally {
      ignoreSystemError(() => removeTemporaryFiles(target))
      release()
    }
  } catch (error) {
    const hint = 'Choose another directory with PLANTS_CONFIG_DIR'
    throw toWriteError(`The settings in ${path}`, path, error, hint)
  }
}

/**
 * Removes the files that a killed change has left, because they may hold tokens. conf gives its
 * temporary files names such as `settings.json.new.tmp-1764347755f3a09c`.
 */
function removeTemporaryFiles(target: string): void {
  const folder = dirname(target)
  const name = basename(target)
  const suffix = /^(?:\.new|(?:\.new)?\.tmp-\d{10}[\da-f]{6})$/
  for (const file of readdirSync(folder))
    if (file.startsWith(name) && suffix.test(file.slice(name.length)))
      rmSync(join(folder, file), { force: true })
}

/** @param target the path of settings.json itself, and not of a link to it */
function replaceSettings<Result>(
  target: string,
  savedSettings: SavedSettings,
  ConfClass: typeof Conf,
  change: (settings: Settings) => Result,
): Result {
  const newFile = `${target}.new`
  const settings = new ConfClass<SavedSettings>({
    cwd: dirname(newFile),
    configName: basename(newFile),
    fileExtension: '', // The name of the file ends with it already.
    configFileMode: 0o600,
    accessPropertiesByDotNotation: false,
    defaults: savedSettings, // conf writes them to the new file.
    // The error of JSON.parse would quote a part of the file, which may be a token.
    deserialize: (content) => parseSettings(Buffer.from(content)) ?? throwPartialWriteError(target),
  })
  const result = change(settings)
  const isChanged = !isDeepStrictEqual({ ...settings.store }, savedSettings)
  if (isChanged) replaceFile(newFile, target)
  return result
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
    'The first argument is not a name for a store',
    'A name has up to 64 letters, digits, "-" and "_", of which the first is a letter or a digit',
  )
}

/**
 * @throws {PlantsError} `usage` for a setting that has no effect at the address, such as a token
 *   command for a file
 */
export function assertSettingsFor(address: Address, saved: SavedStore): void {
  for (const name of listSettings('store')) {
    const { isForServices = false } = getSetting(name)
    const { token, noun } = findKind(address)
    if (saved[name] === undefined || !isForServices || token) continue
    const message = `--${name} is for a service, and ${address.name} is ${noun}`
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
 * absolute path for a path, a duration with its unit, and any other value unchanged.
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
  // The answer says what the number means: `5` is saved as `5s`.
  if (name === 'timeout' && /\d$/.test(rawValue)) return `${rawValue}s`
  if (name !== 'ca-cert') return rawValue
  const path = io.resolvePath(rawValue)
  const { readCertificates } = await import('../platform/certificates.js')
  readCertificates(path)
  return path
}
