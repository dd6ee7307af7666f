/*
 * Reads the settings file, which holds tokens and commands that are executed. So a file that
 * somebody else could have written is not read, and one that others can read is reported.
 */
import { existsSync, type Stats } from 'node:fs'
import { join } from 'node:path'
import { createInputError, describeSystemError, getSystemCode, isWindows } from '../errors.js'
import {
  explainImpossiblePath,
  explainWriteAccess,
  formatMode,
  isTrusted,
  readSmallFile,
} from '../platform/files.js'
import type { Io } from '../platform/io.js'
import { quoteWord } from '../platform/shell.js'
import { explainInvalidSettings, parseSettings, type SavedSettings } from './settings-schema.js'

export interface SettingsFile {
  /** The absolute path of the file, which need not exist. */
  path: string
  savedSettings: SavedSettings
  /**
   * Set if other users can read the file: a sentence that says so, and the command that ends it.
   */
  permissionWarning?: { message: string; command: string } | undefined
}

export async function findSettingsPath({
  env,
  resolvePath,
  findConfigFolder,
}: Io): Promise<string> {
  const folder = env['PLANTS_CONFIG_DIR']
  return join(folder ? resolvePath(folder) : await findConfigFolder(), 'settings.json')
}

/**
 * Reads the settings file. A missing file has no settings.
 *
 * @throws {PlantsError} `input` for a file that is invalid, unreadable, or that others can change
 */
export async function readSettings(io: Io): Promise<SettingsFile> {
  const path = await findSettingsPath(io)
  const file = readIfExists(path, io)
  if (file === undefined) return { path, savedSettings: { version: 1 } }
  const { bytes, stats } = file
  assertOnlyOwnerWrites(path, stats)
  const savedSettings = parseSettings(bytes)
  if (savedSettings === undefined) {
    throw createInputError(
      `The settings in ${path} are ${await explainInvalidSettings(bytes)}`,
      'Correct the file, or move it to another place',
    )
  }
  for (const { token } of Object.values(savedSettings.tokens ?? {})) io.secrets.add(token)
  if (isWindows || (stats.mode & 0o077) === 0) return { path, savedSettings }
  const message = `Other users can read the settings in ${path} ${formatMode(stats.mode)}`
  return { path, savedSettings, permissionWarning: { message, command: toChmodCommand(path) } }
}

function readIfExists(path: string, io: Io): ReturnType<typeof readSmallFile> | undefined {
  try {
    return readSmallFile(path)
  } catch (error) {
    // Under `sudo -u`, HOME may be a directory of root that this user cannot look into, and for a
    // system user, it may be /dev/null. Then there are no settings. A directory that somebody has
    // named must be readable.
    const isHidden = !io.env['PLANTS_CONFIG_DIR'] && !existsSync(path)
    const code = getSystemCode(error)
    const isUnusable = code === 'EACCES' || code === 'ENOTDIR'
    if (code === 'ENOENT' || (isUnusable && isHidden)) return undefined
    const reason = explainImpossiblePath(error, path) ?? describeSystemError(error)
    if (reason === undefined) throw error
    const isDenied = code === 'EACCES' || code === 'EPERM'
    const remedy = isDenied ? 'Change the permissions of the file' : 'Move it away'
    const hint = `${remedy}, or set PLANTS_CONFIG_DIR to another directory`
    throw createInputError(`The settings in ${path} could not be read: ${reason}`, hint, error)
  }
}

function assertOnlyOwnerWrites(path: string, stats: Stats): void {
  const reason = explainWriteAccess(stats)
  if (reason === undefined) return
  const hint = isTrusted(stats.uid)
    ? `Check what the file contains, then run: ${toChmodCommand(path)}`
    : 'Set PLANTS_CONFIG_DIR to a directory of your own'
  throw createInputError(`The settings file ${path} was not read, because it ${reason}`, hint)
}

function toChmodCommand(path: string): string {
  return `chmod 600 ${quoteWord(path)}`
}
