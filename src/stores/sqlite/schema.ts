import { type NewPlant, plantFields } from '../../plant/fields.js'
import { plantFrom } from '../../plant/plant.js'
import type { Database } from '../../platform/sqlite.js'
import { DamageError, notOurs } from './errors.js'
import { syncFolders } from './file.js'

/**
 * Identifies the content of a file before anything else is read: the file is not trusted.
 *
 * @returns the version of its schema; undefined for an empty file
 * @throws {PlantsError} when the file belongs to another program or to a newer version of this one, or has a different schema
 */
export function identify(db: Database, path: string): bigint | undefined {
  const found = readObjects(db, 'main')
  const [first] = found
  if (first?.application_id !== applicationId) {
    const isEmpty = first?.application_id === 0n && first.user_version === 0n && first.type === null
    if (!isEmpty) throw notOurs(path, 'is an SQLite file of another program, not a store')
    return undefined
  }
  const { user_version: version, encoding } = first
  const latest = latestVersion()
  if (version > latest)
    throw notOurs(path, `was written by a newer version of plants (schema ${version}, this one supports ${latest})`, 'Update plants')
  if (encoding !== 'UTF-8') throw notOurs(path, `is not a store of plants: its encoding is ${encoding}, not UTF-8`)
  if (!versions().includes(version) || !hasSchema(found, version)) throw changedSchema(path)
  return version
}

/** The schema version of the attached database `backup`. Throws unless it has the schema of a store. */
export function identifyBackup(db: Database, path: string): bigint {
  const found = readObjects(db, 'backup')
  const version = versions().find((each) => hasSchema(found, each))
  if (version === undefined) throw changedSchema(path)
  return version
}

function hasSchema(found: SchemaObject[], version: bigint): boolean {
  const has = (wanted: SchemaObject) => found.some((object) => objectFields.every((field) => object[field] === wanted[field]))
  const wanted = objectsOf(version)
  return wanted.every(has) && found.length === wanted.length + statistics.filter(has).length
}

function changedSchema(path: string): Error {
  return notOurs(path, 'is not a store of plants: its tables, indexes or triggers were changed', 'Undo that, or restore a backup')
}

/** the columns of `sqlite_schema`; NULL if it is empty */
const objectFields = ['type', 'name', 'tbl_name', 'sql'] as const

type SchemaObject = Record<(typeof objectFields)[number], string | null>

type SchemaRow = SchemaObject & { application_id: bigint; user_version: bigint; encoding: string }

/** Uses one statement, for a consistent view: another process may be creating the store. Reads at most one object more than a store has. */
function readObjects(db: Database, database: 'main' | 'backup'): SchemaRow[] {
  const expected = [...objectsOf(latestVersion()), ...statistics]
  const length = Math.max(...expected.map(({ sql }) => sql?.length ?? 0)) + 1
  const select = db.prepare(`SELECT application_id, user_version, encoding, type, name, tbl_name, substr(sql, 1, ${length}) AS sql
    FROM pragma_application_id, pragma_user_version, pragma_encoding LEFT JOIN ${database}.sqlite_schema LIMIT ${expected.length + 1}`)
  return select.all() as SchemaRow[] // the columns of the statement
}

/**
 * Creates the schema in an empty file, or migrates an older store, in one transaction. Turns on WAL mode.
 *
 * @throws {PlantsError} like `identify`, and when the file system does not support WAL mode
 */
export function prepareStore(db: Database, path: string): void {
  if (db.isTransaction) db.exec('ROLLBACK') // of a try that failed
  const latest = latestVersion()
  if (identify(db, path) === latest && isWal(db)) return
  db.exec('PRAGMA journal_mode=WAL')
  if (!isWal(db))
    throw notOurs(path, `cannot be a store: its file system does not support SQLite's WAL mode`, 'Put it on a local disk: --store PATH')
  db.exec('BEGIN IMMEDIATE')
  const version = identify(db, path)
  if (version === undefined) {
    syncFolders(path)
    const statements = objectsOf(latest).flatMap(({ sql }) => sql ?? [])
    db.exec(`${statements.join(';')}; PRAGMA application_id=${applicationId}; PRAGMA user_version=${latest}`)
  } else migrate(db, version)
  db.exec('COMMIT')
}

/** Migrates a store of any version to the latest schema, in a transaction that the caller begins and commits. */
export function migrate(db: Database, version: bigint): void {
  db.exec('DROP VIEW IF EXISTS temp.plants; DROP VIEW IF EXISTS temp.tokens') // of `prepareToRead`
  for (const column of addedSince(version)) db.exec(`ALTER TABLE ${column.table} ADD COLUMN ${definitionOf(column)}`)
  const latest = latestVersion()
  if (version < latest) db.exec(`PRAGMA user_version=${latest}`)
}

/**
 * Identifies a store of any version to read it. The statements are those of the latest version: in an older store, a temporary view in
 * front of each table that lacks columns adds their values, until `migrate` adds the columns.
 *
 * @returns undefined for an empty file
 * @throws {PlantsError} like `identify`
 */
