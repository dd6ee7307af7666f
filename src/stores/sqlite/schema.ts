import type { Database } from './driver.js'
import { notOurs } from './failure.js'
import { syncFolders } from './file.js'

/**
 * Finds out what a connection leads to. It can be called again when SQLite was busy.
 *
 * @returns the version of the schema, 0 for a file that is still empty
 * @throws {PlantsError} when the file belongs to another program, or to a newer version of this one
 */
export function identify(db: Database, path: string): number {
  // One statement, so one moment: another process may be making the store right now.
  const { application_id: application, user_version: version, is_empty: isEmpty, schema } = db.prepare(identity).get() as Identity
  if (application === applicationId && version > schemaVersion) {
    throw notOurs(path, `was written by a newer version of plants (schema ${version}, this one knows ${schemaVersion})`, 'Update plants')
  }
  if (application === applicationId && Number(version) === schemaVersion && schema !== schemaText) {
    throw notOurs(path, 'is not as plants made it: its tables, indexes or triggers were changed', 'Undo that, or bring back a backup')
  }
  if (application === applicationId && version > 0n) return Number(version)
  if (application !== 0n || version !== 0n || isEmpty === 0n) throw notOurs(path, 'is an SQLite file of another program, not a store')
  return 0
}

/** `sqlite_…` are tables of SQLite's own, such as what ANALYZE makes. */
const identity = `SELECT application_id, user_version, NOT EXISTS (SELECT 1 FROM sqlite_schema) AS is_empty,
    (SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name)) AS schema
  FROM pragma_application_id, pragma_user_version`
type Identity = Record<'application_id' | 'user_version' | 'is_empty', bigint> & { schema: string | null }

/**
 * Brings a file to the newest schema, in one transaction. It can be called again when SQLite was busy.
 *
 * @throws {PlantsError} when the place cannot hold a write-ahead log
 */
export function migrate(db: Database, path: string): void {
  if (identify(db, path) === schemaVersion && isWal(db)) return
  db.exec('PRAGMA journal_mode=WAL')
  if (!isWal(db)) throw notOurs(path, 'cannot be a store: SQLite needs shared memory beside it', 'Put it on a local disk: --store PATH')
  db.exec('BEGIN IMMEDIATE')
  try {
    const steps = migrations.slice(identify(db, path))
    if (steps.length > 0) syncFolders(path)
    for (const step of steps) db.exec(step)
    db.exec(`PRAGMA application_id=${applicationId}; PRAGMA user_version=${schemaVersion}; COMMIT`)
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

function isWal(db: Database): boolean {
  return db.prepare('PRAGMA journal_mode').get()?.journal_mode === 'wal'
}

/** "plnt": the application id in the header of every file that is a store. */
const applicationId = 0x706c6e74n

const table = `CREATE TABLE plants (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  tag TEXT,
  idempotency_key TEXT
) STRICT`

/** A key is unique among the plants that have one: an index over them alone is free for all others. */
const keys = 'CREATE UNIQUE INDEX plants_idempotency_key ON plants (idempotency_key) WHERE idempotency_key IS NOT NULL'

/** Who may use the service in front of this store. Times are milliseconds since 1970. A row stays when its token is revoked, so that no id comes twice. */
const tokens = `CREATE TABLE tokens (
  id INTEGER PRIMARY KEY,
  digest BLOB NOT NULL UNIQUE,
  note TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) STRICT`

/** Where imports are that were begun. The position of each is written together with the plants up to it. */
const imports = 'CREATE TABLE imports (id TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT'

/**
 * The steps from an empty file to the newest schema. The version of a file counts the steps it has taken; a step that has
 * been released is never changed, only followed by another.
 */
const migrations: readonly string[] = [`${table}; ${keys}`, tokens, imports]

/** What the newest schema reads like in `sqlite_schema`, by name: VACUUM puts it into another order. A trigger or a view more, and nothing that is stored could be relied on. */
const schemaText = [imports, table, keys, tokens].join(';')

/** The version of the newest schema. */
export const schemaVersion = migrations.length
