/**
 * The steps from an empty file to the newest schema. The version of a file counts the steps it has taken; a step that has
 * been released is never changed, only followed by another.
 *
 * A key is unique among the plants that have one: an index over them alone is free for all others.
 */
export const migrations: readonly string[] = [
  `CREATE TABLE plants (
     id INTEGER PRIMARY KEY,
     name TEXT NOT NULL,
     tag TEXT,
     idempotency_key TEXT
   ) STRICT;
   CREATE UNIQUE INDEX plants_idempotency_key ON plants (idempotency_key) WHERE idempotency_key IS NOT NULL;`,
]
