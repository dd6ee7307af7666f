import { pathToFileURL } from 'node:url'
import { PlantsError } from './errors.js'
import { connect, type Database } from './stores/sqlite/driver.js'
import { isBusy, isSqliteError } from './stores/sqlite/failure.js'
import { makeFile } from './stores/sqlite/file.js'
import { pause } from './stores/sqlite/lock.js'
import type { Clock } from './stores/store.js'

/**
 * Runs an action while this process alone holds a lock. It is SQLite's lock on an empty file: the system takes it back from a
 * process that dies, so nobody ever has to guess whether a lock is stale.
 *
 * @param path the file, which is made when it is not there, and stays
 * @param timeout milliseconds that others may hold it
 * @throws {PlantsError} `unavailable` when they took longer; what the action throws, and the system's errors
 */
export async function holdLock<T>(
  path: string,
  { timeout, clock }: { timeout: number; clock: Clock },
  action: () => Promise<T>,
): Promise<T> {
  makeFile({ path, isDefault: false })
  const db = open(path)
  try {
    const start = clock.now()
    for (let tries = 0; ; tries += 1) {
      try {
        db.exec('BEGIN EXCLUSIVE')
        break
      } catch (error) {
        if (!isBusy(error)) throw unusable(error, path)
      }
      if (clock.now() - start >= timeout) throw inUse(path, timeout)
      await pause(tries, clock)
    }
    return await action()
  } finally {
    db.close()
  }
}

function open(path: string): Database {
  try {
    return connect(pathToFileURL(path).href, { readOnly: false })
  } catch (error) {
    throw unusable(error, path)
  }
}

function unusable(error: unknown, path: string): unknown {
  if (!isSqliteError(error)) return error
  return new PlantsError('unwritable', `The lock ${path} could not be taken: ${error.message}`, {
    hint: 'Remove it, or change its permissions',
    cause: error,
  })
}

function inUse(path: string, timeout: number): PlantsError {
  const hint = 'Try again. If it stays so, look for a plants that was stopped, and end it'
  return new PlantsError('unavailable', `Another process held ${path} for ${timeout / 1000} s`, { hint, retryable: true })
}
