import { setMaxListeners } from 'node:events'
import type { NewPlant, Plant } from '../../plant/plant.js'
import { backoff, isTimeout, secondsOf, wait, within } from '../../platform/clock.js'
import { PlantsError, shellWord } from '../../platform/errors.js'
import type { RemoteAddress } from '../address.js'
import type { Batch, BulkStore, CreateManyOptions, CreateOptions, OpenOptions } from '../store.js'
import { judge, type Verdict } from './answer.js'
import type { Bulk } from './bulk.js'
import { Connection, NoAnswer } from './exchange.js'
import { unanswered, unreached } from './failure.js'
import { findKeys, honoursKeys, type Remote } from './keys.js'
import { newKey, requestToCreate } from './request.js'
import type { Access } from './types.js'

/** A Plant Store behind HTTP: this program's own service, or any other that follows the specification. */
export class RemoteStore implements BulkStore {
  readonly #address: RemoteAddress
  readonly #access: Access
  readonly #options: OpenOptions
  readonly #connection: Connection
  /** asked of the service once, and only when it matters */
  #honoursKeys: boolean | undefined
  #bulk: Bulk | undefined

  private constructor(address: RemoteAddress, access: Access, options: OpenOptions, connection: Connection) {
    this.#address = address
    this.#access = access
    this.#options = options
    this.#connection = connection
  }

  /** Connects to nothing yet. Throws what `options.access` throws. */
  static async open(address: RemoteAddress, options: OpenOptions): Promise<RemoteStore> {
    const access = await options.access(address)
    setMaxListeners(0, options.clock.signal) // each create listens to it
    return new RemoteStore(address, access, options, await Connection.open(address, access, options.concurrency))
  }

