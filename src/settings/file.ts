import { isUtf8 } from 'node:buffer'
import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import * as z from 'zod/mini'
import { PlantsError, shellWord, systemCode } from '../errors.js'
import type { Io } from '../io.js'
import { parseJson } from '../json.js'

const text = z.optional(z.string())
const storeSchema = z.looseObject({
  address: z.string(),
  timeout: text,
  'ca-cert': text,
  'allow-http': z.optional(z.boolean()),
  'token-command': text,
})
const schema = z.looseObject({
  version: z.literal(1),
  store: text,
  output: text,
  timeout: text,
  'ca-cert': text,
  stores: z.optional(z.record(z.string(), storeSchema)),
  tokens: z.optional(z.record(z.string(), z.looseObject({ token: z.string(), savedAt: z.string() }))),
})

/** What is saved for a user. Stores stand under their names, tokens under the address that they are for. */
export type SavedSettings = z.infer<typeof schema>
/** A store that has a name, and what belongs to it. */
export type SavedStore = z.infer<typeof storeSchema>

/** The settings file as it was found. */
export interface SettingsFile {
  /** absolute; undefined when there is no place for settings, as without a home directory */
  path: string | undefined
  saved: SavedSettings
  /** what a person should mend, although it hinders nothing */
  complaints: string[]
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
  const path = await existingPlace(io)
  if (path === undefined) return { path, saved: { version: 1 }, complaints: [] }
  try {
    const { bytes, stats } = readOwn(path, io)
    return { path, saved: parse(bytes, path), complaints: complaintsAbout(path, stats) }
  } catch (error) {
    const code = systemCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return { path, saved: { version: 1 }, complaints: [] }
    if (code === undefined) throw error
    throw broken(
      path,
      `could not be read: ${unreadable[code] ?? code}`,
      code === 'ELOOP' ? 'Mend the link' : 'Change its permissions',
      error,
    )
  }
}

const unreadable: Record<string, string> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ELOOP: 'their links lead in a circle',
}

async function existingPlace(io: Io): Promise<string | undefined> {
  try {
    return await settingsPath(io)
  } catch (error) {
    if (!(error instanceof PlantsError) || io.env['PLANTS_CONFIG_DIR']) throw error
    return undefined
  }
}

/** bytes of a settings file; nobody has that many stores */
export const longestFile = 1_048_576

function readOwn(path: string, io: Io): { bytes: Buffer; stats: Stats } {
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)) // a pipe in its place must not hold us
  try {
    const stats = fstatSync(fd)
    if (!stats.isFile()) throw broken(path, stats.isDirectory() ? 'are a folder' : 'are no file', 'Move it away')
    if (stats.size > longestFile) throw broken(path, 'are larger than 1 MiB')
    if (!io.trusts(stats.uid)) {
      throw broken(path, `belong to another user (uid ${stats.uid})`, 'Change its owner, or set PLANTS_CONFIG_DIR')
    }
    return { bytes: readFileSync(fd), stats }
  } finally {
    closeSync(fd)
  }
}

function parse(bytes: Buffer, path: string): SavedSettings {
  if (bytes.length === 0) throw broken(path, 'are empty', `Move the file away, or write {"version":1} into it`)
  if (!isUtf8(bytes)) throw broken(path, 'are not UTF-8')
  const value = parseText(bytes.toString().replace(/^\uFEFF/, ''), path)
  const version = typeof value === 'object' && value !== null && 'version' in value ? value.version : undefined
  if (typeof version === 'number' && version > 1) {
    throw broken(path, `were written by a newer plants (version ${version})`, 'Update plants, or set PLANTS_CONFIG_DIR to another folder')
  }
  const parsed = schema.safeParse(value, { jitless: true })
  if (parsed.success) return value as SavedSettings // which keeps what the schema does not know, such as a key called __proto__
  throw broken(path, `are not right: ${parsed.error.issues.slice(0, 5).map(describe).join('; ')}`)
}

function parseText(text: string, path: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    try {
      return parseJson(text)
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      throw broken(path, `are not JSON: ${error.message}`, undefined, error)
    }
  }
}

/** Names the key and the rule, but never the value: it may be a token. */
function describe(issue: z.core.$ZodIssue): string {
  const [first, second = '', ...others] = issue.path.map(String)
  const isHidden = first === 'tokens' && second !== '' && !/^(https?|unix):/.test(second) // it may be a token in the wrong place
  const key = isHidden ? 'an entry of tokens' : [first, second, ...others].filter(Boolean).join('.')
  const rule =
    issue.code === 'invalid_type' ? (words[issue.expected] ?? issue.expected) : issue.code === 'invalid_value' ? '1' : 'something else'
  return `${key === '' ? 'the whole' : key} must be ${rule}`
}

const words: Record<string, string> = { string: 'a text', boolean: 'true or false', object: 'an object', record: 'an object' }

function broken(path: string, why: string, hint = 'Mend the file, or move it away', cause?: unknown): PlantsError {
  return new PlantsError('malformed', `The settings in ${path} ${why}`, { hint, cause })
}

/** Who else could read the tokens, or put a command of their own in place. */
function complaintsAbout(path: string, stats: Stats): string[] {
  if (process.platform === 'win32') return []
  const modeOf = ({ mode }: Stats) => (mode & 0o777).toString(8)
  const folder = dirname(path)
  const folderStats = statSync(folder)
  const file = `The settings in ${path} are open to others (mode ${modeOf(stats)}). Mend it with: chmod 600 ${shellWord(path)}`
  const place = `Others can replace the settings in ${folder} (mode ${modeOf(folderStats)}). Mend it with: chmod 700 ${shellWord(folder)}`
  return [(stats.mode & 0o077) !== 0 ? file : [], (folderStats.mode & 0o022) !== 0 && (folderStats.mode & 0o1000) === 0 ? place : []].flat()
}
