import { utimesSync, writeFileSync } from 'node:fs'
import { holdLock, type Lock } from '../../src/platform/file-lock.js'
import { openOptions } from './store.js'

/** Holds a lock in this process, until `release` is called. */
export async function heldLock(path: string): Promise<Lock & { release(): Promise<void> }> {
  let end = () => {}
  const isOver = new Promise<void>((resolve) => {
    end = resolve
  })
  return new Promise((resolve, reject) => {
    const held = holdLock(path, { timeoutMs: 3_600_000, clock: openOptions().clock }, (lock) => {
      const release = () => {
        end()
        return held
      }
      resolve({ ...lock, release })
      return isOver
    })
    held.catch(reject)
  })
}

/** A lock that a process on another machine holds, or has left: `age` is in seconds, since it was touched. */
export function leaveLock(path: string, { holder = 'another machine\n1\nan id\n', age = 0 } = {}): void {
  writeFileSync(path, holder)
  silence(path, age)
}

/** Makes a lock look untouched for longer. */
export function silence(path: string, age: number): void {
  const time = Date.now() / 1000 - age
  utimesSync(path, time, time)
}
