import { lstatSync, readlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { systemCode } from '../errors.js'
import type { Io } from '../io.js'

/**
 * Says why another user of this machine may have put a Unix socket where it is, or nothing. Only who may write to a folder decides what
 * is in it, so the path is followed from the root: what stands in a folder that only trusted users may write is theirs, and whoever
 * it was given to is trusted with what is below. In a folder where others may write as well, only the entries of trusted users count, and
 * only with the sticky bit, without which anybody may replace them. What is not there yet is nobody's.
 *
 * @param path absolute
 */
export function strangerAt(path: string, { trusts }: Pick<Io, 'trusts'>): string | undefined {
  if (process.platform === 'win32') return undefined
  try {
    return follow(path, new Set(), trusts, 0)
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined // nothing is there, or it may not be seen: to connect fails then, and says why
  }
}

/** @param owners who is trusted besides, because of what stands above */
function follow(path: string, owners: Set<number>, trusts: Io['trusts'], links: number): string | undefined {
  let place = '/'
  let stats = lstatSync(place)
  owners.add(stats.uid)
  for (const [index, name] of path.split('/').entries()) {
    if (name === '') continue
    const { mode } = stats
    const isShared = (mode & 0o022) !== 0
    if (isShared && (mode & 0o1000) === 0) return `other users can replace what is in ${place} (mode ${(mode & 0o777).toString(8)})`
    place = join(place, name)
    stats = lstatSync(place)
    if (isShared && !trusts(stats.uid) && !owners.has(stats.uid)) return `${place} belongs to another user (uid ${stats.uid})`
    owners.add(stats.uid)
    if (stats.isSymbolicLink()) {
      if (links === mostLinks) return undefined
      const rest = path.split('/').slice(index + 1)
      return follow(resolve(dirname(place), readlinkSync(place), ...rest), owners, trusts, links + 1)
    }
  }
  return undefined
}

/** How many the system follows. */
const mostLinks = 40
