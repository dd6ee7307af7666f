import type { ServerResponse } from 'node:http'
import { GrowingBuffer } from '../platform/growing-buffer.js'
import { busy, HttpError } from './answer.js'

/** So many bytes of a body in chunks may come before its token is accepted. */
const unacceptedBytes = 65_536

/** After so many chunks of a body, other connections have their turn. */
const chunksOfTurn = 1000

/**
 * The body of a request. One with a length stays unread in the stream of the request until `read`. One in chunks is
 * collected from its first byte on: node:http would keep each chunk, which may be one byte, as an object of hundreds.
 */
export class Body {
  readonly #response: ServerResponse
  readonly #onChunks: () => void
  #received: GrowingBuffer | undefined
  #limitBytes = unacceptedBytes
  #error: HttpError | undefined
  #notify = () => {}

  /** @param onChunks called when many chunks have come, which take longer than their bytes */
  constructor(response: ServerResponse, onChunks: () => void) {
    this.#response = response
    this.#onChunks = onChunks
    if (response.req.headers['transfer-encoding'] !== undefined) this.#received = this.#collect()
  }

  /** @throws {HttpError} 413, the error of `fail`, or any when the client has left */
  async read(limitBytes: number): Promise<Buffer> {
    const { req: request } = this.#response
    // Nearly always, and faster.
    if (request.complete && !this.#received) return request.read() ?? Buffer.alloc(0)
    this.#limitBytes = limitBytes
    const received = this.#received ?? this.#collect()
    request.resume()
    while (!request.readableEnded && !this.#error && received.length <= limitBytes) {
      if (request.destroyed) throw busy()
      await new Promise<void>((resolve) => {
        this.#notify = resolve
      })
    }
    if (received.length > limitBytes) throw bodyTooLarge(limitBytes)
    if (this.#error) throw this.#error
    return received.bytes
  }

  /** The error becomes the response, unless the body has arrived or nobody waits for it. */
  fail(error: HttpError): void {
    if (!this.#response.req.complete) this.#error = error
    this.#notify()
  }

  #collect(): GrowingBuffer {
    const { req: request } = this.#response
    const received = new GrowingBuffer()
    let chunks = 0
    const notify = () => this.#notify()
    request.once('end', notify).once('close', notify)
    request.on('data', (chunk: Buffer) => {
      chunks += 1
      if (chunks % chunksOfTurn === 0) this.#onChunks()
      if (this.#response.writableEnded) {
        if (chunks >= chunksOfTurn) request.destroy()
        return
      }
      received.append(chunk)
      if (received.length <= this.#limitBytes) return
      request.pause()
      notify()
    })
    return received
  }
}

export function bodyTooLarge(limitBytes: number): HttpError {
  return new HttpError(413, `The body is larger than ${limitBytes} bytes`)
}
