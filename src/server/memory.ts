import type { ServerResponse } from 'node:http'
import { busy } from './answer.js'

interface Holder {
  usedBytes: number
  /** What lets each in, and its bytes. */
  readonly waiting: Map<() => void, number>
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
  async take(token: string, bytes: number, response: ServerResponse): Promise<void> {
    if (response.closed) throw busy()
    const holder = this.#holders.get(token) ?? { usedBytes: 0, waiting: new Map() }
    this.#holders.set(token, holder)
    if (holder.waiting.size > 0 || !this.#hasRoom(holder, bytes))
      await this.#wait(holder, bytes, response)
    else this.#grant(holder, bytes, response)
  }

  #hasRoom({ usedBytes }: Holder, bytes: number): boolean {
    return usedBytes === 0 || usedBytes + bytes <= this.#limitBytes
  }

  #wait(holder: Holder, bytes: number, response: ServerResponse): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = () => {
        clearTimeout(timer)
        response.off('close', leave)
        holder.waiting.delete(enter)
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
      const timer = setTimeout(leave, this.#timeoutMs)
      response.once('close', leave)
      holder.waiting.set(enter, bytes)
    })
  }

  #grant(holder: Holder, bytes: number, response: ServerResponse): void {
    holder.usedBytes += bytes
    response.once('close', () => {
      holder.usedBytes -= bytes
      this.#grantNext(holder)
    })
  }

  /** In another turn: of many who leave at once, each would let in one that leaves. */
  #grantNext(holder: Holder): void {
    if (holder.waiting.size === 0) return
    setImmediate(() => {
      for (const [enter, bytes] of holder.waiting) {
        if (!this.#hasRoom(holder, bytes)) return
        enter()
      }
    })
  }
}
