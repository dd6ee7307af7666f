import { type Stats, statSync } from 'node:fs'
import { isWindows, malformed, octal } from './errors.js'

// Trusted are root, this user, and the directories that plants is told to use. Windows has no user ids and no modes.

export function isTrusted(uid: number): boolean {
  return isOwn(uid) || uid === 0
}

function isOwn(uid: number): boolean {
  return uid === (process.geteuid?.() ?? uid)
}

/** Why others can change a file; undefined when only this user and root can. */
export function whyOthersCanWrite(stats: Stats): string | undefined {
  if (isWindows) return undefined
  if (!isTrusted(stats.uid)) return `belongs to another user (uid ${stats.uid})`
  return isWritableByOthers(stats) ? `can be changed by others ${octal(stats.mode)}` : undefined
}

/** Why others can create files in a directory; undefined when only this user and root can. */
export function exposureOf(directory: string): string | undefined {
  if (isWindows) return undefined
  const stats = statSync(directory)
  if (!isTrusted(stats.uid)) return `${directory} belongs to another user (uid ${stats.uid})`
  return isWritableByOthers(stats) ? `${directory} can be written by other users ${octal(stats.mode)}` : undefined
}

/** A group counts as others, unless it has the number of the owner: many systems give each user such a group. */
function isWritableByOthers({ uid, gid, mode }: Stats): boolean {
  return (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== uid)
}

/** Throws `malformed`, with the hint, for a file of another user, to which nothing is written. */
export function assertOwnFile(path: string, { uid }: Stats, hint: string): void {
  if (!isOwn(uid)) throw malformed(`${path} belongs to another user (uid ${uid})`, hint)
}
