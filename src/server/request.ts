import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { isJsonType, parseJson, severalValues } from '../plant/json.js'
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
  /** bytes of request bodies that are arriving, or that wait for the store */
  bytes: number
}

/** The limit of all bodies in flight, as a multiple of the limit of one body. */
const maxLargestBodies = 64

export const noBody = Buffer.alloc(0)

/** Why a body of this length is too much, if `total` bytes are in flight. */
function sizeError(length: number, total: number, bodyLimit: number): HttpError | undefined {
  if (length > bodyLimit) return tooLarge(bodyLimit)
  return total > maxLargestBodies * bodyLimit ? busy() : undefined
}

/**
 * Reads the body of a request that is `complete`.
 *
 * @throws {HttpError} 413, or 503 when the bodies in flight exceed their limit
 */
export function takeBody(request: IncomingMessage, { bodyLimit, inFlight }: BodyOptions): Buffer {
  const error = sizeError(request.readableLength, inFlight.bytes + request.readableLength, bodyLimit)
  if (error) throw error
  const bytes: Buffer | null = request.read()
  return bytes ?? noBody
}

/**
 * Reads a body as it arrives, until the response is closed. Copies the chunks into one buffer: node:http would keep each small one as an
 * object of hundreds of bytes.
 *
 * @returns rejects like `takeBody`; never settles if the response is closed first
 */
export function receiveBody(response: ServerResponse, { bodyLimit, inFlight }: BodyOptions): Promise<Buffer> {
  const { req: request } = response
  const body = new Promise<Buffer>((resolve, reject) => {
    let buffer: Buffer = noBody
    let length = 0
    const append = (chunk: Buffer) => {
      const start = length
      length += chunk.length
      inFlight.bytes += chunk.length
      const error = sizeError(length, inFlight.bytes, bodyLimit)
      if (error) {
        stop()
        return reject(error)
      }
      if (length > buffer.length) buffer = Buffer.concat([buffer], 2 * length)
      chunk.copy(buffer, start)
    }
    const end = () => {
      resolve(buffer.subarray(0, length))
      stop()
    }
    const stop = () => {
      request.off('data', append).off('end', end)
      response.off('close', stop)
      inFlight.bytes -= length
    }
    request.on('data', append).on('end', end)
    response.on('close', stop)
  })
  body.catch(() => undefined) // it may reject before anything awaits it
  return body
}

/**
 * Parses the specification's NewPlant or, with the `id` of a path, a Plant.
 *
 * @throws {HttpError} 400 or 422
 */
export function parsePlant(bytes: Buffer, id?: bigint): NewPlant {
  const body = parseBody(bytes)
  const result = checkNewPlant(id !== undefined && isObject(body) && !Object.hasOwn(body, 'id') ? { ...body, id } : body)
  if ('problems' in result) throw new HttpError(422, `Invalid plant: ${result.problems.join('; ')}`)
  const { plant } = result
  if (id !== undefined && plant.id !== id) throw new HttpError(422, `Invalid plant: id must be ${id}, as in the path, but was ${plant.id}`)
  return plant
}

function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new HttpError(400, 'The body is empty')
  if (!isUtf8(bytes)) throw new HttpError(400, 'The body is not UTF-8')
  try {
    return parseJson(bytes.toString())
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new HttpError(
      400,
      error.cause === severalValues ? `The body contains ${error.message}` : `The body is not JSON: ${error.message}`,
    )
  }
}

/** @throws {HttpError} 400 for a key that is malformed or repeated */
export function parseIdempotencyKey(headers: IncomingHttpHeaders): string | undefined {
  const key = headers['idempotency-key']
  // Node joins repeated headers with a comma and a space, and a key cannot contain a space.
  if (key === undefined || (typeof key === 'string' && isIdempotencyKey(key))) return key
  throw new HttpError(400, 'Idempotency-Key must be 1 to 255 visible ASCII characters, and must not be repeated')
}
