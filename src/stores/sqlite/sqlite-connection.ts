import { PlantsError } from '../../platform/errors.js'
import type { Runtime } from '../../platform/runtime.js'
import {
  connect,
  type Database,
  isBusy,
  retryWhileBusy,
  type Statement,
  uriOf,
} from '../../platform/sqlite.js'
import type { SqliteAddress } from '../common/address.js'
import { explained, explainFailure, isFull, isWritable } from './sqlite-errors.js'
import { isStore, prepareStore } from './sqlite-schema.js'
import {
  assertSafeToOpen,
  assertUnchanged,
  fileHasContent,
  fileVersion,
  identityOf,
  makeFile,
  realPathOf,
  unmergedChanges,
  whyExposed,
} from './store-file.js'

/** What a file is opened with. */
export interface SqliteOptions {
  /** Of a call, in milliseconds. */
  timeout: number
  runtime: Runtime
  onCommit?: ((created: number) => void) | undefined
  /** Whether no other call can come while one waits. */
  isOnlyCaller?: (() => boolean) | undefined
  /** Not called for the default store. */
  onCreated?: ((path: string) => Promise<void>) | undefined
  /** Of a store that was created, or is inspected: how other users can change it. */
  onExposed?: ((warning: string, hint: string) => Promise<void>) | undefined
}

/** SQLite takes no locks on an `immutable` file, and creates none beside it: it can change during a read. */
type OpenMode = 'rw' | 'ro' | 'immutable'

const policy = { base: 2, max: 8 }

export class Connection {
  readonly db: Database
  readonly path: string
  /** Of the file before it was opened. */
  readonly identity: string
  readonly #options: SqliteOptions
  /** Of an `immutable` file. */
  readonly #fileVersion: string | undefined
  readonly #statements = new Map<string, Statement>()

  constructor(path: string, mode: OpenMode, options: SqliteOptions) {
    assertSafeToOpen(path)
    this.path = path
    this.identity = identityOf(path)
    this.#options = options
    this.#fileVersion = mode === 'immutable' ? fileVersion(path) : undefined
    this.db = connect(uriOf(path, mode === 'immutable' ? immutable : `mode=${mode}`), {
      readOnly: mode !== 'rw',
    })
  }

  readonly prepare = (sql: string): Statement => {
    const statement = this.#statements.get(sql) ?? this.db.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  /** Calls again while another process has locked the store, until the timeout. */
  async retry<T>(call: () => T): Promise<T> {
    const { runtime, timeout } = this.#options
    try {
      return await retryWhileBusy(call, policy, timeout, runtime)
    } catch (error) {
      if (!isBusy(error)) throw error
      const message = `The store ${this.path} was in use by another process for ${timeout / 1000} s`
      throw new PlantsError('unavailable', message, {
        hint: 'Try again, or wait longer with --timeout 2m',
      })
    }
  }

  async run<T>(call: () => T): Promise<T> {
    try {
      return await this.retry(call)
    } catch (error) {
      throw explainFailure(error, this.path)
    } finally {
      this.checkUnchanged()
    }
  }

  /** What was read from a changed `immutable` file may be inconsistent. */
  checkUnchanged(): void {
    if (this.#fileVersion !== undefined) assertUnchanged(this.path, this.#fileVersion)
  }

  async use<T>(action: (connection: this) => Promise<T>): Promise<T> {
    try {
      return await action(this)
    } finally {
      this.close()
    }
  }

  close(): void {
    this.#statements.clear()
    try {
      // Otherwise it would last until its statements are garbage-collected.
      if (this.db.isTransaction) this.db.exec('ROLLBACK')
    } finally {
      this.db.close()
    }
  }
}

export const immutable = 'mode=ro&immutable=1'

/** Creates the store if there is none. */
export function openToWrite(
  { name, isDefault }: SqliteAddress,
  options: SqliteOptions,
): Promise<Connection> {
  const path = realPathOf(name)
  return explained(path, async () => {
    const isNew = makeFile(path, isDefault)
    const connection = await open(path, 'rw', options, prepareStore)
    if (isNew && !isDefault) await options.onCreated?.(path)
    if (isNew) await warnIfExposed(path, options)
    return connection
  })
}

/** Undefined when there is no store yet. By default in the mode that the permissions allow. */
export function openToRead(
  name: string,
  options: SqliteOptions,
  mode?: OpenMode,
): Promise<Connection | undefined> {
  const path = realPathOf(name)
  return explained(path, async () => {
    if (!fileHasContent(path)) return undefined
    let isThere = false
    const connection = await open(path, mode ?? readMode(path), options, (opened) => {
      isThere = isStore(opened)
    })
    if (isThere) return connection
    connection.close()
    return undefined
  })
}

/** Immutable if there is no log, and SQLite cannot create one. Only `rw` can roll back a journal. */
function readMode(path: string): OpenMode {
  const isComplete = unmergedChanges(path) === undefined
  if (isComplete && (!isWritable(path) || isFull(path))) return 'immutable'
  return isWritable(path) ? 'rw' : 'ro'
}

export async function warnIfExposed(path: string, { onExposed }: SqliteOptions): Promise<void> {
  const exposure = whyExposed(path)
  if (exposure !== undefined)
    await onExposed?.(exposure, 'Move it to a directory that only you can write to')
}

async function open(
  path: string,
  mode: OpenMode,
  options: SqliteOptions,
  prepare: (opened: Connection) => void,
) {
  const connection = new Connection(path, mode, options)
  try {
    await connection.run(() => connection.db.exec(durable))
    await connection.run(() => prepare(connection))
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/**
 * EXTRA is FULL in WAL mode. With a rollback journal, it also syncs the folder after deleting the journal. A log that has
 * become large is truncated when it is emptied.
 */
const durable =
  'PRAGMA synchronous=EXTRA; PRAGMA fullfsync=1; PRAGMA checkpoint_fullfsync=1; PRAGMA journal_size_limit=67108864'
