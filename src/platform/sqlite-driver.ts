import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { DatabaseSyncInstance } from '@photostructure/sqlite'
import { PlantsError, systemCode } from './errors.js'

/** A connection. Integers are read as bigint, and SQLite itself never waits for a lock. */
export type Database = DatabaseSyncInstance
export type Statement = ReturnType<Database['prepare']>

/**
 * Connects to an SQLite file that exists, and that anybody may have made (https://sqlite.org/security.html).
 *
 * @param uri a `file:` URI, see https://sqlite.org/uri.html
 * @throws what SQLite throws, see `failure.ts`
 */
export function connect(uri: string, { readOnly }: { readOnly: boolean }): Database {
  const { DatabaseSync } = loadDriver()
  const limits = { sqlLength: longestSql }
  const db = new DatabaseSync(uri, { readOnly, readBigInts: true, timeout: 0, enableForeignKeyConstraints: false, defensive: true, limits })
  db.exec('PRAGMA trusted_schema=0; PRAGMA cell_size_check=1') // neither reads the file
  return db
}

/** bytes of a statement, also of one that SQLite finds in a schema: many times what ours take */
const longestSql = 100_000

/**
 * Copies a database, page by page, into a file that is empty: SQLite's online backup, in a thread of its own.
 *
 * @param db in a transaction: else SQLite begins again with each change that somebody makes meanwhile
 * @param onStep is called now and then; what it throws ends the copy, with the packaged driver only when all is copied
 */
export async function copyDatabase(db: Database, path: string, onStep: () => void): Promise<void> {
  await loadDriver().backup(db, path, { rate: pagesInStep, progress: onStep })
}

/** 4 MiB */
const pagesInStep = 1024

/** Which SQLite is used, and what connects to it. Throws `unavailable` when there is none. */
export function describeDriver(): { version: string; driver: string } {
  const { DatabaseSync } = loadDriver()
  const db = new DatabaseSync(':memory:')
  const version = String(db.prepare('SELECT sqlite_version() AS version').get()?.['version'])
  db.close()
  return { version, driver: isBuiltIn() ? 'node:sqlite' : '@photostructure/sqlite' }
}

type Driver = Pick<typeof import('@photostructure/sqlite'), 'DatabaseSync' | 'backup'>

/**
 * `node:sqlite` where it is stable, which is where its SQLite is also free of the WAL-reset bug (3.51.3); else the package
 * that gives older versions of Node the same API. Below Node 24.15 the built-in one prints an ExperimentalWarning.
 */
function loadDriver(): Driver {
  const builtin = isBuiltIn() ? (process.getBuiltinModule('node:sqlite') as Driver | undefined) : undefined
  return builtin ?? loadPackage()
}

function isBuiltIn(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map((part) => parseInt(part, 10))
  return major > 25 || (major === 25 && minor >= 7) || (major === 24 && minor >= 15) || 'bun' in process.versions
}

/**
 * Loads the package's native file by its path, found as Node finds packages: the package's own JavaScript, and the
 * reading of its package.json, take 10 ms of a start of 30 and add nothing that is used here. They are the second try.
 */
function loadPackage(): Driver {
  const require = createRequire(import.meta.url)
  const native = `node_modules/@photostructure/sqlite/prebuilds/${process.platform}-${process.arch}/@photostructure+sqlite.glibc.node`
  const folder = foldersAbove(fileURLToPath(import.meta.url)).find((candidate) => existsSync(join(candidate, native)))
  try {
    if (folder !== undefined) return require(join(folder, native))
  } catch (error) {
    if (!systemCode(error)?.startsWith('ERR_DLOPEN_')) throw error // musl, an old glibc, --no-addons
  }
  try {
    return require('@photostructure/sqlite')
  } catch (error) {
    const hint = 'Install again with: npm ci. Or use Node 24.15 or newer, which brings SQLite'
    throw new PlantsError('unavailable', `No SQLite for ${process.platform}-${process.arch} could be loaded`, { hint, cause: error })
  }
}

function foldersAbove(path: string): string[] {
  const folder = dirname(path)
  return folder === path ? [] : [folder, ...foldersAbove(folder)]
}
