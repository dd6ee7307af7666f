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
  type Stats,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import { systemCode } from './errors.js'

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

/** The file that a path resolves to, which need not exist. */
export function targetOf(path: string): string {
  let target = path
  for (let links = 0; lstatSync(target, { throwIfNoEntry: false })?.isSymbolicLink(); links += 1) {
    if (links === 40) throw Object.assign(new Error('too many links'), { code: 'ELOOP' })
    target = resolve(realpathSync(dirname(target)), readlinkSync(target))
  }
  return target
}

/** Whether a path is written to as it is: a device, a pipe, or an open descriptor such as /dev/stdout. */
export function isWrittenInPlace(path: string, stats: Stats | undefined): boolean {
  if (stats === undefined || stats.isDirectory()) return false
  return !stats.isFile() || /^\/(dev\/(std(in|out|err)|fd\/\d+)|proc\/\w+\/fd\/\d+)$/.test(path)
}

/** Of a file that the shell has opened, such as /dev/stdout: opened again, it would be written over from its start. */
export function descriptorOf(path: string, stats: Stats | undefined): number | undefined {
  const name = /^\/(?:dev|dev\/fd|proc\/self\/fd)\/(?<name>stdout|stderr|\d+)$/.exec(path)?.groups?.['name']
  if (name === undefined || !stats?.isFile()) return undefined
  return { stdout: 1, stderr: 2 }[name] ?? parseInt(name, 10)
}
