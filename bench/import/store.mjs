import { rmSync } from 'node:fs'
import { DatabaseSync } from '@photostructure/sqlite'

export function countPlants(path) {
  const db = new DatabaseSync(path)
  try {
    return db.prepare('SELECT count(*) AS count FROM plants').get().count
  } finally {
    db.close()
  }
}

export function removeStore(path) {
  for (const end of ['', '-wal', '-shm', '-journal']) rmSync(`${path}${end}`, { force: true })
}

/** @throws when not all rows are there; a program that left some out would look fast */
export function checkCount({ title }, found, expected) {
  if (found !== expected) throw new Error(`${title}: there are ${found} plants instead of ${expected}`)
}
