/**
 * Decides what a request costs, and when it may begin, so that one token does not block another.
 *
 * An expensive request keeps the store or the processor busy, so a token has one of them at a time.
 * The response to a list may wait in memory for its client, so a token has sixteen of them. Each
 * list begins in an iteration of the event loop in which no other one does.
 *
 * A large body takes long to parse, so one of each token is parsed in an iteration. It is in memory
 * from its first byte until its response is sent, so large bodies share `sharedRoomBytes`. A body
 * for which there is no room is not read. Each token has room for one body of its own, so that no
 * other token keeps it out.
 *
 * All other requests are limited by the connections alone, so that the creates of a token share a
 * commit of the store.
 */
import type { ServerResponse } from 'node:http'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { isTimeout } from '../platform/runtime.js'
import { Slots } from '../platform/slots.js'
import { findMaxBodyBytes, maxSmallBodyBytes } from './body.js'
import { createUnavailableError } from './http-error.js'
import type { PageQuery } from './parse-query.js'
import type { Operation } from './routes.js'

interface AdmissionRequest {
  /** The name of the caller. */
  token: string
  operation: Pick<Operation, 'cost' | 'hasBody'>
  query: Pick<PageQuery, 'tag' | 'search'>
  response: ServerResponse
}

const maxWaitingRequests = 128

const sharedRoomBytes = 64 * 1_048_576

/** To parse so many bytes blocks the event loop for some milliseconds. */
const bytesPerIteration = 65_536

/** A body waits for room as long as its client: node:http ends a request that arrives too late. */
const longestTimeoutMs = 2 ** 31 - 1

class TokenSlots {
  readonly expensive = new Slots(1)
  readonly list = new Slots(16)
  /** The room for one body. */
  readonly room = new Slots(1)
  readonly parsing = new Slots(1)
}

export class Admission {
  /** The slots by the names of accepted tokens. These are few, so none is ever removed. */
  readonly #slotsByToken = new Map<string, TokenSlots>()
  readonly #sharedRoom = new Slots(sharedRoomBytes)
  /** Settles in the iteration of the latest list. It never rejects. */
  #previousList = Promise.resolve()

  /** @param timeoutMs a search, count or list that has no slot within this time fails */
  constructor(private readonly timeoutMs: number) {}

  /**
   * Waits until the request may begin, and its body be read.
   *
   * @returns a function that ends the request. The handler must call it when the store has done its
   *   work and the response is closed.
   * @throws {HttpError} 413, or 503 if too many searches, counts and lists of the token wait, none
   *   of them ends in time, or the client leaves
   */
  async admit({ token, operation, query, response }: AdmissionRequest): Promise<() => void> {
    const bodyBytes = findMaxBodyBytes(response.req.headers)
    const isLarge = bodyBytes > maxSmallBodyBytes
    // An operation that takes no body reads it all the same.
    const isExpensive = query.tag !== undefined || query.search !== undefined || isLarge
    const cost = isExpensive ? 'expensive' : operation.cost
    if (response.closed) throw createUnavailableError()
    if (cost === 'small') return () => undefined
    const slots = this.#findSlots(token)
    const signals = [createCloseSignal(response)]
    if (isLarge && operation.hasBody)
      return slots.room.isFull
        ? this.#sharedRoom.acquire({ timeoutMs: longestTimeoutMs, signals }, bodyBytes)
        : slots.room.acquire()
    const waitingCount = slots.expensive.waitingCount + slots.list.waitingCount
    if (slots[cost].isFull && waitingCount >= maxWaitingRequests) throw createUnavailableError()
    const limits = { timeoutMs: this.timeoutMs, signals }
    const release = await slots[cost].acquire(limits).catch((error: unknown) => {
      throw isTimeout(error) ? createUnavailableError() : error
    })
    this.#previousList = this.#previousList.then(() => nextIteration())
    await this.#previousList
    return release
  }

  /**
   * Waits until a body may be parsed: a large one after the others of its token, and after an
   * iteration of the event loop for each 64 KiB, so that the requests of others come in between.
   */
  async waitToParse(token: string, bytes: number): Promise<void> {
    if (bytes <= maxSmallBodyBytes) return
    await this.#findSlots(token).parsing.run(async () => {
      for (let rest = bytes; rest > 0; rest -= bytesPerIteration) await nextIteration()
    })
  }

  #findSlots(token: string): TokenSlots {
    const slots = this.#slotsByToken.get(token) ?? new TokenSlots()
    this.#slotsByToken.set(token, slots)
    return slots
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
