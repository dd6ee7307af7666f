import type { IncomingMessage } from 'node:http'
import { GrowingBuffer } from '../platform/growing-buffer.js'
import { busy, HttpError } from './http-error.js'

/** Bytes that count together. */
export class Budget {
  used = 0
  readonly limit: number
  /** whether reading pauses above the limit, instead of a 503 */
  readonly pauses: boolean

  constructor(limit: number, { pauses = false } = {}) {
    this.limit = limit
    this.pauses = pauses
  }

  hasRoom(bytes = 0): boolean {
    return this.used + bytes <= this.limit
  }
}

/** What the requests of all connections hold. */
export class InFlight {
  /** requests that wait for the store */
  requests = 0
  /** of one body */
  readonly bodyLimit: number
  /** bodies of requests with an accepted token, which arrive or wait for the store */
  readonly bodies: Budget
  /** responses to requests with an accepted token, which clients have not read yet */
  readonly unread = new Budget(67_108_864)

  constructor(bodyLimit: number) {
    this.bodyLimit = bodyLimit
    this.bodies = new Budget(64 * bodyLimit)
  }
}

export const noBody = Buffer.alloc(0)

export function tooLarge(bodyLimit: number): HttpError {
  return new HttpError(413, `The body is larger than ${bodyLimit} bytes`)
}

/** The request must be `complete`. Throws 413 or 503. */
export function takeBody(request: IncomingMessage, { bodyLimit, bodies }: InFlight): Buffer {
  const { readableLength } = request
  if (readableLength > bodyLimit) throw tooLarge(bodyLimit)
  if (!bodies.hasRoom(readableLength)) throw busy()
  const bytes: Buffer | null = request.read()
  return bytes ?? noBody
}

/** Collects a body while it arrives: node:http would keep each small chunk as an object of hundreds of bytes. */
export class ArrivingBody {
  readonly #request: IncomingMessage
  readonly #limit: number
  #budget: Budget
  #received = new GrowingBuffer()
  #isPaused = false
  #isEnded = false
  #error: HttpError | undefined
  #settle = () => {}

  constructor(request: IncomingMessage, limit: number, budget: Budget) {
    this.#request = request
    this.#limit = limit
    this.#budget = budget
    request.on('data', this.#append).once('end', this.#end)
  }

  /** Resolves with the bytes, which no longer count. Rejects with 413 or 503. Never settles if the client leaves. */
  async whole(): Promise<Buffer> {
    if (!this.#isEnded && !this.#error) await new Promise<void>((resolve) => (this.#settle = resolve))
    if (this.#error) throw this.#error
    const { bytes } = this.#received
    this.discard()
    return bytes
  }

  countIn(budget: Budget): void {
    this.#budget.used -= this.#received.length
    this.#budget = budget
    this.#resume()
    this.#count(this.#received.length)
  }

  /** Drops what has arrived. What still arrives is no longer collected. */
  discard(): void {
    this.#request.off('data', this.#append).off('end', this.#end)
    this.#budget.used -= this.#received.length
    this.#received = new GrowingBuffer()
    this.#resume()
  }

  #resume(): void {
    if (this.#isPaused) this.#request.socket.resume()
    this.#isPaused = false
  }

  readonly #append = (chunk: Buffer) => {
    this.#received.append(chunk)
    this.#count(chunk.length)
  }

  #count(bytes: number): void {
    this.#budget.used += bytes
    if (this.#received.length > this.#limit) this.#error = tooLarge(this.#limit)
    else if (!this.#budget.hasRoom()) this.#stop()
    if (!this.#error) return
    this.discard()
    this.#settle()
  }

  #stop(): void {
    this.#isPaused = this.#budget.pauses
    if (this.#isPaused) this.#request.socket.pause()
    else this.#error = busy()
  }

  readonly #end = () => {
    this.#isEnded = true
    this.#settle()
  }
}
