import * as fs from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { malformed, systemCode } from './errors.js'

/** Creates a folder and its missing parents, for their owner alone. `mkdirSync` with `recursive` never returns in /proc. */
export function makeFolder(folder: string, finish = (made: string) => fs.chmodSync(made, 0o700)): void {
  if (fs.existsSync(folder)) return
  makeFolder(dirname(folder), finish)
  try {
    fs.mkdirSync(folder, 0o700)
    finish(folder)
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
  }
}

/** Removes a folder with all that is in it, as far as that can be removed. */
export function removeFolder(folder: string): void {
  try {
    fs.rmSync(folder, { recursive: true, force: true })
  } catch (error) {
    if (systemCode(error) === undefined) throw error
  }
}

/** The prefix of our temporary folders beside a file, which no other program uses. */
export function prefixFor(file: string): string {
  return `.${basename(file)}.plants-`
}

/** The temporary folders that `mkdtemp` has made with this prefix. */
export function tempFoldersBeside(file: string): string[] {
  const prefix = prefixFor(file)
  const entries = fs.readdirSync(dirname(file), { withFileTypes: true })
  const ours = entries.filter(
    (entry) => entry.isDirectory() && entry.name.startsWith(prefix) && /^\w{6}$/.test(entry.name.slice(prefix.length)),
  )
  return ours.map(({ name }) => join(dirname(file), name))
}

/** Makes the names in a folder durable, where the system can. */
export function syncFolder(folder: string): void {
  let fd: number | undefined
  try {
    fd = fs.openSync(folder, 'r')
    fs.fsyncSync(fd)
  } catch (error) {
    // EINVAL, ENOTSUP, EISDIR: a file system, or Windows, that syncs no folders
    if (!['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP', 'EISDIR'].includes(systemCode(error) ?? '')) throw error
  } finally {
    if (fd !== undefined) fs.closeSync(fd)
  }
}

/** Gives what root has created with `sudo`, among the files of a user, to that user. */
export function giveToOwner(fd: number, { uid, gid }: { uid: number; gid: number }): void {
  const isOfRoot = process.platform !== 'win32' && fs.fstatSync(fd).uid === 0
  if (isOfRoot && uid !== 0) fs.fchownSync(fd, uid, gid)
}

/** How many links Linux follows. */
const maxLinks = 40

/** The symbolic links from a path to the file that it leads to, which may not be there. */
export function* linksOf(path: string): Generator<{ path: string; uid: number; target: string }> {
  let place = path
  for (let count = 0; ; count += 1) {
    const stats = fs.lstatSync(place, { throwIfNoEntry: false })
    if (!stats?.isSymbolicLink()) return
    if (count === maxLinks) throw Object.assign(new Error('too many links'), { code: 'ELOOP' })
    const target = resolve(fs.realpathSync(dirname(place)), fs.readlinkSync(place))
    yield { path: place, uid: stats.uid, target }
    place = target
  }
}

/** The file that a link leads to, which may not be there yet. Throws `malformed` for a link of another user, who would choose the file. */
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

/** `writers` are the bits of a mode that let others write: a group may be of trusted users alone. */
type Trust = { trusts(uid: number): boolean; writers: number }

/**
 * Why another user may have put a file, such as a Unix socket, where it is; undefined when none may. What is in a folder is decided by who
 * may write to it, so the path is followed from the root. Whoever owns a folder on the way is trusted with what is below. Where others may
 * write as well, only entries of trusted users count, and only with the sticky bit, without which anybody may replace them. Below a folder
 * that lets nobody else in, all is its owner's. Throws the system's error where nothing is there, or it may not be seen.
 *
 * @param owners who is trusted besides, because of what is above
 */
export function strangerAt(path: string, trust: Trust, owners = new Set<number>(), links = 0): string | undefined {
  if (process.platform === 'win32') return undefined
  const names = path.split('/').filter(Boolean)
  let place = '/'
  let isPrivate = false
  for (const [index, name] of names.entries()) {
    const folder = fs.lstatSync(place)
    owners.add(folder.uid)
    isPrivate ||= (folder.mode & 0o011) === 0
    const isShared = !isPrivate && (folder.mode & trust.writers) !== 0
    if (isShared && (folder.mode & 0o1000) === 0)
      return `other users can replace what is in ${place} (mode ${(folder.mode & 0o777).toString(8)})`
    place = join(place, name)
    const entry = fs.lstatSync(place)
    if (isShared && !trust.trusts(entry.uid) && !owners.has(entry.uid)) return `${place} belongs to another user (uid ${entry.uid})`
    owners.add(entry.uid)
    if (entry.isSymbolicLink()) {
      const target = resolve(dirname(place), fs.readlinkSync(place), ...names.slice(index + 1))
      return links === maxLinks ? undefined : strangerAt(target, trust, owners, links + 1)
    }
  }
  return undefined
}
