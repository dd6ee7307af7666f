/**
 * Parses the address of a file. Any string can be a path, so a mistyped address of another kind
 * would create a file with its name. Therefore a string is rejected that looks like such an
 * address, or like the name of a saved store: `localhost:4010`, `https//host`, `team`. For a file
 * with such a name, the user writes `./team` or `sqlite:team`.
 */
import { join } from 'node:path'
import { fileHint, finalSlashProblem, isWindows } from '../../errors.js'
import { type AddressContext, createAddressError, type SqliteAddress } from '../address.js'

export async function parseSqlite(
  text: string,
  source: string,
  { resolvePath, findDataFolder }: AddressContext,
): Promise<SqliteAddress> {
  if (text === 'local')
    return { scheme: 'sqlite', name: join(await findDataFolder(), 'plants.db'), isDefault: true }
  const path = text.replace(/^sqlite:/i, '')
  if (path === '') throw createAddressError(source, 'is empty')
  if (path === text && listFile.test(path))
    throw createAddressError(source, 'names a list of plants, which is not a store', listHint)
  if (unknownScheme.test(text))
    throw createAddressError(source, 'has a scheme that is not supported')
  const isUrlLike = !rootedPath.test(path) && mistypedUrl.test(path)
  const isName = path === text && !fileLikePath.test(path)
  if (hostWithPort.test(path) || isUrlLike || isName)
    throw createAddressError(source, 'does not name a store')
  // Without this check, a new store would be a file with the name of the directory.
  if (path.endsWith('/') || (isWindows && path.endsWith('\\')))
    throw createAddressError(source, finalSlashProblem, fileHint)
  return { scheme: 'sqlite', name: resolvePath(path), isDefault: false }
}

/** Matches `/`, `./`, `../` and `~`, on Windows also `.\` and `C:\`, but not `//` as in a URL. */
const rootedPath = isWindows
  ? /^(?:\.{0,2}\/(?!\/)|~|\.{0,2}\\|[a-z]:[\\/])/i
  : /^(?:\.{0,2}\/(?!\/)|~)/

const hostWithPort = /^(?:\[[\da-f:.]+\]|[\w.-]+):\d+(?:\/|$)/i

/**
 * This matches `:memory:`, which no other process could open, `https//host`, `user:password@host`,
 * `user@host:5432`, libpq's `host=… user=…`, and an unknown scheme such as `mysql:garden`.
 */
const mistypedUrl =
  /^:memory:$|\/\/|:[^/\\]*@|@[^/\\]*:\d|%(3a|2f|40)|=.*\s|\s.*=|^\w+:(?!.*\.(db|sqlite3?)$)/i

/** The address of another database, such as `mysql://localhost/garden`, or a URL of a file. */
const unknownScheme = /^(?:file:|[a-z][\w+.-]*:\/\/)/i

/** A string that does not match may be the name of a saved store. */
const fileLikePath = /[/\\]|^[.~]|\.(db|sqlite3?)$/

/** A file that looks like a list of plants. */
const listFile = /\.(csv|tsv|txt|xlsx?|ods|json|jsonl|ndjson)(\.gz)?$/i

const listHint = 'Import the list with: plants import FILE'
