import type { ServerResponse } from 'node:http'
import { createBusyError } from './http-error.js'

interface QuotaOptions {
  /** Memory for the requests of one token that are in progress. */
  bytesPerToken: number
  /** How long a request waits for its part of the quota. */
  timeoutMs: number
}

export interface RequestNeeds {
  /** The memory that the request takes, with its body and its response. */
  bytes: number
  /** What the request has taken of that already: the part of its body that came with its head. */
  receivedBytes: number
  isSearch: boolean
}

/** Two imports may share a token, and each has 64 connections. */
const maxWaiting = 128

interface WaitingRequest {
  needs: RequestNeeds
  admit(): void
}

interface TokenQuota {
  usedBytes: number
  admittedCount: number
  isSearching: boolean
  /** The requests that wait, in their order. */
  waiting: Set<WaitingRequest>
}

/**
 * Limits what the requests of a token take, so that one token does not block another. Each token
 * has memory of its own, for which its requests wait in their order; one of them is admitted
 * however large it is. Its searches run one after the other, because each keeps the store busy; its
 * other requests do not wait for them.
 */
export class Quotas {
  readonly #options: QuotaOptions
  readonly #quotas = new Map<string, TokenQuota>()

  constructor(options: QuotaOptions) {
    this.#options = options
  }

  /**
   * Waits until the request may begin. It keeps its memory until its response is closed.
   *
   * @returns what its handler calls when the store has done its work: the client may have left
   *   before, but a search goes on
   * @throws {HttpError} 503 if too many requests wait, there is no room in time, or the client
   *   leaves
   */
  async acquire(token: string, needs: RequestNeeds, response: ServerResponse): Promise<() => void> {
    if (response.closed) throw createBusyError()
    const quota = this.#findQuota(token)
    quota.usedBytes += needs.receivedBytes
    if (quota.waiting.size === 0 && this.#hasRoom(quota, needs))
      this.#occupy(quota, needs, response)
    else await this.#wait(quota, needs, response)
    return () => {
      if (needs.isSearch) quota.isSearching = false
      this.#admitLater(quota)
    }
  }

  #wait(quota: TokenQuota, needs: RequestNeeds, response: ServerResponse): Promise<void> {
    return new Promise((resolve, reject) => {
      const endWait = () => {
        clearTimeout(timer)
        response.off('close', leave)
        quota.waiting.delete(request)
      }
      const admit = () => {
        endWait()
        this.#occupy(quota, needs, response)
        resolve()
      }
      const leave = () => {
        endWait()
        quota.usedBytes -= needs.receivedBytes
        this.#admitLater(quota)
        reject(createBusyError())
      }
      const timer = setTimeout(leave, this.#options.timeoutMs)
      response.once('close', leave)
      const request = { needs, admit }
      quota.waiting.add(request)
      // If only searches wait before it, it is admitted at once.
      this.#admitWaiting(quota)
      if (quota.waiting.size > maxWaiting) leave()
    })
  }

  #findQuota(token: string): TokenQuota {
    const known = this.#quotas.get(token)
    if (known) return known
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
   * Admits in the next iteration of the event loop. If many clients leave at once, doing so now
   * would admit requests whose clients are about to leave.
   */
  #admitLater(quota: TokenQuota): void {
    if (quota.waiting.size > 0) setImmediate(() => this.#admitWaiting(quota))
  }

  #occupy(quota: TokenQuota, needs: RequestNeeds, response: ServerResponse): void {
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
