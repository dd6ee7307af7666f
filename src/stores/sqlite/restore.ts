import { existsSync, rmSync, statSync } from 'node:fs'
import { plantCount } from '../../plant/plant.js'
import { checkSignal } from '../../platform/clock.js'
import { malformed, PlantsError, shellWord } from '../../platform/errors.js'
import type { Database } from '../../platform/sqlite.js'
import type { FileAddress } from '../common/address.js'
import type { OpenOptions } from '../common/store.js'
import { asMalformed, copyStore, integrityCheck } from './backup.js'
import { Connection, openSnapshot, openToWrite } from './connection.js'
import { changedWhileRead, commitOutcomeUnknown, explainFailure, isCommitOutcomeUnknown, replacedStore, unchanged } from './errors.js'
import { fileHasContent, fileVersion, identityOf, isPartOf, makeFile, realPathOf, reportOwner, stranger } from './file.js'
import { countPlants, identifyBackup, tablesOf } from './schema.js'

export interface RestoreOptions extends OpenOptions {
  /** whether to replace existing plants; a copy of the store is kept beside it */
  force: boolean
  /** whether to check the backup only */
  isDryRun: boolean
  at: Date
}

/** Replaces what is in a store by a backup, which is left as it is, in one transaction; others may use the store meanwhile. */
export async function restoreStore(address: FileAddress, file: string, options: RestoreOptions) {
  const path = realPathOf(address.name)
  const backup = realPathOf(file)
  if (isPartOf(path, backup)) throw malformed(`${backup} is the store itself, or belongs to it`, another)
  const checked = await checkWhole(backup, options)
  if (options.isDryRun) return { plants: checked.plants, kept: undefined }
  try {
    makeFile(path, address.isDefault)
    const { uid } = statSync(backup)
    if (!options.trusts(uid)) await options.onExposed?.(`The backup ${backup} belongs to ${stranger(uid)} may have added tokens to it`)
    await reportOwner(address, options)
    const connection = await openToWrite(path, options)
    return await connection.use(() => replaceRows(connection, checked, options))
  } catch (error) {
    throw explainFailure(unchanged(error, options.clock.signal), path)
  }
}

interface CheckedBackup {
  path: string
  /** the `file:` URI that opens it as immutable: no file beside it is read */
  uri: string
  /** its `fileVersion` when it was checked */
  version: string
  plants: bigint
}

async function checkWhole(backup: string, options: OpenOptions): Promise<CheckedBackup> {
  try {
    if (!existsSync(backup)) throw malformed(`There is no file ${backup}`, another)
    if (!fileHasContent(backup)) throw malformed(`${backup} is empty, not a backup`, another)
    const left = ['-wal', '-journal'].map((suffix) => backup + suffix).find(fileHasContent)
    if (left !== undefined) {
      const hint = `If it is a store, restore a copy of it: plants help backup. If it is a backup, remove that file: rm ${shellWord(left)}`
      throw malformed(`Not restored: ${backup} is no complete backup, because it has changes in ${left}`, hint)
    }
    const version = fileVersion(backup)
    return await new Connection(backup, 'immutable', options).use(async (connection) => {
      const plants = await connection.run(() => integrityCheck(connection.db, backup))
      return { path: backup, uri: connection.uri, version, plants }
    })
  } catch (error) {
    throw asMalformed(error, backup, 'Not restored', another)
  }
}

const another = 'Choose a file that plants backup has created'

/** Replaces the rows of a store in one transaction, so that processes that have it open continue with those of the backup. */
async function replaceRows(connection: Connection, backup: CheckedBackup, options: RestoreOptions) {
  const { db, path } = connection
  db.prepare('ATTACH ? AS backup').run(backup.uri)
  await connection.run(() => db.exec('BEGIN IMMEDIATE'))
  const present = countPlants(db)
  if (present > 0n && !options.force) {
    const hint = 'To replace it, and keep a copy beside it, add --yes'
    throw new PlantsError('conflict', `The store ${path} has ${plantCount(present)}`, { hint })
  }
  const isEmpty = Object.keys(tablesOf()).every((table) => db.prepare(`SELECT 1 FROM main.${table} LIMIT 1`).get() === undefined)
  const kept = isEmpty ? undefined : await backUpBeside(path, options)
  try {
    const version = identifyBackup(db, backup.path) // the file may have been replaced since the check
    await copyRows(db, tablesOf(version), options)
    const plants = countPlants(db)
    if (fileVersion(backup.path) !== backup.version) throw changedWhileRead(backup.path)
    commit(connection)
    return { plants, kept }
  } catch (error) {
    const isUnknown = error instanceof PlantsError && error.type === 'unknownOutcome'
    if (kept !== undefined && !isUnknown) rmSync(kept, { force: true })
    throw error
  }
}

/** Copies a store beside itself. Nobody else can write meanwhile, because this process holds the write lock. */
async function backUpBeside(path: string, options: RestoreOptions): Promise<string> {
  const name = `${path}.before-restore-${options.at.toISOString().replace(/[-:]|\.\d+/g, '')}`
  let file = name
  for (let count = 2; existsSync(file); count += 1) file = `${name}-${count}`
  const opened = await openSnapshot(path, options)
  await opened?.use((snapshot) => copyStore(snapshot, file, options, path))
  return file
}

/** Replaces the rows of a store by those of the attached database `backup`, in steps of a few milliseconds. */
async function copyRows(
  db: Database,
  { plants: columns, ...tables }: ReturnType<typeof tablesOf>,
  { clock: { signal }, onProgress }: OpenOptions,
): Promise<void> {
  for (const name of ['plants', ...Object.keys(tables)]) db.prepare(`DELETE FROM main.${name}`).run()
  const copyAfter = (where: string) =>
    db.prepare(`INSERT INTO main.plants (${columns}) SELECT ${columns} FROM backup.plants ${where} ORDER BY id LIMIT ${rowsInStep}`)
  const total = countPlants(db, 'backup')
  let copied = copyAfter('').run().changes
  let done = Number(copied)
  const copyNext = copyAfter('WHERE id > (SELECT max(id) FROM main.plants)')
  while (Number(copied) === rowsInStep) {
    await checkSignal(signal)
    copied = copyNext.run().changes
    done += Number(copied)
    onProgress?.({ done, part: done / Number(total) })
  }
  await checkSignal(signal)
  for (const [name, others] of Object.entries(tables))
    db.prepare(`INSERT INTO main.${name} (${others}) SELECT ${others} FROM backup.${name}`).run()
}

const rowsInStep = 5000

function commit({ db, path, identity }: Connection): void {
  if (identityOf(path) !== identity) throw replacedStore(path)
  const outcomeUnknown = (cause?: unknown) => commitOutcomeUnknown(path, 'restored', 'Look at the disk first, then restore again', cause)
  try {
    db.exec('COMMIT')
  } catch (error) {
    throw isCommitOutcomeUnknown(error) ? outcomeUnknown(error) : error
  }
  if (identityOf(path) !== identity) throw outcomeUnknown()
}
