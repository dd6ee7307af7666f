import type { ServerResponse } from 'node:http'
import { busy } from './answer.js'

/** A request waits for so many milliseconds while another holder has some. */
const maxWait = 5000

interface Share {
  used: number
  requests: number
  readonly waiting: Set<Waiter>
}

interface Waiter {
  amount: number
  since: number
  enter(): void
  leave(): void
}

/** What a request has of it. */
export interface Hold {
  resize(amount: number): void
  release(): void
}

/**
 * What is scarce, such as memory, shared by its holders, such as tokens. A holder may have as much as it leaves free,
 * so that there is room for the next one, and one request in any case. Requests wait after those of the same holder.
 */
export class Shares {
  readonly #timeout: number
  readonly #now: () => number
  readonly #shares = new Map<unknown, Share>()
  #free: number
  #timer: NodeJS.Timeout | undefined

  /** @param timeout milliseconds for which a request waits when nobody else has some */
  constructor(limit: number, timeout: number, now: () => number) {
    this.#free = limit
    this.#timeout = timeout
    this.#now = now
  }

  /** Waits for room. Rejects with 503 when there is none for too long, or the client has left. */
  ask(holder: unknown, amount: number, response: ServerResponse): Hold | Promise<Hold> {
    const share = this.#shares.get(holder) ?? { used: 0, requests: 0, waiting: new Set() }
    this.#shares.set(holder, share)
    if (share.waiting.size === 0 && this.#hasRoom(share, amount))
      return this.#grant(holder, share, amount)
    return new Promise((resolve, reject) => {
      const end = () => {
        share.waiting.delete(waiter)
        response.off('close', leave)
      }
      const leave = () => {
        end()
        this.#forget(holder, share)
        reject(busy())
      }
      const enter = () => {
        end()
        resolve(this.#grant(holder, share, amount))
      }
      const waiter = { amount, since: this.#now(), enter, leave }
      share.waiting.add(waiter)
      response.once('close', leave)
      this.#watch()
    })
  }

  /** Whether there is as much, and this leaves the holder at most half of what would be free without it. */
  #hasRoom({ used, requests }: Share, amount: number): boolean {
    return amount <= this.#free && (requests === 0 || used + amount <= this.#free - amount)
  }

  #grant(holder: unknown, share: Share, amount: number): Hold {
    let held = 0
    const resize = (size: number) => {
      const isLess = size < held
      share.used += size - held
      this.#free -= size - held
      held = size
      if (isLess && this.#timer) this.#admit()
    }
    share.requests += 1
    resize(amount)
    const release = () => {
      share.requests -= 1
      this.#forget(holder, share)
      resize(0)
    }
    return { resize, release }
  }

  #forget(holder: unknown, share: Share): void {
    if (share.requests === 0 && share.waiting.size === 0) this.#shares.delete(holder)
  }

  #admit(): void {
    for (const share of this.#shares.values())
      for (const waiter of share.waiting) {
        if (!this.#hasRoom(share, waiter.amount)) break
        waiter.enter()
      }
  }

  /** Ends those that have waited for too long. One timer for all costs nearly nothing. */
  #watch(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      const longest = this.#shares.size > 1 ? Math.min(maxWait, this.#timeout) : this.#timeout
      for (const { waiting } of this.#shares.values())
        for (const waiter of waiting)
          if (this.#now() - waiter.since >= longest) waiter.leave()
          else this.#watch()
    }, 100)
  }
}
