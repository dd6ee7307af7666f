/**
 * Limits what the requests of a token take, so that one token does not block another.
 *
 * Each token has a quota of memory, for which its requests wait in the order in which they came. A
 * request that is larger than the quota is admitted when no other request of its token is in
 * progress. Searches of a token run one after the other, because each keeps the store busy. So a
 * request waits for memory and, if it is a search, for the search before it. Other requests
 * overtake a search that waits for a search. No request overtakes a request that waits for memory,
 * because a large request would otherwise wait forever.
 *
 * docs/design/http-connections.md has the reasons.
 */
import type { ServerResponse } from 'node:http'
import { createUnavailableError } from './http-error.js'

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
   * The memory that the requests of the token take. A waiting request counts with its
   * `receivedBytes`, and an admitted request counts with its `bytes` until its response is closed.
   * So an upload of 3 KiB whose first KiB came with its head counts as 1 KiB while it waits, and
   * then as 3 KiB.
   */
  usedBytes: number
  admittedCount: number
  isSearching: boolean
  /** A Set keeps the order in which the requests came. */
  waitingRequests: Set<WaitingRequest>
}

export class Quotas {
  readonly #options: QuotaOptions
  /** The quotas by the names of accepted tokens. These are few, so no quota is ever removed. */
  readonly #quotas = new Map<string, TokenQuota>()

  constructor(options: QuotaOptions) {
    this.#options = options
  }

  /**
   * Waits until the request may begin. The request keeps its memory until its response is closed.
   *
   * @returns a function that the handler must call when the store has done its work. The response
   *   may be closed before that: if the client of a search leaves, the search goes on.
   * @throws {HttpError} 503 if too many requests wait, there is no room in time, or the client
   *   leaves
   */
  async acquire(token: string, needs: RequestNeeds, response: ServerResponse): Promise<() => void> {
    if (response.closed) throw createUnavailableError()
    const quota = this.#getOrCreateQuota(token)
    // These bytes are in memory already, also while the request waits for the rest.
    quota.usedBytes += needs.receivedBytes
    if (quota.waitingRequests.size === 0 && this.#hasRoom(quota, needs))
      this.#admit(quota, needs, response)
    else await this.#waitForAdmission(quota, needs, response)
    return () => {
      if (needs.isSearch) quota.isSearching = false
      this.#admitLater(quota)
    }
  }

  /**
   * The wait ends in one of two ways: the request is admitted, or it is rejected, because its time
   * is over, its client has left, or too many requests wait.
   */
  #waitForAdmission(
    quota: TokenQuota,
    needs: RequestNeeds,
    response: ServerResponse,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const request: WaitingRequest = {
        needs,
        admit: () => {
          stopWaiting()
          this.#admit(quota, needs, response)
          resolve()
        },
      }
      const rejectRequest = () => {
        stopWaiting()
        quota.usedBytes -= needs.receivedBytes
        this.#admitLater(quota)
        reject(createUnavailableError())
      }
      const timer = setTimeout(rejectRequest, this.#options.timeoutMs)
      const stopWaiting = () => {
        clearTimeout(timer)
        response.off('close', rejectRequest)
        quota.waitingRequests.delete(request)
      }
      response.once('close', rejectRequest)
      quota.waitingRequests.add(request)
      // If all requests before this one are searches that wait for a search, this admits it at
      // once.
      this.#admitWaiting(quota)
      if (quota.waitingRequests.size > maxWaitingRequests) rejectRequest()
    })
  }

  #getOrCreateQuota(token: string): TokenQuota {
    const existingQuota = this.#quotas.get(token)
    if (existingQuota) return existingQuota
    const quota = {
      usedBytes: 0,
      admittedCount: 0,
      isSearching: false,
      waitingRequests: new Set<never>(),
    }
    this.#quotas.set(token, quota)
    return quota
  }

  #hasRoom({ admittedCount, usedBytes, isSearching }: TokenQuota, needs: RequestNeeds): boolean {
    if (needs.isSearch && isSearching) return false
    const bytesAfter = usedBytes + needs.bytes - needs.receivedBytes
    return admittedCount === 0 || bytesAfter <= this.#options.bytesPerToken
  }

  #admitWaiting(quota: TokenQuota): void {
    for (const { needs, admit } of quota.waitingRequests) {
      if (this.#hasRoom(quota, needs)) admit()
      // The next requests may overtake a search that waits for a search, but no request that waits
      // for memory.
      else if (!(needs.isSearch && quota.isSearching)) return
    }
  }

  /**
   * Admits requests in the next iteration of the event loop. When many clients leave at once, their
   * connections close one after the other. If the first closing admitted requests at once, it would
   * admit requests of clients that have left, too.
   */
  #admitLater(quota: TokenQuota): void {
    if (quota.waitingRequests.size > 0) setImmediate(() => this.#admitWaiting(quota))
  }

  /** Counts the memory of the request, and frees it when the response is closed. */
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
