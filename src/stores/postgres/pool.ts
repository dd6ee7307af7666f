import { setMaxListeners } from 'node:events'
import { backoff, maxTimer, timeIsOver, wait } from '../../platform/clock.js'
import { PlantsError } from '../../platform/errors.js'
import type { OpenOptions } from '../store.js'
import { connect } from './connect.js'
import type { Connection } from './connection.js'
import type { Account } from './dial.js'
import { explainDatabase, isRefusal, isStale } from './failure.js'
import { endAt, type Turn } from './retry.js'

interface Lane {
  connection: Connection
  /** how many use it at this moment */
  users: number
  isOwned: boolean
}

/** A connection that nobody else uses. */
export interface Lease {
  connection: Connection
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
    setMaxListeners(0, options.clock.signal) // each call listens to it
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
  share<T>(turn: Turn, action: (connection: Connection) => Promise<T>): Promise<T> {
    return this.#use(false, turn, action)
  }

  /** Uses a connection alone, for what takes more than one statement. */
  own<T>(turn: Turn, action: (connection: Connection) => Promise<T>): Promise<T> {
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
    return { connection: lane.connection, giveBack: () => this.#release(lane) }
  }

  async #use<T>(isOwner: boolean, turn: Turn, action: (connection: Connection) => Promise<T>): Promise<T> {
    const lane = await this.#acquire(isOwner, turn)
    const end = endAt(turn.deadline, lane.connection, this.#options.clock)
    try {
      return await action(lane.connection)
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
      const timer = left > maxTimer ? undefined : setTimeout(() => waiter.fail(this.late()), Math.max(0, left))
      signal?.addEventListener('abort', stop, { once: true })
      this.#waiters.push(waiter)
      this.#serve()
    })
  }

  /** What is said when the time was over before there was a connection. */
  late(): PlantsError {
    if (this.failure) return this.failure
    if (this.#lanes.length === 0) return explainDatabase(timeIsOver(), this.#account)
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
        const connection = await connect(this.#account, this.#options, this.#closing.signal)
        this.#noteSuccess()
        this.#lanes.push({ connection, users: 0, isOwned: false })
        break
      } catch (error) {
        this.#noteFailure(explainDatabase(error, this.#account))
        const pause = backoff(tries, { base: 50, max: 1000, random: this.#options.clock.random })
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
}

/** Statements that are on their way over one connection: while the answer of one comes back, the server has the next. */
const usersAtOnce = 2

/** Whether a connection is of no more use: what is no answer of the server's leaves open what it is up to. */
export function leavesOpen(error: unknown): boolean {
  return !(error instanceof PlantsError) && (!isRefusal(error) || isStale(error))
}
