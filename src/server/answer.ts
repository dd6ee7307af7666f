import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import { toWireJson } from '../plant/exact-json.js'
import { PlantsError } from '../platform/errors.js'

export interface HttpAnswer {
  status: number
  /** By default, application/json. */
  contentType?: string
  body: string
  /** Names and values alternate. */
  headers?: readonly string[]
}

export class HttpError extends Error implements HttpAnswer {
  /** Only the specification's operation has it; all others have `error`. */
  readonly status: number
  readonly error: number
  readonly body: string
  readonly headers: readonly string[]

  constructor(error: number, message: string, headers: readonly string[] = []) {
    super(message)
    this.error = error
    this.status = outsideOperation.has(error) ? error : 400
    this.body = toWireJson({ error, message })
    this.headers = headers
  }
}

/** All others have the status 400 within the specification's operation. */
const outsideOperation: ReadonlySet<number> = new Set([404, 405, 408, 431, 500, 503])

export const invalidHttp = new HttpError(400, 'The request is not valid HTTP/1.1 (RFC 9112)')

const parserErrors: Readonly<Record<string, HttpError>> = {
  HPE_HEADER_OVERFLOW: new HttpError(431, 'The headers have more than 16 KiB'),
  ERR_HTTP_REQUEST_TIMEOUT: new HttpError(408, 'The request did not arrive in time'),
}

/** @param code of an error of Node's HTTP parser */
export function parserError(code: string): HttpError {
  return parserErrors[code] ?? invalidHttp
}

export function busy(message = 'The service is busy, and nothing was stored'): HttpError {
  return new HttpError(503, message, ['Retry-After', '1'])
}

/** For an internal error, the response contains only the request id; the details are in the log. */
export function toHttpError(error: unknown, requestId: string): HttpError {
  if (error instanceof HttpError) return error
  const { kind, message } = error instanceof PlantsError ? error : { kind: 'defect', message: '' }
  const ask = `Ask the operator of the service about request ${requestId}`
  switch (kind) {
    case 'conflict':
      return new HttpError(409, message)
    case 'constraint':
      return new HttpError(422, message)
    case 'notFound':
      return new HttpError(404, message)
    case 'unavailable':
    case 'inaccessible':
      return busy(`The store is not available, and nothing was stored. ${ask}`)
    case 'unknownOutcome':
      return new HttpError(500, `Whether the plant is stored is unknown. ${ask}`)
    default:
      return new HttpError(500, `Internal error. ${ask}`)
  }
}

/** @param more headers: alternating names and values */
export function respond(
  response: ServerResponse,
  { status, contentType = 'application/json', body, headers = [] }: HttpAnswer,
  more: readonly string[] = [],
): void {
  const length = Buffer.byteLength(body)
  const ofBody = ['Content-Type', contentType, 'Content-Length', String(length)]
  const other = [...headers, ...more, 'X-Content-Type-Options', 'nosniff']
  response.writeHead(status, status === 204 ? other : [...ofBody, ...other])
  response.end(body, length === body.length ? 'latin1' : 'utf8')
}

/** The bytes of a response to what has no response object. */
export function rawResponse({ status, body }: HttpError): string {
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'X-Content-Type-Options: nosniff',
    `Connection: close\r\n\r\n${body}`,
  ].join('\r\n')
}

// https://fetch.spec.whatwg.org/#http-cors-protocol

/** Headers of every response, for pages of these origins, or of any (`*`). */
export function corsHeaders(request: IncomingMessage, origins: readonly string[]): string[] {
  if (origins.length === 0) return []
  const allowed = allowedOrigin(request, origins)
  if (allowed === undefined) return ['Vary', 'Origin']
  const exposed = 'Link, Retry-After, Request-Id, WWW-Authenticate'
  return ['Vary', 'Origin', `${cors}Allow-Origin`, allowed, `${cors}Expose-Headers`, exposed]
}

const cors = 'Access-Control-'

/** What a page of one of these origins may send, if it asks that. */
export function preflightAnswer(
  request: IncomingMessage,
  origins: readonly string[],
): HttpAnswer | undefined {
  const isAsked = request.headers['access-control-request-method'] !== undefined
  if (request.method !== 'OPTIONS' || !isAsked || !allowedOrigin(request, origins)) return undefined
  const methods = 'GET, POST, PATCH, DELETE'
  // By name: `*` does not cover Authorization.
  const names = 'Authorization, Content-Type, Idempotency-Key, Accept'
  const allowed = [`${cors}Allow-Methods`, methods, `${cors}Allow-Headers`, names]
  return { status: 204, body: '', headers: [...allowed, `${cors}Max-Age`, '600'] }
}

function allowedOrigin({ headers }: IncomingMessage, origins: readonly string[]) {
  return headers.origin && origins.find((each) => each === '*' || each === headers.origin)
}
