const table = `CREATE TABLE plants (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  tag TEXT,
  idempotency_key TEXT
) STRICT`

/** A key is unique among the plants that have one: an index over them alone is free for all others. */
const keys = 'CREATE UNIQUE INDEX plants_idempotency_key ON plants (idempotency_key) WHERE idempotency_key IS NOT NULL'

/**
 * The steps from an empty file to the newest schema. The version of a file counts the steps it has taken; a step that has
 * been released is never changed, only followed by another.
 */
export const migrations: readonly string[] = [`${table}; ${keys}`]

/** What the newest schema reads like in `sqlite_schema`. A trigger or a view more, and nothing that is stored could be relied on. */
export const schemaText = `${table};${keys}`
