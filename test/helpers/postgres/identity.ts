import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * As whom a server runs: PostgreSQL and PgBouncer refuse to be root. Nothing of it where we are somebody else already.
 */
export interface Identity {
  uid?: number
  gid?: number
}

/** What is longer leaves no room for the names of sockets: their paths have 103 bytes on macOS, and 107 on Linux. */
const longestFolder = 60

/** @throws {Error} where we are root, and there is nobody else to be */
export function identity(): Identity {
  if (process.getuid?.() !== 0) return {}
  const users = readFileSync('/etc/passwd', 'utf8').split('\n')
  const found = ['postgres:', 'nobody:'].flatMap((name) =>
    users.filter((user) => user.startsWith(name)),
  )[0]
  if (found === undefined)
    throw new Error(
      'PostgreSQL refuses to run as root, and here is neither a user postgres nor nobody',
    )
  const [, , uid, gid] = found.split(':').map(Number)
  return { uid: uid ?? 0, gid: gid ?? 0 }
}

/**
 * Makes an empty folder in which servers can have theirs, with a path that is short enough for their sockets. It stays
 * ours: below /tmp, a socket in a folder of another user is not trusted.
 */
export function serverFolder(owner = identity()): string {
  const places = [realpathSync(tmpdir()), '/tmp', '/var/tmp']
  const place =
    places.find((each) => Buffer.byteLength(each) <= longestFolder && isOpenTo(owner, each)) ??
    '/tmp'
  const folder = mkdtempSync(join(place, 'plants-pg-'))
  chmodSync(folder, 0o755)
  return folder
}

/** @param prefix the folder's path, but for the letters that make it the only one */
export function ownedFolder(prefix: string, owner = identity()): string {
  return give(mkdtempSync(prefix), owner)
}

/** Writes a file that its owner alone can read, as private keys and passwords must be. */
export function writeOwned(path: string, lines: string[], owner = identity()): void {
  rmSync(path, { force: true })
  writeFileSync(path, `${lines.join('\n')}\n`, { mode: 0o600 })
  give(path, owner)
}

function give(path: string, { uid, gid }: Identity): string {
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid)
  return path
}

/** Whether a folder can be entered, or a file executed. */
export function isOpenTo(user: Identity, path: string): boolean {
  return spawnSync('test', ['-x', path], user).status === 0
}
