import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isJsonType, parseJson, severalValues } from '../plant/json.js'
import { isIdempotencyKey, type NewPlant } from '../plant/plant.js'
import { checkNewPlant } from '../plant/schema.js'
import { busy, HttpError, invalidHttp } from './errors.js'

/** Headers that a request may have once (RFC 9110, 5.3), each with a bit; as most clients write them, and in lower case. */
const singleHeaders = new Map<string, number>()
for (const [at, name] of [
  'Host',
  'Content-Type',
  'Content-Encoding',
  'Authorization',
  'Transfer-Encoding',
  'Content-Length', // which the parser of Node rejects, and that of Bun accepts where both are the same
].entries())
  singleHeaders.set(name, 1 << at).set(name.toLowerCase(), 1 << at)
const hostBit = 1 << 0
const lengthBit = 1 << 5

/**
 * Checks what node:http lets through: the version, no Host, headers that are repeated, and transfer codings.
 *
 * @returns the answer to a request that must not be processed
 */
export function validateHead({ rawHeaders, headers, httpVersion }: IncomingMessage): HttpError | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return new HttpError(400, `HTTP/${httpVersion} is not supported, only HTTP/1.1`)
  let seen = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    const bit = singleHeaders.get(name) ?? singleHeaders.get(name.toLowerCase()) ?? 0
    if ((seen & bit) > 0) return bit === lengthBit ? invalidHttp : new HttpError(400, `The header ${name} must be given once`)
    seen |= bit
  }
  // RFC 9112, 6.1: no other coding is decoded here, and HTTP/1.0 has none, so that a proxy in front may have read it in another way.
  const coding = headers['transfer-encoding']
  if (coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked')) return invalidHttp
  return (seen & hostBit) > 0 || httpVersion === '1.0' ? undefined : new HttpError(400, 'The header Host is missing')
}

/** @throws {HttpError} 415 for a body that is not said to be JSON, or is compressed; 413 for one that is said to be too large */
export function validateBodyHeaders(headers: IncomingHttpHeaders, bodyLimit: number): void {
  const type = headers['content-type']
  if (type === undefined) throw new HttpError(415, 'Content-Type must be application/json, but is missing')
  if (!isJsonType(type)) throw new HttpError(415, `Content-Type must be application/json, but was ${quote(type)}`)
  const coding = headers['content-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'identity')
    throw new HttpError(415, `The body must have no Content-Encoding, but had ${quote(coding)}`)
  const length = headers['content-length']
  if (length !== undefined && parseFloat(length) > bodyLimit) throw tooLarge(bodyLimit)
}

function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 79)}…` : text)
}

function tooLarge(bodyLimit: number): HttpError {
  return new HttpError(413, `The body is larger than ${bodyLimit} bytes`)
}

/** What the service holds at this moment. */
export interface InFlight {
  /** creates that wait for the store */
  creates: number
  /** bytes of bodies, from their arrival to their answer */
  bytes: number
}

/** How many bodies of the largest size may be held at a time. */
const maxLargestBodies = 64

export interface BodyOptions {
  /** bytes */
  bodyLimit: number
  inFlight: InFlight
}

/** @throws {HttpError} 413, or 503 when the bodies of all requests are too large together */
function checkSize(length: number, total: number, bodyLimit: number): void {
  if (length > bodyLimit) throw tooLarge(bodyLimit)
  if (total > maxLargestBodies * bodyLimit) throw busy()
}

/**
 * Takes the body of a request that is `complete`.
 *
 * @throws {HttpError} 413, or 503 when the bodies of all requests are too large together
 */
export function takeBody(request: IncomingMessage, { bodyLimit, inFlight }: BodyOptions): Buffer {
  checkSize(request.readableLength, inFlight.bytes + request.readableLength, bodyLimit)
  const bytes: Buffer | null = request.read()
  return bytes ?? nothing
}

/** A body that is still arriving. Small chunks are copied together: each would be an object of hundreds of bytes. */
export class ArrivingBody {
  /** Is pending for ever when the connection breaks, or the body is discarded; rejects with an `HttpError` like `takeBody`. */
  readonly bytes: Promise<Buffer>
  readonly #request: IncomingMessage
  readonly #options: BodyOptions
  #resolve: (bytes: Buffer) => void = () => undefined
  #reject: (error: unknown) => void = () => undefined
  #buffer: Buffer = nothing
  #length = 0

  constructor(request: IncomingMessage, options: BodyOptions) {
    this.#request = request
    this.#options = options
    this.bytes = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.bytes.catch(() => undefined) // it may be rejected before anybody waits for it
    request.on('data', this.#append).on('end', this.#end).on('close', this.discard)
  }

  readonly discard = (): void => {
    this.#request.off('data', this.#append).off('end', this.#end).off('close', this.discard)
    this.#options.inFlight.bytes -= this.#length
    this.#length = 0
    this.#buffer = nothing
  }

  readonly #append = (chunk: Buffer): void => {
    const { bodyLimit, inFlight } = this.#options
    const start = this.#length
    this.#length += chunk.length
    inFlight.bytes += chunk.length
    try {
      checkSize(this.#length, inFlight.bytes, bodyLimit)
    } catch (error) {
      this.discard()
      this.#reject(error)
      return
    }
    if (start > 0 && this.#length > this.#buffer.length) {
      const grown = Buffer.allocUnsafe(2 * this.#length)
      this.#buffer.copy(grown, 0, 0, start)
      this.#buffer = grown
    }
    if (start === 0) this.#buffer = chunk
    else chunk.copy(this.#buffer, start)
  }

  readonly #end = (): void => {
    const bytes = this.#buffer.subarray(0, this.#length)
    this.discard()
    this.#resolve(bytes)
  }
}

const nothing = Buffer.alloc(0)

/**
 * Reads on after an early answer, since to close on a body that is still arriving would discard the answer on its way.
 *
 * @param limit bytes after which the connection is closed
 */
export function discardBody(request: IncomingMessage, limit: number): void {
  let left = limit
  if (!request.complete)
    request.on('data', (chunk: Buffer) => {
      left -= chunk.length
      if (left < 0) request.destroy()
    })
  request.resume()
}

/** @throws {HttpError} 400 or 422 for what is not the specification's NewPlant */
export function parseNewPlant(bytes: Buffer): NewPlant {
  if (bytes.length === 0) throw new HttpError(400, 'The body is empty')
  if (!isUtf8(bytes)) throw new HttpError(400, 'The body is not UTF-8')
  const checked = checkNewPlant(parseBody(bytes.toString()))
  if ('problems' in checked) throw new HttpError(422, `Not a NewPlant: ${checked.problems.join('; ')}`)
  return checked.plant
}

function parseBody(text: string): unknown {
  try {
    return parseJson(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new HttpError(400, error.cause === severalValues ? `The body holds ${error.message}` : `The body is not JSON: ${error.message}`)
  }
}

/** @throws {HttpError} 400 for a key that is malformed or repeated */
export function parseIdempotencyKey(headers: IncomingHttpHeaders): string | undefined {
  const key = headers['idempotency-key']
  // Node joins what is repeated by a comma and a space, which no key holds.
  if (key === undefined || (typeof key === 'string' && isIdempotencyKey(key))) return key
  throw new HttpError(400, 'Idempotency-Key must be 1 to 255 visible ASCII characters, and given once')
}
