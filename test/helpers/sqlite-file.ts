import { join } from 'node:path'
import type { DatabaseSyncInstance } from '@photostructure/sqlite'
import { expect, onTestFinished } from 'vitest'
import { DatabaseSync } from './database.js'
import { type Result, runPlants } from './run.js'

/** Creates a plant in a store. */
export function create(store: string, id: string, cwd = '/'): Promise<Result> {
  return runPlants(['create', '--id', id, '--name', 'Fern', '--store', store], { cwd })
}

/** Lists a store. */
export function list(store: string): Promise<Result> {
  return runPlants(['list', '--store', store])
}

/** Makes a store with one plant in a folder. */
export async function storeIn(folder: string): Promise<string> {
  await create(join(folder, 'plants.db'), '1')
  return folder
}

/** Opens the file of a store past the program, until the test is over. */
export function open(path: string): DatabaseSyncInstance {
  const db = new DatabaseSync(path)
  onTestFinished(() => db.close())
  return db
}

/** Runs one statement past the program. */
export function query(path: string, sql: string): Record<string, unknown>[] {
  const db = new DatabaseSync(path)
  try {
    return db
      .prepare(sql)
      .all()
      .map((row) => ({ ...row }))
  } finally {
    db.close()
  }
}

/** The ids in a store, past the program. Fails if the file is damaged. */
export function idsIn(path: string): number[] {
  expect(query(path, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
  return query(path, 'SELECT CAST(id AS TEXT) AS id FROM plants ORDER BY plants.id').map((row) => Number(row['id']))
}
