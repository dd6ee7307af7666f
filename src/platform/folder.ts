import { chmodSync, closeSync, existsSync, fsyncSync, mkdirSync, openSync, rmSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { systemCode } from './errors.js'

/**
 * Makes a folder and all above it, for their owner alone. Node's own way to do this never ends in /proc.
 *
 * @param finish what is done with each that was made, instead of giving it the mode that the umask may have narrowed
 */
export function makeFolder(folder: string, finish = (made: string) => chmodSync(made, 0o700)): void {
  if (existsSync(folder)) return
  makeFolder(dirname(folder), finish)
  try {
    mkdirSync(folder, 0o700)
    finish(folder)
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
  }
}

/** Makes the names in a folder durable, where the system can. */
export function syncFolder(folder: string): void {
  let fd: number | undefined
  try {
    fd = openSync(folder, 'r')
    fsyncSync(fd)
  } catch (error) {
    // EINVAL, ENOTSUP, EISDIR: a file system, or Windows, that syncs no folders
    if (!['EACCES', 'EPERM', 'EINVAL', 'ENOTSUP', 'EISDIR'].includes(systemCode(error) ?? '')) throw error
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

/** What the names of our folders beside a file begin with, and those of nobody else. */
export function prefixFor(file: string): string {
  return `.${basename(file)}.plants-`
}

/** Removes a folder with all that is in it. What stays is the next one's to remove: it changes nothing about what was made in it. */
export function removeFolder(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true })
  } catch (error) {
    if (systemCode(error) === undefined) throw error
  }
}
