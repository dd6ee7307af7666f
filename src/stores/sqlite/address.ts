import { join } from 'node:path'
import { isWindows } from '../../errors.js'
import {
  type AddressContext,
  addressForms,
  createAddressError,
  type SqliteAddress,
} from '../address.js'

export async function parseSqlite(
  text: string,
  source: string,
  { resolvePath, dataFolder }: AddressContext,
): Promise<SqliteAddress> {
  if (text === 'local') return createDefaultAddress(join(await dataFolder(), 'plants.db'))
  const path = text.replace(/^sqlite:/i, '')
  if (path === '') throw createAddressError(source, 'is empty')
  if (fileUrl.test(text))
    throw createAddressError(source, 'is a URL of a file', 'Give it as sqlite:PATH')
  const isService = hostWithPort.test(path)
  const isRooted = rooted.test(path) || (isWindows && rootedInWindows.test(path))
  const isMistake = !isRooted && almostUrl.test(path)
  const isWord = path === text && !looksLikeFile.test(path)
  if (isService || isMistake || isWord)
    throw createAddressError(source, 'does not name a store', isService ? noScheme : addressForms)
  return { scheme: 'sqlite', name: resolvePath(path), isDefault: false }
}

/** A file of the program itself, whose directory is created if it is missing. */
export function createDefaultAddress(path: string): SqliteAddress {
  return { scheme: 'sqlite', name: path, isDefault: true }
}

const fileUrl = /^(?:file:|sqlite:\/\/)/i

const rooted = /^(?:\.{0,2}\/(?!\/)|~)/
const rootedInWindows = /^(?:\.{0,2}\\|[a-z]:[\\/])/i

const hostWithPort = /^(?:\[[\da-f:.]+\]|[\w.-]+):\d+(?:\/|$)/i

/**
 * `:memory:`, which no other process could open, `https//host`, `user:password@host`, or libpq's
 * `host=… user=…`.
 */
const almostUrl = /^:memory:$|\/\/|:[^/\\]*@|%(3a|2f|40)|=.*\s|\s.*=|^\w+:(?!.*\.(db|sqlite3?)$)/i

/** Other words may be names of saved stores. */
const looksLikeFile = /[/\\]|^[.~]|\.(db|sqlite3?)$/

const noScheme =
  'The address of a service begins with http:// or https://, such as http://localhost:4010'
