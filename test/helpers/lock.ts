import { mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { holdLock, type Lock } from '../../src/platform/file-lock.js'
import { openOptions } from './store.js'

/** Holds a lock in this process, until `release` is called. */
export async function heldLock(path: string): Promise<Lock & { release(): Promise<void> }> {
  let end = () => {}
  const isOver = new Promise<void>((resolve) => {
    end = resolve
  })
  return new Promise((resolve, reject) => {
    const held = holdLock(path, { ...openOptions(), trusts: () => true }, (lock) => {
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

/** A lock that a process on another machine holds, or has left: `age` is in seconds, since its last heartbeat. */
export function leaveLock(path: string, { holder = `${'0'.repeat(16)}-1-00000000`, age = 0 } = {}): string {
  const directory = join(path, holder)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  writeFileSync(join(directory, 'heartbeat'), '.')
  silence(directory, age)
  return directory
}

/** Makes the last heartbeat of a holder older. */
export function silence(directory: string, age: number): void {
  const time = Date.now() / 1000 - age
  utimesSync(join(directory, 'heartbeat'), time, time)
}
