import { toWireJson } from '../plant/exact-json.js'
import { PlantsError } from '../platform/errors.js'

export class HttpError extends Error {
  /** for the specification's operation; all others use `error` as the status */
  readonly status: number
  readonly error: number
  /** JSON */
  readonly body: string
  /** alternating names and values */
  readonly headers: readonly string[]

  constructor(error: number, message: string, headers: readonly string[] = []) {
    super(message)
    this.error = error
    this.status = outsideOperation.has(error) ? error : 400
    this.body = toWireJson({ error, message })
    this.headers = headers
  }
}

/** Within the specification's operation, every failed create has the status 400. */
const outsideOperation: ReadonlySet<number> = new Set([404, 405, 408, 421, 431, 500, 503])

/** for input that the parser of node:http rejects, or should reject */
export const invalidHttp = new HttpError(400, 'The request is not valid HTTP/1.1 (RFC 9112)')

/** One message for both limits, because from version 24 on Node reports both with one code. */
export const headersTooLarge = new HttpError(431, 'The headers have more than 16 KiB or more than 100 lines')

export const parserErrors: Readonly<Record<string, HttpError>> = {
  HPE_HEADER_OVERFLOW: headersTooLarge,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: new HttpError(413, 'The chunk extensions are too large'),
  ERR_HTTP_REQUEST_TIMEOUT: new HttpError(408, 'The request did not arrive in time'),
}

/** for a CONNECT, whose target is a host and a port */
export const notProxy = new HttpError(404, 'There is nothing at this path: this service is not a proxy')

export function busy(message = 'The service is busy, and nothing was stored'): HttpError {
  return new HttpError(503, message, ['Retry-After', '1'])
}

/** For an internal error, the response contains only the request id; the details are in the log. */
export function toHttpError(error: unknown, requestId: string): HttpError {
  if (error instanceof HttpError) return error
  const type = error instanceof PlantsError ? error.type : undefined
  if (error instanceof PlantsError && type === 'conflict') return new HttpError(409, error.message)
  if (error instanceof PlantsError && type === 'notFound') return new HttpError(404, error.message)
  const hint = `Ask the operator of the service about request ${requestId}`
  if (type === 'unavailable') return busy(`The store is not available, and nothing was stored. ${hint}`)
  const what = type === 'unknownOutcome' ? 'Whether the plant is stored is unknown' : 'Internal error'
  return new HttpError(500, `${what}. ${hint}`)
}
