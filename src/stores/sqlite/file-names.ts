/**
 * Watches whether a store still has its name. SQLite does not notice when somebody deletes or
 * replaces its files: it would go on writing to a file that nobody can open any more.
 */
import { readdirSync, readlinkSync } from 'node:fs'
import { ignoreSystemError } from '../../errors.js'
import { findFileIdentity } from '../../platform/files.js'

const descriptorFolder = '/proc/self/fd'

/**
 * Call this after SQLite has opened the store, its log and the index of the log.
 *
 * @returns a function that returns true while these files have their names
 */
export function createFileNameCheck(store: string): () => boolean {
  const openFiles = findOpenFiles()
  const checks = [store, `${store}-wal`, `${store}-shm`].map((path) => {
    const [file, furtherFile] = openFiles.filter(({ target }) => target === path)
    // If this process has opened the path more than once, as for a snapshot, nothing tells which of
    // the descriptors is the writer's.
    const isOnlyOne = file !== undefined && furtherFile === undefined
    return isOnlyOne ? createDescriptorCheck(file.link, path) : createIdentityCheck(path)
  })
  return () => checks.every((hasItsName) => hasItsName())
}

/**
 * On Linux, the link of a descriptor says which name its file has now. That is cheaper than `stat`,
 * which updates the times of the file, so that the next fsync writes them, too: a sixth of the time
 * of a commit.
 */
function createDescriptorCheck(link: string, path: string): () => boolean {
  return () => readLink(link) === path
}

function createIdentityCheck(path: string): () => boolean {
  // The log does not exist before the first write. So the first identity that is found becomes the
  // expected one.
  let expectedIdentity = findFileIdentity(path)
  return () => {
    const currentIdentity = findFileIdentity(path)
    expectedIdentity ??= currentIdentity
    return currentIdentity === expectedIdentity
  }
}

/** A descriptor of this process. */
interface OpenFile {
  /** The path of its link, such as `/proc/self/fd/21`. */
  link: string
  /** The path to which the link leads, which is the name of the open file. */
  target: string | undefined
}

/** Returns no files where there is no /proc. */
function findOpenFiles(): OpenFile[] {
  const names = ignoreSystemError(() => readdirSync(descriptorFolder)) ?? []
  const links = names.map((name) => `${descriptorFolder}/${name}`)
  return links.map((link) => ({ link, target: readLink(link) }))
}

function readLink(link: string): string | undefined {
  return ignoreSystemError(() => readlinkSync(link))
}
