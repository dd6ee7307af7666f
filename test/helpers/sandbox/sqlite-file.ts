import { once } from 'node:events'
import * as packaged from '@photostructure/sqlite'
import { execa } from 'execa'
import { expect, onTestFinished } from 'vitest'
import { describeDriver } from '../../../src/platform/sqlite.js'
import { waitFor } from './wait.js'

/**
 * Connects with the SQLite that the program has. Another one in the same process would see none of
 * its locks, and would end them (https://sqlite.org/howtocorrupt.html, 2.2).
 */
export const { DatabaseSync } =
  describeDriver().driver === 'node:sqlite'
    ? (process.getBuiltinModule('node:sqlite') as typeof packaged)
    : packaged

export function openDatabase(path: string): packaged.DatabaseSyncInstance {
  const db = new DatabaseSync(path)
  onTestFinished(() => db.close())
  return db
}

/** Inserts plants into a store, with the ids from 1 on and the names "Plant 1" and so on. */
export function insertPlants(path: string, count: number): void {
  const db = new DatabaseSync(path)
  // The packaged driver closes a file only when its prepared statements are collected as garbage,
  // so nothing is prepared here.
  db.exec(`
    WITH RECURSIVE ids (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < ${count})
    INSERT OR IGNORE INTO plants (id, name) SELECT id, 'Plant ' || id FROM ids`)
  db.close()
}

/** Starts a process that runs a statement on a store, and keeps the store open until it ends. */
export async function holdLock(path: string, sql: string) {
  const script = `
    const db = new (require('@photostructure/sqlite').DatabaseSync)(process.argv[1])
    db.exec(process.argv[2])
    process.stdin.on('end', () => db.close()).resume()
    process.stdout.write('open')`
  const options = { cwd: import.meta.dirname, stdin: 'pipe', reject: false } as const
  const holder = execa('node', ['--eval', script, path, sql], options)
  const end = async (signal?: 'SIGKILL') => {
    if (signal) holder.kill(signal)
    else holder.stdin.end()
    await holder
  }
  onTestFinished(() => end('SIGKILL'))
  await waitFor(once(holder.stdout, 'data'), () => `a process that holds ${path}`)
  return { end }
}

export function queryFile(path: string, sql: string, options = {}): Record<string, unknown>[] {
  const db = new DatabaseSync(path, options)
  try {
    return Array.from(db.prepare(sql).all(), (row) => ({ ...row }))
  } finally {
    db.close()
  }
}

/** Reads the ids in a store. It fails if the file is damaged. */
export function readIds(path: string): number[] {
  expect(queryFile(path, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
  const sql = 'SELECT CAST(id AS TEXT) AS id FROM plants ORDER BY plants.id'
  return queryFile(path, sql).map(({ id }) => Number(id))
}
