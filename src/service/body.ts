import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { parseJson, severalValues } from '../json.js'
import { checkNewPlant, isIdempotencyKey, type NewPlant } from '../plant.js'
import { type Refused, refused } from './refusal.js'

/** Refuses a body that is not said to be JSON, or that is packed. */
export function checkMediaType({ headers }: IncomingMessage): void {
  const type = headers['content-type']
  if (type === undefined) throw refused(415, 'Content-Type must be application/json, but is missing')
  if (!/^application\/json[\t ]*(?:;|$)/i.test(type)) throw refused(415, `Content-Type must be application/json, but was ${quote(type)}`)
  const coding = headers['content-encoding'] ?? 'identity'
  if (coding.toLowerCase() !== 'identity') throw refused(415, `The body must have no Content-Encoding, but had ${quote(coding)}`)
}

/**
 * Reads the body of a request.
 *
 * @param limit bytes
 * @param done called once, with the bytes, or with what is wrong; never when the connection breaks first
 */
export function readBody(request: IncomingMessage, limit: number, done: (refused: Refused | null, bytes?: Buffer) => void): void {
  const declared = request.headers['content-length']
  const isTooLarge = declared !== undefined && parseFloat(declared) > limit
  if (isTooLarge) skipBody(request, limit, done)
  else collectBody(request, limit, done)
}

function collectBody(request: IncomingMessage, limit: number, done: (refused: Refused | null, bytes?: Buffer) => void): void {
  const chunks: Buffer[] = []
  let length = 0
  const take = (chunk: Buffer) => {
    length += chunk.length
    chunks.push(chunk)
    if (length <= limit) return
    request.off('data', take).off('end', end)
    chunks.length = 0
    skipBody(request, limit, done)
  }
  const end = () => done(null, chunks.length === 1 ? chunks[0] : Buffer.concat(chunks))
  request.on('data', take).on('end', end)
}

/**
 * Refuses a body that is too large, and goes on reading for a while: to close the connection on what is still under way
 * would take the answer away from whoever sends it.
 */
function skipBody(request: IncomingMessage, limit: number, done: (refused: Refused) => void): void {
  let left = 16 * limit
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) request.destroy()
  })
  request.resume()
  done(refused(413, `The body is larger than ${limit} bytes`))
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
  throw refused(400, 'Idempotency-Key must be 1 to 255 visible ASCII characters, and stand there once')
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
