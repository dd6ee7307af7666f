/**
 * Limits what the requests of a token take, so that one token does not block another.
 *
 * Each token has a quota of memory, for which its requests wait in the order in which they came. A
 * request that is larger than the quota is admitted when no other one of its token is in progress.
 * Searches of a token run one after the other, because each keeps the store busy. So a request may
 * wait for memory or, if it is a search, for the search before it: requests pass searches that wait
 * for a search, but no request passes one that waits for memory, or a large one would wait forever.
 *
 * docs/design/http-connections.md has the reasons.
 */
import type { ServerResponse } from 'node:http'
import { createBusyError } from './http-error.js'

interface QuotaOptions {
  /** The requests of one token that are in progress may take so much memory. */
  bytesPerToken: number
  /** A request that was not admitted within this time fails. */
  timeoutMs: number
}

export interface RequestNeeds {
  /** The memory that the request takes, with its body and its response. */
  bytes: number
  /** The part of these bytes that is in memory already, because it came with the head. */
  receivedBytes: number
  isSearch: boolean
}

/** Two imports may share a token, and each has up to 64 requests in progress. */
const maxWaitingRequests = 128

interface WaitingRequest {
  needs: RequestNeeds
  admit(): void
}

interface TokenQuota {
  /**
   * The memory that the requests of the token take: of one that waits, its `receivedBytes`, and of
   * one that is admitted, its `bytes`, until its response is closed. So an upload of 3 KiB whose
   * first KiB came with its head counts as 1 KiB first, and then as 3 KiB.
   */
  usedBytes: number
  admittedCount: number
  isSearching: boolean
  /** A Set keeps the order in which the requests came. */
  waiting: Set<WaitingRequest>
}

export class Quotas {
  readonly #options: QuotaOptions
  readonly #quotas = new Map<string, TokenQuota>()

  constructor(options: QuotaOptions) {
    this.#options = options
  }

  /**
   * Waits until the request may begin. It keeps its memory until its response is closed.
   *
   * @returns a function that the handler must call when the store has done its work. The response
   *   may be closed before that: if the client of a search leaves, the search goes on.
   * @throws {HttpError} 503 if too many requests wait, there is no room in time, or the client
   *   leaves
   */
  async acquire(token: string, needs: RequestNeeds, response: ServerResponse): Promise<() => void> {
    if (response.closed) throw createBusyError()
    const quota = this.#findQuota(token)
    // These bytes are in memory already, also while the request waits for the rest.
    quota.usedBytes += needs.receivedBytes
    if (quota.waiting.size === 0 && this.#hasRoom(quota, needs)) this.#admit(quota, needs, response)
    else await this.#waitForRoom(quota, needs, response)
    return () => {
      if (needs.isSearch) quota.isSearching = false
      this.#admitLater(quota)
    }
  }

  #waitForRoom(quota: TokenQuota, needs: RequestNeeds, response: ServerResponse): Promise<void> {
    return new Promise((resolve, reject) => {
      const endWait = () => {
        clearTimeout(timer)
        response.off('close', giveUp)
        quota.waiting.delete(request)
      }
      const admit = () => {
        endWait()
        this.#admit(quota, needs, response)
        resolve()
      }
      /** The time is over, the client has left, or too many requests wait. */
      const giveUp = () => {
        endWait()
        quota.usedBytes -= needs.receivedBytes
        this.#admitLater(quota)
        reject(createBusyError())
      }
      const timer = setTimeout(giveUp, this.#options.timeoutMs)
      response.once('close', giveUp)
      const request = { needs, admit }
      quota.waiting.add(request)
      // If all that wait before it wait for a search, this admits it at once.
      this.#admitWaiting(quota)
      if (quota.waiting.size > maxWaitingRequests) giveUp()
    })
  }

  #findQuota(token: string): TokenQuota {
    const knownQuota = this.#quotas.get(token)
    if (knownQuota) return knownQuota
    const quota = { usedBytes: 0, admittedCount: 0, isSearching: false, waiting: new Set<never>() }
    this.#quotas.set(token, quota)
    return quota
  }

  #hasRoom({ admittedCount, usedBytes, isSearching }: TokenQuota, needs: RequestNeeds): boolean {
    if (needs.isSearch && isSearching) return false
    const bytesAfter = usedBytes + needs.bytes - needs.receivedBytes
    return admittedCount === 0 || bytesAfter <= this.#options.bytesPerToken
  }

  #admitWaiting(quota: TokenQuota): void {
    for (const { needs, admit } of quota.waiting) {
      if (this.#hasRoom(quota, needs)) admit()
      // A request may pass those that wait for a search, but not those that wait for memory.
      else if (!(needs.isSearch && quota.isSearching)) return
    }
  }

  /**
   * Admits requests in the next iteration of the event loop. When many clients leave at once, their
   * connections close one after the other: after the first, the requests of the next ones would be
   * admitted, although nobody waits for their responses.
   */
  #admitLater(quota: TokenQuota): void {
    if (quota.waiting.size > 0) setImmediate(() => this.#admitWaiting(quota))
  }

  /** Takes the memory of a request that has not arrived yet, and frees all with its response. */
  #admit(quota: TokenQuota, needs: RequestNeeds, response: ServerResponse): void {
    const { bytes, receivedBytes, isSearch } = needs
    quota.usedBytes += bytes - receivedBytes
    quota.admittedCount += 1
    if (isSearch) quota.isSearching = true
    response.on('close', () => {
      quota.usedBytes -= bytes
      quota.admittedCount -= 1
      this.#admitLater(quota)
    })
  }
}
