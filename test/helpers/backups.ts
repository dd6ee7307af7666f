import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fill } from './fill.js'
import { type Result, type RunOptions, runPlants } from './run.js'
import { open } from './sqlite-file.js'

/** What is in a folder, but for what SQLite keeps beside a store for as long as this process has statements of it. */
export function namesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => !/-(wal|shm)$/.test(name))
    .toSorted()
}

/** Makes a store of many plants out of another, which stays as it is, and spoils pages in the middle. */
export async function damagedCopy(path: string, folder: string): Promise<string> {
  const damaged = join(folder, 'damaged.db')
  fill(path, 5000)
  await runPlants(['backup', damaged, '--store', path], { cwd: folder })
  open(path).exec("DELETE FROM plants WHERE name LIKE 'Plant%'")
  const bytes = readFileSync(damaged)
  writeFileSync(damaged, bytes.fill(0xa5, 8 * 4096, 10 * 4096))
  return damaged
}

/** What SQLite says of a file. */
export function look(path: string): object {
  const db = open(path)
  return { ...db.prepare('PRAGMA journal_mode').get(), ...db.prepare('PRAGMA integrity_check').get() }
}

/**
 * What somebody does in a folder that also holds the data: run a command line, create plants from JSON, and list a
 * store.
 */
export function commandsIn(folder: () => string) {
  const plants = (argv: string[], world: RunOptions = {}): Promise<Result> =>
    runPlants(argv, { cwd: folder(), env: { PLANTS_DATA_DIR: folder() }, ...world })
  return {
    plants,
    plant: async (...plantsToCreate: object[]): Promise<void> => {
      for (const each of plantsToCreate) await plants(['create'], { stdin: JSON.stringify(each) })
    },
    listOf: async (path: string): Promise<string> => (await plants(['list', '--store', path])).out,
  }
}