  /**
   * Besides what every store throws: `unauthorized`, `refused`, `unusable` for an answer that the specification does not
   * know, and `unanswered`. What can be sent again safely is, with growing pauses, until the time is over.
   */
  async create(plant: NewPlant, options: CreateOptions = {}): Promise<Plant> {
    const { clock, timeout } = this.#options
    const task: Task = {
      plant,
      key: options.idempotencyKey ?? newKey(),
      end: clock.now() + timeout,
      signals: options.signal ? [clock.signal, options.signal] : [clock.signal],
      open: undefined,
      before: undefined,
      hasOwnKey: options.idempotencyKey !== undefined,
      hasTold: false,
    }
    for (let tries = 0; ; tries += 1) {
      const verdict = await this.#try(task)
      if ('plant' in verdict) return verdict.plant
      if ('isOpen' in verdict) task.open = verdict.error
      task.before = verdict.error
      const pause = this.#pauseAfter(verdict, tries, task)
      if (pause === undefined || (task.open && !(await this.#mayRepeat(task)))) throw this.#explain(verdict.error, task)
      await this.#wait(pause, task, verdict.error)
    }
  }

  /**
   * Rows go out in their order, as many at once as serve well. What the service can be asked again about is sent again, until nothing
   * was settled for the time-out. Throws what `create` throws that is not about a plant, when nothing is under way any more;
   * what is pending then was not stored, or is sent again safely with the same keys.
   */
  async createMany(batch: Batch, options: CreateManyOptions): Promise<void> {
    const { stop } = options
    const isKeyed = await this.honoursKeys(stop).catch((error: unknown) => {
      if (!stop.aborted) throw error
    })
    if (isKeyed === undefined) return
    const { Bulk } = await import('./bulk.js')
    this.#bulk ??= new Bulk(this.#remote())
    await this.#bulk.createMany(batch, options, isKeyed)
  }

  /**
   * Whether the service says that it honours Idempotency-Key; it is asked once.
   *
   * @throws {PlantsError} `unavailable` when that could not be found out, and the reason of the signal
   */
  async honoursKeys(signal = this.#options.clock.signal): Promise<boolean> {
    this.#honoursKeys ??= await findKeys(this.#remote(), signal)
    return this.#honoursKeys
  }

  async close(): Promise<void> {
    await this.#connection.close()
  }

  #remote(): Remote {
    return { address: this.#address, access: this.#access, options: this.#options, connection: this.#connection }
  }

  /** One request, and what its answer settles. */
  async #try(task: Task): Promise<Verdict> {
    for (const signal of task.signals) signal.throwIfAborted()
    const { clock } = this.#options
    try {
      const left = task.end - clock.now()
      const request = requestToCreate(this.#access, task.plant, task.key)
      const answer = await within(left, task.signals, (signal) => this.#connection.send(request, signal))
      return judge(answer, this.#address.name, this.#access.tokenHint)
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error
      const { cause, isSent } = error
      if (task.signals.some(({ aborted }) => aborted))
        this.#stop(cause, { ...task, open: isSent ? unanswered(this.#address, cause) : task.open })
      // The last try may have had too little time to say more than the one before.
      return isSent
        ? { error: unanswered(this.#address, cause), isOpen: true }
        : { error: (isTimeout(cause) && task.before) || unreached(this.#address, this.#access, cause), comeAgain: undefined }
    }
  }

  /** Milliseconds until the next try, or undefined when there is none: the answer is final, or the time is over. */
  #pauseAfter(verdict: object & { comeAgain?: number | undefined }, tries: number, { end }: Task): number | undefined {
    const { clock, timeout } = this.#options
    if (!('comeAgain' in verdict || 'isOpen' in verdict)) return undefined
    const room = end - clock.now() - Math.min(1000, timeout / 10) // so that the last try has some time too
    const asked = (verdict.comeAgain ?? 0) * 1000
    if (room <= 0 || asked > room) return undefined
    return Math.min(asked + backoff(tries, { base: 100, max: 5000, random: clock.random }), room)
  }

  /** What was sent, and may have been received, goes again only under a key that the service keeps. */
  async #mayRepeat(task: Task): Promise<boolean> {
    for (let tries = 0; this.#honoursKeys === undefined; tries += 1) {
      const left = task.end - this.#options.clock.now()
      this.#honoursKeys = await within(left, task.signals, (signal) => honoursKeys(this.#connection, this.#access.userAgent, signal))
      if (this.#honoursKeys !== undefined) break
      const pause = this.#pauseAfter({ comeAgain: undefined }, tries, task)
      if (pause === undefined) return false
      await this.#wait(pause, task, task.open)
    }
    return this.#honoursKeys
  }

  /** Waits for the next try; the first time with a word about why. */
  async #wait(milliseconds: number, task: Task, why: PlantsError | undefined): Promise<void> {
    if (why && !task.hasTold && !task.signals.some(({ aborted }) => aborted)) {
      task.hasTold = true
      await this.#access.notify(`${why.message}. Trying again for up to ${secondsOf(task.end - this.#options.clock.now())}`)
    }
    await wait(milliseconds, task.signals).catch((reason: unknown) => this.#stop(reason, task))
  }

  /** What to tell when there is no further try. Of a plant that may have been stored, only an answer to its own key can say more. */
  #explain(error: PlantsError, task: Task): PlantsError {
    const settles = error.kind === 'conflict' && this.#honoursKeys === true
    const last = task.open && !settles ? task.open : error
    const { kind, message, hint, retryable, status, requestId, cause } = last
    return new PlantsError(kind, message, {
      hint: last.exitCode === 5 ? this.#howToRepeat(task) : last.kind === 'conflict' && task.hasOwnKey ? keyHint : hint,
      retryable,
      error: last.error,
      status,
      cause,
      requestId,
    })
  }

  /** @throws always: the reason of the signal, and what it means for the plant */
  #stop(reason: unknown, task: Task): never {
    if (!(reason instanceof PlantsError)) throw reason
    const message = task.open ? `${reason.message} before ${this.#address.name} answered` : `${reason.message}, nothing was stored`
    throw new PlantsError(reason.kind, message, { hint: task.open && this.#howToRepeat(task), cause: reason })
  }

  #howToRepeat(task: Task): string {
    const { plant, key } = task
    const unknown = `Whether the plant ${plant.id} is stored is not known`
    if (this.#honoursKeys === false) return `${unknown}, and this service has no idempotency keys: look there before you repeat it`
    const repeat = `To make no second one, repeat it with: --idempotency-key ${shellWord(key)}`
    const guess = this.#address.url.protocol === 'http:' && task.hasTold ? '. If it speaks TLS, https:// is meant' : ''
    return `${unknown}. ${repeat}${this.#honoursKeys ? '' : `, if the service honours such keys${guess}`}`
  }
}

const keyHint = 'Choose another id or another key: a key goes with one plant only'

/** A create under way. */
interface Task {
  plant: NewPlant
  key: string
  /** on the clock */
  end: number
  signals: AbortSignal[]
  /** the try that may have stored the plant, if there was one */
  open: PlantsError | undefined
  /** what was wrong with the try before */
  before: PlantsError | undefined
  /** the key was given, and means something to whoever gave it */
  hasOwnKey: boolean
  /** whoever waits knows why */
  hasTold: boolean
}
