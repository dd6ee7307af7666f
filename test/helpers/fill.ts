import { DatabaseSync } from './database.js'

/** Puts many plants into a store that exists, past the program: ids from 1 up, named "Plant 1" and so on. */
export function fill(path: string, count: number): void {
  const db = new DatabaseSync(path)
  // Not prepared: the packaged driver closes a file for good only when its statements are collected.
  db.exec(`
    WITH RECURSIVE ids (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < ${count})
    INSERT OR IGNORE INTO plants (id, name) SELECT id, 'Plant ' || id FROM ids`)
  db.close()
}
