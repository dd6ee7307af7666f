import { join } from 'node:path'
import { describeReason, describeSystemError, PlantsError } from '../errors.js'
import { explainImpossiblePath, makeFolder } from '../platform/files.js'
import type { Io } from '../platform/io.js'
import type { SqliteOptions } from '../stores/sqlite/connection.js'
import type { DirectStore } from '../stores/store.js'

/**
 * Opens the journal, which keeps the checkpoints of imports into services. It is a SQLite store of
 * this machine that has no plants, because a service has no place for a checkpoint.
 *
 * @throws {PlantsError} `unwritable` with the variable that chooses another directory
 */
export async function openJournal(options: SqliteOptions, io: Io): Promise<DirectStore> {
  const stateDir = io.env['PLANTS_STATE_DIR']
  const folder = stateDir ? io.resolvePath(stateDir) : await io.findStateFolder()
  const path = join(folder, 'imports.db')
  try {
    makeFolder(folder)
    const { createDefaultAddress } = await import('../stores/sqlite/address.js')
    const { SqliteStore } = await import('../stores/sqlite/store.js')
    const address = createDefaultAddress(path)
    return await SqliteStore.openOrCreate(address, { ...options, noun: 'The journal' })
  } catch (cause) {
    if (cause instanceof PlantsError && cause.isInterruption) throw cause
    const reason = explainImpossiblePath(cause, path) ?? describeSystemError(cause)
    const message = reason
      ? `The journal ${path} could not be used: ${reason}`
      : describeReason(cause)
    throw new PlantsError('unwritable', message, {
      hint: 'Choose another directory with the variable PLANTS_STATE_DIR',
      cause,
    })
  }
}
