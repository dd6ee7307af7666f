import { closeSync, fsyncSync, openSync, statSync } from 'node:fs'
import { moveIntoPlace, unwritableReasons } from '../../platform/atomic-file.js'
import type { Clock } from '../../platform/clock.js'
import { PlantsError, systemCode } from '../../platform/errors.js'
import { withLockedTempDir } from '../../platform/file-lock.js'
import { connect, copyDatabase, primaryCode, uriOf } from '../../platform/sqlite.js'
import type { Copy } from '../store.js'
import { explainFailure, isFull } from './failure.js'
import { makeFile } from './file.js'
import { examine, type Snapshot } from './snapshot.js'

/**
 * Copies a store into a file for its owner alone, which takes the place of `target` once it is whole, checked and on the disk.
 *
 * @param beside the file in the same folder that the temporary folder is named after
 * @throws {PlantsError} `unwritable` when there is no place for it, `unavailable` when the store could not be read or is damaged, or
 * the reason of the signal. What was at `target` is as it was then.
 */
export async function copyStore(snapshot: Snapshot, target: string, { signal }: Pick<Clock, 'signal'>, beside = target): Promise<Copy> {
  try {
    return await withLockedTempDir(beside, 'copy.db', async (made) => {
      makeFile({ path: made, isDefault: false })
      await copyDatabase(snapshot.db, made, () => signal.throwIfAborted())
      await hear(signal)
      const plants = finish(made, snapshot.path)
      await hear(signal)
      snapshot.check()
      moveIntoPlace(made, target)
      return { plants, bytes: statSync(target).size }
    })
  } catch (error) {
    throw signal.aborted ? signal.reason : explainCopy(error, target, snapshot.path)
  }
}

/** Lets signals in, which wait while SQLite works, and throws the reason when there was one. */
export async function hear(signal: AbortSignal): Promise<void> {
  await new Promise(setImmediate)
  signal.throwIfAborted()
}

/** What a failure says that may be the reason of a signal, which came before anything was changed. */
export function unchanged(error: unknown, { signal }: Pick<Clock, 'signal'>): unknown {
  if (!signal.aborted || error !== signal.reason || !(error instanceof PlantsError)) return error
  return new PlantsError(error.kind, `${error.message}, nothing was changed`, { cause: error })
}

/** Makes a copy one file that needs no log, and makes sure of it. */
function finish(path: string, source: string): bigint {
  const db = connect(uriOf(path, 'mode=rw'), { readOnly: false })
  try {
    db.exec('PRAGMA journal_mode=DELETE')
    return examine(db, source)
  } finally {
    db.close()
    sync(path)
  }
}

function sync(path: string): void {
  const fd = openSync(path, 'r+')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** What is wrong with the disk is wrong where the copy is made, except for a store that cannot be read. */
export function explainCopy(error: unknown, target: string, source: string): unknown {
  const code = primaryCode(error) ?? systemCode(error)
  const why = reasons[code === 10 && isFull(target) ? 13 : (code ?? '')]
  if (why === undefined) return explainFailure(error, source)
  return new PlantsError('unwritable', `The copy ${target} could not be written: ${why}`, {
    hint: 'Mend that, or choose another place. What was there is as it was',
    cause: error,
  })
}

const reasons: Record<string, string> = {
  8: 'the disk is read-only',
  10: 'the disk failed',
  13: 'no space left on the disk',
  14: 'its folder lets nothing be made in it',
  ...unwritableReasons,
}
