import type { PostgresAddress } from '../address.js'
import type { OpenOptions } from '../store.js'
import type { Connection, Rows } from './connection.js'
import type { Account } from './dial.js'
import { explainDatabase } from './failure.js'
import { type Lease, Pool } from './pool.js'
import { endAt, type Turn } from './retry.js'

/** Asks one question after the other on a connection of its own, each of which may take as long as a call may. */
export class Asking {
  readonly #use: Use
  readonly #lease: Lease

  private constructor(use: Use, lease: Lease) {
    this.#use = use
    this.#lease = lease
  }

  /** @param turn until when it may take until there is a connection */
  static async begin(use: Use, turn: Turn): Promise<Asking> {
    return new Asking(use, await use.pool.lease(turn))
  }

  /** Runs a statement. Throws what the server says, or how the connection was lost. */
  async ask(statement: string): Promise<Rows> {
    const { clock, timeout } = this.#use.options
    const done = endAt(clock.now() + timeout, this.#lease.connection, clock)
    try {
      return await this.#lease.connection.query(statement)
    } finally {
      done()
    }
  }

  /** @param isDone whether all was said: else what is left open there ends with the connection */
  end(isDone: boolean): void {
    if (!isDone) this.#lease.connection.destroy()
    this.#lease.giveBack()
  }
}

/** Does one thing in a database, with a connection for it alone. */
export async function usingOnce<T>(
  address: PostgresAddress,
  options: OpenOptions,
  action: (connection: Connection) => Promise<T>,
): Promise<T> {
  const account = { address, login: await options.login(address) }
  const pool = new Pool(account, options)
  try {
    return await pool.own({ deadline: options.clock.now() + options.timeout, signal: options.clock.signal }, action)
  } catch (error) {
    throw explainDatabase(error, account)
  } finally {
    await pool.close()
  }
}

/** What it takes to use a database: which one, connections to it, and how long things may take. */
export interface Use {
  account: Account
  pool: Pool
  options: OpenOptions
}
