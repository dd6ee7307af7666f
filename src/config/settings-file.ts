import { isUtf8 } from 'node:buffer'
import { existsSync, readFileSync, type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import type { JSONVisitor } from 'jsonc-parser'
import { inputError, isWindows, systemCode, systemReason } from '../errors.js'
import { isObject } from '../plant/json.js'
import { isTrusted, octal, whyOthersCanWrite } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import { shellWord } from '../platform/shell.js'
import { isLoginAddress } from '../stores/address.js'
import { type SettingName, settingOf, settingsIn } from './setting-table.js'

/** Stores are keyed by name, tokens by the address of their store. */
export interface SavedSettings extends SavedValues {
  version: 1
  stores?: Record<string, SavedStore>
  /** `savedAt` is in ISO 8601 */
  tokens?: Record<string, { token: string; savedAt: string }>
}

export type SavedStore = SavedValues & { address: string }

type SavedValues = { [name in SettingName]?: string | boolean }

export interface SettingsFile {
  /** Absolute. */
  path: string
  saved: SavedSettings
  /** Whether others can read it. */
  warning?: { what: string; command: string } | undefined
}

export async function settingsPath({ env, resolvePath, configFolder }: Io): Promise<string> {
  const folder = env['PLANTS_CONFIG_DIR']
  return join(folder ? resolvePath(folder) : await configFolder(), 'settings.json')
}

/**
 * A missing file is empty. Throws `input` for one that is invalid, unreadable, or that others can
 * change.
 */
export async function readSettings(io: Io): Promise<SettingsFile> {
  const path = await settingsPath(io)
  const settings = `The settings in ${path}`
  let stats: Stats
  let bytes: Buffer
  try {
    stats = statSync(path)
    bytes = readFileSync(path)
  } catch (error) {
    // Under `sudo -u`, the directory may be root's, unless it was named.
    const isHidden = !io.env['PLANTS_CONFIG_DIR'] && !existsSync(path)
    const code = systemCode(error)
    if (code === 'ENOENT' || (code === 'EACCES' && isHidden)) return { path, saved: { version: 1 } }
    const reason = systemReason(error)
    if (reason === undefined) throw error
    const hint = 'Change its permissions, or set PLANTS_CONFIG_DIR to another directory'
    throw inputError(`${settings} could not be read: ${reason}`, hint, error)
  }
  const command = `chmod 600 ${shellWord(path)}`
  const why = whyOthersCanWrite(stats)
  if (why !== undefined) {
    const hint = isTrusted(stats.uid)
      ? `Check what it contains, then run: ${command}`
      : 'Set PLANTS_CONFIG_DIR to a directory of your own'
    throw inputError(`${settings} are in a file that ${why}`, hint)
  }
  const saved = await parseSettings(bytes, settings)
  for (const { token } of Object.values(saved.tokens ?? {})) io.secrets.add(token)
  if (isWindows || (stats.mode & 0o077) === 0) return { path, saved }
  const what = `${settings} are open to others ${octal(stats.mode)}`
  return { path, saved, warning: { what, command } }
}

async function parseSettings(bytes: Buffer, settings: string): Promise<SavedSettings> {
  const fail = (why: string) =>
    inputError(`${settings} are ${why}`, 'Fix the file, or move it away')
  if (!isUtf8(bytes)) throw fail('not UTF-8')
  const text = bytes.toString().replace(/^\uFEFF/, '')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // JSON.parse repeats a piece of the text, such as of a token, and often names no position.
    throw fail(`not JSON${await placeOfError(text)}`)
  }
  const problems = settingsProblems(value)
  if (problems.length > 0) throw fail(`invalid: ${problems.slice(0, 5).join('; ')}`)
  return value as SavedSettings // what has no problems is one
}

/** Such as `, in line 2, column 5`. */
async function placeOfError(text: string): Promise<string> {
  const { visit } = await import('jsonc-parser')
  const places: string[] = []
  const visitor: JSONVisitor = {
    onError: (_error, _offset, _length, line, column) =>
      places.push(`, in line ${line + 1}, column ${column + 1}`),
  }
  visit(text, visitor, { disallowComments: true })
  return places[0] ?? ''
}

/** Never contain a wrong value itself: it may be a token. */
function settingsProblems(value: unknown): string[] {
  if (!isObject(value)) return ['the document must be an object']
  const { version, stores = {}, tokens = {} } = value
  if (version !== 1) return ['version must be 1']
  return [
    ...wrongValues('', value, [], settingsIn('user')),
    ...wrongEntries('stores', stores, isStoreName, ['address'], settingsIn('store')),
    ...wrongEntries('tokens', tokens, isLoginAddress, ['token', 'savedAt']),
  ]
}

/** A key that is wrong is not named: it may be a token, or an address with its password. */
function wrongEntries(
  section: string,
  entries: unknown,
  isKey: (key: string) => boolean,
  required: string[],
  settings: SettingName[] = [],
): string[] {
  if (!isObject(entries)) return [`${section} must be an object`]
  return Object.entries(entries).flatMap(([key, entry]) => {
    const path = `${section}.${isKey(key) ? key : '***'}`
    if (!isObject(entry)) return [`${path} must be an object`]
    return wrongValues(`${path}.`, entry, required, settings)
  })
}

function wrongValues(
  prefix: string,
  values: Record<string, unknown>,
  required: string[],
  settings: SettingName[],
): string[] {
  const unless = (name: string, type: 'string' | 'boolean') => {
    const rule = type === 'boolean' ? 'true or false' : 'a string'
    return typeof values[name] === type ? [] : [`${prefix}${name} must be ${rule}`]
  }
  const given = settings.filter((name) => values[name] !== undefined)
  return [
    ...required.flatMap((name) => unless(name, 'string')),
    ...given.flatMap((name) => unless(name, settingOf(name).isSwitch ? 'boolean' : 'string')),
  ]
}

export function isStoreName(word: string): boolean {
  return /^[a-z\d][\w-]{0,63}$/i.test(word) && word !== 'local'
}

/** A name may also be that of a property that every object inherits. */
export function savedStore({ stores = {} }: SavedSettings, name: string): SavedStore | undefined {
  return Object.hasOwn(stores, name) ? stores[name] : undefined
}
