import { isUtf8 } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../plant/exact-json.js'
import { inputError, isWindows, systemCode, systemReason } from '../platform/errors.js'
import { isTrusted, octal, whyOthersCanWrite } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import { shellWord } from '../platform/shell.js'
import { isLoginAddress } from '../stores/common/address.js'
import { type SettingName, savedType, settingsIn } from './setting-table.js'

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
    ? resolvePath(env['PLANTS_CONFIG_DIR'])
    : await configFolder()
  return join(folder, 'settings.json')
}

/**
 * A missing file counts as empty. The tokens are redacted from now on. Throws `input` for a file that is invalid, cannot be
 * read, or can be changed by others.
 */
export async function readSettings(io: Io): Promise<SettingsFile> {
  const path = await settingsPath(io)
  try {
    const stats = statSync(path)
    const why = whyOthersCanWrite(stats)
    if (why !== undefined) {
      const hint = isTrusted(stats.uid)
        ? `Check what it contains, then run: chmod 600 ${shellWord(path)}`
        : 'Set PLANTS_CONFIG_DIR to a directory of your own'
      throw inputError(`The settings in ${path} are in a file that ${why}`, hint)
    }
    const saved = parseSettings(readFileSync(path), path)
    for (const { token } of Object.values(saved.tokens ?? {})) io.secrets.add(token)
    if (isWindows || (stats.mode & 0o077) === 0) return { path, saved }
    const what = `The settings in ${path} are open to others ${octal(stats.mode)}`
    return { path, saved, warning: { what, command: `chmod 600 ${shellWord(path)}` } }
  } catch (error) {
    const code = systemCode(error)
    if (code === undefined) throw error
    if (code === 'ENOENT') return { path, saved: { version: 1 } }
    const hint = 'Change its permissions, or set PLANTS_CONFIG_DIR to another directory'
    throw inputError(
      `The settings in ${path} could not be read: ${systemReason(error)}`,
      hint,
      error,
    )
  }
}

function parseSettings(bytes: Buffer, path: string): SavedSettings {
  const hint = 'Fix the file, or move it away'
  let value: unknown
  try {
    value = JSON.parse(isUtf8(bytes) ? bytes.toString().replace(/^\uFEFF/, '') : '')
  } catch {
    // The sentence of the parser repeats a piece of the text, which may be of a token.
    throw inputError(`The settings in ${path} are not JSON`, hint)
  }
  const problems = settingsProblems(value)
  if (problems.length === 0) return value as SavedSettings // what has no problems is one
  throw inputError(`The settings in ${path} are invalid: ${problems.slice(0, 5).join('; ')}`, hint)
}

/** The key and the rule of each wrong value, but never the value itself: it may be a token. */
export function settingsProblems(value: unknown): string[] {
  if (!isObject(value)) return ['the document must be an object']
  const { version, stores = {}, tokens = {} } = value
  if (version !== 1) {
    const was = typeof version === 'number' ? `, but was ${version}` : ''
    return [`version must be 1${was}`]
  }
  return [
    ...wrongValues('', value, rulesIn('user')),
    ...wrongEntries('stores', stores, isStoreName, { address: text, ...rulesIn('store') }),
    ...wrongEntries('tokens', tokens, isLoginAddress, { token: text, savedAt: text }),
  ]
}

interface Rule {
  type: 'string' | 'boolean'
  isRequired: boolean
}

const text: Rule = { type: 'string', isRequired: true }

function rulesIn(scope: 'user' | 'store'): Record<string, Rule> {
  const rules = settingsIn(scope).map((name) => [
    name,
    { type: savedType(name), isRequired: false },
  ])
  return Object.fromEntries(rules)
}

/** A key that is wrong is not named: it may be a token, or an address with its password. */
function wrongEntries(
  section: string,
  entries: unknown,
  isKey: (key: string) => boolean,
  rules: Record<string, Rule>,
): string[] {
  if (!isObject(entries)) return [`${section} must be an object`]
  return Object.entries(entries).flatMap(([key, entry]) => {
    const path = `${section}.${isKey(key) ? key : '***'}`
    return isObject(entry) ? wrongValues(`${path}.`, entry, rules) : [`${path} must be an object`]
  })
}

function wrongValues(
  prefix: string,
  values: Record<string, unknown>,
  rules: Record<string, Rule>,
): string[] {
  const words = { string: 'a string', boolean: 'true or false' }
  return Object.entries(rules).flatMap(([name, { type, isRequired }]) => {
    const value = values[name]
    const isValid = value === undefined ? !isRequired : typeof value === type
    return isValid ? [] : [`${prefix}${name} must be ${words[type]}`]
  })
}

export function isStoreName(word: string): boolean {
  return /^[a-z\d][\w-]{0,63}$/i.test(word) && word !== 'local'
}

/** A name may also be that of a property that every object inherits. */
export function savedStore({ stores = {} }: SavedSettings, name: string): SavedStore | undefined {
  return Object.hasOwn(stores, name) ? stores[name] : undefined
}
