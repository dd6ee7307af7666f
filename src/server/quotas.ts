/**
 * Limits what the requests of a token take, so that one token does not block another.
 *
 * An expensive request keeps the store or the processor busy, so a token has one of them at a time.
 * The response to a list may wait in memory for its client, so a token has sixteen of them. Each of
 * these begins in an iteration of the event loop in which no other does. All other requests are
 * limited by the connections alone, so that the creates of a token share a commit of the store.
 */
import type { ServerResponse } from 'node:http'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { isTimeout } from '../platform/runtime.js'
import { Slots } from '../platform/slots.js'
import { createUnavailableError } from './http-error.js'

/**
 * A search, a count, a list with a tag and a large body are `expensive`. So is a body in chunks,
 * whose length is not known.
 */
export type RequestCost = 'expensive' | 'list' | 'small'

const maxWaitingRequests = 128

export class Quotas {
  readonly #timeoutMs: number
  /** The slots by the names of accepted tokens. These are few, so none is ever removed. */
  readonly #slotsByToken = new Map<string, { expensive: Slots; list: Slots }>()

  /** Settles in the iteration of the latest list. It never rejects. */
  #previousList = Promise.resolve()

  /** @param timeoutMs a request that has no slot within this time fails */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /**
   * Waits until the request may begin.
   *
   * @returns a function that ends the request. The handler must call it when the store has done its
   *   work and the response is closed.
   * @throws {HttpError} 503 if too many requests of the token wait, none of them ends in time, or
   *   the client leaves
   */
  async acquire(token: string, cost: RequestCost, response: ServerResponse): Promise<() => void> {
    if (response.closed) throw createUnavailableError()
    if (cost === 'small') return () => undefined
    const slots = this.#slotsByToken.get(token) ?? { expensive: new Slots(1), list: new Slots(16) }
    this.#slotsByToken.set(token, slots)
    const waitingCount = slots.expensive.waitingCount + slots.list.waitingCount
    if (slots[cost].isFull && waitingCount >= maxWaitingRequests) throw createUnavailableError()
    const limits = { timeoutMs: this.#timeoutMs, signals: [createCloseSignal(response)] }
    const release = await slots[cost].acquire(limits).catch((error: unknown) => {
      throw isTimeout(error) ? createUnavailableError() : error
    })
    this.#previousList = this.#previousList.then(() => nextIteration())
    await this.#previousList
    return release
  }
}

/** The signal aborts when the client leaves before it has the response. */
export function createCloseSignal(response: ServerResponse): AbortSignal {
  const closeController = new AbortController()
  response.once('close', () => {
    if (!response.writableFinished) closeController.abort(createUnavailableError())
  })
  return closeController.signal
}
