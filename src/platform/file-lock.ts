import { createHash, randomUUID } from 'node:crypto'
import * as fs from 'node:fs'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { backoff, type Clock, wait } from './clock.js'
import { isWindows, PlantsError, systemCode, unlessSystemError } from './errors.js'
import { prefixFor, removeFolder, tempFoldersBeside } from './files.js'

// A lock is a directory with one entry, which is named after its holder, so that nobody removes the lock of another by
// its path. Both are prepared beside it, and appear together by a rename. The entry contains the heartbeat.

export interface Lock {
  /** A directory for files of the holder: a rename from here fails after another process has taken over the lock. */
  directory: string
  assertHeld(): void
}

interface LockOptions {
  /** milliseconds to wait for one holder */
  timeout: number
  clock: Clock
  /** whether an existing lock may belong to this user, who is not the owner of its directory */
  trusts(uid: number): boolean
}

/** milliseconds between two heartbeats, and until a holder without any is gone */
const heartbeatInterval = 2000
const staleAfter = 8000

/**
 * The lock of a killed process is taken over: at once if its process does not exist on this machine, otherwise after 8
 * s without a heartbeat.
 */
export async function holdLock<T>(path: string, options: LockOptions, action: (lock: Lock) => Promise<T>): Promise<T> {
  const directory = join(path, `${machine()}-${process.pid}-${randomUUID().slice(0, 8)}`)
  await acquire(directory, options)
  const heartbeat = setInterval(() => unlessSystemError(() => beat(directory, 'r+')), heartbeatInterval)
  heartbeat.unref()
  try {
    const assertHeld = () => {
      if (fs.existsSync(directory)) return
      const message = `Another process has taken over ${path}, because this one did not run for ${staleAfter / 1000} s`
      throw new PlantsError('unavailable', message, { hint: 'Run the same command again', retryable: true })
    }
    return await action({ directory, assertHeld })
  } finally {
    clearInterval(heartbeat)
    removeFolder(directory)
    unlessSystemError(() => fs.rmdirSync(path)) // fails if another process has acquired it since
  }
}

function beat(directory: string, flag: 'w' | 'r+'): void {
  fs.writeFileSync(join(directory, 'heartbeat'), '.', { mode: 0o600, flag })
}

async function acquire(directory: string, { timeout, clock, trusts }: LockOptions): Promise<void> {
  const [path, name] = [dirname(directory), basename(directory)]
  const { uid: owner } = fs.statSync(dirname(path))
  const prepared = join(dirname(path), prefixFor(path) + randomUUID().slice(0, 6))
  let last: string | undefined
  let start = clock.now()
  try {
    for (let tries = 0; ; tries += 1) {
      const holder = holderOf(path, (uid) => trusts(uid) || uid === owner)
      if (acquireNow(path, holder, prepared, name)) return
      if (holder !== last) [last, start] = [holder, clock.now()]
      if (clock.now() - start >= timeout) {
        const hint = 'Try again. If it stays locked, look for a suspended plants process, and end it'
        const message = `Another process held ${path} for ${timeout / 1000} s`
        throw new PlantsError('unavailable', message, { hint, retryable: true })
      }
      await wait(backoff(tries, { base: 2, max: 200, random: clock.random }), [clock.signal])
    }
  } finally {
    removeFolder(prepared)
  }
}

function acquireNow(path: string, holder: string | undefined, prepared: string, name: string): boolean {
  const own = join(prepared, name)
  if (!fs.existsSync(prepared)) fs.mkdirSync(prepared, 0o700)
  try {
    if (!fs.existsSync(own)) fs.mkdirSync(own, 0o700)
    for (const folder of [prepared, own]) fs.chmodSync(folder, 0o700) // independent of the umask
    beat(own, 'w')
    if (holder !== undefined) {
      if (!hasEnded(join(path, holder), own)) return false
      const gone = join(prepared, 'gone')
      fs.renameSync(join(path, holder), gone)
      fs.rmSync(gone, { recursive: true })
    }
    unlessSystemError(() => fs.rmdirSync(path)) // fails if another process has acquired it
    fs.renameSync(prepared, path)
  } catch (error) {
    // Another process has acquired the lock, or has removed what looked like a leftover.
    const late = ['EEXIST', 'ENOTEMPTY', 'ENOENT', ...(isWindows ? ['EPERM', 'EACCES', 'EBUSY'] : [])]
    if (late.includes(systemCode(error) ?? '')) return false
    throw error
  }
  for (const left of tempFoldersBeside(path)) unlessSystemError(() => removeLeft(left, join(path, name)))
  return true
}

/** Of a process that was killed while it waited for the lock. */
function removeLeft(folder: string, own: string): void {
  const { uid } = fs.lstatSync(folder)
  const name = fs.readdirSync(folder).find((entry) => holderName.test(entry))
  const isOurs = uid === (process.geteuid?.() ?? uid) // Windows has no user ids
  if (isOurs && (name === undefined || hasEnded(join(folder, name), own))) removeFolder(folder)
}

const holderName = /^(?<machine>[\da-f]{16})-(?<pid>\d{1,9})-[\da-f]{8}$/

function holderOf(path: string, trusts: LockOptions['trusts']): string | undefined {
  const stats = fs.lstatSync(path, { throwIfNoEntry: false })
  if (!stats) return undefined
  if (!stats.isDirectory()) throw noLock(path, 'it is not a directory')
  if (!trusts(stats.uid)) throw noLock(path, 'it belongs to another user')
  try {
    const names = fs.readdirSync(path)
    if (!names.every((name) => holderName.test(name))) throw noLock(path, 'it contains other files')
    return names[0]
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined
    if (systemCode(error) === 'EACCES') throw noLock(path, 'it belongs to another user')
    throw error
  }
}

function noLock(path: string, why: string): PlantsError {
  const hint = 'Remove it when no plants process is running'
  return new PlantsError('unwritable', `Could not acquire the lock ${path}: ${why}`, { hint })
}

/** The file system has one clock for all machines: that of `own`, which has just had a heartbeat. */
function hasEnded(directory: string, own: string): boolean {
  const [holder, here] = [directory, own].map((place) => holderName.exec(basename(place))?.groups)
  if (holder?.['machine'] === here?.['machine'] && !exists(parseInt(holder?.['pid'] ?? '', 10))) return true
  const now = unlessSystemError(() => lastBeat(own))
  if (now === undefined) return false // another process has removed what looked like a leftover
  const last = unlessSystemError(() => lastBeat(directory))
  return last === undefined || Math.abs(now - last) >= staleAfter
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return systemCode(error) !== 'ESRCH'
  }
}

function lastBeat(directory: string): number {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants
  // over a network, opening ends caching
  const fd = fs.openSync(join(directory, 'heartbeat'), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  try {
    return fs.fstatSync(fd).mtimeMs
  } finally {
    fs.closeSync(fd)
  }
}

/** Where a process can be looked up: on Linux, a boot and a namespace of process ids, as containers have one each. */
function machine(): string {
  const boot = unlessSystemError(() => fs.readFileSync('/proc/sys/kernel/random/boot_id', 'latin1'))
  const namespace = unlessSystemError(() => fs.readlinkSync('/proc/self/ns/pid'))
  const all = JSON.stringify([hostname(), boot, namespace])
  return createHash('sha256').update(all).digest('hex').slice(0, 16)
}
