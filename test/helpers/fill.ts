import { DatabaseSync } from '@photostructure/sqlite'

/** Puts many plants into a store that exists, past the program: ids from 1 up, names "Plant 1" and so on. */
export function fill(path: string, count: number): void {
  const db = new DatabaseSync(path)
  try {
    db.prepare(
      "INSERT INTO plants (id, name) WITH RECURSIVE ids (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < ?) SELECT id, 'Plant ' || id FROM ids",
    ).run(count)
  } finally {
    db.close()
  }
}
