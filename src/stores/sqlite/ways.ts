import type { Database, Statement } from '../../platform/sqlite.js'

/** The ways into a store's file, for what reads and writes it. */
export interface Ways {
  db: Database
  /** prepares a statement, once for each text */
  prepare(sql: string): Statement
  /** reads once SQLite is free */
  read<T>(read: () => T): Promise<T>
  /** writes in a transaction, in turn */
  write<T>(work: () => T): Promise<T>
}

/** The statements of a connection, each prepared once. */
export class Statements {
  readonly #db: Database
  readonly #known = new Map<string, Statement>()

  constructor(db: Database) {
    this.#db = db
  }

  prepare(sql: string): Statement {
    const statement = this.#known.get(sql) ?? this.#db.prepare(sql)
    this.#known.set(sql, statement)
    return statement
  }

  clear(): void {
    this.#known.clear()
  }
}
