/**
 * Checks the headers of a body, and reads it.
 *
 * Before a request has its token and its quota, the service must not hold more of its body than
 * came with the head, or clients without a token could fill its memory.
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

/** The JSON of a plant has no more than this, either. */
const maxBodyBytes = 1_048_576

/** A larger body takes long to parse, and its syntax is not explained. */
export const maxSmallBodyBytes = 4096

/**
 * @returns how many bytes the body may have at most: its Content-Length, or the limit if it comes
 *   in chunks, whose length is not known before
 * @throws {HttpError} 413
 */
export function findMaxBodyBytes(headers: IncomingHttpHeaders): number {
  const bytes = isChunked(headers) ? maxBodyBytes : Number(headers['content-length'] ?? 0)
  if (bytes > maxBodyBytes) throw createBodyTooLargeError()
  return bytes
}

/** The `Connection` that brings a body. */
interface BodyConnection {
  hold(reason: 'body'): void
  release(reason: 'body'): void
}

/**
 * The body of a request, which is collected in one buffer from its first byte on: node:http would
 * keep each chunk as an object of hundreds of bytes, even a chunk of one byte. Until `read` is
 * called, the connection is held, so that memory has no more of it than came with the head.
 */
export class Body {
  /** This is true once the request has its token and its quota, and will soon be with the store. */
  isAdmitted = false
  readonly #countUnits: (units: number) => void
  #receivedBuffer = new GrowingBuffer()
  /** Resolves when the body is whole or too large, and rejects when the client has left. */
  readonly #end: Promise<void>
  #isDiscarded = false

  /** @param countUnits is called for each chunk, and for each KiB: see `Floods` */
  constructor(
    private readonly response: ServerResponse,
    private readonly connection: BodyConnection,
    countUnits: (units: number) => void,
  ) {
    const { headers } = response.req
    this.#countUnits = countUnits
    const hasBody = isChunked(headers) || Number(headers['content-length'] ?? 0) > 0
    this.#end = hasBody ? this.#collect() : Promise.resolve()
    // What came with the head is passed on in this tick.
    if (hasBody) queueMicrotask(() => this.#holdUnlessWhole())
  }

  /** @throws {HttpError} 413, or 503 when the client has left */
  async read(): Promise<Buffer> {
    this.isAdmitted = true
    this.connection.release('body')
    await this.#end
    if (this.#receivedBuffer.length > maxBodyBytes) throw createBodyTooLargeError()
    return this.#receivedBuffer.bytes
  }

  /** Frees the memory of a body that nobody will read any more, and drops what is yet to come. */
  discard(): void {
    this.#isDiscarded = true
    this.#receivedBuffer = new GrowingBuffer()
    this.connection.release('body')
  }

  #collect(): Promise<void> {
    const { req: request } = this.response
    const end = new Promise<void>((resolve, reject) => {
      request.once('end', resolve).once('close', () => {
        // An error is expensive, and most requests have ended when they close.
        if (!request.readableEnded) reject(createUnavailableError())
      })
      request.on('data', (chunk: Buffer) => {
        const kibibytes = Math.floor(chunk.length / 1024)
        this.#countUnits(isChunked(request.headers) ? 1 + kibibytes : kibibytes)
        if (this.response.writableEnded || this.#isDiscarded) return
        this.#receivedBuffer.append(chunk)
        if (this.#receivedBuffer.length > maxBodyBytes) resolve()
      })
    })
    // If nobody calls `read`, nobody else handles this error, which would then end the process.
    end.catch(() => undefined)
    return end
  }

  #holdUnlessWhole(): void {
    const { headers, complete } = this.response.req
    // node:http receives the whole body some time before it sets `complete`. To hold the connection
    // in between would only delay the request.
    const isWhole = complete || this.#receivedBuffer.length === Number(headers['content-length'])
    if (!isWhole && !this.isAdmitted && !this.#isDiscarded) this.connection.hold('body')
  }
}

function isChunked(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined
}

function createBodyTooLargeError(): HttpError {
  return new HttpError(413, `The body is larger than ${maxBodyBytes} bytes`)
}
