/** The header of the file has "plnt" as its application id, and the version of the schema as its user version. */
export const applicationId = 0x706c6e74n
export const schemaVersion = 5n
export const headerSql = `PRAGMA application_id=${applicationId}; PRAGMA user_version=${schemaVersion}`

/**
 * Rights are comma-separated, times in milliseconds. The row of a revoked token stays, so that no id is reused, and so do
 * the columns of older versions, such as `last_used_at`. `imports` has the checkpoints of unfinished imports, and of some
 * complete ones: see checkpoint-state.ts.
 */
export const schema: readonly { type: string; name: string; sql: string }[] = [
  {
    type: 'table',
    name: 'plants',
    sql: `CREATE TABLE plants (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  tag TEXT,
  idempotency_key TEXT
) STRICT`,
  },
  {
    type: 'index',
    name: 'plants_idempotency_key',
    sql: 'CREATE UNIQUE INDEX plants_idempotency_key ON plants (idempotency_key) WHERE idempotency_key IS NOT NULL',
  },
  {
    type: 'table',
    name: 'tokens',
    sql: `CREATE TABLE tokens (
  id INTEGER PRIMARY KEY,
  digest BLOB NOT NULL UNIQUE,
  note TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  rights TEXT NOT NULL,
  last_used_at INTEGER
) STRICT`,
  },
  {
    type: 'table',
    name: 'imports',
    sql: 'CREATE TABLE imports (id TEXT PRIMARY KEY, state TEXT NOT NULL) STRICT',
  },
]

export const tables = schema.flatMap(({ type, name }) => (type === 'table' ? name : []))
