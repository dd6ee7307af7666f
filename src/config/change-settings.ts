/*
 * A change of the settings file must never lose a token. So it reads, changes and writes the whole
 * file under a lock, and replaces it when the new one is on the disk. conf writes that into a
 * directory of its own: by itself it replaces the settings also by what fitted on a full disk. The
 * lock of SQLite ends with its process.
 */
import { rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { unlessSystemError, usageError } from '../errors.js'
import { replaceFile, unwritable } from '../platform/atomic-file.js'
import { acquireLock } from '../platform/file-lock.js'
import { makeFolder, targetOf } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import type { Address } from '../stores/address.js'
import { describeKindsWith, findKind, hasCapability } from '../stores/kinds.js'
import { type SettingName, settingOf, settingsIn } from './setting-table.js'
import {
  isStoreName,
  readSettings,
  type SavedSettings,
  type SavedStore,
  settingsPath,
} from './settings-file.js'

/**
 * Throws `unwritable`, `input` for an invalid file, and `unavailable` when the lock is not free
 * before the timeout.
 */
export async function changeSettings(
  io: Io,
  timeoutMs: number,
  change: (saved: SavedSettings) => SavedSettings | Promise<SavedSettings>,
) {
  const { default: Conf } = await import('conf') // slow, so before the lock is acquired
  const path = await settingsPath(io)
  try {
    makeFolder(dirname(path))
    const target = targetOf(path)
    const release = await acquireLock(`${target}.lock`, timeoutMs, io)
    try {
      const { saved: before } = await readSettings(io)
      const after = await change(before)
      const isChanged = JSON.stringify(before) !== JSON.stringify(after)
      if (isChanged) replaceSettings(target, after, Conf)
      return { before, after, isChanged }
    } finally {
      release()
    }
  } catch (error) {
    const hint = 'Choose another directory with PLANTS_CONFIG_DIR'
    throw unwritable(`The settings in ${path}`, path, error, hint)
  }
}

/**
 * The directory of the new file has one name, so that the tokens that a killed process has left in
 * it go.
 */
function replaceSettings(
  target: string,
  settings: SavedSettings,
  Conf: typeof import('conf').default,
): void {
  const folder = `${target}.new`
  try {
    rmSync(folder, { recursive: true, force: true })
    makeFolder(folder)
    const conf = new Conf({ cwd: folder, configFileMode: 0o600 })
    conf.store = { ...settings }
    const wholeBytes = Buffer.byteLength(JSON.stringify(settings, undefined, '\t'))
    if (statSync(conf.path).size < wholeBytes)
      throw Object.assign(new Error('The disk is full'), { code: 'ENOSPC' })
    replaceFile(conf.path, target)
  } finally {
    unlessSystemError(() => rmSync(folder, { recursive: true, force: true }))
  }
}

export function assertStoreName(name: string): void {
  if (isStoreName(name)) return
  // The name is not repeated: it may be an address with its password.
  throw usageError(
    'A store cannot be called this',
    'A name has letters, digits, "-" and "_", begins with a letter or digit, is up to 64 long, and is not "local"',
  )
}

/** Throws `usage` for a setting that has no effect at the address. */
export function assertSettingsFor(address: Address, saved: SavedStore): void {
  for (const name of settingsIn('store')) {
    const { needs } = settingOf(name)
    if (saved[name] === undefined || needs === undefined || hasCapability(address, needs)) continue
    const others = describeKindsWith(needs)
    const message = `--${name} is for ${others}, and ${address.name} is ${findKind(address).noun}`
    throw usageError(message, 'Leave it out')
  }
}

export function without<Fields extends object>(fields: Fields, name: string): Fields {
  const others = { ...fields }
  Reflect.deleteProperty(others, name)
  return others
}

/** True or false, the absolute path of a file, or the text unchanged. Throws `usage`. */
export async function savedValue(
  name: SettingName,
  source: string,
  text: string,
  io: Io,
): Promise<string | boolean> {
  const { parse, isSwitch } = settingOf(name)
  const value = parse(source, text)
  if (isSwitch) return value === true
  if (name !== 'ca-cert') return text
  const path = io.resolvePath(text)
  const { readCertificates } = await import('../platform/certificates.js')
  readCertificates(path)
  return path
}
