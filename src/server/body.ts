import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { isJsonType, parseJson, severalValues } from '../plant/json.js'
import { isIdempotencyKey, type NewPlant } from '../plant/plant.js'
import { checkNewPlant } from '../plant/schema.js'
import { busy, notHttp, type Refused, refused } from './errors.js'

/** Refuses a body that is not said to be JSON, or that is packed. */
export function checkMediaType({ headers }: IncomingMessage): void {
  const type = headers['content-type']
  if (type === undefined) throw refused(415, 'Content-Type must be application/json, but is missing')
  if (!isJsonType(type)) throw refused(415, `Content-Type must be application/json, but was ${quote(type)}`)
  const coding = headers['content-encoding'] ?? 'identity'
  if (coding.toLowerCase() !== 'identity') throw refused(415, `The body must have no Content-Encoding, but had ${quote(coding)}`)
}

/** Refuses a body that is said to be too large, before it comes. */
export function checkLength(request: IncomingMessage, limits: BodyLimits): void {
  const declared = request.headers['content-length']
  if (declared === undefined || parseFloat(declared) <= limits.bodyLimit) return
  skipBody(request, limits)
  throw tooLarge(limits)
}

/** What the service holds at this moment. */
export interface Load {
  /** creates that wait for the store */
  creates: number
  /** bytes of bodies, from when they come until they are answered */
  bytes: number
}

/** What bodies may cost, in bytes. */
export interface BodyLimits {
  bodyLimit: number
  load: Load
}

/** How many bodies of the largest size may be there at the same moment, so that memory has an end. */
const largestBodies = 64

/** A body that is being read. */
interface Reading {
  /** the bytes, or what is wrong; pending for ever when the connection breaks first, or it is dropped */
  read: Promise<Buffer | Refused>
  /** The request is refused: what has come of the body is given up, and the rest skipped. */
  drop(): void
}

/** Reads the body of a request. What comes in small pieces is copied together: each would be an object, hundreds of bytes for one. */
export function readBody(request: IncomingMessage, limits: BodyLimits): Reading {
  const { bodyLimit, load } = limits
  const declared = request.headers['content-length']
  let bytes: Buffer = nothing
  let length = 0
  const leave = () => {
    request.off('data', take).off('end', end).off('close', leave)
    load.bytes -= length
    length = 0
  }
  const drop = () => {
    leave()
    bytes = nothing
    skipBody(request, limits)
  }
  let resolve: (read: Buffer | Refused) => void
  const take = (chunk: Buffer) => {
    if (length === 0 && String(chunk.length) !== declared) request.on('close', leave) // one that came at once has its 'end'
    load.bytes += chunk.length
    length += chunk.length
    const refusal = length > bodyLimit ? tooLarge(limits) : load.bytes > largestBodies * bodyLimit ? busy() : undefined
    if (refusal === undefined) {
      bytes = append(bytes, length - chunk.length, chunk)
      return
    }
    drop()
    resolve(refusal)
  }
  const end = () => {
    const body = bytes.subarray(0, length)
    leave()
    resolve(body)
  }
  const read = new Promise<Buffer | Refused>((given) => {
    resolve = given
    request.on('data', take).on('end', end)
  })
  return { read, drop }
}

const nothing = Buffer.alloc(0)

/** @returns a buffer with the first bytes of one and then the chunk; the same one, when they fit */
function append(bytes: Buffer, length: number, chunk: Buffer): Buffer {
  if (length === 0) return chunk
  const size = length + chunk.length
  let grown = bytes
  if (size > bytes.length) {
    grown = Buffer.allocUnsafe(2 * size)
    bytes.copy(grown, 0, 0, length)
  }
  chunk.copy(grown, length)
  return grown
}

/**
 * Goes on reading a body that is refused, for a while: to close the connection on what is still under way would take the answer
 * away from whoever sends it.
 */
function skipBody(request: IncomingMessage, { bodyLimit }: BodyLimits): void {
  let left = 16 * bodyLimit
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) request.destroy()
  })
  request.resume()
}

function tooLarge({ bodyLimit }: BodyLimits): Refused {
  return refused(413, `The body is larger than ${bodyLimit} bytes`)
}

/**
 * Holds a body against the specification's NewPlant.
 *
 * @throws {Refused} with `error` 400 or 422
 */
export function parsePlant(bytes: Buffer): NewPlant {
  if (bytes.length === 0) throw refused(400, 'The body is empty')
  if (!isUtf8(bytes)) throw refused(400, 'The body is not UTF-8')
  const checked = checkNewPlant(parse(bytes.toString()))
  if ('problems' in checked) throw refused(422, `Not a NewPlant: ${checked.problems.join('; ')}`)
  return checked.plant
}

/** @throws {Refused} with `error` 400 for a key that is malformed, or stands there more than once */
export function parseKey({ headers }: IncomingMessage): string | undefined {
  const key = headers['idempotency-key']
  // Node joins what is repeated by a comma and a space, which no key holds.
  if (key === undefined || (typeof key === 'string' && isIdempotencyKey(key))) return key
  throw refused(400, 'Idempotency-Key must be 1 to 255 visible ASCII characters, and given once')
}

function parse(text: string): unknown {
  try {
    return parseJson(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw refused(400, error.cause === severalValues ? `The body holds ${error.message}` : `The body is not JSON: ${error.message}`)
  }
}

function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 79)}…` : text)
}

/** What node:http lets through: a version that it does not speak, no Host, and what must stand there once (RFC 9110, 5.3 and 7.2). */
export function headFailure({ rawHeaders, headers, httpVersion }: IncomingMessage): Refused | undefined {
  if (httpVersion !== '1.1' && httpVersion !== '1.0') return refused(400, `HTTP/${httpVersion} is not spoken here, only HTTP/1.1`)
  let seen = 0 // a bit for each of the singles
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    const bit = 1 << (singles.get(name) ?? singles.get(name.toLowerCase()) ?? 0)
    if (bit > 1 && (seen & bit) > 0) return refused(400, bit === lengthBit ? notHttp : `The header ${name} must be given once`)
    seen |= bit
  }
  if (!isKnownCoding(headers['transfer-encoding'], httpVersion)) return refused(400, notHttp)
  return (seen & hostBit) > 0 || httpVersion === '1.0' ? undefined : refused(400, 'The header Host is missing')
}

/** RFC 9112, 6.1: no other coding is decoded here, and HTTP/1.0 has none, so that a proxy in front may have read it in another way. */
function isKnownCoding(coding: string | undefined, httpVersion: string): boolean {
  return coding === undefined || (httpVersion === '1.1' && coding.toLowerCase() === 'chunked')
}

const singles = new Map([
  ['host', 1],
  ['Host', 1], // as most write it, which saves the lower case
  ['content-type', 2],
  ['content-encoding', 3],
  ['authorization', 4],
  ['transfer-encoding', 6],
  ['content-length', 5], // which the parser of Node refuses, and that of Bun takes where both are the same
])
const hostBit = 1 << 1
const lengthBit = 1 << 5
