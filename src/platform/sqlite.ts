/*
 * Opens SQLite databases. `node:sqlite` is used where it is stable and its SQLite has no bug that
 * is known to damage files. Otherwise @photostructure/sqlite is used, which has the same interface.
 * No other file knows which of the two drivers is used.
 */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { getSystemErrorMap } from 'node:util'
import type { DatabaseSyncInstance } from '@photostructure/sqlite'
import { getSystemCode, isWindows, PlantsError } from '../errors.js'
import { type Backoff, chooseBackoffMs, retry } from './retry.js'
import type { Runtime } from './runtime.js'

export type Database = DatabaseSyncInstance
export type Statement = ReturnType<Database['prepare']>

/**
 * Opens a database that is not trusted, because anybody may have made the file: see
 * https://sqlite.org/security.html.
 *
 * @param uri the URI of an existing file, or `:memory:`
 */
export function connect(uri: string, { readOnly }: { readOnly: boolean }): Database {
  const { DatabaseSync } = loadDriver()
  const db = new DatabaseSync(uri, {
    readOnly,
    readBigInts: true,
    timeout: 0,
    enableForeignKeyConstraints: false,
    defensive: true,
    // These limits are in bytes. `sqlLength` also applies to the SQL in the schema of a file, and
    // `length` to the values that an index on an expression computes from a row.
    limits: { sqlLength: 100_000, length: 67_108_864 },
  })
  db.exec('PRAGMA trusted_schema=0; PRAGMA cell_size_check=1')
  return db
}

export function describeDriver(): { version: string; driver: string } {
  const { DatabaseSync } = loadDriver()
  const db = new DatabaseSync(':memory:')
  const version = String(db.prepare('SELECT sqlite_version() AS version').get()?.['version'])
  db.close()
  return { version, driver: isBuiltIn() ? 'node:sqlite' : '@photostructure/sqlite' }
}

type Driver = Pick<typeof import('@photostructure/sqlite'), 'DatabaseSync'>

function loadDriver(): Driver {
  driver ??=
    (isBuiltIn() && (process.getBuiltinModule('node:sqlite') as Driver | undefined)) ||
    loadPackage()
  return driver
}

/**
 * The driver is loaded once, because each call of `process.dlopen`, unlike `require`, creates new
 * classes, which are never freed.
 */
let driver: Driver | undefined

/** Whether `node:sqlite` is stable and has the fix for the WAL-reset bug (SQLite 3.51.3). */
function isBuiltIn(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  return (
    major > 25 ||
    (major === 25 && minor >= 7) ||
    (major === 24 && minor >= 15) ||
    'bun' in process.versions
  )
}

/**
 * Loads the package. Where it is possible, only the native file of the package is loaded, because
 * its JavaScript takes 4 ms of each start.
 */
function loadPackage(): Driver {
  const machine = `${process.platform}-${process.arch}`
  const native = `node_modules/@photostructure/sqlite/prebuilds/${machine}/@photostructure+sqlite.glibc.node`
  let folder = import.meta.dirname
  while (!existsSync(join(folder, native)) && folder !== dirname(folder)) folder = dirname(folder)
  try {
    if (existsSync(join(folder, native))) {
      const module = { exports: {} }
      process.dlopen(module, join(folder, native))
      return module.exports as Driver
    }
  } catch (error) {
    // The driver cannot be loaded with musl, with an old glibc, or with --no-addons.
    if (!getSystemCode(error)?.startsWith('ERR_DLOPEN_')) throw error
  }
  try {
    return process.getBuiltinModule('node:module').createRequire(import.meta.url)(
      '@photostructure/sqlite',
    )
  } catch (cause) {
    const hint = 'Reinstall plants, or use Node.js 24.15 or newer, which includes SQLite'
    throw new PlantsError('accessDenied', `SQLite could not be loaded for ${machine}`, {
      hint,
      cause,
    })
  }
}

