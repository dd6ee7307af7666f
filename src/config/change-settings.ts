import { rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { replaceFile, syncName } from '../platform/atomic-file.js'
import {
  isWindows,
  PlantsError,
  systemReason,
  unlessSystemError,
  usageError,
} from '../platform/errors.js'
import { acquireLock } from '../platform/file-lock.js'
import { makeFolder, targetOf } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import { shellWord } from '../platform/shell.js'
import type { Address } from '../stores/common/address.js'
import { schemes } from '../stores/registry.js'
import { type SettingName, settingOf, settingsIn } from './setting-table.js'
import {
  isStoreName,
  maxFileBytes,
  readSettings,
  type SavedSettings,
  type SavedStore,
  settingsPath,
} from './settings-file.js'

/** The same object when nothing has changed. */
type Change = Record<'before' | 'after', SavedSettings>

/**
 * Atomic, under a lock. `change` is called to find out whether it has an effect, for which no permission to write is
 * needed, and again under the lock. Throws `unwritable`, `usage` for an invalid file, `unavailable` when the lock
 * is not free before the timeout, and the errors of `change`.
 *
 * @param timeout in milliseconds
 */
export async function changeSettings(
  io: Io,
  timeout: number,
  change: (saved: SavedSettings) => SavedSettings | Promise<SavedSettings>,
): Promise<Change> {
  const plan = async (): Promise<Change> => {
    const { saved: before } = await readSettings(io)
    const after = await change(before)
    return { before, after: JSON.stringify(before) === JSON.stringify(after) ? before : after }
  }
  let path = ''
  let release: (() => void) | undefined
  try {
    const planned = await plan()
    if (planned.after === planned.before) return planned
    const { default: Conf } = await import('conf') // slow, so loaded before the lock is acquired
    path = await settingsPath(io)
    makeFolder(dirname(path))
    const target = targetOf(path)
    release = await acquireLock(`${target}.lock`, timeout, io)
    const made = await plan()
    if (made.after !== made.before) write(target, made.after, Conf)
    return made
  } catch (error) {
    throw explain(error, path)
  } finally {
    release?.()
  }
}

function explain(cause: unknown, path: string): unknown {
  // The depth at which the stack overflows depends on the version of Node.
  if (cause instanceof RangeError)
    return usageError(
      'The settings are nested too deeply to be written',
      'Fix the settings file, or move it away',
      cause,
    )
  if (cause instanceof PlantsError && cause.isInterruption)
    return new PlantsError(cause.kind, `${cause.message}, nothing was changed`, { cause })
  const reason = systemReason(cause)
  if (reason === undefined) return cause
  const hint =
    'Choose another directory with PLANTS_CONFIG_DIR, or use options and variables instead'
  return unwritable(path, reason, hint, cause)
}

function unwritable(path: string, reason: string, hint: string, cause?: unknown): PlantsError {
  return new PlantsError('unwritable', `The settings in ${path} could not be changed: ${reason}`, {
    hint,
    cause,
  })
}

/**
 * conf writes a new file, because it replaces a file also by what did not fit on a full disk, and in a snap writes over
 * it. Its directory has one name, so that what a killed process has left in it, such as tokens, goes.
 */
function write(target: string, settings: SavedSettings, Conf: typeof import('conf').default): void {
  const { mode = 0o200 } = statSync(target, { throwIfNoEntry: false }) ?? {}
  const command = isWindows ? 'attrib -r' : 'chmod u+w'
  if ((mode & 0o200) === 0)
    throw unwritable(
      target,
      'the file is read-only',
      `Make the file writable: ${command} ${shellWord(target)}`,
    )
  const length = Buffer.byteLength(JSON.stringify(settings, undefined, '\t'))
  if (length > maxFileBytes)
    throw usageError(
      `The settings in ${target} would be larger than 1 MiB`,
      'Remove something from them first',
    )
  const folder = `${target}.new`
  try {
    rmSync(folder, { recursive: true, force: true })
    makeFolder(folder)
    const conf = new Conf({
      cwd: folder,
      configFileMode: 0o600,
      accessPropertiesByDotNotation: false,
    })
    conf.store = { ...settings }
    if (statSync(conf.path).size < length)
      throw Object.assign(new Error('The file is incomplete'), { code: 'ENOSPC' })
    replaceFile(conf.path, target)
    syncName(target)
  } finally {
    unlessSystemError(() => rmSync(folder, { recursive: true, force: true }))
  }
}

export function assertStoreName(name: string): void {
  if (isStoreName(name)) return
  if (name === 'local')
    throw usageError('The store local is built in, and cannot be changed', 'Choose another name')
  const hint =
    'A name has letters, digits, "-" and "_", begins with a letter or digit, and is up to 64 long'
  throw usageError('A store cannot be called this', hint) // not repeated: it may be an address with its password
}

/** Throws `usage` for a setting that has no effect at the address. */
export function assertSettingsFor({ scheme, name: store }: Address, saved: SavedStore): void {
  for (const name of settingsIn('store')) {
    const { onlyFor = scheme } = settingOf(name)
    if (saved[name] === undefined || onlyFor === scheme) continue
    const isCertificate = name === 'ca-cert' && scheme === 'postgres'
    const hint = isCertificate
      ? `Leave it out, and add to the address: sslrootcert=${saved[name]}`
      : 'Leave it out'
    throw usageError(
      `--${name} is for ${schemes[onlyFor].noun}, and ${store} is ${schemes[scheme].noun}`,
      hint,
    )
  }
}

/** @returns `fields` with the value, or without it */
export function withField<Fields extends object>(
  fields: Fields,
  name: string,
  value: string | boolean | undefined,
): Fields {
  const changed = { ...fields, [name]: value }
  if (value === undefined) Reflect.deleteProperty(changed, name)
  return changed
}

/** True or false, the absolute path of a file, otherwise the text unchanged. Throws `usage`. */
export async function savedValue(
  name: SettingName,
  source: string,
  text: string,
  io: Io,
): Promise<string | boolean> {
  const { parse, isSwitch } = settingOf(name)
  const value = parse(source, text)
  if (isSwitch) return value === true
  if (name === 'output') return String(value) // in its own letter case
  if (name !== 'ca-cert') return text
  const path = io.resolvePath(text)
  const { readCertificates } = await import('../platform/certificates.js')
  readCertificates(path, source.startsWith('-') ? source : undefined)
  return path
}
