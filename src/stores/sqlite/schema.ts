import type { Database } from '../../platform/sqlite.js'
import { createUnusableStoreError } from './explain.js'

/**
 * These bytes are "plnt". The header of the file has them, which distinguishes a store from a file
 * of another program (https://sqlite.org/fileformat2.html, 1.3).
 */
export const applicationId = 0x706c6e74n
const schemaVersion = 1n

/** The packaged driver cuts a string at U+0000, so no program may store such a string. */
const withoutNul = (column: string) =>
  `CONSTRAINT ${column}_without_u0000 CHECK (instr(${column}, char(0)) = 0)`

/**
 * Rights are separated by commas, and times are milliseconds since 1970. The row of a revoked token
 * stays, so that no other token gets its id: the log of a service names tokens by their ids.
 */
const schema = `
CREATE TABLE plants (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL ${withoutNul('name')},
  tag TEXT ${withoutNul('tag')},
  idempotency_key TEXT
) STRICT;
CREATE TABLE tokens (
  id INTEGER PRIMARY KEY,
  digest BLOB NOT NULL UNIQUE,
  note TEXT ${withoutNul('note')},
  rights TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) STRICT;
PRAGMA application_id = ${applicationId};
PRAGMA user_version = ${schemaVersion}`

/** A restore copies these columns of each table. */
export const tables = {
  plants: 'id, name, tag, idempotency_key',
  tokens: 'id, digest, note, rights, created_at, expires_at, revoked_at',
}

/**
 * @returns false for an empty file, which may become a store
 * @throws {PlantsError} `accessDenied` for a file of another program or another version
 */
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

/**
 * A view or a virtual table with the name of a table would run SQL of its author. SQLite compares
 * names without their case.
 *
 * @param schema the name of the database within the connection
 */
export function assertOrdinaryTables(db: Database, path: string, schema: 'main' | 'copy'): void {
  const names = Object.keys(tables).map((table) => `'${table}'`)
  const sql = `SELECT lower(name) AS name FROM pragma_table_list
    WHERE schema = '${schema}' AND type <> 'table' AND lower(name) IN (${names.join()})`
  const impostor: { name: string } | undefined = db.prepare(sql).get()
  if (!impostor) return
  const problem = `has a view or a virtual table in the place of the table ${impostor.name}`
  throw createUnusableStoreError(path, problem)
}

export function assertVersion(version: bigint | undefined, path: string): void {
  if (version === schemaVersion) return
  const problem = `has version ${version} of the store format, but this program reads version ${schemaVersion}`
  throw createUnusableStoreError(path, problem, 'Use the version of plants that wrote it last')
}

/**
 * Creates the tables of a file without a store, if it may. Another process may do the same at the
 * same time, so the file is examined again under the lock. A store that exists gets a write-ahead
 * log, because a store that was a backup has none.
 */
export function prepareTables(
  db: Database,
  path: string,
  { isReadOnly, mayCreate }: { isReadOnly: boolean; mayCreate: boolean },
): void {
  const exists = isStore(db, path)
  if (exists ? isReadOnly : !mayCreate) return
  db.exec('PRAGMA journal_mode = WAL')
  if (exists) return
  db.exec('BEGIN IMMEDIATE')
  if (!isStore(db, path)) db.exec(schema)
  db.exec('COMMIT')
}
