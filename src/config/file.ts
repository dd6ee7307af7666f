import { isUtf8 } from 'node:buffer'
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseJson } from '../plant/json.js'
import { PlantsError, shellWord, systemCode } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { type Scope, type SettingName, settingOf, settingsIn } from './table.js'

/** What the settings file holds. Stores stand under their names, tokens under the address that they are for. */
export interface SavedSettings extends SavedValues {
  version: 1
  stores?: Record<string, SavedStore>
  tokens?: Record<string, SavedToken>
}

/** A store that has a name, and what belongs to it. */
export interface SavedStore extends SavedValues {
  address: string
}

/** The store that was saved under a name, which may also be one that every object has. */
export function savedStore({ stores = {} }: SavedSettings, name: string): SavedStore | undefined {
  return Object.hasOwn(stores, name) ? stores[name] : undefined
}

/** `savedAt` is in ISO 8601. */
interface SavedToken {
  token: string
  savedAt: string
}

type SavedValues = { [name in SettingName]?: string | boolean }

/** The settings file as it was read. */
export interface SettingsFile {
  /** absolute; undefined when there is no place for settings, as without a home directory */
  path: string | undefined
  saved: SavedSettings
  /** the user id of its owner, where no command may be run that stands in it */
  foreignOwner?: number
  /** what a person should fix, although it hinders nothing, and the command that fixes it */
  warnings: { what: string; command: string }[]
}

/** The absolute path of the settings file, whether it is there or not. */
export async function settingsPath({ env, resolvePath, configFolder }: Io): Promise<string> {
  const folder = env['PLANTS_CONFIG_DIR'] ? resolvePath(env['PLANTS_CONFIG_DIR']) : await configFolder()
  return join(folder, 'settings.json')
}

/**
 * Reads the settings file; without one, nothing is saved.
 *
 * @throws {PlantsError} `malformed` for a file that is not as it should be; it stays as it is
 */
export async function readSettings(io: Io): Promise<SettingsFile> {
  let path: string
  try {
    path = await settingsPath(io)
  } catch (error) {
    if (!(error instanceof PlantsError) || io.env['PLANTS_CONFIG_DIR']) throw error
    return { path: undefined, saved: { version: 1 }, warnings: [] }
  }
  try {
    const { bytes, stats } = readOwn(path, io)
    const file = { path, saved: await parse(bytes, path), warnings: warningsAbout(path, stats) }
    return io.mayRunFor(stats.uid) ? file : { ...file, foreignOwner: stats.uid }
  } catch (error) {
    const code = systemCode(error)
    if (code === undefined) throw error
    if (code === 'ENOENT' || code === 'ENOTDIR' || (code === 'EACCES' && isOutOfReach(path)))
      return { path, saved: { version: 1 }, warnings: [] }
    const { reason, hint } = unreadable[code] ?? { reason: code, hint: 'Or set PLANTS_CONFIG_DIR to another folder' }
    throw broken(path, `could not be read: ${reason}`, hint, error)
  }
}

/** Whether its folder cannot even be entered, such as the home of root for whom `sudo -u` has made somebody else. */
function isOutOfReach(path: string): boolean {
  try {
    statSync(path)
    return false
  } catch (error) {
    return systemCode(error) === 'EACCES'
  }
}

const unreadable: Record<string, { reason: string; hint: string }> = {
  EACCES: { reason: 'permission denied', hint: 'Change its permissions' },
  EPERM: { reason: 'permission denied', hint: 'Change its permissions' },
  ELOOP: { reason: 'their links lead in a circle', hint: 'Fix the link' },
}

/** bytes of a settings file; nobody has that many stores */
export const maxFileBytes = 1_048_576

function readOwn(path: string, io: Io): { bytes: Buffer; stats: Stats } {
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)) // a pipe in its place must not hold us
  try {
    const stats = fstatSync(fd)
    if (!stats.isFile()) throw broken(path, stats.isDirectory() ? 'are a folder' : 'are no file', 'Move it away')
    if (stats.size > maxFileBytes) throw broken(path, 'are larger than 1 MiB')
    if (!io.trusts(stats.uid)) throw broken(path, `belong to another user (uid ${stats.uid})`, 'Change its owner, or set PLANTS_CONFIG_DIR')
    return { bytes: readFileSync(fd), stats }
  } finally {
    closeSync(fd)
  }
}

async function parse(bytes: Buffer, path: string): Promise<SavedSettings> {
  if (bytes.length === 0) throw broken(path, 'are empty', `Move the file away, or write {"version":1} into it`)
  if (!isUtf8(bytes)) throw broken(path, 'are not UTF-8')
  const value = parseText(bytes.toString().replace(/^\uFEFF/, ''), path)
  if (isSaved(value)) return value
  if (isObject(value) && typeof value['version'] === 'number' && value['version'] > 1) {
    const why = `were written by a newer plants (version ${value['version']})`
    throw broken(path, why, 'Update plants, or set PLANTS_CONFIG_DIR to another folder')
  }
  const { problemsOf } = await import('./schema.js')
  throw broken(path, `are not right: ${problemsOf(value).slice(0, 5).join('; ')}`)
}

function parseText(text: string, path: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    try {
      return parseJson(text) // which says what is wrong where, the same in each version of Node
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      throw broken(path, `are not JSON: ${error.message}`, undefined, error)
    }
  }
}

/** Accepts what the schema accepts, which takes 3 ms to load: only to name what is invalid. */
export function isSaved(value: unknown): value is SavedSettings {
  if (!isObject(value)) return false
  const { version, stores = {}, tokens = {} } = value
  return version === 1 && hasValues(value, 'user') && isRecordOf(stores, isStore) && isRecordOf(tokens, isToken)
}

function isStore(value: Fields): boolean {
  return typeof value['address'] === 'string' && hasValues(value, 'store')
}

function isToken({ token, savedAt }: Fields): boolean {
  return typeof token === 'string' && typeof savedAt === 'string'
}

function isRecordOf(value: unknown, isItem: (item: Fields) => boolean): boolean {
  return isObject(value) && Object.values(value).every((item) => isObject(item) && isItem(item))
}

/** Whether each setting that can be saved there is of its type, or is not there. */
function hasValues(fields: Fields, scope: Scope): boolean {
  return settingsIn(scope).every((name) => ['undefined', settingOf(name).isSwitch ? 'boolean' : 'string'].includes(typeof fields[name]))
}

type Fields = Record<string, unknown>

function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function broken(path: string, why: string, hint = 'Fix the file, or move it away', cause?: unknown): PlantsError {
  return new PlantsError('malformed', `The settings in ${path} ${why}`, { hint, cause })
}

/** Who else could read the tokens, or put a command of their own in place. */
function warningsAbout(path: string, { mode }: Stats): SettingsFile['warnings'] {
  if (process.platform === 'win32') return []
  const folder = dirname(path)
  const folderMode = statSync(folder).mode
  const inWords = (bits: number) => `mode ${(bits & 0o777).toString(8)}`
  const isReplaceable = (folderMode & 0o022) !== 0 && (folderMode & 0o1000) === 0
  const open = { what: `The settings in ${path} are open to others (${inWords(mode)})`, command: `chmod 600 ${shellWord(path)}` }
  const replaceable = {
    what: `Others can replace the settings in ${folder} (${inWords(folderMode)})`,
    command: `chmod 700 ${shellWord(folder)}`,
  }
  return [...((mode & 0o077) !== 0 ? [open] : []), ...(isReplaceable ? [replaceable] : [])]
}
