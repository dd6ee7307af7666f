import { randomUUID } from 'node:crypto'
import * as fs from 'node:fs'
import { hostname } from 'node:os'
import { backoff, type Clock, wait } from './clock.js'
import { PlantsError, systemCode, unlessSystemError } from './errors.js'
import { isOpenElsewhere } from './files.js'

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
 * @throws {PlantsError} `unavailable` when one holder keeps it until the timeout; `unwritable` if it is not a lock
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
    if (systemCode(error) !== 'EEXIST' && !isOpenElsewhere(error)) throw error
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

/** Renews the time of the file by a write, because a file system on a network has a clock of its own. */
function touch(fd: number, id: string): void {
  fs.writeSync(fd, id, 0)
  unlessSystemError(() => fs.fdatasyncSync(fd)) // otherwise the write waits in a cache
}

/** Undefined if nobody holds it. */
function readLock(path: string): { id: string; touchedAtMs: number } | undefined {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants
  let fd: number | undefined
  try {
    fd = fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK) // over a network, opening ends caching
    const stats = fs.fstatSync(fd)
    if (stats.isFile()) return { id: fs.readFileSync(fd, 'utf8'), touchedAtMs: stats.mtimeMs }
  } catch (error) {
    if (systemCode(error) === 'ENOENT' || isOpenElsewhere(error)) return undefined
    if (systemCode(error) !== 'ELOOP') throw error
  } finally {
    if (fd !== undefined) fs.closeSync(fd)
  }
  const hint = 'Remove it when no plants process is running'
  throw new PlantsError('unwritable', `Could not acquire the lock ${path}: it is not a regular file`, { hint })
}

/** Removes the lock if its holder has ended, or has not touched it for long. Returns whether it may be free. */
function takeOver(path: string, { id, touchedAtMs }: { id: string; touchedAtMs: number }): boolean {
  const beside = `${path}.${randomUUID()}`
  const fd = fs.openSync(beside, 'wx', 0o600)
  try {
    touch(fd, id)
    const silenceMs = Math.abs(fs.fstatSync(fd).mtimeMs - touchedAtMs)
    const limitMs = id === '' ? heartbeatMs : staleAfterMs // killed before it wrote its name
    if (silenceMs < limitMs && !hasEnded(id)) return false
    fs.renameSync(path, beside)
    // Another process was faster, and this is its lock.
    if (readLock(beside)?.id !== id) unlessSystemError(() => fs.linkSync(beside, path))
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
function hasEnded(id: string): boolean {
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
