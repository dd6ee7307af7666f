import { setMaxListeners } from 'node:events'
import type { NewPlant, Plant } from '../../plant/plant.js'
import { isTimeout, wait, within } from '../../platform/clock.js'
import { PlantsError, shellWord } from '../../platform/errors.js'
import type { RemoteAddress } from '../address.js'
import { type Batch, type BulkStore, type CreateManyOptions, type CreateOptions, defaultConcurrency, type OpenOptions } from '../store.js'
import { classifyFailure, classifyResponse, type Failure } from './classify.js'
import { HttpClient, NoResponse } from './client.js'
import { type Remote, supportsIdempotencyKeys } from './keys.js'
import { newKey, requestToCreate } from './request.js'
import { RetryPolicy, reportWait } from './retry.js'
import type { Access, TokenVerdict } from './types.js'
import type { Uploader } from './upload.js'

/** A Plant Store behind HTTP: this program's own service, or any other that follows the specification. */
export class RemoteStore implements BulkStore {
  readonly #remote: Remote
  /** asked of the service once, and only when it matters */
  #supportsKeys: boolean | undefined
  #uploader: Uploader | undefined

  private constructor(remote: Remote) {
    this.#remote = remote
  }

  /** Connects to nothing yet. Throws what `options.access` throws. */
  static async open(address: RemoteAddress, options: OpenOptions): Promise<RemoteStore> {
    const access = await options.access(address)
    setMaxListeners(0, options.clock.signal) // each create listens to it
    const client = await HttpClient.open(address, access, options.concurrency ?? defaultConcurrency)
    return new RemoteStore({ address, access, options, client })
  }

