import type { Database } from '../../platform/sqlite.js'
import { createUnusableStoreError } from './errors.js'

/** "plnt", in the header of the file (https://sqlite.org/fileformat2.html, 1.3). */
export const applicationId = 0x706c6e74n
const schemaVersion = 1n

/**
 * Rights are comma-separated, times in milliseconds. The row of a revoked token stays: no id is
 * given twice.
 */
const schema = `
CREATE TABLE plants (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  tag TEXT,
  idempotency_key TEXT
) STRICT;
CREATE TABLE tokens (
  id INTEGER PRIMARY KEY,
  digest BLOB NOT NULL UNIQUE,
  note TEXT,
  rights TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) STRICT;
CREATE TABLE imports (id TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT;
PRAGMA application_id = ${applicationId};
PRAGMA user_version = ${schemaVersion}`

export const tables = {
  plants: 'id, name, tag, idempotency_key',
  tokens: 'id, digest, note, rights, created_at, expires_at, revoked_at',
  imports: 'id, state',
}

/** False for an empty file. Throws for that of another program or version. */
export function isStore(db: Database, path: string): boolean {
  const sql = `SELECT application_id AS id, user_version AS version,
    (SELECT count(*) FROM sqlite_schema) AS objects FROM pragma_application_id, pragma_user_version`
  const { id, version, objects }: Record<string, bigint> = db.prepare(sql).get()
  if (id === 0n && objects === 0n) return false
  if (id !== applicationId)
    throw createUnusableStoreError(path, 'is a SQLite file of another program, not a store')
  assertVersion(version, path)
  return true
}

export function assertVersion(version: bigint | undefined, path: string): void {
  if (version === schemaVersion) return
  const why = `has version ${version} of the store format, but this program reads version ${schemaVersion}`
  throw createUnusableStoreError(path, why, 'Use the version of plants that wrote it last')
}

/** Also gives one that exists a log. Several processes may do so at once. */
export function makeStore(db: Database, path: string): void {
  const exists = isStore(db, path)
  db.exec('PRAGMA journal_mode = WAL')
  if (exists) return
  db.exec('BEGIN IMMEDIATE')
  if (!isStore(db, path)) db.exec(schema)
  db.exec('COMMIT')
}
