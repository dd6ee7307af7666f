import { existsSync, rmSync, statSync } from 'node:fs'
import { PlantsError, shellWord } from '../../platform/errors.js'
import type { Database } from '../../platform/sqlite.js'
import { retryWhileBusy, type Waiting } from '../../platform/sqlite.js'
import type { FileAddress, OpenOptions, Restored, RestoreOptions } from '../store.js'
import { copyStore, hear, unchanged } from './copy.js'
import { copyRows, holdsAnything } from './copy-rows.js'
import { DamagedStoreError, explainFailure, leavesCommitOpen } from './failure.js'
import {
  checkStamp,
  fileHasContent,
  identityOf,
  isPartOf,
  makeFile,
  openToPeek,
  openToWrite,
  peekUriOf,
  realPathOf,
  reportOwner,
  secure,
  stampOf,
} from './file.js'
import { lockedError } from './lock.js'
import { checkBackup, prepareStore } from './schema.js'
import { countPlants, examine, withSnapshot } from './snapshot.js'

/** What `restoreStore` of `stores/open.ts` does. */
export async function restore(address: FileAddress, file: string, options: RestoreOptions): Promise<Restored> {
  const path = realPathOf(address.path)
  const backup = realPathOf(file)
  if (isPartOf(path, backup)) throw new PlantsError('malformed', `${backup} is the store itself, or belongs to it`, { hint: another })
  const stamp = await examineBackup(backup, options)
  try {
    makeFile({ ...address, path })
    await options.onOwner?.(backup, statSync(backup).uid, 'backup')
    await reportOwner(address, options)
    const identity = identityOf(path)
    const db = openToWrite(path)
    try {
      await prepare(db, path, options)
      return await replace(db, { path, backup, identity, stamp }, options)
    } finally {
      if (db.isTransaction) db.exec('ROLLBACK')
      db.close()
    }
  } catch (error) {
    throw explainRestore(unchanged(error, options.clock), path)
  }
}

/** Gives the stamp of a backup that nobody has open. */
async function examineBackup(backup: string, options: OpenOptions): Promise<string | undefined> {
  const stamp = existsSync(`${backup}-wal`) ? undefined : stampOf(backup)
  try {
    if (!existsSync(backup)) throw new PlantsError('malformed', `There is no file ${backup}`, { hint: another })
    if (!fileHasContent(backup)) throw new PlantsError('malformed', `${backup} is empty, and no backup`, { hint: another })
    const db = openToPeek(backup)
    try {
      await inTurn(() => examine(db, backup), backup, options)
    } finally {
      db.close()
    }
  } catch (error) {
    const explained = explainFailure(error, backup)
    if (!(explained instanceof PlantsError) || explained.retryable || explained.kind !== 'unavailable') throw explained
    throw new PlantsError('malformed', `Not restored: ${explained.message}`, { hint: another, cause: error })
  }
  return stamp
}

const another = 'Choose a file that plants backup has made'

async function prepare(db: Database, path: string, options: OpenOptions): Promise<void> {
  await inTurn(() => secure(db), path, options)
  await inTurn(() => prepareStore(db, path), path, options)
}

interface Work {
  path: string
  backup: string
  /** of the store, from before it was opened */
  identity: string
  /** of the backup, from before it was looked through */
  stamp: string | undefined
}

/** Replaces the rows of a store, so that whoever has it open goes on with those of the backup. */
async function replace(db: Database, work: Work, options: RestoreOptions): Promise<Restored> {
  const { path, backup, stamp } = work
  db.prepare('ATTACH ? AS backup').run(peekUriOf(backup))
  await inTurn(() => db.exec('BEGIN IMMEDIATE'), path, options)
  const there = countPlants(db)
  if (there > 0n && !options.force) {
    const what = there === 1n ? 'has a plant' : `has ${there} plants`
    throw new PlantsError('conflict', `The store ${path} ${what}`, {
      hint: 'To replace what is there, which is then kept beside it, add --force',
    })
  }
  const kept = holdsAnything(db) ? await keep(path, options) : undefined
  try {
    checkBackup(db, backup) // it may be another file since it was looked through
    await copyRows(db, () => hear(options.clock.signal))
    const plants = countPlants(db)
    checkStamp(backup, stamp)
    commit(db, work)
    return { plants, kept }
  } catch (error) {
    if (kept !== undefined && !isUnknown(error)) rmSync(kept, { force: true })
    throw error
  }
}

/** Copies a store beside itself; nobody can write to it meanwhile, because this process may. */
async function keep(path: string, options: RestoreOptions): Promise<string> {
  const name = `${path}.before-restore-${options.at.toISOString().replace(/[-:]|\.\d+/g, '')}`
  let kept = name
  for (let count = 2; existsSync(kept); count += 1) kept = `${name}-${count}`
  await withSnapshot(path, options, (snapshot) => copyStore(snapshot, kept, options.clock, path))
  return kept
}

function commit(db: Database, { path, identity }: Work): void {
  if (identityOf(path) !== identity)
    throw new PlantsError('unavailable', `${path} was deleted or replaced`, { hint: 'Try again', retryable: true })
  try {
    db.exec('COMMIT')
  } catch (error) {
    throw leavesCommitOpen(error) ? unknownOutcome(`The disk failed under ${path}`, error) : error
  }
  if (identityOf(path) !== identity) throw unknownOutcome(`${path} was deleted or replaced`)
}

function unknownOutcome(what: string, cause?: unknown): PlantsError {
  return new PlantsError('unknownOutcome', `${what} in the middle of the commit: whether it is restored is not known`, {
    hint: 'Look at the disk first, then restore again',
    cause,
  })
}

function isUnknown(error: unknown): boolean {
  return error instanceof PlantsError && error.kind === 'unknownOutcome'
}

function inTurn<T>(call: () => T, path: string, waiting: Waiting): Promise<T> {
  return retryWhileBusy(call, waiting, () => lockedError(path, waiting.timeout))
}

/** A backup is what one has for a store that is damaged, and there is nothing in that to put the rows into. */
function explainRestore(error: unknown, path: string): unknown {
  const explained = explainFailure(error, path)
  if (!(explained instanceof DamagedStoreError) || explained.path !== path) return explained
  const hint = `Move it aside, then restore again: mv ${shellWord(path)} ${shellWord(`${path}.damaged`)}`
  return new PlantsError(explained.kind, explained.message, { hint, cause: error })
}
