import { isUtf8 } from 'node:buffer'
import type { JSONVisitor } from 'jsonc-parser'
import { isObject } from '../plant/json.js'
import { isLoginAddress } from '../stores/address.js'
import { type SettingName, settingOf, settingsIn } from './setting-table.js'

/** Stores are keyed by name, tokens by the address of their store. */
export type SavedSettings = SavedValues & {
  version: 1
  stores?: Record<string, SavedStore>
  /** `savedAt` is in ISO 8601 */
  tokens?: Record<string, { token: string; savedAt: string }>
}

export type SavedStore = SavedValues & { address: string }

type SavedValues = { [name in SettingName]?: string | boolean }

/** Next to the settings while they are changed. Empty, it stands for no file. */
export function toCopyPath(settingsPath: string): string {
  return `${settingsPath}.copy`
}

/** Of the file that is locked while settings are changed. It stays. */
export function toLockPath(settingsPath: string): string {
  return `${settingsPath}.lock`
}

/** Undefined for an invalid file: `explainInvalidSettings` says why. */
export function parseSettings(bytes: Buffer): SavedSettings | undefined {
  const value = parseJson(bytes)
  // What has no problems is one.
  return findProblems(value).length === 0 ? (value as SavedSettings) : undefined
}

/** Undefined for what is not JSON in UTF-8. */
function parseJson(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) return undefined
  try {
    return JSON.parse(toText(bytes))
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function toText(bytes: Buffer): string {
  return bytes.toString().replace(/^\uFEFF/, '')
}

/**
 * Such as `invalid: version must be 1`. JSON.parse repeats a piece of the text, such as of a token,
 * so its sentence is not used.
 */
export async function explainInvalidSettings(bytes: Buffer): Promise<string> {
  if (!isUtf8(bytes)) return 'not UTF-8'
  const value = parseJson(bytes)
  if (value === undefined) return `not JSON${await findErrorPosition(toText(bytes))}`
  return `invalid: ${findProblems(value).slice(0, 5).join('; ')}`
}

/** Such as `, in line 2, column 5`. */
async function findErrorPosition(text: string): Promise<string> {
  const { visit } = await import('jsonc-parser')
  const positions: string[] = []
  const visitor: JSONVisitor = {
    onError: (_error, _offset, _length, line, column) =>
      positions.push(`, in line ${line + 1}, column ${column + 1}`),
  }
  visit(text, visitor, { disallowComments: true })
  return positions[0] ?? ''
}

/** Never contain a wrong value itself: it may be a token. */
function findProblems(value: unknown): string[] {
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
