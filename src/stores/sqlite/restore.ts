import { existsSync, rmSync, statSync } from 'node:fs'
import { plantCount } from '../../plant/plant.js'
import { checkSignal } from '../../platform/clock.js'
import { malformed, PlantsError, shellWord } from '../../platform/errors.js'
import type { Database } from '../../platform/sqlite.js'
import type { FileAddress } from '../common/address.js'
import type { FileOptions } from '../common/store.js'
import { Connection, openSnapshot, openToWrite } from './sqlite-connection.js'
import { changedWhileRead, explainFailure, replacedStore, unchanged } from './sqlite-errors.js'
import { countPlants, identifyBackup, tablesOf } from './sqlite-schema.js'
import { SqliteWriter } from './sqlite-writer.js'
import { asMalformed, copyStore, integrityCheck } from './store-backup.js'
import { fileHasContent, fileVersion, identityOf, isPartOf, makeFile, realPathOf, reportOwner, stranger } from './store-file.js'

export interface RestoreOptions extends FileOptions {
  /** replaces existing plants; a copy of the store is kept beside it */
  force: boolean
  /** checks the backup only */
  isDryRun: boolean
  at: Date
}

/** Others may use the store meanwhile. */
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
  /** opens it as immutable: no file beside it is read */
  uri: string
  /** its `fileVersion` */
  version: string
  plants: bigint
}

async function checkWhole(backup: string, options: FileOptions): Promise<CheckedBackup> {
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

/** Rows, not the file: processes that have the store open continue with those of the backup. */
async function replaceRows(connection: Connection, backup: CheckedBackup, options: RestoreOptions) {
  const { db, path } = connection
  db.prepare('ATTACH ? AS backup').run(backup.uri)
  let plants = 0n
  let kept: string | undefined
  const work = async () => {
    const present = countPlants(db)
    if (present > 0n && !options.force) {
      const hint = 'To replace it, and keep a copy beside it, add --yes'
      throw new PlantsError('conflict', `The store ${path} has ${plantCount(present)}`, { hint })
    }
    const isEmpty = Object.keys(tablesOf()).every((table) => db.prepare(`SELECT 1 FROM main.${table} LIMIT 1`).get() === undefined)
    if (!isEmpty) kept = await backUpBeside(path, options)
    const version = identifyBackup(db, backup.path) // the file may have been replaced since the check
    await copyRows(db, tablesOf(version), options.clock.signal)
    plants = countPlants(db)
    if (fileVersion(backup.path) !== backup.version) throw changedWhileRead(backup.path)
    if (identityOf(path) !== connection.identity) throw replacedStore(path)
  }
  try {
    await new SqliteWriter(connection, options).transact(work)
  } catch (error) {
    const isUnknown = error instanceof PlantsError && error.type === 'unknownOutcome'
    if (kept !== undefined && !isUnknown) rmSync(kept, { force: true })
    throw error
  }
  return { plants, kept }
}

/** Nobody else can write meanwhile: this process holds the write lock. */
async function backUpBeside(path: string, options: RestoreOptions): Promise<string> {
  const name = `${path}.before-restore-${options.at.toISOString().replace(/[-:]|\.\d+/g, '')}`
  let file = name
  for (let count = 2; existsSync(file); count += 1) file = `${name}-${count}`
  const opened = await openSnapshot(path, options)
  await opened?.use((snapshot) => copyStore(snapshot, file, options, path))
  return file
}

/** In steps of a few milliseconds. */
async function copyRows(db: Database, { plants, ...tables }: ReturnType<typeof tablesOf>, signal: AbortSignal): Promise<void> {
  for (const name of ['plants', ...Object.keys(tables)]) db.exec(`DELETE FROM main.${name}`)
  // -1e19 is less than any id
  const next = db.prepare(`INSERT INTO main.plants (${plants}) SELECT ${plants} FROM backup.plants
    WHERE id > ifnull((SELECT max(id) FROM main.plants), -1e19) ORDER BY id LIMIT ${rowsInStep}`)
  while (Number(next.run().changes) > 0) await checkSignal(signal)
  for (const [name, columns] of Object.entries(tables))
    db.exec(`INSERT INTO main.${name} (${columns}) SELECT ${columns} FROM backup.${name}`)
}

const rowsInStep = 5000