  /**
   * Besides what every store throws: `unauthorized`, `refused`, `unusable` for a response that the specification does not
   * know, and `unanswered`. What can be sent again safely is, with growing pauses, until the time is over.
   */
  async create(plant: NewPlant, options: CreateOptions = {}): Promise<Plant> {
    const { access, options: opened } = this.#remote
    const { clock } = opened
    return reportWait(access, clock, this.#create(plant, options, options.signal ? [clock.signal, options.signal] : [clock.signal]))
  }

  async #create(plant: NewPlant, { idempotencyKey }: CreateOptions, signals: AbortSignal[]): Promise<Plant> {
    const task: Task = {
      plant,
      key: idempotencyKey ?? newKey(),
      hasOwnKey: idempotencyKey !== undefined,
      policy: new RetryPolicy(this.#remote.options),
      signals,
      unknown: undefined,
      last: undefined,
      hasWarned: false,
    }
    for (let tries = 0; ; tries += 1) {
      const result = await this.#try(task)
      if (result.kind === 'created') return result.plant
      if (result.kind === 'unknown') task.unknown = result.error
      task.last = result
      const pause = task.policy.pauseAfter(result, tries)
      if (pause === undefined || (task.unknown && !(await this.#mayRepeat(task)))) {
        throw this.#explain(result.error, task)
      }
      await this.#warn(task.policy.explain(result), task)
      await wait(pause, signals).catch((reason: unknown) => this.#stop(reason, task))
    }
  }

  /**
   * Sends rows in their order, many at once. What the service can be asked again about is sent again, until nothing
   * was settled for the time-out. Throws what `create` throws that is not about a plant, when nothing is in flight any more;
   * what is pending then was not stored, or is sent again safely with the same keys.
   */
  async createMany(batch: Batch, options: CreateManyOptions): Promise<void> {
    const { stop } = options
    const isKeyed = await this.supportsIdempotencyKeys(stop).catch((error: unknown) => {
      if (!stop.aborted) throw error
    })
    if (isKeyed === undefined) return
    const { Upload, Uploader } = await import('./upload.js')
    this.#uploader ??= new Uploader(this.#remote)
    await new Upload(this.#uploader, batch, options, isKeyed).run()
  }

  /**
   * Whether the service says that it supports Idempotency-Key; it is asked once.
   *
   * @throws {PlantsError} `unavailable` when that could not be found out, and the reason of the signal
   */
  async supportsIdempotencyKeys(signal = this.#remote.options.clock.signal): Promise<boolean> {
    const { access, options } = this.#remote
    const policy = new RetryPolicy(options)
    const onRetry = async (failure: Failure, tries: number) => {
      if (tries === 2) await access.notify(policy.explain(failure))
    }
    const ask = () => supportsIdempotencyKeys(this.#remote, { signals: [signal], policy, onRetry })
    this.#supportsKeys ??= await reportWait(access, options.clock, ask())
    return this.#supportsKeys
  }

  async close(): Promise<void> {
    this.#remote.client.close()
  }

  /** One request, and what came of it. */
  async #try(task: Task): Promise<ReturnType<typeof classifyResponse>> {
    const { address, access, client } = this.#remote
    for (const signal of task.signals) signal.throwIfAborted()
    try {
      const request = requestToCreate(access, task.plant, task.key)
      const response = await within(task.policy.left, task.signals, (signal) => client.send(request, signal))
      return classifyResponse(response, address.name, access.tokenHint)
    } catch (error) {
      if (!(error instanceof NoResponse)) throw error
      const result = classifyFailure(error, address, access)
      if (task.signals.some(({ aborted }) => aborted)) {
        this.#stop(error.cause, result.kind === 'unknown' ? { ...task, unknown: result.error } : task)
      }
      // The last try may have had too little time to say more than the one before.
      return result.kind === 'retry' && isTimeout(error.cause) && task.last ? task.last : result
    }
  }

  /** What was sent, and may have been received, is sent again only under a key that the service keeps. */
  async #mayRepeat(task: Task): Promise<boolean> {
    const { signals, policy } = task
    const onRetry = (failure: Failure) => this.#warn(policy.explain(failure, task.unknown), task)
    try {
      this.#supportsKeys ??= await supportsIdempotencyKeys(this.#remote, { signals, policy, onRetry })
      return this.#supportsKeys
    } catch (error) {
      if (signals.some(({ aborted }) => aborted)) this.#stop(error, task)
      if (!(error instanceof PlantsError)) throw error
      return false
    }
  }

  /** Says once why it takes longer. */
  async #warn(explanation: string, task: Task): Promise<void> {
    if (task.hasWarned || task.signals.some(({ aborted }) => aborted)) return
    task.hasWarned = true
    await this.#remote.access.notify(explanation)
  }

  /** What to report when there is no further try. Of a plant that may have been stored, only a response to its own key can say more. */
  #explain(error: PlantsError, task: Task): PlantsError {
    const settles = error.kind === 'conflict' && this.#supportsKeys === true
    const last = task.unknown && !settles ? task.unknown : error
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
    const { name } = this.#remote.address
    const message = task.unknown ? `${reason.message} before ${name} answered` : `${reason.message}, nothing was stored`
    throw new PlantsError(reason.kind, message, { hint: task.unknown && this.#howToRepeat(task), cause: reason })
  }

  #howToRepeat({ plant, key, hasWarned }: Task): string {
    const unknown = `Whether the plant ${plant.id} is stored is not known`
    if (this.#supportsKeys === false) return `${unknown}, and this service has no idempotency keys: look there before you repeat it`
    const repeat = `To make no second one, repeat it with: --idempotency-key ${shellWord(key)}`
    const guess = this.#remote.address.url.protocol === 'http:' && hasWarned ? '. If it speaks TLS, https:// is meant' : ''
    return `${unknown}. ${repeat}${this.#supportsKeys ? '' : `, if the service honours such keys${guess}`}`
  }
}

const keyHint = 'Choose another id or another key: a key goes with one plant only'

/** A create in progress. */
interface Task {
  plant: NewPlant
  key: string
  /** the key was given, and means something to whoever gave it */
  hasOwnKey: boolean
  policy: RetryPolicy
  signals: AbortSignal[]
  /** the try that may have stored the plant, if there was one */
  unknown: PlantsError | undefined
  /** what came of the try before */
  last: Failure | undefined
  /** whoever waits knows why */
  hasWarned: boolean
}

/**
 * Asks a service whether it accepts a token, and makes no plant: it is sent an empty object, which the specification has it reject
 * as soon as the token is accepted. Asked once; nothing is tried again.
 *
 * @throws the reason of the clock's signal
 */
export async function checkToken(address: RemoteAddress, access: Access, { timeout, clock }: OpenOptions): Promise<TokenVerdict> {
  const client = await HttpClient.open(address, access, 1)
  try {
    const response = await within(timeout, [clock.signal], (signal) => client.send(requestToCreate(access, {}), signal))
    const result = classifyResponse(response, address.name, access.tokenHint)
    if (result.kind === 'created')
      return unknown(new PlantsError('unusable', `${address.name} answered 200 to an empty object`, { status: 200 }))
    if (result.kind === 'unauthorized') return { state: 'refused', error: result.error }
    return result.error.error === 422 ? { state: 'accepted' } : unknown(result.error)
  } catch (error) {
    if (!(error instanceof NoResponse)) throw error
    clock.signal.throwIfAborted()
    return unknown(classifyFailure(error, address, access, 'the token').error)
  } finally {
    client.close()
  }
}

function unknown(error: PlantsError): TokenVerdict {
  return { state: 'unknown', error }
}
