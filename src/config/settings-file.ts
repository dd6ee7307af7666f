import { isUtf8 } from 'node:buffer'
import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../plant/exact-json.js'
import { isWindows, malformed, octal, PlantsError, shellWord, systemCode, systemReasons } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { isTrusted, whyOthersCanWrite } from '../platform/trust.js'
import { isLoginAddress } from '../stores/common/address.js'
import { type SettingName, settingOf, settingsIn } from './setting-table.js'

/** Stores are keyed by name, tokens by the address of their store. */
export interface SavedSettings extends SavedValues {
  version: 1
  stores?: Record<string, SavedStore>
  /** `savedAt` is in ISO 8601 */
  tokens?: Record<string, { token: string; savedAt: string }>
}

export type SavedStore = SavedValues & { address: string }

/** A name may also be that of a property that every object inherits. */
export function savedStore({ stores = {} }: SavedSettings, name: string): SavedStore | undefined {
  return Object.hasOwn(stores, name) ? stores[name] : undefined
}

type SavedValues = { [name in SettingName]?: string | boolean }

export interface SettingsFile {
  /** absolute; undefined when there is no folder for settings */
  path: string | undefined
  saved: SavedSettings
  /** others can read it */
  warning?: { what: string; command: string } | undefined
}

export async function settingsPath({ env, resolvePath, configFolder }: Io): Promise<string> {
  const folder = env['PLANTS_CONFIG_DIR'] ? resolvePath(env['PLANTS_CONFIG_DIR']) : await configFolder()
  return join(folder, 'settings.json')
}

/** A missing file counts as empty. Throws `malformed` for an invalid file. */
export async function readSettings(io: Io): Promise<SettingsFile> {
  let path: string | undefined
  try {
    path = await settingsPath(io)
    const { bytes, mode } = readOwn(path)
    const saved = parseSettings(bytes, path)
    addTokens(saved, io)
    const what = `The settings in ${path} are open to others ${octal(mode)}`
    const isOpen = !isWindows && (mode & 0o077) !== 0
    return { path, saved, warning: isOpen ? { what, command: `chmod 600 ${shellWord(path)}` } : undefined }
  } catch (error) {
    const nothing: SettingsFile = { path, saved: { version: 1 } }
    if (path === undefined && error instanceof PlantsError && !io.env['PLANTS_CONFIG_DIR']) return nothing
    const code = systemCode(error)
    if (path === undefined || code === undefined) throw error
    // A folder without access counts as missing: under `sudo -u`, it may be in the home of root.
    if (code === 'ENOENT' || code === 'ENOTDIR' || (code === 'EACCES' && !existsSync(path))) return nothing
    const hint =
      code === 'ELOOP' ? 'Fix the link' : 'Change its permissions, or set PLANTS_CONFIG_DIR to another directory'
    throw broken(path, `could not be read: ${systemReasons[code] ?? code}`, hint, error)
  }
}

/** Without passwords, each of which may be a common word: it is added when it is used. */
function addTokens({ tokens = {} }: SavedSettings, { secrets }: Io): void {
  for (const [address, { token }] of Object.entries(tokens)) if (!address.startsWith('postgres:')) secrets.add(token)
}

export const maxFileBytes = 1_048_576

function readOwn(path: string): { bytes: Buffer; mode: number } {
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)) // a pipe in its place must not block
  try {
    const stats = fstatSync(fd)
    if (!stats.isFile())
      throw broken(path, stats.isDirectory() ? 'are a directory' : 'are not a regular file', 'Move it away')
    if (stats.size > maxFileBytes) throw broken(path, 'are larger than 1 MiB')
    const why = whyOthersCanWrite(stats)
    if (why !== undefined)
      throw broken(
        path,
        `are in a file that ${why}`,
        isTrusted(stats.uid)
          ? `Check what it contains, then run: chmod 600 ${shellWord(path)}`
          : 'Set PLANTS_CONFIG_DIR to a directory of your own',
      )
    return { bytes: readFileSync(fd), mode: stats.mode }
  } finally {
    closeSync(fd)
  }
}

function parseSettings(bytes: Buffer, path: string): SavedSettings {
  if (bytes.length === 0) throw broken(path, 'are empty', `Move the file away, or write {"version":1} into it`)
  if (!isUtf8(bytes)) throw broken(path, 'are not UTF-8')
  const text = bytes.toString().replace(/^\uFEFF/, '')
  const value = parsed(text)
  if (value === undefined) throw broken(path, 'are not JSON')
  const problems = problemsOf(value)
  if (problems.length === 0) return value as SavedSettings // `problemsOf` has checked it
  if (isObject(value) && typeof value['version'] === 'number' && value['version'] > 1) {
    const why = `were written by a newer plants (version ${value['version']})`
    throw broken(path, why, 'Update plants, or set PLANTS_CONFIG_DIR to another directory')
  }
  throw broken(path, `are invalid: ${problems.slice(0, 5).join('; ')}`)
}

/** Undefined for what is not JSON: the sentence of the parser repeats a piece of it, which may be of a token. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The key and the rule of each, but never the value, which may be a token. */
function problemsOf(value: unknown): string[] {
  if (!isObject(value)) return ['the document must be an object']
  const { version, stores = {}, tokens = {} } = value
  return [
    ...(version === 1 ? [] : ['version must be 1']),
    ...problemsOfFields(value, '', [], settingsIn('user')),
    ...problemsOfEntries(stores, 'stores', (store, key) =>
      problemsOfFields(store, key, ['address'], settingsIn('store')),
    ),
    ...problemsOfEntries(tokens, 'tokens', (token, key) => problemsOfFields(token, key, ['token', 'savedAt'])),
  ]
}

/** Names an entry of `tokens` only if its key is an address: it may be a token in the wrong place. */
function problemsOfEntries(
  entries: unknown,
  name: string,
  problems: (entry: Fields, key: string) => string[],
): string[] {
  if (!isObject(entries)) return [`${name} must be an object`]
  return Object.entries(entries).flatMap(([entryName, entry]) => {
    const key = `${name}.${name === 'tokens' && !isLoginAddress(entryName) ? '***' : entryName}`
    return isObject(entry) ? problems(entry, `${key}.`) : [`${key} must be an object`]
  })
}

function problemsOfFields(fields: Fields, key: string, required: string[], settings: SettingName[] = []): string[] {
  const isSwitch = (name: string) => settings.some((setting) => setting === name && settingOf(setting).isSwitch)
  return [...required, ...settings.filter((name) => fields[name] !== undefined)]
    .filter((name) => typeof fields[name] !== (isSwitch(name) ? 'boolean' : 'string'))
    .map((name) => `${key}${name} must be ${isSwitch(name) ? 'true or false' : 'a string'}`)
}

type Fields = Record<string, unknown>

function broken(path: string, why: string, hint = 'Fix the file, or move it away', cause?: unknown): PlantsError {
  return malformed(`The settings in ${path} ${why}`, hint, cause)
}
