import { PlantsError } from '../../errors.js'
import type { OpenOptions, PostgresAddress, PostgresHost } from '../store.js'
import { longestTimer, wait } from '../wait.js'
import { Connection } from './connection.js'
import { endAt } from './deadline.js'
import { type Account, NoTls, type Route, routesTo } from './dial.js'
import { explainDatabase, isRefusal, isStale, mayPass, sqlState } from './failure.js'
import { checkServer, isWanted, type ServerState } from './server-state.js'

/** Until when somebody waits for a connection, and what ends it before. */
export interface Turn {
  /** as the clock has it; for ever when it is Infinity */
  deadline: number
  signal?: AbortSignal | undefined
}

interface Lane {
  connection: Connection
  state: ServerState
  /** how many use it at this moment */
  users: number
  isOwned: boolean
}

/** A connection that nobody else uses. */
export interface Lease {
  connection: Connection
  state: ServerState
  giveBack(): void
}

interface Waiter {
  isOwner: boolean
  take(lane: Lane): void
  fail(error: unknown): void
}

/** Connections to a database, opened when they are needed and kept until they are lost. */
export class Pool {
  readonly #account: Account
  readonly #options: OpenOptions
  readonly #closing = new AbortController()
  #lanes: Lane[] = []
  #waiters: Waiter[] = []
  #isOpening = false
  /** when there was none for the first time since there was one, and whether that was told */
  #awaySince: number | undefined
  #isAway = false
  /** why there was no connection the last time that one was tried */
  failure: PlantsError | undefined

  constructor(account: Account, options: OpenOptions) {
    this.#account = account
    this.#options = options
  }

  /** how many connections there can be */
  get size(): number {
    return this.#account.address.max
  }

  /**
   * Uses a connection, together with others whose statements go over it at the same moment.
   *
   * @throws what the action throws; `PlantsError` when no connection was to be had until the deadline
   */
  share<T>(turn: Turn, action: (connection: Connection, state: ServerState) => Promise<T>): Promise<T> {
    return this.#use(false, turn, action)
  }

  /** Uses a connection alone, for what takes more than one statement. */
  own<T>(turn: Turn, action: (connection: Connection, state: ServerState) => Promise<T>): Promise<T> {
    return this.#use(true, turn, action)
  }

  async close(): Promise<void> {
    this.#closing.abort(new PlantsError('unavailable', `${this.#account.address.name} is closed`))
    const lanes = this.#lanes.splice(0)
    await Promise.all(lanes.map(({ connection }) => connection.close()))
  }

  /** A connection of one's own, until it is given back. */
  async lease(turn: Turn): Promise<Lease> {
    const lane = await this.#acquire(true, turn)
    return { connection: lane.connection, state: lane.state, giveBack: () => this.#release(lane) }
  }

  async #use<T>(isOwner: boolean, turn: Turn, action: (connection: Connection, state: ServerState) => Promise<T>): Promise<T> {
    const lane = await this.#acquire(isOwner, turn)
    const end = endAt(turn.deadline, lane.connection, this.#options.clock)
    try {
      return await action(lane.connection, lane.state)
    } catch (error) {
      if (leavesOpen(error)) lane.connection.destroy()
      throw error
    } finally {
      end()
      this.#release(lane)
    }
  }

  #release(lane: Lane): void {
    lane.users -= 1
    lane.isOwned = false
    this.#serve()
  }

