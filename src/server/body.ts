/**
 * Checks the headers of a body, and reads it.
 *
 * Before a request has its token and its quota, the service must not hold more of its body than
 * came with the head, or clients without a token could fill its memory. See "Bodies" in
 * docs/design/http-connections.md.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { isJsonType } from '../plant/json.js'
import { GrowingBuffer } from '../platform/growing-buffer.js'
import { createBusyError, HttpError } from './http-error.js'

/** @throws {HttpError} 415 */
export function validateBodyType({ method, headers }: IncomingMessage): void {
  const { 'content-type': type = '', 'content-encoding': coding = 'identity' } = headers
  const isPatch = method === 'PATCH'
  const mediaType = isPatch ? type.replace(/^application\/merge-patch\+/i, 'application/') : type
  if (!isJsonType(mediaType)) {
    const accepted = ['Accept-Patch', 'application/merge-patch+json, application/json']
    const message = 'Content-Type must be application/json'
    throw new HttpError(415, message, isPatch ? accepted : [])
  }
  if (coding.toLowerCase() !== 'identity')
    throw new HttpError(415, 'The body must not have a Content-Encoding')
}

/**
 * @returns how many bytes the body may have at most: its Content-Length, or the limit if it comes
 *   in chunks, whose length is not known before
 * @throws {HttpError} 413
 */
export function parseBodyLength(headers: IncomingHttpHeaders, limitBytes: number): number {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = headers
  const bytes = coding === undefined ? Number(length) : limitBytes
  if (bytes > limitBytes) throw createTooLargeError(limitBytes)
  return bytes
}

/**
 * The body of a request. Until `read` is called, its connection is paused, so that only the part is
 * in memory that came in the same read as the head.
 *
 * A body that comes in chunks is collected in one buffer from its first byte on. Otherwise
 * node:http would keep each chunk as an object of hundreds of bytes, even a chunk of one byte.
 */
export class Body {
  /** This is true once the request has its token and its quota: it will soon be with the store. */
  isAdmitted = false
  readonly #response: ServerResponse
  readonly #onChunk: (bytes: number) => void
  #received = new GrowingBuffer()
  /** How the collecting ended. Undefined if the body is not collected here, but in node:http. */
  #collected: Promise<'whole' | 'tooLarge'> | undefined
  #isDiscarded = false
  #limitBytes = Infinity

  /**
   * @param onChunk is called for each chunk of a body that comes in chunks, or in more than one
   * read
   */
  constructor(response: ServerResponse, onChunk: (bytes: number) => void) {
    this.#response = response
    this.#onChunk = onChunk
    if (response.req.headers['transfer-encoding'] !== undefined) this.#collected = this.#collect()
    void this.#pauseAfterTick()
  }

  /** The bytes of the body that are in memory, here and in node:http. */
  get receivedBytes(): number {
    return this.#received.length + this.#response.req.readableLength
  }

  /** This is true while the rest of the body must not be read, so its connection stays paused. */
  get mustStayUnread(): boolean {
    return !this.isAdmitted && !this.#isDiscarded && !this.#response.req.complete
  }

  /** @throws {HttpError} 413, or 503 when the client has left */
  async read(limitBytes: number): Promise<Buffer> {
    const { req: request } = this.#response
    this.isAdmitted = true
    // Most bodies came with their head, and node:http has them in one buffer.
    if (request.complete && !this.#collected) return request.read() ?? Buffer.alloc(0)
    this.#limitBytes = limitBytes
    this.#collected ??= this.#collect()
    if (!request.complete) request.socket.resume()
    // Chunks that came before the limit was known may exceed it already. Then no other chunk need
    // come, for which `#collected` would wait.
    const isTooLarge = this.#received.length > limitBytes
    if (isTooLarge || (await this.#collected) === 'tooLarge') throw createTooLargeError(limitBytes)
    return this.#received.bytes
  }

  /** Frees the memory of a body that nobody will read any more. */
  discard(): void {
    this.#isDiscarded = true
    this.#received = new GrowingBuffer()
  }

  /** Pauses the connection after this tick, unless the whole body has come with the head. */
  async #pauseAfterTick(): Promise<void> {
    // The request is created in a tick in which node:http may still resume the socket, which would
    // undo this pause.
    await undefined
    const { headers, readableLength, socket } = this.#response.req
    // node:http sets `complete` later than it has received the whole body. To pause the socket in
    // between would only delay the request.
    const hasWholeBody = readableLength === Number(headers['content-length'])
    if (this.mustStayUnread && !hasWholeBody) socket.pause()
  }

  #collect(): Promise<'whole' | 'tooLarge'> {
    const { req: request } = this.#response
    // node:http's `_read` would resume the socket after each chunk, whatever has paused it.
    request._read = () => undefined
    const collected = new Promise<'whole' | 'tooLarge'>((resolve, reject) => {
      request.once('end', () => resolve('whole')).once('close', () => reject(createBusyError()))
      request.on('data', (chunk: Buffer) => {
        this.#onChunk(chunk.length)
        if (this.#response.writableEnded) return
        this.#received.append(chunk)
        if (this.#received.length > this.#limitBytes) resolve('tooLarge')
      })
    })
    // If nobody calls `read`, nobody else handles this error, which would then end the process.
    collected.catch(() => undefined)
    return collected
  }
}

function createTooLargeError(limitBytes: number): HttpError {
  return new HttpError(413, `The body is larger than ${limitBytes} bytes`)
}
