import { fieldNames, type NewPlant, textNames } from '../../plant/fields.js'
import { plantFrom } from '../../plant/plant.js'
import type { Database } from '../../platform/sqlite.js'
import { DamageError, notOurs } from './sqlite-errors.js'
import { syncFolders } from './store-file.js'

/** What tells whether a schema was changed: SQLite changes `schema`, and this program `user`. */
export type SchemaVersions = Record<'schema' | 'user', bigint>

export function versionsOf(db: Pick<Database, 'prepare'>): SchemaVersions {
  const sql = 'SELECT schema_version AS schema, user_version AS user FROM pragma_schema_version, pragma_user_version'
  return db.prepare(sql).get() as SchemaVersions // always one row
}

/**
 * Comes before any other read, because the file is not trusted. Returns undefined for an empty file. Throws for one of
 * another program or of a newer version, or with a different schema.
 */
export function identify(db: Database, path: string): SchemaVersions | undefined {
  const found = readObjects(db, 'main')
  const [first] = found
  if (first?.application_id !== applicationId) {
    const isEmpty = first?.application_id === 0n && first.user_version === 0n && first.type === null
    if (!isEmpty) throw notOurs(path, 'is an SQLite file of another program, not a store')
    return undefined
  }
  const { user_version: version, schema_version: schema, encoding } = first
  const latest = latestVersion()
  const newer = `was written by a newer version of plants (schema ${version}, this one supports ${latest})`
  if (version > latest) throw notOurs(path, newer, 'Update plants')
  if (encoding !== 'UTF-8') throw notOurs(path, `is not a store of plants: its encoding is ${encoding}, not UTF-8`)
  if (!versions().includes(version) || !hasSchema(found, version)) throw changedSchema(path)
  return { schema, user: version }
}

/** The schema version of the attached database `backup`. */
export function identifyBackup(db: Database, path: string): bigint {
  const found = readObjects(db, 'backup')
  const version = versions().find((each) => hasSchema(found, each))
  if (version === undefined) throw changedSchema(path)
  return version
}

function hasSchema(found: SchemaObject[], version: bigint): boolean {
  const has = (wanted: SchemaObject) =>
    found.some((object) => objectFields.every((field) => object[field] === wanted[field]))
  const wanted = objectsOf(version)
  return wanted.every(has) && found.length === wanted.length + statistics.filter(has).length
}

function changedSchema(path: string): Error {
  const why = 'is not a store of plants: its tables, indexes or triggers were changed'
  return notOurs(path, why, 'Undo that, or restore a backup')
}

/** the columns of `sqlite_schema`; NULL if it is empty */
const objectFields = ['type', 'name', 'tbl_name', 'sql'] as const

type SchemaObject = Record<(typeof objectFields)[number], string | null>

type SchemaRow = SchemaObject &
  Record<'application_id' | 'schema_version' | 'user_version', bigint> & { encoding: string }

/**
 * One statement, for a consistent view: another process may be creating the store. Reads one object too many at most.
 */
function readObjects(db: Database, database: 'main' | 'backup'): SchemaRow[] {
  const expected = [...objectsOf(latestVersion()), ...statistics]
  const length = Math.max(...expected.map(({ sql }) => sql?.length ?? 0)) + 1
  const select =
    db.prepare(`SELECT application_id, schema_version, user_version, encoding, type, name, tbl_name, substr(sql, 1, ${length}) AS sql
    FROM pragma_application_id, pragma_schema_version, pragma_user_version, pragma_encoding LEFT JOIN ${database}.sqlite_schema LIMIT ${expected.length + 1}`)
  return select.all() as SchemaRow[] // the columns of the statement
}

export function prepareStore(db: Database, path: string): SchemaVersions {
  if (db.isTransaction) db.exec('ROLLBACK') // of a try that failed
  const found = identify(db, path)
  if (found && isLatest(found) && isWal(db)) return found
  db.exec('PRAGMA journal_mode=WAL')
  const why = `cannot be a store: its file system does not support SQLite's WAL mode`
  if (!isWal(db)) throw notOurs(path, why, 'Put it on a local disk: --store PATH')
  db.exec('BEGIN IMMEDIATE')
  const versions = identify(db, path)
  if (versions) migrate(db, versions)
  else {
    syncFolders(path)
    const statements = objectsOf(latestVersion()).flatMap(({ sql }) => sql ?? [])
    db.exec(`${statements.join(';')}; PRAGMA application_id=${applicationId}; PRAGMA user_version=${latestVersion()}`)
  }
  const prepared = versionsOf(db)
  db.exec('COMMIT')
  return prepared
}

export function isLatest({ user }: SchemaVersions): boolean {
  return user === latestVersion()
}

/** In a transaction that the caller begins and commits. */
export function migrate(db: Database, versions: SchemaVersions): void {
  db.exec('DROP VIEW IF EXISTS temp.plants; DROP VIEW IF EXISTS temp.tokens') // of `prepareToRead`
  for (const column of addedSince(versions.user))
    db.exec(`ALTER TABLE ${column.table} ADD COLUMN ${definitionOf(column)}`)
  if (!isLatest(versions)) db.exec(`PRAGMA user_version=${latestVersion()}`)
}

/**
 * The statements are those of the latest version: in an older store, temporary views add the values of missing columns,
 * until `migrate` adds the columns.
 */
