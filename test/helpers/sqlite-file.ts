import { once } from 'node:events'
import type { DatabaseSyncInstance } from '@photostructure/sqlite'
import { execa } from 'execa'
import { expect, onTestFinished } from 'vitest'
import { DatabaseSync } from './database.js'

/** Opens the file of a store past the program, until the test is over. */
export function open(path: string): DatabaseSyncInstance {
  const db = new DatabaseSync(path)
  onTestFinished(() => db.close())
  return db
}

/** Another process that has run a statement on a store past the program, and keeps it open until its end. */
export async function holderOf(path: string, sql: string, under: string[] = []) {
  const script = `
    const db = new (require('@photostructure/sqlite').DatabaseSync)(process.argv[1])
    db.exec(process.argv[2])
    process.stdin.on('end', () => db.close()).resume()
    process.stdout.write('open')`
  const [command = '', ...args] = [...under, 'node', '--eval', script, path, sql]
  const holder = execa(command, args, { cwd: import.meta.dirname, stdin: 'pipe', reject: false })
  const end = async (signal?: 'SIGKILL') => {
    if (signal) holder.kill(signal)
    else holder.stdin.end()
    await holder
  }
  onTestFinished(() => end('SIGKILL'))
  await once(holder.stdout, 'data')
  return { pid: holder.pid, end }
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
  return query(path, 'SELECT CAST(id AS TEXT) AS id FROM plants ORDER BY plants.id').map((row) =>
    Number(row['id']),
  )
}
