import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { isJsonType } from '../plant/json.js'
import { GrowingBuffer } from '../platform/growing-buffer.js'
import { createBusyError, HttpError } from './http-error.js'

/** @throws {HttpError} 415 */
export function validateBodyType({ method, headers }: IncomingMessage): void {
  const { 'content-type': type = '', 'content-encoding': coding = 'identity' } = headers
  const isPatch = method === 'PATCH'
  const known = isPatch ? type.replace(/^application\/merge-patch\+/i, 'application/') : type
  if (!isJsonType(known)) {
    const accepted = ['Accept-Patch', 'application/merge-patch+json, application/json']
    const message = 'Content-Type must be application/json'
    throw new HttpError(415, message, isPatch ? accepted : [])
  }
  if (coding.toLowerCase() !== 'identity')
    throw new HttpError(415, 'The body must have no Content-Encoding')
}

/**
 * @returns the most bytes that the body may have, as the headers say
 * @throws {HttpError} 413
 */
export function parseBodyLength(headers: IncomingHttpHeaders, limitBytes: number): number {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = headers
  const bytes = coding === undefined ? Number(length) : limitBytes
  if (bytes > limitBytes) throw createTooLargeError(limitBytes)
  return bytes
}

/**
 * The body of a request. Before `read`, only what came with the headers is read, so that a client
 * without a token can make the service hold no more than that. A body in chunks is collected from
 * its first byte on: node:http would keep each chunk, which may be one byte, as an object of
 * hundreds.
 */
export class Body {
  /** Whether the request has its token and its quota, and will soon be with the store. */
  isWanted = false
  readonly #response: ServerResponse
  readonly #onChunk: (bytes: number) => void
  #received = new GrowingBuffer()
  #whole: Promise<void> | undefined
  #isDiscarded = false
  #limitBytes = Infinity

  /**
   * @param onChunk is called for each chunk of a body that comes in chunks, or in more than one
   * read
   */
  constructor(response: ServerResponse, onChunk: (bytes: number) => void) {
    this.#response = response
    this.#onChunk = onChunk
    if (response.req.headers['transfer-encoding'] !== undefined) this.#whole = this.#collect()
    void this.#pause()
  }

  /** How many bytes of the body the service holds. */
  get receivedBytes(): number {
    return this.#received.length + this.#response.req.readableLength
  }

  /** Whether the rest of the body must not be read yet. */
  get mustStayUnread(): boolean {
    return !this.isWanted && !this.#isDiscarded && !this.#response.req.complete
  }

  /** @throws {HttpError} 413, or 503 when the client has left */
  async read(limitBytes: number): Promise<Buffer> {
    const { req: request } = this.#response
    this.isWanted = true
    if (request.complete && !this.#whole) return request.read() ?? Buffer.alloc(0)
    this.#limitBytes = limitBytes
    this.#whole ??= this.#collect()
    if (!request.complete) request.socket.resume()
    if (this.#received.length <= limitBytes) await this.#whole
    if (this.#received.length > limitBytes) throw createTooLargeError(limitBytes)
    return this.#received.bytes
  }

  /** Frees the memory of a body that nobody will read any more. */
  discard(): void {
    this.#isDiscarded = true
    this.#received = new GrowingBuffer()
  }

  async #pause(): Promise<void> {
    // node:http may resume the socket in this tick.
    await undefined
    const { headers, readableLength, socket } = this.#response.req
    // node:http sets `complete` a moment after it has received the whole body.
    const isWhole = readableLength === Number(headers['content-length'])
    if (this.mustStayUnread && !isWhole) socket.pause()
  }

  /** Collects the body in one buffer, up to the limit. */
  #collect(): Promise<void> {
    const { req: request } = this.#response
    // node:http would resume the socket after each chunk, whatever has paused it.
    request._read = () => undefined
    const collected = new Promise<void>((resolve, reject) => {
      request.once('end', resolve).once('close', () => reject(createBusyError()))
      request.on('data', (chunk: Buffer) => {
        this.#onChunk(chunk.length)
        if (this.#response.writableEnded) return
        this.#received.append(chunk)
        if (this.#received.length > this.#limitBytes) resolve()
      })
    })
    // If nobody reads the body, nobody handles this error.
    collected.catch(() => undefined)
    return collected
  }
}

function createTooLargeError(limitBytes: number): HttpError {
  return new HttpError(413, `The body is larger than ${limitBytes} bytes`)
}
