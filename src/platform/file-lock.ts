import { createHash, randomUUID } from 'node:crypto'
import * as fs from 'node:fs'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { backoff, type Clock, wait } from './clock.js'
import { PlantsError, systemCode, systemReasons, unlessSystemError } from './errors.js'
import { prefixFor, removeFolder, tempFoldersBeside } from './files.js'

// A lock is a directory with one entry, which is named after its holder.
// Not proper-lockfile: it removes a stale lock by its path, which may be another's by then, and the holder learns of a
// loss from a timer, after it may have written.

export interface Lock {
  /**
   * A directory for files of the holder. It vanishes when another process takes over the lock, so a file that is
   * renamed from here replaces its target only while the lock is held.
   */
  directory: string
  /** Throws `unavailable` if another process has taken over the lock. */
  assertHeld(): void
}

interface LockOptions {
  /** milliseconds to wait for the holder */
  timeout: number
  clock: Clock
  /** whether an existing lock may belong to this user, who is not the owner of its directory */
  trusts(uid: number): boolean
}

/** milliseconds between two heartbeats, and until a holder without any is gone, if its process cannot be looked up */
const heartbeatInterval = 2000
const staleAfter = 8000

/**
 * Runs an action under an exclusive lock. The lock of a killed process is taken over: at once on the same machine,
 * after 8 s without a heartbeat from another machine or container. Throws `unavailable` when the lock is not free
 * before the timeout, `unwritable` for a path that cannot be a lock, and system errors.
 */
