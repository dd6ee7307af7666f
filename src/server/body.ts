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
import { createUnavailableError, HttpError } from './http-error.js'

/** @throws {HttpError} 415 */
export function validateBodyType({ method, headers }: IncomingMessage): void {
  const { 'content-type': type = '', 'content-encoding': coding = 'identity' } = headers
  const isPatch = method === 'PATCH'
  const mediaType = isPatch ? type.replace(/^application\/merge-patch\+/i, 'application/') : type
  if (!isJsonType(mediaType)) {
    const acceptPatchHeader = ['Accept-Patch', 'application/merge-patch+json, application/json']
    const message = 'Content-Type must be application/json'
    throw new HttpError(415, message, isPatch ? acceptPatchHeader : [])
  }
  if (coding.toLowerCase() !== 'identity')
    throw new HttpError(415, 'The body must not have a Content-Encoding')
}

/**
 * @returns how many bytes the body may have at most: its Content-Length, or the limit if it comes
 *   in chunks, whose length is not known before
 * @throws {HttpError} 413
 */
export function findMaxBodyBytes(headers: IncomingHttpHeaders, limitBytes: number): number {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = headers
  const bytes = coding === undefined ? Number(length) : limitBytes
  if (bytes > limitBytes) throw createBodyTooLargeError(limitBytes)
  return bytes
}

/**
 * The body of a request. Until `read` is called, its connection is paused, so that memory holds no
 * more of the body than came in the same read as the head.
 *
 * A body that comes in chunks is collected in one buffer from its first byte on. Otherwise
 * node:http would keep each chunk as an object of hundreds of bytes, even a chunk of one byte.
 */
export class Body {
  /** This is true once the request has its token and its quota, and will soon be with the store. */
  isAdmitted = false
  readonly #response: ServerResponse
  readonly #onChunk: (bytes: number) => void
  #receivedBuffer = new GrowingBuffer()
  /**
   * Resolves when all chunks are collected, or more than the limit. Undefined while the body stays
   * in node:http.
   */
  #collectionEnd: Promise<'whole' | 'tooLarge'> | undefined
  #isDiscarded = false
  /**
   * `read` sets this limit. Until then, the connection is paused, so that no more is collected than
   * one read brings.
   */
  #limitBytes = Infinity

  /**
   * @param onChunk is called for each chunk of a body that comes in chunks, or in more than one
   * read
   */
  constructor(response: ServerResponse, onChunk: (bytes: number) => void) {
    this.#response = response
    this.#onChunk = onChunk
    if (response.req.headers['transfer-encoding'] !== undefined)
      this.#collectionEnd = this.#collectChunks()
    void this.#pauseAfterTick()
  }

  /** The bytes of the body that are in memory, here and in node:http. */
  get receivedBytes(): number {
    return this.#receivedBuffer.length + this.#response.req.readableLength
  }

  /** This is true while the rest of the body must not be read, so its connection stays paused. */
  get mustStayPaused(): boolean {
    return !this.isAdmitted && !this.#isDiscarded && !this.#response.req.complete
  }

  /** @throws {HttpError} 413, or 503 when the client has left */
  async read(limitBytes: number): Promise<Buffer> {
    const { req: request } = this.#response
    this.isAdmitted = true
    // Most bodies came with their head, and node:http has them in one buffer.
    if (request.complete && !this.#collectionEnd) return request.read() ?? Buffer.alloc(0)
    this.#limitBytes = limitBytes
    this.#collectionEnd ??= this.#collectChunks()
    if (!request.complete) request.socket.resume()
    // Chunks that came before this call may exceed the limit already. `#collectionEnd` would only
    // notice that when another chunk comes, and none need come.
    const isTooLarge = this.#receivedBuffer.length > limitBytes
    if (isTooLarge || (await this.#collectionEnd) === 'tooLarge')
      throw createBodyTooLargeError(limitBytes)
    return this.#receivedBuffer.bytes
  }

  /** Frees the memory of a body that nobody will read any more. */
  discard(): void {
    this.#isDiscarded = true
    this.#receivedBuffer = new GrowingBuffer()
  }

  /** Pauses the connection after this tick, unless the whole body has come with the head. */
  async #pauseAfterTick(): Promise<void> {
    // The request is created in a tick in which node:http may still resume the socket, which would
    // undo this pause.
    await undefined
    const { headers, readableLength, socket } = this.#response.req
    // node:http receives the whole body some time before it sets `complete`. To pause the socket in
    // between would only delay the request.
    const hasWholeBody = readableLength === Number(headers['content-length'])
    if (this.mustStayPaused && !hasWholeBody) socket.pause()
  }

  #collectChunks(): Promise<'whole' | 'tooLarge'> {
    const { req: request } = this.#response
    // node:http's `_read` would resume the socket after each chunk, whatever has paused it.
    request._read = () => undefined
    const collectionEnd = new Promise<'whole' | 'tooLarge'>((resolve, reject) => {
      request
        .once('end', () => resolve('whole'))
        .once('close', () => reject(createUnavailableError()))
      request.on('data', (chunk: Buffer) => {
        this.#onChunk(chunk.length)
        if (this.#response.writableEnded) return
        this.#receivedBuffer.append(chunk)
        if (this.#receivedBuffer.length > this.#limitBytes) resolve('tooLarge')
      })
    })
    // If nobody calls `read`, nobody else handles this error, which would then end the process.
    collectionEnd.catch(() => undefined)
    return collectionEnd
  }
}

function createBodyTooLargeError(limitBytes: number): HttpError {
  return new HttpError(413, `The body is larger than ${limitBytes} bytes`)
}
