import { isUtf8 } from 'node:buffer'
import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../plant/exact-json.js'
import { inputError, isWindows, PlantsError, systemCode, systemReason } from '../platform/errors.js'
import { isTrusted, octal, whyOthersCanWrite } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import { shellWord } from '../platform/shell.js'
import { isLoginAddress } from '../stores/common/address.js'
import { type Scope, type SettingName, savedType, settingsIn } from './setting-table.js'

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
  /** Absolute. Undefined when there is no folder for settings. */
  path: string | undefined
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

/** A missing file counts as empty. Throws `input` for an invalid file. */
export async function readSettings(io: Io): Promise<SettingsFile> {
  let path: string | undefined
  try {
    path = await settingsPath(io)
    const { bytes, mode } = readOwn(path)
    const saved = await parseSettings(bytes, path)
    addTokens(saved, io)
    const what = `The settings in ${path} are open to others ${octal(mode)}`
    const isOpen = !isWindows && (mode & 0o077) !== 0
    return {
      path,
      saved,
      warning: isOpen ? { what, command: `chmod 600 ${shellWord(path)}` } : undefined,
    }
  } catch (error) {
    const nothing: SettingsFile = { path, saved: { version: 1 } }
    if (path === undefined && error instanceof PlantsError && !io.env['PLANTS_CONFIG_DIR'])
      return nothing
    const code = systemCode(error)
    if (path === undefined || code === undefined) throw error
    // A folder without access counts as missing: under `sudo -u`, it may be in the home of root.
    if (code === 'ENOENT' || code === 'ENOTDIR' || (code === 'EACCES' && !existsSync(path)))
      return nothing
    const hint =
      code === 'ELOOP'
        ? 'Fix the link'
        : 'Change its permissions, or set PLANTS_CONFIG_DIR to another directory'
    throw broken(path, `could not be read: ${systemReason(error)}`, hint, error)
  }
}

/** Without passwords, each of which may be a common word: it is added when it is used. */
function addTokens({ tokens = {} }: SavedSettings, { secrets }: Io): void {
  for (const [address, { token }] of Object.entries(tokens))
    if (!address.startsWith('postgres:')) secrets.add(token)
}

export const maxFileBytes = 1_048_576

function readOwn(path: string): { bytes: Buffer; mode: number } {
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)) // a pipe in its place must not block
  try {
    const stats = fstatSync(fd)
    if (!stats.isFile())
      throw broken(
        path,
        stats.isDirectory() ? 'are a directory' : 'are not a regular file',
        'Move it away',
      )
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

async function parseSettings(bytes: Buffer, path: string): Promise<SavedSettings> {
  if (bytes.length === 0)
    throw broken(path, 'are empty', `Move the file away, or write {"version":1} into it`)
  if (!isUtf8(bytes)) throw broken(path, 'are not UTF-8')
  const text = bytes.toString().replace(/^\uFEFF/, '')
  const value = parsed(text)
  if (value === undefined) throw broken(path, 'are not JSON')
  if (isSettings(value)) return value
  if (isObject(value) && typeof value['version'] === 'number' && value['version'] > 1) {
    const why = `were written by a newer version of plants (version ${value['version']})`
    throw broken(path, why, 'Update plants, or set PLANTS_CONFIG_DIR to another directory')
  }
  throw broken(path, `are invalid: ${(await settingsProblems(value)).slice(0, 5).join('; ')}`)
}

/** The names of saved values that this version does not know, such as `timout` or `stores.team.timout`. */
export function unknownIn({ stores = {}, ...saved }: SavedSettings): string[] {
  const others = (values: object, known: readonly string[]) =>
    Object.keys(values).filter((name) => !known.includes(name))
  const ofStores = Object.entries(stores).map(([name, store]) =>
    others(store, ['address', ...settingsIn('store')]).map((other) => `stores.${name}.${other}`),
  )
  return [...others(saved, ['version', 'tokens', ...settingsIn('user')]), ...ofStores.flat()]
}

export function isStoreName(word: string): boolean {
  return /^[a-z\d][\w-]{0,63}$/i.test(word) && word !== 'local'
}

/** Undefined for what is not JSON: the sentence of the parser repeats a piece of it, which may be of a token. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Accepts fast what the schema of `settingsProblems` does, which is slow to load: each command reads the settings. */
export function isSettings(value: unknown): value is SavedSettings {
  if (!isObject(value) || value['version'] !== 1) return false
  const { stores = {}, tokens = {} } = value
  return (
    hasSettings(value, 'user') &&
    areAll(
      stores,
      (store) => typeof store['address'] === 'string' && hasSettings(store, 'store'),
    ) &&
    areAll(tokens, ({ token, savedAt }) => typeof token === 'string' && typeof savedAt === 'string')
  )
}

function hasSettings(fields: Record<string, unknown>, scope: Scope): boolean {
  return settingsIn(scope).every((name) =>
    ['undefined', savedType(name)].includes(typeof fields[name]),
  )
}

function areAll(entries: unknown, isValid: (entry: Record<string, unknown>) => boolean): boolean {
  return (
    isObject(entries) && Object.values(entries).every((entry) => isObject(entry) && isValid(entry))
  )
}

/** The key and the rule of each, but never the value, nor a key of `tokens` that is not an address: it may be a token. */
export async function settingsProblems(value: unknown): Promise<string[]> {
  const z = await import('zod/mini')
  const settings = (scope: Scope) =>
    Object.fromEntries(
      settingsIn(scope).map((name) => [
        name,
        z.optional(savedType(name) === 'boolean' ? z.boolean() : z.string()),
      ]),
    )
  const schema = z.looseObject({
    version: z.literal(1),
    ...settings('user'),
    stores: z.optional(
      z.record(z.string(), z.looseObject({ address: z.string(), ...settings('store') })),
    ),
    tokens: z.optional(
      z.record(z.string(), z.looseObject({ token: z.string(), savedAt: z.string() })),
    ),
  })
  const rules: Readonly<Record<string, string>> = { string: 'a string', boolean: 'true or false' }
  const issues = schema.safeParse(value, { jitless: true }).error?.issues ?? []
  return issues.map((issue) => {
    const keys = issue.path.map(String)
    const [section = '', key = ''] = keys
    const isKey = new Map([
      ['tokens', isLoginAddress],
      ['stores', isStoreName],
    ]).get(section)
    // In the wrong place, a key may be a token, or an address with its password.
    if (keys.length > 1 && isKey && !isKey(key)) keys[1] = '***'
    const rule = issue.code === 'invalid_type' ? (rules[issue.expected] ?? 'an object') : '1'
    return `${keys.join('.') || 'the document'} must be ${rule}`
  })
}

function broken(
  path: string,
  why: string,
  hint = 'Fix the file, or move it away',
  cause?: unknown,
): PlantsError {
  return inputError(`The settings in ${path} ${why}`, hint, cause)
}
