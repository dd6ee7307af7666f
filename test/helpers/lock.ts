import { acquireLock } from '../../src/platform/file-lock.js'
import { hang } from './hang.mjs'
import { openOptions } from './store.js'

/** Holds a lock in this process, until `release` is called. */
export async function heldLock(path: string): Promise<{ release(): void }> {
  return { release: await acquireLock(path, hang.wait, openOptions().runtime) }
}
