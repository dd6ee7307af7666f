import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { acquireLock } from '../../src/platform/file-lock.js'
import { DatabaseSync } from './database.js'
import { hang } from './hang.mjs'
import { openOptions } from './store.js'
import { temporaryFolder } from './temporary.js'

/** Puts plants with ids from 1 up, named "Plant 1" and so on, into a store past the program. */
export function fill(path: string, count: number): void {
  const db = new DatabaseSync(path)
  // Not prepared: the packaged driver closes a file for good only when its statements are collected.
  db.exec(`
    WITH RECURSIVE ids (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < ${count})
    INSERT OR IGNORE INTO plants (id, name) SELECT id, 'Plant ' || id FROM ids`)
  db.close()
}

const mark = Buffer.from('d9d505f920a163d7', 'hex')

/**
 * A rollback journal of all pages of a database (https://sqlite.org/fileformat2.html#the_rollback_journal). Beside
 * another database it is hot, and turns that one into this one.
 *
 * @param superJournal the file that SQLite then deletes
 */
export function journalOf(database: Buffer, superJournal?: string): Buffer {
  const size = database.readUInt16BE(16)
  const count = database.length / size
  const parts = [mark, numbers(count, 0, count, 512, size), Buffer.alloc(484)]
  for (let at = 0; at < count; at += 1) {
    const page = database.subarray(at * size, (at + 1) * size)
    let checksum = 0
    for (let index = size - 200; index > 0; index -= 200) checksum += page.readUInt8(index)
    parts.push(numbers(at + 1), page, numbers(checksum))
  }
  if (superJournal !== undefined) {
    const name = Buffer.from(superJournal)
    const checksum = name.reduce((total, byte) => total + byte, 0)
    parts.push(numbers(2 ** 30 / size + 1), name, numbers(name.length, checksum), mark)
  }
  return Buffer.concat(parts)
}

function numbers(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, 4 * index)
  return bytes
}

/** A write-ahead log of all pages of a database, which beside another one replaces its contents. */
export function logOf(database: string): Buffer {
  const copy = join(temporaryFolder(), 'copy.db')
  copyFileSync(database, copy)
  const db = new DatabaseSync(copy)
  try {
    db.exec('PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; VACUUM')
    return readFileSync(`${copy}-wal`)
  } finally {
    db.close()
  }
}

/** Holds a lock in this process, until `release` is called. */
export async function heldLock(path: string): Promise<{ release(): void }> {
  return { release: await acquireLock(path, hang.wait, openOptions().runtime) }
}
