import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { PlantsError, systemCode } from '../../platform/errors.js'

/** The error for a call that had no turn within its time. */
export function lockedError(path: string, timeout: number): PlantsError {
  const message = `The store ${path} was in use by ${findHolder(path) ?? 'another process'} for ${timeout / 1000} s`
  return new PlantsError('unavailable', message, { hint: 'Try again, or wait longer with --timeout 2m', retryable: true })
}

/** The process that holds a lock on the file or its log, such as "process 4242 (sqlite3)"; known on Linux only. */
function findHolder(path: string): string | undefined {
  try {
    const inodes = [path, `${path}-shm`].map((file) => statSync(file, { throwIfNoEntry: false })?.ino)
    const holders = readFileSync('/proc/locks', 'utf8')
      .split('\n')
      .map((line) => /POSIX +\w+ +WRITE (\d+) [\da-f]+:[\da-f]+:(\d+) /.exec(line))
      .flatMap((match) => (match && inodes.includes(parseInt(match[2] ?? '', 10)) ? [match[1] ?? ''] : []))
    const holder = holders.find((pid) => hasOpen(pid, path))
    return holder && `process ${holder} (${programOf(holder)})`
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined
  }
}

/** The name of its executable; of another user's process, what its main thread is called. */
function programOf(pid: string): string {
  try {
    return basename(readlinkSync(`/proc/${pid}/exe`))
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  }
}

function hasOpen(pid: string, path: string): boolean {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).some((fd) => {
    try {
      return readlinkSync(`${folder}/${fd}`).startsWith(path)
    } catch (error) {
      if (systemCode(error) !== 'ENOENT') throw error
      return false
    }
  })
}
