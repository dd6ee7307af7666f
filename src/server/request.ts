import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { isJsonType, parseJson } from '../plant/json.js'
import { isIdempotencyKey, isObject, type NewPlant } from '../plant/plant.js'
import { checkNewPlant } from '../plant/schema.js'
import { busy, HttpError, invalidHttp } from './errors.js'

/** Headers that must not be repeated (RFC 9110, 5.3). Node's parser rejects a second Content-Length; Bun's accepts an equal one. */
const singleHeaders = new Set(['host', 'content-length', 'content-type', 'content-encoding', 'authorization', 'transfer-encoding'])

/**
 * Checks what node:http does not: the version, a missing Host, repeated headers, and transfer codings.
 *
 * @returns the response to an invalid request, which must not be processed
 */
export function validateHead({ rawHeaders, headers, httpVersion }: IncomingMessage): HttpError | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return new HttpError(400, `HTTP/${httpVersion} is not supported, only HTTP/1.1`)
  if (Object.keys(headers).length < rawHeaders.length / 2) {
    const names = rawHeaders.flatMap((text, at) => (at % 2 === 0 ? text.toLowerCase() : []))
    const repeated = names.findIndex((name, at) => singleHeaders.has(name) && names.indexOf(name) < at)
    if (names[repeated] === 'content-length') return invalidHttp
    if (repeated >= 0) return new HttpError(400, `The header ${rawHeaders[2 * repeated]} must be given once`)
  }
  // RFC 9112, 6.1: other codings are not decoded here, and HTTP/1.0 has none, so a proxy in front may have parsed the body differently.
  const coding = headers['transfer-encoding']
  if (coding !== undefined && (httpVersion === '1.0' || coding.toLowerCase() !== 'chunked')) return invalidHttp
  return headers.host !== undefined || httpVersion === '1.0' ? undefined : new HttpError(400, 'The header Host is missing')
}

/** @throws {HttpError} 415 for a body that is not declared as JSON or is compressed; 413 for a Content-Length over the limit */
export function validateBodyHeaders(headers: IncomingHttpHeaders, bodyLimit: number): void {
  const type = headers['content-type']
  if (type === undefined) throw new HttpError(415, 'Content-Type must be application/json, but is missing')
  if (!isJsonType(type)) throw new HttpError(415, `Content-Type must be application/json, but was ${quote(type)}`)
  const coding = headers['content-encoding']
  if (coding !== undefined && coding.toLowerCase() !== 'identity')
    throw new HttpError(415, `The body must have no Content-Encoding, but had ${quote(coding)}`)
  if (parseFloat(headers['content-length'] ?? '0') > bodyLimit) throw tooLarge(bodyLimit)
}

function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 79)}…` : text)
}

function tooLarge(bodyLimit: number): HttpError {
  return new HttpError(413, `The body is larger than ${bodyLimit} bytes`)
}

export interface BodyOptions {
  /** bytes */
  bodyLimit: number
  inFlight: InFlight
}

/** The current load of the service. */
export interface InFlight {
  /** requests that wait for the store */
  waiting: number
  /** bytes of request bodies, from arrival to response */
  bytes: number
  /** bytes of lists of plants that clients have not read yet */
  listed: number
  /** snapshots that are being sent */
  snapshots: number
}

/** The limit of all bodies in flight, as a multiple of the limit of one body. */
const maxLargestBodies = 64

function checkSize(length: number, total: number, bodyLimit: number): void {
  if (length > bodyLimit) throw tooLarge(bodyLimit)
  if (total > maxLargestBodies * bodyLimit) throw busy()
}

const nothing = Buffer.alloc(0)

/**
 * Reads the body of a request that is `complete`.
 *
 * @throws {HttpError} 413, or 503 when the bodies in flight exceed their limit
 */
export function takeBody(request: IncomingMessage, { bodyLimit, inFlight }: BodyOptions): Buffer {
  checkSize(request.readableLength, inFlight.bytes + request.readableLength, bodyLimit)
  const bytes: Buffer | null = request.read()
  return bytes ?? nothing
}

/** A body that has not arrived completely. */
export interface ArrivingBody {
  /** Rejects like `takeBody`. Never settles if the connection breaks or the body is discarded. */
  bytes: Promise<Buffer>
  discard(): void
}

/** Reads a body as it arrives. Copies small chunks into one buffer: each chunk would be an object of hundreds of bytes. */
export function receiveBody(request: IncomingMessage, { bodyLimit, inFlight }: BodyOptions): ArrivingBody {
  let buffer: Buffer = nothing
  let length = 0
  let discard = () => {}
  const bytes = new Promise<Buffer>((resolve, reject) => {
    const append = (chunk: Buffer) => {
      const start = length
      length += chunk.length
      inFlight.bytes += chunk.length
      try {
        checkSize(length, inFlight.bytes, bodyLimit)
      } catch (error) {
        discard()
        return reject(error)
      }
      if (start > 0 && length > buffer.length) {
        const grown = Buffer.allocUnsafe(2 * length)
        buffer.copy(grown, 0, 0, start)
        buffer = grown
      }
      if (start === 0) buffer = chunk
      else chunk.copy(buffer, start)
    }
    const end = () => {
      resolve(buffer.subarray(0, length))
      discard()
    }
    discard = () => {
      request.off('data', append).off('end', end).off('close', discard)
      inFlight.bytes -= length
      length = 0
      buffer = nothing
    }
    request.on('data', append).on('end', end).on('close', discard)
  })
  bytes.catch(() => undefined) // it may reject before anything awaits it
  return { bytes, discard }
}

/** @throws {HttpError} 400 or 422 for a body that is not the specification's NewPlant */
export function parseNewPlant(bytes: Buffer): NewPlant {
  return checked(parseBody(bytes))
}

/** @throws {HttpError} 400 or 422 for a body that is not a Plant, or has a different id */
export function parsePlant(bytes: Buffer, id: bigint): NewPlant {
  const body = parseBody(bytes)
  const plant = checked(isObject(body) && !Object.hasOwn(body, 'id') ? { ...body, id } : body)
  if (plant.id !== id) throw new HttpError(422, `Invalid plant: id must be ${id}, as in the path, but was ${plant.id}`)
  return plant
}

function checked(value: unknown): NewPlant {
  const result = checkNewPlant(value)
  if (result.problems) throw new HttpError(422, `Invalid plant: ${result.problems.join('; ')}`)
  return result.plant
}

function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new HttpError(400, 'The body is empty')
  if (!isUtf8(bytes)) throw new HttpError(400, 'The body is not UTF-8')
  const parsed = parseJson(bytes.toString())
  if ('value' in parsed) return parsed.value
  throw new HttpError(400, parsed.isSeveral ? `The body contains ${parsed.message}` : `The body is not JSON: ${parsed.message}`)
}

/** @throws {HttpError} 400 for a key that is malformed or repeated */
export function parseIdempotencyKey(headers: IncomingHttpHeaders): string | undefined {
  const key = headers['idempotency-key']
  // Node joins repeated headers with a comma and a space, and a key cannot contain a space.
  if (key === undefined || (typeof key === 'string' && isIdempotencyKey(key))) return key
  throw new HttpError(400, 'Idempotency-Key must be 1 to 255 visible ASCII characters, and must not be repeated')
}
