import type { ServerResponse } from 'node:http'
import { busy } from './answer.js'

interface Holder {
  usedBytes: number
  readonly waiting: Set<{ bytes: number; enter(): void }>
}

/**
 * The memory for requests in progress. Each token has so much of its own, for which its requests wait in order. One of
 * them may have more than that.
 */
export class Memory {
  readonly #limitBytes: number
  readonly #timeoutMs: number
  readonly #holders = new Map<string, Holder>()

  constructor(bytesPerToken: number, timeoutMs: number) {
    this.#limitBytes = bytesPerToken
    this.#timeoutMs = timeoutMs
  }

  /**
   * Takes bytes until the client has its response.
   *
   * @throws {HttpError} 503 if there is no room in time, or the client leaves
   */
  take(token: string, bytes: number, response: ServerResponse): Promise<void> | undefined {
    if (response.closed) throw busy()
    const holder = this.#holders.get(token) ?? { usedBytes: 0, waiting: new Set() }
    this.#holders.set(token, holder)
    if (holder.waiting.size > 0 || !this.#hasRoom(holder, bytes))
      return this.#wait(holder, bytes, response)
    this.#grant(holder, bytes, response)
    return undefined
  }

  #hasRoom({ usedBytes }: Holder, bytes: number): boolean {
    return usedBytes === 0 || usedBytes + bytes <= this.#limitBytes
  }

  #wait(holder: Holder, bytes: number, response: ServerResponse): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer)
        response.off('close', leave)
        holder.waiting.delete(waiter)
      }
      const leave = () => {
        end()
        reject(busy())
        this.#grantNext(holder)
      }
      const enter = () => {
        end()
        this.#grant(holder, bytes, response)
        resolve()
      }
      const waiter = { bytes, enter }
      const timer = setTimeout(leave, this.#timeoutMs)
      response.once('close', leave)
      holder.waiting.add(waiter)
    })
  }

  #grant(holder: Holder, bytes: number, response: ServerResponse): void {
    holder.usedBytes += bytes
    response.once('close', () => {
      holder.usedBytes -= bytes
      this.#grantNext(holder)
    })
  }

  #grantNext(holder: Holder): void {
    for (const next of holder.waiting) {
      if (!this.#hasRoom(holder, next.bytes)) return
      next.enter()
    }
  }
}
