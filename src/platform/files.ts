import * as fs from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { malformed, systemCode, unlessSystemError } from './errors.js'

/** Creates a folder and its missing parents, with mode 0700. `mkdirSync` with `recursive` never returns in /proc. */
export function makeFolder(folder: string, finish = (made: string) => fs.chmodSync(made, 0o700)): void {
  if (fs.existsSync(folder) || dirname(folder) === folder) return // Windows has drives that do not exist
  makeFolder(dirname(folder), finish)
  try {
    fs.mkdirSync(folder, 0o700)
    finish(folder)
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
  }
}

/** How bytes are compressed that begin like this: gzip (RFC 1952) or zstd (RFC 8878). Both are names of commands, too. */
export function detectCompression(head: Uint8Array): 'gzip' | 'zstd' | undefined {
  if (head[0] === 0x1f && head[1] === 0x8b) return 'gzip'
  return Buffer.from([0x28, 0xb5, 0x2f, 0xfd]).equals(head.subarray(0, 4)) ? 'zstd' : undefined
}

/** How a file is compressed; undefined for any other, and for what cannot be read. */
export function detectFileCompression(path: string): ReturnType<typeof detectCompression> {
  return unlessSystemError(() => {
    if (!fs.statSync(path).isFile()) return undefined
    const head = Buffer.alloc(4)
    const fd = fs.openSync(path, 'r')
    try {
      fs.readSync(fd, head)
    } finally {
      fs.closeSync(fd)
    }
    return detectCompression(head)
  })
}

/** Removes a folder and its content. Ignores system errors. */
export function removeFolder(folder: string): void {
  unlessSystemError(() => fs.rmSync(folder, { recursive: true, force: true }))
}

/** The prefix of this program's temporary folders beside a file. */
export function prefixFor(file: string): string {
  return `.${basename(file)}.plants-`
}

/** The temporary folders that `mkdtemp` created with this prefix. */
export function tempFoldersBeside(file: string): string[] {
  const prefix = prefixFor(file)
  const entries = fs.readdirSync(dirname(file), { withFileTypes: true })
  const ours = entries.filter(
    (entry) => entry.isDirectory() && entry.name.startsWith(prefix) && /^\w{6}$/.test(entry.name.slice(prefix.length)),
  )
  return ours.map(({ name }) => join(dirname(file), name))
}

/** Makes the entries of a folder durable, where the file system can. */
export function syncFolder(folder: string): void {
  let fd: number | undefined
  try {
    fd = fs.openSync(folder, 'r')
    fs.fsyncSync(fd)
  } catch (error) {
    // EINVAL, ENOTSUP, EISDIR: Windows and some file systems cannot sync a folder
    if (!['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP', 'EISDIR'].includes(systemCode(error) ?? '')) throw error
  } finally {
    if (fd !== undefined) fs.closeSync(fd)
  }
}

/**
 * Changes the owner of what root has created, with `sudo`, among a user's files: to that user. Never follows a link of this user.
 *
 * @param made a path, or a file descriptor, which nobody can exchange
 */
export function giveToOwner(made: string | number, { uid, gid }: { uid: number; gid: number }): void {
  if (process.platform === 'win32' || uid === 0) return
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants
  const fd = typeof made === 'number' ? made : fs.openSync(made, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    const stats = fs.fstatSync(fd)
    const isSafe = stats.isDirectory() || (stats.isFile() && stats.nlink === 1)
    if (stats.uid === 0 && isSafe) fs.fchownSync(fd, uid, gid)
  } finally {
    if (fd !== made) fs.closeSync(fd)
  }
}

/** How many symbolic links Linux follows. */
const maxLinks = 40

/** The symbolic links from a path to the file that it resolves to, which need not exist. */
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

/** The file that a path resolves to, which need not exist. Throws `malformed` for another user's link: that user would choose the file. */
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

/** `writers` are the mode bits that count as write access for others: a group may consist of trusted users. */
type Trust = { trusts(uid: number): boolean; writers: number }

/**
 * Why another user can have created a file, such as a Unix socket; undefined when none can. Whoever can write to a folder decides what
 * is in it, so the path is checked from the root. The owner of a folder is trusted with everything below it. In a folder that others can
 * write to, an entry must belong to a trusted user, and the sticky bit must be set: without it, anybody can replace the entry. Below a
 * folder that only its owner can enter, nothing is checked. Throws the system's error when the file does not exist or cannot be accessed.
 *
 * @param owners the owners of the folders above, who are also trusted
 */
export function untrustedReason(path: string, trust: Trust, owners = new Set<number>(), links = 0): string | undefined {
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
      return links === maxLinks ? undefined : untrustedReason(target, trust, owners, links + 1)
    }
  }
  return undefined
}
