import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs'
import { hostname } from 'node:os'
import { backoff, type Clock, wait } from './clock.js'
import { isWindows, PlantsError, systemCode, unlessSystemError } from './errors.js'

export interface Lock {
  assertHeld(): void
}

interface LockOptions {
  /** how long to wait for one holder */
  timeoutMs: number
  clock: Clock
}

const heartbeatMs = 2000
const staleAfterMs = 10_000

/**
 * Holds a lock during an action: a file that names its holder, who touches it every 2 s. One that was not touched for
 * 10 s is taken over, and at once that of a process that no longer exists on this machine. Call `assertHeld` before what
 * nobody else may do: this process may have been stopped for longer.
 *
 * @throws {PlantsError} `unavailable` when one holder keeps it until the timeout; `unwritable` if it is no lock
 */
export async function holdLock<T>(path: string, options: LockOptions, action: (lock: Lock) => Promise<T>): Promise<T> {
  const id = `${machine()}\n${process.pid}\n${randomUUID()}\n`
  const fd = await acquire(path, id, options)
  const heartbeat = setInterval(() => unlessSystemError(() => touch(fd, id)), heartbeatMs)
  heartbeat.unref()
  const isHeld = () => readLock(path)?.id === id
  try {
    return await action({
      assertHeld: () => {
        if (isHeld()) return
        const message = `Another process has taken over ${path}, because this one did not run for ${staleAfterMs / 1000} s`
        throw new PlantsError('unavailable', message, { hint: 'Run the same command again', retryable: true })
      },
    })
  } finally {
    clearInterval(heartbeat)
    fs.closeSync(fd)
    unlessSystemError(() => isHeld() && fs.rmSync(path))
  }
}

/** Returns the file descriptor of the lock. */
async function acquire(path: string, id: string, { timeoutMs, clock }: LockOptions): Promise<number> {
  let lastId: string | undefined
  let start = clock.now()
  for (let tries = 0; ; tries += 1) {
    const fd = create(path, id)
    if (fd !== undefined) return fd
    const lock = readLock(path)
    if (lock && takeOver(path, lock)) continue
    if (lock?.id !== lastId) [lastId, start] = [lock?.id, clock.now()]
    if (clock.now() - start >= timeoutMs) {
      const hint = 'Try again. If it stays locked, look for a suspended plants process, and end it'
      const message = `Another process held ${path} for ${timeoutMs / 1000} s`
      throw new PlantsError('unavailable', message, { hint, retryable: true })
    }
    await wait(backoff(tries, { base: 2, max: 200, random: clock.random }), [clock.signal])
  }
}

/** Undefined if the file exists. */
function create(path: string, id: string): number | undefined {
  let fd: number
  try {
    fd = fs.openSync(path, 'wx', 0o600)
  } catch (error) {
    if (systemCode(error) !== 'EEXIST' && !isBeingRemoved(error)) throw error
    return undefined
  }
  try {
    touch(fd, id)
    fs.fchmodSync(fd, 0o600) // independent of the umask
    return fd
  } catch (error) {
    fs.closeSync(fd)
    fs.rmSync(path, { force: true })
    throw error
  }
}

/** Windows shows a file until the last process has closed it. */
function isBeingRemoved(error: unknown): boolean {
  return isWindows && ['EACCES', 'EBUSY', 'EPERM'].includes(systemCode(error) ?? '')
}

/** By a write: a file system on a network sets the time by its own clock. */
function touch(fd: number, id: string): void {
  fs.writeSync(fd, id, 0)
  unlessSystemError(() => fs.fdatasyncSync(fd)) // otherwise the write waits in a cache
}

interface FoundLock {
  id: string
  touchedAtMs: number
}

function readLock(path: string): FoundLock | undefined {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants
  let fd: number | undefined
  try {
    fd = fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK) // over a network, opening ends caching
    const stats = fs.fstatSync(fd)
    if (!stats.isFile()) throw noLock(path, 'it is not a regular file')
    return { id: fs.readFileSync(fd, 'utf8'), touchedAtMs: stats.mtimeMs }
  } catch (error) {
    if (systemCode(error) === 'ENOENT' || isBeingRemoved(error)) return undefined
    if (systemCode(error) === 'ELOOP') throw noLock(path, 'it is not a regular file')
    if (systemCode(error) === 'EACCES') throw noLock(path, 'permission denied')
    throw error
  } finally {
    if (fd !== undefined) fs.closeSync(fd)
  }
}

function noLock(path: string, why: string): PlantsError {
  const hint = 'Remove it when no plants process is running'
  return new PlantsError('unwritable', `Could not acquire the lock ${path}: ${why}`, { hint })
}

/** Removes a lock whose holder has ended, or has not touched it for long. Returns whether it did. */
function takeOver(path: string, lock: FoundLock): boolean {
  const beside = `${path}.${randomUUID()}`
  const fd = fs.openSync(beside, 'wx', 0o600)
  try {
    touch(fd, lock.id)
    const silenceMs = Math.abs(fs.fstatSync(fd).mtimeMs - lock.touchedAtMs)
    const limitMs = lock.id === '' ? heartbeatMs : staleAfterMs // killed before it wrote its name
    if (silenceMs < limitMs && !hasEnded(lock)) return false
    fs.renameSync(path, beside)
    // Another process was faster, and this is its lock.
    if (readLock(beside)?.id !== lock.id) unlessSystemError(() => fs.linkSync(beside, path))
    return true
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return true // released, or taken over by another process
    throw error
  } finally {
    fs.closeSync(fd)
    fs.rmSync(beside, { force: true })
  }
}

/** Only a process of this machine can be looked up. */
function hasEnded({ id }: FoundLock): boolean {
  const [where, pid = ''] = id.split('\n')
  if (where !== machine() || !/^\d{1,9}$/.test(pid)) return false
  try {
    process.kill(parseInt(pid, 10), 0)
    return false
  } catch (error) {
    return systemCode(error) === 'ESRCH'
  }
}

/** On Linux with the boot and the namespace of process ids: each container has one of its own. */
function machine(): string {
  const boot = unlessSystemError(() => fs.readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim())
  const namespace = unlessSystemError(() => fs.readlinkSync('/proc/self/ns/pid'))
  return [hostname(), boot, namespace].join(' ')
}
