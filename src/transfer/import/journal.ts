import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import {
  inputError,
  PlantsError,
  reasonOf,
  systemReason,
  unlessSystemError,
} from '../../platform/errors.js'
import { acquireLock } from '../../platform/file-lock.js'
import { makeFolder } from '../../platform/files.js'
import type { Io } from '../../platform/io.js'
import { CheckpointMovedError, donePrefix, maxDone } from '../../stores/common/checkpoint-state.js'
import type { OwnStore, Transaction, TransactionOptions } from '../../stores/common/store.js'
import { sqliteOpener } from '../../stores/registry.js'
import type { SqliteOptions } from '../../stores/sqlite/connection.js'

/** Keeps the checkpoint of an import into a service: a store of this machine, without plants. */
export interface Journal extends Pick<OwnStore, 'transaction' | 'checkpoint' | 'close'> {
  /** The checkpoint that an earlier version has left in a file of its own. */
  oldCheckpoint: string | undefined
}

/** @throws {PlantsError} `unavailable` while another process has it open */
export async function openJournal(id: string, options: SqliteOptions, io: Io): Promise<Journal> {
  const state = io.env['PLANTS_STATE_DIR']
    ? io.resolvePath(io.env['PLANTS_STATE_DIR'])
    : await io.stateFolder()
  const folder = join(state, 'imports')
  const path = join(folder, id)
  const release = await lock(folder, path, io)
  try {
    const oldCheckpoint = readOldJournal(`${path}.json`)
    const store = await openStore(path, options).catch((error: unknown) => {
      throw unusable(path, 'used', error)
    })
    return {
      oldCheckpoint,
      checkpoint: store.checkpoint.bind(store),
      transaction: async (work, options) => {
        const result = await transactIn(store, path, work, options)
        rmSync(`${path}.json`, { force: true })
        return result
      },
      close: async () => {
        const saved = await store.checkpoint(id)
        await store.close()
        if (saved === undefined) removeJournal(path)
        else if (saved.startsWith(donePrefix)) await removeOldest(folder, options, io)
        release()
      },
    }
  } catch (error) {
    release()
    throw error
  }
}

async function lock(folder: string, path: string, io: Io): Promise<() => void> {
  try {
    makeFolder(folder)
    return await acquireLock(`${path}.lock`, 0, io)
  } catch (error) {
    throw error instanceof PlantsError && error.isRetryable
      ? new CheckpointMovedError()
      : unusable(path, 'used', error)
  }
}

function openStore(path: string, options: SqliteOptions): Promise<OwnStore> {
  return sqliteOpener({ scheme: 'sqlite', name: `${path}.db`, isDefault: true }, options).open()
}

/** Throws an error of `work` as it is: only others are of the journal. */
async function transactIn<T>(
  store: OwnStore,
  path: string,
  work: (transaction: Transaction) => Promise<T>,
  options?: TransactionOptions<T>,
): Promise<T> {
  let failure: unknown
  try {
    return await store.transaction(async (transaction) => {
      try {
        return await work(transaction)
      } catch (error) {
        failure = error
        throw error
      }
    }, options)
  } catch (error) {
    throw failure ?? unusable(path, 'written', error)
  }
}

function unusable(path: string, what: string, cause: unknown): unknown {
  if (cause instanceof PlantsError && cause.isInterruption) return cause
  const message = `The journal ${path}.db could not be ${what}: ${systemReason(cause) ?? reasonOf(cause)}`
  // A journal elsewhere does not know what is stored.
  const hint = existsSync(`${path}.db`)
    ? 'Free some space. If it is damaged, remove it, and look into the service for what is stored'
    : 'Free some space, or choose another directory with the variable PLANTS_STATE_DIR'
  return new PlantsError('unwritable', message, { hint, cause })
}

function readOldJournal(path: string): string | undefined {
  try {
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined
  } catch (error) {
    const reason = systemReason(error) ?? reasonOf(error)
    throw inputError(
      `The journal ${path} could not be read: ${reason}`,
      'It says what is stored: repair it',
      error,
    )
  }
}

/** Not the lock, for which another process may wait. What stays, as an open file does on Windows, is removed later. */
function removeJournal(path: string): void {
  for (const suffix of ['.db', '.db-wal', '.db-shm'])
    unlessSystemError(() => rmSync(path + suffix, { force: true }))
}

/** Removes the journals of complete imports that are not among the newest ones. Leaves what is not a journal. */
async function removeOldest(folder: string, options: SqliteOptions, io: Io): Promise<void> {
  const names = readdirSync(folder).filter((name) => name.endsWith('.db'))
  if (names.length <= maxDone) return
  const timeOf = (name: string) =>
    statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0
  const byTime = names
    .map((name) => ({ name, time: timeOf(name) }))
    .toSorted((one, other) => other.time - one.time)
  for (const { name } of byTime.slice(maxDone)) {
    const path = join(folder, basename(name, '.db'))
    const release = await acquireLock(`${path}.lock`, 0, io).catch(() => undefined) // in use
    if (!release) continue
    try {
      const store = await openStore(path, options)
      const saved = await store.checkpoint(basename(path)).finally(() => store.close())
      if (saved === undefined || saved.startsWith(donePrefix)) removeJournal(path)
    } catch (error) {
      if (!(error instanceof PlantsError)) throw error
    } finally {
      release()
    }
  }
}