export function prepareToRead(db: Database, path: string): bigint | undefined {
  const version = identify(db, path)
  const missing = version === undefined ? [] : addedSince(version)
  for (const table of new Set(missing.map((column) => column.table))) {
    const values = missing.filter((column) => column.table === table).map(({ name, value }) => `${value} AS ${name}`)
    db.exec(`CREATE TEMP VIEW IF NOT EXISTS ${table} AS SELECT *, ${values.join()} FROM main.${table}`)
  }
  return version
}

function isWal(db: Database): boolean {
  return db.prepare('PRAGMA journal_mode').get()?.journal_mode === 'wal'
}

/** "plnt": the application id in the header of every store. */
const applicationId = 0x706c6e74n

/** A store of this version is read without changes, and migrated when it is opened for writing. */
const oldestVersion = 5n

interface AddedColumn {
  table: 'plants' | 'tokens'
  name: string
  type: string
  /** that of rows which are older than the column, in SQL */
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

const addedTo = (table: AddedColumn['table'], version: bigint) =>
  addedColumns.slice(0, Number(version - oldestVersion)).filter((column) => column.table === table)

const addedSince = (version: bigint) => addedColumns.slice(Number(version - oldestVersion))

const definitionOf = ({ name, type, value }: AddedColumn) => `${name} ${type}${value === 'NULL' ? '' : ` DEFAULT ${value}`}`

/** The SQL of a table, with later columns exactly as ALTER TABLE appends them. */
const tableOf = (table: AddedColumn['table'], version: bigint) =>
  `CREATE TABLE ${table} (\n  ${oldestColumns[table].join(',\n  ')}\n${addedTo(table, version)
    .map((column) => `, ${definitionOf(column)}`)
    .join('')}) STRICT`

const keys = 'CREATE UNIQUE INDEX plants_idempotency_key ON plants (idempotency_key) WHERE idempotency_key IS NOT NULL'

/** The checkpoints of unfinished imports. Each is written together with its plants. */
const imports = 'CREATE TABLE imports (id TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT'

export function columnsOf(table: AddedColumn['table'], version = latestVersion()): string[] {
  return [...oldestColumns[table], ...addedTo(table, version).map(definitionOf)].map((definition) => definition.replace(/ .*/, ''))
}

export function tablesOf(version = latestVersion()) {
  return { plants: columnsOf('plants', version).join(), tokens: columnsOf('tokens', version).join(), imports: 'id, state' }
}

/** The content of `sqlite_schema`, including the automatic indexes of UNIQUE and PRIMARY KEY. */
const objectsOf = (version: bigint): readonly SchemaObject[] => [
  { type: 'table', name: 'plants', tbl_name: 'plants', sql: tableOf('plants', version) },
  { type: 'index', name: 'plants_idempotency_key', tbl_name: 'plants', sql: keys },
  { type: 'table', name: 'tokens', tbl_name: 'tokens', sql: tableOf('tokens', version) },
  { type: 'index', name: 'sqlite_autoindex_tokens_1', tbl_name: 'tokens', sql: null },
  { type: 'table', name: 'imports', tbl_name: 'imports', sql: imports },
  { type: 'index', name: 'sqlite_autoindex_imports_1', tbl_name: 'imports', sql: null },
]

/** The tables that ANALYZE and AUTOINCREMENT create (https://sqlite.org/fileformat2.html, 2.6). */
const statistics: readonly SchemaObject[] = Object.entries({
  sqlite_sequence: 'name,seq',
  sqlite_stat1: 'tbl,idx,stat',
  sqlite_stat4: 'tbl,idx,neq,nlt,ndlt,sample',
}).map(([name, columns]) => ({ type: 'table', name, tbl_name: name, sql: `CREATE TABLE ${name}(${columns})` }))

/** Replaces the texts of a plant and removes its idempotency key. The parameters are the values of `plantColumns`. */
export const updatePlant = `UPDATE plants SET idempotency_key = NULL${plantFields
  .map(({ name }, index) => (name === 'id' ? '' : `, ${name} = ?${index + 1}`))
  .join('')} WHERE id = ?1`

/** The plant in a row of `plants`. Throws `DamageError` for a row that only another program can have written. */
export function toPlant(row: unknown): NewPlant {
  const values = row as { id: bigint } & Record<string, unknown> // `id` is the rowid
  return plantFrom(values.id, ({ name, isRequired }) => {
    const value = values[name]
    if (typeof value === 'string' || (value === null && !isRequired)) return value
    throw new DamageError(`plant ${values.id} has a value that is not text`)
  })
}

export function countPlants(db: Database, database: 'main' | 'backup' = 'main'): bigint {
  const { count } = db.prepare(`SELECT count(*) AS count FROM ${database}.plants`).get() as { count: bigint } // count(*) always returns one row
  return count
}
