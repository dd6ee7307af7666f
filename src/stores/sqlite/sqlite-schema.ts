import type { Database, Statement } from '../../platform/sqlite.js'
import { notOurs } from './sqlite-errors.js'
import { applicationId, headerSql, schema, schemaVersion } from './sqlite-format.js'
import { syncFolders } from './store-file.js'

interface Opened {
  path: string
  db: Database
  prepare(sql: string): Statement
}

/**
 * Comes before any other read, because the file is not trusted. False for an empty file. Throws for triggers, which would
 * change what is written; other tables, indexes and views are the user's own.
 */
export function isStore({ path, prepare }: Pick<Opened, 'path' | 'prepare'>): boolean {
  const sql = `SELECT application_id, user_version, encoding, (SELECT count(*) FROM sqlite_schema) AS objects
    FROM pragma_application_id, pragma_user_version, pragma_encoding`
  const head = prepare(sql).get() as Head // always one row
  const { application_id: id, user_version: version, encoding, objects } = head
  if (encoding !== 'UTF-8')
    throw notOurs(path, `is not a store of plants: its encoding is ${encoding}, not UTF-8`)
  if (id === 0n && version === 0n && objects === 0n) return false
  if (id !== applicationId) throw notOurs(path, 'is an SQLite file of another program, not a store')
  const newer = `was written by a newer version of plants (schema ${version}, this one supports ${schemaVersion})`
  if (version > schemaVersion) throw notOurs(path, newer, 'Update plants')
  const flaw =
    flawOf(prepare) ??
    (version < schemaVersion && `it has the user_version ${version}, not ${schemaVersion}`)
  if (flaw)
    throw notOurs(path, `is not a store of plants: ${flaw}`, 'Undo that, or restore a backup')
  return true
}

/** Differs once somebody has changed the schema. */
export function schemaStamp({ prepare }: Pick<Opened, 'prepare'>): string {
  const sql = 'SELECT schema_version, user_version FROM pragma_schema_version, pragma_user_version'
  return Object.values(prepare(sql).get() ?? {}).join()
}

/** Differs once another connection has changed the file, and takes half the time of `schemaStamp`. */
export function dataVersion({ prepare }: Pick<Opened, 'prepare'>): unknown {
  return prepare('PRAGMA data_version').get()?.['data_version']
}

type Head = Record<'application_id' | 'user_version' | 'objects', bigint> & { encoding: string }

/**
 * Why the tables are not those of a store. SQLite also takes a crafted type for a trigger, such as a BLOB, or a text with
 * capitals or with more after U+0000, so that whatever is not exactly a table, an index or a view counts as one.
 */
export function flawOf(
  prepare: Opened['prepare'],
  database: 'main' | 'copy' = 'main',
): string | undefined {
  const names = schema.map(({ name }) => name)
  const length = Math.max(...schema.map(({ sql }) => sql.length)) + 1 // a crafted one can be long
  const select =
    prepare(`SELECT type, CAST(substr(name, 1, 100) AS TEXT) AS name, substr(sql, 1, ${length}) AS sql
    FROM ${database}.sqlite_schema WHERE type NOT IN ('table', 'index', 'view') OR name IN (${names.map(() => '?').join()})
    LIMIT ${names.length + 1}`)
  const found = select.all(...names)
  const trigger = found.find(({ type }) => type !== 'table' && type !== 'index' && type !== 'view')
  if (trigger) return `it has the trigger ${JSON.stringify(trigger['name'])}`
  for (const { type, name, sql } of schema) {
    const [object, other] = found.filter((each) => each['name'] === name)
    if (!object) return `it has no ${type} ${name}`
    if (other || object['type'] !== type || object['sql'] !== sql)
      return `its ${type} ${name} was changed`
  }
  return undefined
}

export function prepareStore(store: Opened): void {
  const { db, path } = store
  if (db.isTransaction) db.exec('ROLLBACK') // of a try that failed
  if (isStore(store) && isWal(db)) return
  db.exec('PRAGMA journal_mode=WAL')
  const why = `cannot be a store: its file system does not support SQLite's WAL mode`
  if (!isWal(db)) throw notOurs(path, why, 'Put it on a local disk: --store PATH')
  db.exec('BEGIN IMMEDIATE')
  if (!isStore(store)) {
    syncFolders(path)
    db.exec(`${schema.map(({ sql }) => sql).join(';')}; ${headerSql}`)
  }
  db.exec('COMMIT')
}

function isWal(db: Database): boolean {
  return db.prepare('PRAGMA journal_mode').get()?.['journal_mode'] === 'wal'
}