  #acquire(isOwner: boolean, { deadline, signal }: Turn): Promise<Lane> {
    return new Promise<Lane>((resolve, reject) => {
      signal?.throwIfAborted()
      const settle = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', stop)
        this.#waiters = this.#waiters.filter((other) => other !== waiter)
      }
      const waiter: Waiter = {
        isOwner,
        take: (lane) => {
          settle()
          resolve(lane)
        },
        fail: (error) => {
          settle()
          reject(error)
        },
      }
      const stop = () => waiter.fail(signal?.reason)
      const left = deadline - this.#options.clock.now()
      const timer = left > longestTimer ? undefined : setTimeout(() => waiter.fail(this.late()), Math.max(0, left))
      signal?.addEventListener('abort', stop, { once: true })
      this.#waiters.push(waiter)
      this.#serve()
    })
  }

  /** What is said when the time was over before there was a connection. */
  late(): PlantsError {
    if (this.failure) return this.failure
    if (this.#lanes.length === 0) return explainDatabase(new DOMException('no answer in time', 'TimeoutError'), this.#account)
    const message = `All connections to ${this.#account.address.name} are busy`
    return new PlantsError('unavailable', message, { hint: 'Try again, or allow more of them: ?max=', retryable: true })
  }

  #serve(): void {
    this.#lanes = this.#lanes.filter(({ connection, users }) => users > 0 || !connection.isLost)
    for (const waiter of [...this.#waiters]) {
      const lane = this.#laneFor(waiter)
      if (!lane) break
      lane.users += 1
      lane.isOwned = waiter.isOwner
      waiter.take(lane)
    }
    if (this.#waiters.length > 0 && this.#lanes.length < this.size && !this.#isOpening) void this.#open()
  }

  /** The one with the least to do; a new one is better than one that is busy. */
  #laneFor({ isOwner }: Waiter): Lane | undefined {
    const most = isOwner || this.#lanes.length < this.size ? 0 : usersAtOnce - 1
    const fit = this.#lanes.filter(({ connection, users, isOwned }) => !connection.isLost && !isOwned && users <= most)
    return fit.reduce<Lane | undefined>((best, lane) => (best && best.users <= lane.users ? best : lane), undefined)
  }

  /** Opens one more connection, and tries again for as long as somebody waits for it. */
  async #open(): Promise<void> {
    this.#isOpening = true
    for (let tries = 0; this.#waiters.length > 0 && !this.#closing.signal.aborted; tries += 1) {
      try {
        const lane = await this.#connect()
        this.#noteSuccess()
        this.#lanes.push(lane)
        break
      } catch (error) {
        this.#noteFailure(explainDatabase(error, this.#account))
        const pause = Math.min(1000, 50 * 2 ** Math.min(tries, 10)) * (0.5 + this.#options.clock.random() / 2)
        await wait(pause, [this.#closing.signal]).catch(() => undefined)
      }
    }
    this.#isOpening = false
    if (this.#closing.signal.aborted) for (const waiter of [...this.#waiters]) waiter.fail(this.#closing.signal.reason)
    else this.#serve()
  }

  #noteSuccess(): void {
    this.failure = undefined
    this.#awaySince = undefined
    if (this.#isAway) this.#options.onAway?.(undefined)
    this.#isAway = false
  }

  /** Who waits goes on waiting for a failure to pass, or for a connection that there is. */
  #noteFailure(failure: PlantsError): void {
    this.failure = failure
    const now = this.#options.clock.now()
    this.#awaySince ??= now
    if (failure.retryable && !this.#isAway && now - this.#awaySince >= 1000) {
      this.#isAway = true
      this.#options.onAway?.(failure)
    }
    if (!failure.retryable && this.#lanes.length === 0) for (const waiter of [...this.#waiters]) waiter.fail(failure)
  }

  /** Goes through the hosts, and the ways to each, until one is as it was asked for. */
  async #connect(): Promise<Lane> {
    const { hosts, targetSessionAttrs } = this.#account.address
    const passes = targetSessionAttrs === 'prefer-standby' ? (['standby', 'any'] as const) : [targetSessionAttrs]
    const tries = passes.flatMap((attributes) => hosts.map((host) => ({ host, attributes })))
    let failure: unknown
    for (const { host, attributes } of tries) {
      try {
        return await this.#connectAs(attributes, host)
      } catch (error) {
        if (isFinal(error)) throw error
        if (failure === undefined || isMoreTelling(error, failure)) failure = error
      }
    }
    throw failure
  }

  async #connectAs(attributes: PostgresAddress['targetSessionAttrs'], host: PostgresHost): Promise<Lane> {
    const { connection, state } = await this.#connectTo(host)
    if (isWanted(state, attributes)) return { connection, state, users: 0, isOwned: false }
    await connection.close()
    const message = `${this.#account.address.name} is not ${attributes} now`
    throw new PlantsError('unavailable', message, { hint: 'Try again, or name another server', retryable: true })
  }

  async #connectTo(host: PostgresHost): Promise<Pick<Lane, 'connection' | 'state'>> {
    let failure: unknown
    for (const route of routesTo(host, this.#account.address)) {
      try {
        return await this.#connectBy(route)
      } catch (error) {
        failure ??= error
        // Without an entry for this way in pg_hba.conf, the other one may have one.
        if (!(error instanceof NoTls || sqlState(error)?.startsWith('28'))) break
      }
    }
    throw failure
  }

  async #connectBy(route: Route): Promise<Pick<Lane, 'connection' | 'state'>> {
    const { address } = this.#account
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(address.connectTimeout)])
    const connection = await Connection.open(route, this.#account, signal)
    const stop = () => connection.destroy()
    signal.addEventListener('abort', stop, { once: true })
    try {
      return { connection, state: await checkServer(connection, address, this.#options) }
    } catch (error) {
      connection.destroy()
      throw signal.aborted ? signal.reason : error
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }
}

/** Statements that are on their way over one connection: while the answer of one comes back, the server has the next. */
const usersAtOnce = 2

/** Whether a connection is of no more use: what is no answer of the server's leaves open what it is up to. */
export function leavesOpen(error: unknown): boolean {
  return !(error instanceof PlantsError) && (!isRefusal(error) || isStale(error))
}

/** Who is not let in by one server is not tried at others, as libpq has it: a wrong password would else look like a server that is away. */
function isFinal(error: unknown): boolean {
  return /^(28|3D)/.test(sqlState(error) ?? '')
}

/** Of several hosts, what may pass says more than what will not: one that comes back is enough. */
function isMoreTelling(error: unknown, other: unknown): boolean {
  return mayPass(error) && !mayPass(other)
}