/**
 * Builds the URI of an absolute path (https://sqlite.org/uri.html). SQLite accepts no host, so the
 * server of a Windows share is a part of the path: `file:////server/share/plants.db`.
 */
export function buildUri(path: string, query: string, system = { isWindows }): string {
  const pathWithSlashes = system.isWindows ? path.replaceAll('\\', '/') : path
  const rootedPath = pathWithSlashes.startsWith('/') ? pathWithSlashes : `/${pathWithSlashes}`
  return `file://${rootedPath.replace(/[%?#]/g, encodeURIComponent)}?${query}`
}

export function isSqliteError(error: unknown): error is Error {
  return getSystemCode(error) === 'ERR_SQLITE_ERROR'
}

// The primary result codes that this program handles, of https://sqlite.org/rescode.html.
export const SQLITE_ERROR = 1
export const SQLITE_BUSY = 5
export const SQLITE_LOCKED = 6
export const SQLITE_READONLY = 8
export const SQLITE_IOERR = 10
export const SQLITE_CORRUPT = 11
export const SQLITE_FULL = 13
export const SQLITE_CANTOPEN = 14
export const SQLITE_PROTOCOL = 15
export const SQLITE_TOOBIG = 18
export const SQLITE_CONSTRAINT = 19
export const SQLITE_NOTADB = 26

/** Whether another connection has a lock that the call needs. */
export function isBusy(error: unknown): boolean {
  const code = findPrimaryCode(error)
  return code === SQLITE_BUSY || code === SQLITE_LOCKED || code === SQLITE_PROTOCOL
}

/** Returns a primary result code, which may be one that has no constant here. */
export function findPrimaryCode(error: unknown): number | undefined {
  if (!isSqliteError(error)) return undefined
  return 'errcode' in error && typeof error.errcode === 'number'
    ? error.errcode & 0xff
    : (codesByText[error.message] ?? SQLITE_ERROR)
}

/** Returns an extended result code, or undefined if the driver does not report it. */
export function findExtendedCode(error: unknown): number | undefined {
  if (!isSqliteError(error) || !('errcode' in error)) return undefined
  return typeof error.errcode === 'number' ? error.errcode : undefined
}

/**
 * Returns the code of the system call that failed within SQLite, such as `EMFILE`, or undefined if
 * the driver does not report it: the driver of Node.js does not.
 */
export function findSystemCode(error: unknown): string | undefined {
  if (isWindows || !isSqliteError(error) || !('systemErrno' in error)) return undefined
  const [name] = getSystemErrorMap().get(-Number(error.systemErrno)) ?? []
  return name
}

/**
 * The result codes by their messages. The errors of `all` and `iterate` of the package have no
 * code, but only the message that SQLite has for it (`sqlite3_errstr`). A message of another text
 * is one of SQLITE_ERROR, such as `no such table: plants`.
 */
const codesByText: Record<string, number> = {
  'database is locked': SQLITE_BUSY,
  'database table is locked': SQLITE_LOCKED,
  'attempt to write a readonly database': SQLITE_READONLY,
  'disk I/O error': SQLITE_IOERR,
  'database disk image is malformed': SQLITE_CORRUPT,
  'database or disk is full': SQLITE_FULL,
  'unable to open database file': SQLITE_CANTOPEN,
  'locking protocol': SQLITE_PROTOCOL,
  'string or blob too big': SQLITE_TOOBIG,
  'file is not a database': SQLITE_NOTADB,
}

/** Repeats a call while another connection has a lock that it needs. */
export function retryWhileBusy<T>(
  call: () => T,
  { backoff, timeoutMs, runtime }: { backoff: Backoff; timeoutMs: number; runtime: Runtime },
): Promise<T> {
  const endMs = runtime.now() + timeoutMs
  return retry(call, {
    findPauseMs: (error, tries) => {
      const mayRetry = isBusy(error) && runtime.now() < endMs
      return mayRetry ? chooseBackoffMs(backoff, tries, runtime) : undefined
    },
    getSignals: () => [runtime.getStopSignal()],
  })
}