export function prepareToRead(db: Database, path: string): SchemaVersions | undefined {
  const versions = identify(db, path)
  const missing = versions ? addedSince(versions.user) : []
  for (const table of new Set(missing.map((column) => column.table))) {
    const values = missing.filter((column) => column.table === table).map(({ name, value }) => `${value} AS ${name}`)
    db.exec(`CREATE TEMP VIEW IF NOT EXISTS ${table} AS SELECT *, ${values.join()} FROM main.${table}`)
  }
  return versions
}

function isWal(db: Database): boolean {
  return db.prepare('PRAGMA journal_mode').get()?.journal_mode === 'wal'
}

/** "plnt", in the header of every store */
const applicationId = 0x706c6e74n

/** A store of this version is read without changes, and migrated when it is opened for writing. */
const oldestVersion = 5n

type Table = 'plants' | 'tokens'

interface AddedColumn {
  table: Table
  name: string
  type: string
  /** in rows that are older than the column, in SQL */
  value: string
}

/** The column that each later version adds; a test adds some. */
export const addedColumns: AddedColumn[] = []

const latestVersion = () => oldestVersion + BigInt(addedColumns.length)

const versions = () => addedColumns.map((_, index) => latestVersion() - BigInt(index)).concat(oldestVersion)

/** Rights are comma-separated. The row of a revoked token stays, so that no id is reused. Times are in milliseconds. */
const oldestColumns = {
  plants: ['id INTEGER PRIMARY KEY', 'name TEXT NOT NULL', 'tag TEXT', 'idempotency_key TEXT'],
  tokens: [
    'id INTEGER PRIMARY KEY',
    'digest BLOB NOT NULL UNIQUE',
    'note TEXT',
    'created_at INTEGER NOT NULL',
    'expires_at INTEGER',
    'revoked_at INTEGER',
    'rights TEXT NOT NULL',
    'last_used_at INTEGER',
  ],
}

const addedTo = (table: Table, version: bigint) =>
  addedColumns.slice(0, Number(version - oldestVersion)).filter((column) => column.table === table)

const addedSince = (version: bigint) => addedColumns.slice(Number(version - oldestVersion))

const definitionOf = ({ name, type, value }: AddedColumn) =>
  `${name} ${type}${value === 'NULL' ? '' : ` DEFAULT ${value}`}`

/** With later columns exactly as ALTER TABLE appends them. */
const tableOf = (table: Table, version: bigint) =>
  `CREATE TABLE ${table} (\n  ${oldestColumns[table].join(',\n  ')}\n${addedTo(table, version)
    .map((column) => `, ${definitionOf(column)}`)
    .join('')}) STRICT`

const keys = 'CREATE UNIQUE INDEX plants_idempotency_key ON plants (idempotency_key) WHERE idempotency_key IS NOT NULL'

/** The checkpoints of unfinished imports. */
const imports = 'CREATE TABLE imports (id TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT'

export function columnsOf(table: Table, version = latestVersion()): string[] {
  return [...oldestColumns[table], ...addedTo(table, version).map(definitionOf)].map((definition) =>
    definition.replace(/ .*/, ''),
  )
}

export function tablesOf(version = latestVersion()) {
  return {
    plants: columnsOf('plants', version).join(),
    tokens: columnsOf('tokens', version).join(),
    imports: 'id, state',
  }
}

const table = (name: string, sql: string): SchemaObject => ({ type: 'table', name, tbl_name: name, sql })

const index = (name: string, tbl_name: string, sql: string | null): SchemaObject => ({
  type: 'index',
  name,
  tbl_name,
  sql,
})

/** The content of `sqlite_schema`, including the automatic indexes of UNIQUE and PRIMARY KEY. */
const objectsOf = (version: bigint): readonly SchemaObject[] => [
  table('plants', tableOf('plants', version)),
  index('plants_idempotency_key', 'plants', keys),
  table('tokens', tableOf('tokens', version)),
  index('sqlite_autoindex_tokens_1', 'tokens', null),
  table('imports', imports),
  index('sqlite_autoindex_imports_1', 'imports', null),
]

/** The tables that ANALYZE and AUTOINCREMENT create (https://sqlite.org/fileformat2.html, 2.6). */
const statistics: readonly SchemaObject[] = [
  table('sqlite_sequence', 'CREATE TABLE sqlite_sequence(name,seq)'),
  table('sqlite_stat1', 'CREATE TABLE sqlite_stat1(tbl,idx,stat)'),
  table('sqlite_stat4', 'CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)'),
]

const updates = textNames.map((name) => `${name} = ?${fieldNames.indexOf(name) + 1}`)

/** Also removes the idempotency key. The parameters are the values of `plantColumns`. */
export const updatePlant = `UPDATE plants SET ${updates.join()}, idempotency_key = NULL WHERE id = ?1`

/** Throws `DamageError` for a row that only another program can have written. */
export function toPlant(row: unknown): NewPlant {
  const values = row as { id: bigint } & Record<string, unknown> // `id` is the rowid
  return plantFrom(values.id, ({ name, isRequired }) => {
    const value = values[name]
    if (typeof value === 'string' || (value === null && !isRequired)) return value
    throw new DamageError(`plant ${values.id} has a value that is not text`)
  })
}

export function countPlants(db: Database): bigint {
  const { count } = db.prepare('SELECT count(*) AS count FROM main.plants').get() as { count: bigint } // one row
  return count
}
