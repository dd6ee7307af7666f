/**
 * Parses the address of a file. Any text can be a path, so a mistyped address of another kind would
 * create a file with its name. Therefore a text is rejected that looks like one, or like the name
 * of a saved store: `localhost:4010`, `https//host`, `team`. Whoever means a file of such a name
 * writes `./team` or `sqlite:team`.
 */
import { join } from 'node:path'
import { fileInFolderHint, isWindows } from '../../errors.js'
import {
  type AddressContext,
  addressForms,
  createAddressError,
  type SqliteAddress,
} from '../address.js'

export async function parseSqlite(
  text: string,
  source: string,
  { resolvePath, findDataFolder }: AddressContext,
): Promise<SqliteAddress> {
  if (text === 'local') return createDefaultAddress(join(await findDataFolder(), 'plants.db'))
  const path = text.replace(/^sqlite:/i, '')
  if (path === '') throw createAddressError(source, 'is empty')
  if (fileUrl.test(text))
    throw createAddressError(source, 'is a URL of a file', 'Give it as sqlite:PATH')
  const isService = hostWithPort.test(path)
  const isRooted = rooted.test(path) || (isWindows && rootedInWindows.test(path))
  const isMistypedUrl = !isRooted && almostUrl.test(path)
  const isName = path === text && !fileLike.test(path)
  if (isService || isMistypedUrl || isName)
    throw createAddressError(source, 'does not name a store', isService ? noScheme : addressForms)
  if (namesFolder(path)) throw createAddressError(source, 'names a directory', fileInFolderHint)
  return { scheme: 'sqlite', name: resolvePath(path), isDefault: false }
}

/** Whether a path ends in a slash. Without it, a new store would be a file of that name. */
function namesFolder(path: string): boolean {
  return path.endsWith('/') || (isWindows && path.endsWith('\\'))
}

/** The address of a file that the program itself keeps: its directory is created if missing. */
export function createDefaultAddress(path: string): SqliteAddress {
  return { scheme: 'sqlite', name: path, isDefault: true }
}

const fileUrl = /^(?:file:|sqlite:\/\/)/i

/** This is true for `/`, `./`, `../` and `~`, but not for `//`, which may begin a URL. */
const rooted = /^(?:\.{0,2}\/(?!\/)|~)/
const rootedInWindows = /^(?:\.{0,2}\\|[a-z]:[\\/])/i

const hostWithPort = /^(?:\[[\da-f:.]+\]|[\w.-]+):\d+(?:\/|$)/i

/**
 * These are `:memory:`, which no other process could open, `https//host`, `user:password@host`,
 * libpq's `host=… user=…`, and an unknown scheme such as `mysql:garden`.
 */
const almostUrl = /^:memory:$|\/\/|:[^/\\]*@|%(3a|2f|40)|=.*\s|\s.*=|^\w+:(?!.*\.(db|sqlite3?)$)/i

/** A text without any of these may be the name of a saved store. */
const fileLike = /[/\\]|^[.~]|\.(db|sqlite3?)$/

const noScheme =
  'The address of a service begins with http:// or https://, such as http://localhost:4010'
