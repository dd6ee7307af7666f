import type { Database } from '../../platform/sqlite.js'
import { tables } from './schema.js'

/**
 * Puts the rows of the attached database `backup`, whose schema was checked, in the place of those of a store, in the transaction that
 * is open.
 *
 * @param pause is awaited between steps of some milliseconds; what it throws ends the work
 */
export async function copyRows(db: Database, pause: () => Promise<void>): Promise<void> {
  for (const table of ['plants', 'tokens', 'imports'] as const) db.prepare(`DELETE FROM main.${table}`).run()
  await copyPlants(db, pause)
  for (const table of ['tokens', 'imports'] as const) {
    db.prepare(`INSERT INTO main.${table} (${tables[table]}) SELECT ${tables[table]} FROM backup.${table}`).run()
  }
}

/** Whether a store has any rows: plants, tokens or anything else. */
export function holdsAnything(db: Database): boolean {
  return Object.keys(tables).some((table) => db.prepare(`SELECT 1 FROM main.${table} LIMIT 1`).get() !== undefined)
}

async function copyPlants(db: Database, pause: () => Promise<void>): Promise<void> {
  const columns = tables.plants
  const copy = (where: string) =>
    db.prepare(`INSERT INTO main.plants (${columns}) SELECT ${columns} FROM backup.plants ${where} ORDER BY id LIMIT ${rowsInStep}`)
  let copied = copy('').run().changes
  const copyNext = copy('WHERE id > (SELECT max(id) FROM main.plants)')
  while (Number(copied) === rowsInStep) {
    await pause()
    copied = copyNext.run().changes
  }
  await pause()
}

/** a few milliseconds */
const rowsInStep = 5000
