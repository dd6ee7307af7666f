import { isUtf8 } from 'node:buffer'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { isJsonType, isObject, parseJson } from '../plant/exact-json.js'
import {
  idFromText,
  idRule,
  invalidPlant,
  isIdempotencyKey,
  type NewPlant,
  type PlantPatch,
  parsePlant,
} from '../plant/plant.js'
import { problemsOf } from '../plant/plant-schema.js'
import { GrowingBuffer } from '../platform/growing-buffer.js'
import { busy, HttpError } from './answer.js'

/** After so many chunks of a body, other connections have their turn. */
const chunksOfTurn = 1000

/**
 * Otherwise a proxy may have understood the request differently: RFC 9112, 3.2 (no host, or two, which node:http joins)
 * and 6.1 (a body with another coding, or one in HTTP/1.0).
 */
export function isUnambiguous({ headers, httpVersion }: IncomingMessage): boolean {
  const { host, 'transfer-encoding': coding } = headers
  const isOld = httpVersion === '1.0'
  const hasHost = host === undefined ? isOld : !host.includes(',')
  return hasHost && (coding === undefined || (coding.toLowerCase() === 'chunked' && !isOld))
}

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

/** The most that a body may have, as its headers say. @throws {HttpError} 413 */
export function lengthOfBody(headers: IncomingHttpHeaders, limitBytes: number): number {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = headers
  const bytes = coding === undefined ? Number(length) : limitBytes
  if (bytes > limitBytes) throw bodyTooLarge(limitBytes)
  return bytes
}

/**
 * The body of a request, of which only what came with its headers is read before `read`. One in chunks is collected
 * from its first byte on: node:http would keep each chunk, which may be one byte, as an object of hundreds.
 */
export class Body {
  /** The request has its token and memory, and is soon with the store. */
  isWanted = false
  readonly #response: ServerResponse
  readonly #onChunks: () => void
  readonly #received = new GrowingBuffer()
  #whole: Promise<void> | undefined
  #limitBytes = Infinity

  constructor(response: ServerResponse, onChunks: () => void) {
    this.#response = response
    this.#onChunks = onChunks
    if (response.req.headers['transfer-encoding'] !== undefined) this.#whole = this.#collect()
    void this.#pause()
  }

  /** Whether its rest is to wait. */
  get isUnread(): boolean {
    return !this.isWanted && !this.#response.req.complete
  }

  /** @throws {HttpError} 413, or any when the client has left */
  async read(limitBytes: number): Promise<Buffer> {
    const { req: request } = this.#response
    this.isWanted = true
    if (request.complete && !this.#whole) return request.read() ?? Buffer.alloc(0)
    this.#limitBytes = limitBytes
    this.#whole ??= this.#collect()
    if (!request.complete) request.socket.resume()
    if (this.#received.length <= limitBytes) await this.#whole
    if (this.#received.length > limitBytes) throw bodyTooLarge(limitBytes)
    return this.#received.bytes
  }

  async #pause(): Promise<void> {
    await undefined // node:http may resume a socket in a tick
    const { headers, readableLength, socket } = this.#response.req
    // node:http calls a request complete a moment after it has its body.
    const isWhole = readableLength === Number(headers['content-length'])
    if (this.isUnread && !isWhole) socket.pause()
  }

  #collect(): Promise<void> {
    const { req: request } = this.#response
    let chunks = 0
    const whole = new Promise<void>((resolve, reject) => {
      request.once('end', resolve).once('close', () => reject(busy()))
      request.on('data', (chunk: Buffer) => {
        chunks += 1
        if (chunks % chunksOfTurn === 0) this.#onChunks()
        if (this.#response.writableEnded) return
        this.#received.append(chunk)
        if (this.#received.length > this.#limitBytes) resolve()
      })
    })
    whole.catch(() => undefined) // if nobody reads it
    return whole
  }
}

function bodyTooLarge(limitBytes: number): HttpError {
  return new HttpError(413, `The body is larger than ${limitBytes} bytes`)
}

/** The specification's NewPlant. @throws {HttpError} 400 or 422 */
export function plantInBody(bytes: Buffer): NewPlant {
  const value = parseBody(bytes)
  const plant = parsePlant(value)
  if (plant) return plant
  throw new HttpError(422, invalidPlant(problemsOf(value)))
}

/** A merge patch (RFC 7396) for the plant of a path. @throws {HttpError} 400 or 422 */
export function patchInBody(bytes: Buffer, id: bigint): PlantPatch {
  const body = parseBody(bytes)
  const value = isObject(body) ? { id, ...body } : body
  const patch = parsePlant(value, 'patch')
  if (patch?.id === id) return patch
  const problems = patch
    ? [`id must be ${id}, as in the path, but was ${patch.id}`]
    : problemsOf(value, 'patch')
  throw new HttpError(422, invalidPlant(problems))
}

function parseBody(bytes: Buffer): unknown {
  if (bytes.length === 0) throw new HttpError(400, 'The body is empty')
  if (!isUtf8(bytes)) throw new HttpError(400, 'The body is not UTF-8')
  const parsed = parseJson(bytes.toString())
  if ('value' in parsed) return parsed.value
  throw new HttpError(400, `The body is not JSON: ${parsed.reason}`)
}

/** @throws {HttpError} 400 */
export function parseIdempotencyKey(headers: IncomingHttpHeaders): string | undefined {
  const key = headers['idempotency-key']
  // Node joins repeated headers with a space, which no key contains.
  if (key === undefined || (typeof key === 'string' && isIdempotencyKey(key))) return key
  const rule = 'must be 1 to 255 visible ASCII characters, and must not be repeated'
  throw new HttpError(400, `Idempotency-Key ${rule}`)
}

/** @throws {HttpError} 400 */
export function parseIdText(text: string, name = 'id'): bigint {
  const id = idFromText(text)
  if (id === undefined) throw new HttpError(400, `${name} must be ${idRule}, in decimal digits`)
  return id
}
