import type { IncomingMessage } from 'node:http'
import { GrowingBuffer } from '../platform/growing-buffer.js'
import { bodyTooLarge, busy, type HttpError } from './answer.js'

/** So many bytes may come before the token is accepted. */
const maxUnaccepted = 65_536

export const noBody = Buffer.alloc(0)

/**
 * The body of a request. Nothing is read beyond some 64 KiB before `read`. One in chunks is collected from the start,
 * because node:http would keep each small chunk as an object of hundreds of bytes.
 */
export class Body {
  readonly #request: IncomingMessage
  #received: GrowingBuffer | undefined
  #limit = maxUnaccepted
  #error: HttpError | undefined
  #settle = () => {}

  constructor(request: IncomingMessage) {
    this.#request = request
    if (request.headers['transfer-encoding'] !== undefined) this.#collect()
  }

  /** Rejects with 413, the error of `fail`, or any when the client has left. */
  async read(limit: number): Promise<Buffer> {
    const request = this.#request
    this.#limit = limit
    if (request.complete && !this.#received && request.readableLength <= limit)
      return request.read() ?? noBody
    if (!this.#received) this.#collect()
    request.resume()
    while (!request.readableEnded && !this.#error && !request.destroyed && !this.#isTooLarge)
      await new Promise<void>((resolve) => {
        this.#settle = resolve
      })
    if (this.#isTooLarge) throw bodyTooLarge(limit)
    if (this.#error) throw this.#error
    if (!request.readableEnded) throw busy()
    return this.#received?.bytes ?? noBody
  }

  /** What comes is not kept. */
  drop(): void {
    this.#request.off('data', this.#append).resume()
    this.#received = undefined
  }

  /** The error becomes the response, unless the body has arrived. */
  fail(error: HttpError): void {
    if (!this.#request.complete) this.#error = error
    this.#settle()
  }

  get #isTooLarge(): boolean {
    return (this.#received?.length ?? 0) > this.#limit
  }

  #collect(): void {
    this.#received = new GrowingBuffer()
    const settle = () => this.#settle()
    this.#request.on('data', this.#append).once('end', settle).once('close', settle)
  }

  readonly #append = (chunk: Buffer) => {
    this.#received?.append(chunk)
    if (!this.#isTooLarge) return
    this.#request.pause()
    this.#settle()
  }
}
