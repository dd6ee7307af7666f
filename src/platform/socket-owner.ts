import { lstatSync, readlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/**
 * Says why another user of this machine may have put a Unix socket where it is, or nothing. Only who may write to a folder decides what
 * is in it, so the path is followed from the root: what stands in a folder that only trusted users may write is theirs, and whoever
 * it was given to is trusted with what is below. In a folder where others may write as well, only the entries of trusted users count, and
 * only with the sticky bit, without which anybody may replace them. Below a folder of a trusted user that lets nobody else in, all is
 * theirs.
 *
 * @param path absolute
 * @throws what the system says, where nothing is there, or it may not be seen
 */
export function strangerAt(path: string, trust: Trust): string | undefined {
  return process.platform === 'win32' ? undefined : follow(path, new Set(), trust, 0)
}

interface Trust {
  trusts: (uid: number) => boolean
  /** the bits of a mode that let others write: a group may be of trusted users alone */
  writers: number
}

/** @param owners who is trusted besides, because of what stands above */
function follow(path: string, owners: Set<number>, trust: Trust, links: number): string | undefined {
  const isTrusted = (uid: number) => trust.trusts(uid) || owners.has(uid)
  const names = path.split('/').filter(Boolean)
  let place = '/'
  let isPrivate = false
  for (const [index, name] of names.entries()) {
    const folder = lstatSync(place)
    owners.add(folder.uid)
    isPrivate ||= (folder.mode & 0o011) === 0
    const isShared = !isPrivate && (folder.mode & trust.writers) !== 0
    if (isShared && (folder.mode & 0o1000) === 0)
      return `other users can replace what is in ${place} (mode ${(folder.mode & 0o777).toString(8)})`
    place = join(place, name)
    const entry = lstatSync(place)
    if (isShared && !isTrusted(entry.uid)) return `${place} belongs to another user (uid ${entry.uid})`
    owners.add(entry.uid)
    if (entry.isSymbolicLink()) {
      const target = resolve(dirname(place), readlinkSync(place), ...names.slice(index + 1))
      return links === mostLinks ? undefined : follow(target, owners, trust, links + 1)
    }
  }
  return undefined
}

/** How many the system follows. */
const mostLinks = 40
