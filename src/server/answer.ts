import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import { toWireJson } from '../plant/exact-json.js'
import { PlantsError } from '../platform/errors.js'

export interface HttpAnswer {
  status: number
  /** By default, application/json. */
  contentType?: string
  body: string | Buffer
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
const outsideOperation: ReadonlySet<number> = new Set([404, 405, 408, 421, 431, 500, 503])

export const invalidHttp = new HttpError(400, 'The request is not valid HTTP/1.1 (RFC 9112)')

/** One answer for both limits: from version 24 on, Node reports them with one code. */
export const headersTooLarge = new HttpError(
  431,
  'The headers have more than 16 KiB or more than 100 lines',
)

export const late = new HttpError(408, 'The request did not arrive in time')

export function busy(message = 'The service is busy, and nothing was stored'): HttpError {
  return new HttpError(503, message, ['Retry-After', '1'])
}

export function bodyTooLarge(bodyLimit: number): HttpError {
  return new HttpError(413, `The body is larger than ${bodyLimit} bytes`)
}

/** For an internal error, the response contains only the request id; the details are in the log. */
export function toHttpError(error: unknown, requestId: string): HttpError {
  if (error instanceof HttpError) return error
  const { kind, message } = error instanceof PlantsError ? error : { kind: 'defect', message: '' }
  if (kind === 'conflict') return new HttpError(409, message)
  if (kind === 'constraint') return new HttpError(422, message)
  if (kind === 'notFound') return new HttpError(404, message)
  const hint = `Ask the operator of the service about request ${requestId}`
  if (kind === 'unavailable' || kind === 'inaccessible')
    return busy(`The store is not available, and nothing was stored. ${hint}`)
  const what =
    kind === 'unknownOutcome' ? 'Whether the plant is stored is unknown' : 'Internal error'
  return new HttpError(500, `${what}. ${hint}`)
}

/** A client may still send for so many milliseconds after its last response (RFC 9112, 9.6). */
export const lingerTime = 1000

/**
 * A response to a request whose body has not arrived closes the connection.
 *
 * @param more headers: alternating names and values
 */
export function respond(
  response: ServerResponse,
  answer: HttpAnswer,
  more: readonly string[] = [],
): void {
  const { status, contentType = 'application/json', body, headers = [] } = answer
  const { req: request } = response
  const length = Buffer.byteLength(body)
  const ofBody =
    status === 204 ? [] : ['Content-Type', contentType, 'Content-Length', String(length)]
  if (!request.complete) response.shouldKeepAlive = false
  response.cork() // `end` with a body would make a second write
  startResponse(response, status, [...ofBody, ...headers, ...more])
  response.write(body, length === body.length ? 'latin1' : 'utf8')
  response.uncork()
  if (request.complete || request.socket.readableEnded) return void response.end()
  // The connection of a client that still sends would be reset, perhaps before it reads the response.
  const timer = setTimeout(() => response.end(), lingerTime)
  request.once('close', () => response.end())
  response.once('close', () => clearTimeout(timer))
}

export function startResponse(
  response: ServerResponse,
  status: number,
  headers: readonly string[],
): void {
  response.writeHead(status, [...headers, 'X-Content-Type-Options', 'nosniff'])
}

/** A response without a response object. */
export function bytesOf({ status, body }: HttpError): string {
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
export function corsHeaders(
  { headers }: IncomingMessage,
  origins: readonly string[],
): readonly string[] {
  const allowed = allowedOrigin(headers.origin, origins)
  const vary = origins.length > 0 ? ['Vary', 'Origin'] : []
  if (allowed === undefined) return vary
  const exposed = 'Link, Retry-After, Request-Id, WWW-Authenticate'
  return [...vary, 'Access-Control-Allow-Origin', allowed, 'Access-Control-Expose-Headers', exposed]
}

/** Undefined unless the request is a preflight. Headers are allowed by name: `*` does not cover Authorization. */
export function preflightHeaders({ method, headers }: IncomingMessage, origins: readonly string[]) {
  const asks = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined
  if (!asks || allowedOrigin(headers.origin, origins) === undefined) return undefined
  return [
    ...['Access-Control-Allow-Methods', 'GET, POST, PATCH, DELETE'],
    ...['Access-Control-Allow-Headers', 'Authorization, Content-Type, Idempotency-Key, Accept'],
    ...['Access-Control-Max-Age', '600'],
  ]
}

function allowedOrigin(origin: string | undefined, origins: readonly string[]): string | undefined {
  return origin && origins.find((each) => each === '*' || each === origin)
}
