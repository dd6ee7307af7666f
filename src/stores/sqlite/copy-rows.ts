import type { Database } from './driver.js'

/**
 * Puts the rows of the attached database `backup` in the place of those of a store, in the transaction that is open. The backup may
 * have been written by an older version, and then lack tables and columns.
 *
 * @param pause is awaited between steps of some milliseconds; what it throws ends the work
 */
export async function copyRows(db: Database, pause: () => Promise<void>): Promise<void> {
  for (const table of tablesOf(db, 'main')) {
    db.exec(`DELETE FROM main.${table}`)
    if (!tablesOf(db, 'backup').includes(table)) continue
    const columns = columnsOf(db, table)
    if (table === 'plants') await copyPlants(db, columns, pause)
    else db.exec(`INSERT INTO main.${table} (${columns}) SELECT ${columns} FROM backup.${table}`)
  }
}

/** Whether a store has any rows: plants, tokens or anything else. */
export function holdsAnything(db: Database): boolean {
  return tablesOf(db, 'main').some((table) => db.prepare(`SELECT 1 FROM main.${table} LIMIT 1`).get() !== undefined)
}

async function copyPlants(db: Database, columns: string, pause: () => Promise<void>): Promise<void> {
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

function tablesOf(db: Database, schema: 'main' | 'backup'): string[] {
  const rows = db.prepare(`SELECT name FROM ${schema}.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'`).all()
  return rows.map(({ name }) => String(name))
}

/** The columns of a table of the backup, which are also in the store: a migration only adds. */
function columnsOf(db: Database, table: string): string {
  const rows = db.prepare("SELECT name FROM pragma_table_info(?, 'backup')").all(table)
  return rows.map(({ name }) => String(name)).join(', ')
}
