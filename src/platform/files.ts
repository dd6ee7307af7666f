import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { isWindows, malformed, octal, PlantsError, systemCode } from './errors.js'

/** Durable, also for missing parents. `mkdirSync` with `recursive` never returns in /proc. */
export function makeFolder(folder: string): void {
  if (existsSync(folder) || dirname(folder) === folder) return // Windows has drives that do not exist
  makeFolder(dirname(folder))
  try {
    mkdirSync(folder, 0o700)
    chmodSync(folder, 0o700) // independent of the umask
    syncFolder(dirname(folder))
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
  }
}

/** Makes the entries of a folder durable, where the file system can. */
export function syncFolder(folder: string): void {
  let fd: number | undefined
  try {
    fd = openSync(folder, 'r')
    fsyncSync(fd)
  } catch (error) {
    // Windows and some file systems cannot sync a folder
    if (!['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP', 'EISDIR'].includes(systemCode(error) ?? '')) throw error
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

/**
 * If this is root, runs an action with the rights of the owner of a directory, or of the next one above that exists:
 * that user could put links to files of root in the place of what root makes there. Everything that this process does
 * meanwhile has these rights.
 */
export async function asOwnerOf<T>(directory: string, action: () => Promise<T>): Promise<T> {
  const { getuid, getegid, getgroups, setegid, seteuid, setgroups } = process
  if (getuid?.() !== 0 || !getegid || !getgroups || !setegid || !seteuid || !setgroups) return action()
  const { uid, gid } = statSync(existingPlace(directory))
  if (uid === 0) return action()
  const [group, groups] = [getegid(), getgroups()]
  setgroups([gid])
  setegid(gid)
  seteuid(uid)
  try {
    return await action()
  } finally {
    seteuid(0)
    setegid(group)
    setgroups(groups)
  }
}

function existingPlace(directory: string): string {
  return existsSync(directory) || dirname(directory) === directory ? directory : existingPlace(dirname(directory))
}

/**
 * Why other users can create files in a directory; undefined when none can. A group counts as other users, unless it has
 * the number of the owner: many systems give each user such a group.
 */
export function exposureOf(directory: string, trusts: (uid: number) => boolean): string | undefined {
  if (isWindows) return undefined
  const { uid, gid, mode } = statSync(directory)
  if (!trusts(uid)) return `${directory} belongs to another user (uid ${uid})`
  const isShared = (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== uid)
  return isShared ? `${directory} can be written by other users ${octal(mode)}` : undefined
}

/** Throws `unwritable` for root, if another user could put a link in the place of what root makes in a directory. */
export function assertNotRedirected(directory: string, trusts: (uid: number) => boolean): void {
  if (process.getuid?.() !== 0) return
  const { uid, mode } = statSync(directory)
  const reason = exposureOf(directory, trusts)
  if (reason === undefined || (trusts(uid) && (mode & 0o1000) !== 0)) return
  const message = `${reason}, who could redirect what root writes there`
  throw new PlantsError('unwritable', message, { hint: 'Run plants as that user, or choose another directory' })
}

const maxLinks = 40

/** The links from a path to the file that it resolves to, which need not exist. */
export function* linksOf(path: string): Generator<{ path: string; uid: number; target: string }> {
  let place = path
  for (let count = 0; ; count += 1) {
    const stats = lstatSync(place, { throwIfNoEntry: false })
    if (!stats?.isSymbolicLink()) return
    if (count === maxLinks) throw Object.assign(new Error('too many links'), { code: 'ELOOP' })
    const target = resolve(realpathSync(dirname(place)), readlinkSync(place))
    yield { path: place, uid: stats.uid, target }
    place = target
  }
}

/**
 * The file that a path resolves to, which need not exist. Another user's link is not followed: that user would choose
 * the file.
 */
export function targetOf(path: string, { trusts }: { trusts(uid: number): boolean }): string {
  let target = path
  for (const link of linksOf(path)) {
    if (!trusts(link.uid)) {
      const message = `${link.path} is a link of another user (uid ${link.uid}), and is not followed`
      throw malformed(message, 'Name another file, or remove the link')
    }
    target = link.target
  }
  return target
}

/** `writers` are the mode bits of others: a group may consist of trusted users. */
type TrustRule = { trusts(uid: number): boolean; writers: number }

/**
 * Why another user can have created a file; undefined when none can. Whoever can write to a folder decides what is in
 * it, so the path is checked from the root. The owner of a folder is trusted with everything below it. In a folder that
 * others can write to, an entry must belong to a trusted user, and without the sticky bit anybody can replace it. Below
 * a folder that only its owner can enter, nothing is checked.
 *
 * @param owners the owners of the folders above, who are also trusted
 */
export function untrustedReason(
  path: string,
  trust: TrustRule,
  owners = new Set<number>(),
  links = 0,
): string | undefined {
  if (isWindows) return undefined
  const names = path.split('/').filter(Boolean)
  let place = '/'
  let isPrivate = false
  for (const [index, name] of names.entries()) {
    const folder = lstatSync(place)
    owners.add(folder.uid)
    isPrivate ||= (folder.mode & 0o011) === 0
    const isShared = !isPrivate && (folder.mode & trust.writers) !== 0
    if (isShared && (folder.mode & 0o1000) === 0)
      return `other users can replace what is in ${place} ${octal(folder.mode)}`
    place = join(place, name)
    const entry = lstatSync(place)
    if (isShared && !trust.trusts(entry.uid) && !owners.has(entry.uid))
      return `${place} belongs to another user (uid ${entry.uid})`
    owners.add(entry.uid)
    if (entry.isSymbolicLink()) {
      const target = resolve(dirname(place), readlinkSync(place), ...names.slice(index + 1))
      return links === maxLinks ? undefined : untrustedReason(target, trust, owners, links + 1)
    }
  }
  return undefined
}