export async function holdLock<T>(path: string, options: LockOptions, action: (lock: Lock) => Promise<T>): Promise<T> {
  const directory = await acquire(path, options)
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

/** Shows other machines that the holder is alive. Fails when the lock is lost. */
function beat(directory: string, flag: 'wx' | 'r+'): void {
  fs.writeFileSync(join(directory, 'heartbeat'), '.', { mode: 0o600, flag })
}

async function acquire(path: string, { timeout, clock, trusts }: LockOptions): Promise<string> {
  const start = clock.now()
  const here = machine()
  for (let tries = 0; ; tries += 1) {
    const directory = acquireNow(path, here, trusts)
    if (directory !== undefined) return directory
    if (clock.now() - start >= timeout) {
      const hint = 'Try again. If it stays locked, look for a suspended plants process, and end it'
      throw new PlantsError('unavailable', `Another process held ${path} for ${timeout / 1000} s`, { hint, retryable: true })
    }
    await wait(backoff(tries, { base: 2, max: 100, random: clock.random }), [clock.signal])
  }
}

/** Acquires the lock, or returns undefined when it is held. The lock appears together with its holder. */
function acquireNow(path: string, here: string, trusts: LockOptions['trusts']): string | undefined {
  const owner = fs.statSync(dirname(path))
  const old = holderOf(path, (uid) => trusts(uid) || uid === owner.uid)
  if (old !== undefined && isAlive(join(path, old), here)) return undefined
  const made = fs.mkdtempSync(join(dirname(path), prefixFor(path)))
  try {
    fs.chmodSync(made, 0o700) // independent of the umask
    if (old !== undefined) takeOver(join(path, old), made)
    unlessSystemError(() => fs.rmdirSync(path)) // fails if another process has acquired it
    const name = [here, process.pid, startOf(process.pid), randomUUID().slice(0, 8)].join('-')
    const directory = join(made, name)
    fs.mkdirSync(directory, 0o700)
    fs.chmodSync(directory, 0o700)
    beat(directory, 'wx')
    fs.renameSync(made, path)
    removeLeftovers(path)
    return join(path, name)
  } catch (error) {
    removeFolder(made)
    // Another process has acquired the lock, has taken it over, or has removed what looked like a leftover.
    const late = ['EEXIST', 'ENOTEMPTY', 'ENOENT', ...(process.platform === 'win32' ? ['EPERM', 'EACCES', 'EBUSY'] : [])]
    if (late.includes(systemCode(error) ?? '')) return undefined
    throw error
  }
}

/** Takes the lock from a holder. Its name is its own, so that this never takes the lock from another one. */
function takeOver(directory: string, made: string): void {
  const away = join(made, 'gone')
  fs.renameSync(directory, away)
  fs.rmSync(away, { recursive: true })
}

/** Removes what processes have left that were killed while they acquired the lock. A live one tries again. */
function removeLeftovers(path: string): void {
  for (const left of tempFoldersBeside(path)) {
    const isOurs = unlessSystemError(() => fs.lstatSync(left).uid === (process.getuid?.() ?? 0)) // Windows has no user ids
    if (isOurs) removeFolder(left)
  }
}

const holderName = /^(?<machine>[\da-f]{16})-(?<pid>\d{1,9})-(?<start>\d{0,20})-[\da-f]{8}$/

/** The name of the holder's directory; undefined if the lock is free. */
function holderOf(path: string, trusts: LockOptions['trusts']): string | undefined {
  const stats = fs.lstatSync(path, { throwIfNoEntry: false })
  if (!stats) return undefined
  if (!stats.isDirectory()) throw noLock(path, 'it is not a directory')
  if (!trusts(stats.uid)) throw noLock(path, 'it belongs to another user')
  const names = namesIn(path)
  if (!names.every((name) => holderName.test(name))) throw noLock(path, 'it contains other files')
  return names[0]
}

function namesIn(path: string): string[] {
  try {
    return fs.readdirSync(path)
  } catch (error) {
    const code = systemCode(error)
    if (code === 'ENOENT') return []
    throw code === undefined ? error : noLock(path, systemReasons[code] ?? code, error)
  }
}

function noLock(path: string, why: string, cause?: unknown): PlantsError {
  const hint = cause === undefined ? 'Remove it when no plants process is running' : 'Remove it, or change its permissions'
  return new PlantsError('unwritable', `Could not acquire the lock ${path}: ${why}`, { hint, cause })
}

/** Whether the process of a holder runs; where that cannot be looked up, whether there was a heartbeat. */
function isAlive(directory: string, here: string): boolean {
  const { machine: where, pid = '', start } = holderName.exec(basename(directory))?.groups ?? {}
  if (where === here) {
    if (!exists(parseInt(pid, 10))) return false
    const found = startOf(parseInt(pid, 10))
    if (found !== '') return found === start // otherwise the system has given the number to another process
  }
  return (unlessSystemError(() => silenceOf(directory)) ?? staleAfter) < staleAfter
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return systemCode(error) !== 'ESRCH'
  }
}

/** When a process started, in clock ticks since the boot; empty without /proc, and no number for a zombie. */
function startOf(pid: number): string {
  const stat = unlessSystemError(() => fs.readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? ''
  const { state = '', start = '' } = /\) (?<state>\w) (?:\S+ ){18}(?<start>\d+) [^)]*$/.exec(stat)?.groups ?? {}
  return /[ZX]/.test(state) ? 'ended' : start
}

/** Where a process can be looked up: on Linux, a boot and a namespace of process ids, as containers have one each. */
function machine(): string {
  const boot = unlessSystemError(() => fs.readFileSync('/proc/sys/kernel/random/boot_id', 'latin1'))
  const namespace = unlessSystemError(() => fs.readlinkSync('/proc/self/ns/pid'))
  return createHash('sha256')
    .update(JSON.stringify([hostname(), boot, namespace]))
    .digest('hex')
    .slice(0, 16)
}

/** The milliseconds since the last heartbeat, by the clock of the file system, which is the same for all machines. */
function silenceOf(directory: string): number {
  const path = dirname(directory)
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants
  // Over a network, opening ends caching.
  const fd = fs.openSync(join(directory, 'heartbeat'), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  const made = fs.mkdtempSync(join(dirname(path), prefixFor(path)))
  try {
    return Math.abs(fs.statSync(made).mtimeMs - fs.fstatSync(fd).mtimeMs)
  } finally {
    fs.closeSync(fd)
    removeFolder(made)
  }
}
