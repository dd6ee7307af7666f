import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import { PlantsError } from '../errors.js'
import { toWireJson } from '../plant/json.js'

export interface HttpAnswer {
  status: number
  contentType?: string
  body: string
  /** Names and values alternate. */
  headers?: readonly string[]
}

export class HttpError extends Error implements HttpAnswer {
  readonly status: number
  readonly body: string
  readonly headers: readonly string[]

  /** @param message may quote what a client sent, and is made well-formed Unicode */
  constructor(status: number, message: string, headers: readonly string[] = []) {
    super(message)
    this.status = status
    this.body = toWireJson({ error: status, message: message.toWellFormed() })
    this.headers = headers
  }
}

/** @param code of an error of Node's HTTP parser */
export function parserError(code = ''): HttpError {
  if (code === 'HPE_HEADER_OVERFLOW')
    return new HttpError(431, 'The request headers are larger than 16 KiB')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new HttpError(408, 'The request did not arrive in time')
  return new HttpError(400, 'The request is not valid HTTP/1.1 (RFC 9112)')
}

export function busy(message = 'The service is busy, and nothing was stored'): HttpError {
  return new HttpError(503, message, ['Retry-After', '1'])
}

/** The details of an internal error are in the log alone. */
export function toHttpError(failure: unknown, requestId: string): HttpError {
  if (failure instanceof HttpError) return failure
  const ask = `Ask the operator of the service about request ${requestId}`
  const known = failure instanceof PlantsError ? failure : undefined
  switch (known?.kind) {
    case 'conflict':
    case 'constraint':
    case 'notFound':
      return new HttpError(known.error, known.message)
    case 'unavailable':
    case 'inaccessible':
      return busy(`The store is not available, and nothing was stored. ${ask}`)
    case 'unknownOutcome':
      return new HttpError(500, `Whether the plant is stored is unknown. ${ask}`)
    default:
      return new HttpError(500, `Internal error. ${ask}`)
  }
}

/** Node keeps the buffer of the largest write to a TLS connection. */
const pieceBytes = 65_536

function writePieces(response: ServerResponse, bytes: Buffer): void {
  if (bytes.length <= pieceBytes) response.end(bytes)
  else
    response.write(bytes.subarray(0, pieceBytes), (error) => {
      if (!error) writePieces(response, bytes.subarray(pieceBytes))
    })
}

export function respond(
  response: ServerResponse,
  { status, contentType = 'application/json', body, headers = [] }: HttpAnswer,
): void {
  const length = Buffer.byteLength(body)
  const ofBody = ['Content-Type', contentType, 'Content-Length', `${length}`]
  response.writeHead(status, [...(status === 204 ? [] : ofBody), ...headers])
  if (response.req.method === 'HEAD') {
    response.end() // Its Content-Length is that of the body which a GET would get.
    return
  }
  if (length > pieceBytes && 'encrypted' in response.req.socket) {
    writePieces(response, Buffer.from(body))
    return
  }
  response.cork() // `end` with a body would make a second write
  response.write(body, length === body.length ? 'latin1' : 'utf8')
  // Sent when all of a commit are built: each write wakes a client, which took 1.3 times as long.
  queueMicrotask(() => {
    response.uncork()
    response.end()
  })
}

/** For what has no response object. @param method undefined unless the parser has read it */
export function rawResponse({ status, body }: HttpError, method: string | undefined): string {
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `Connection: close\r\n\r\n${method === 'HEAD' ? '' : body}`,
  ].join('\r\n')
}

// https://fetch.spec.whatwg.org/#http-cors-protocol

const allow = 'Access-Control-Allow-'

export function corsHeaders(request: IncomingMessage, origins: readonly string[]): string[] {
  if (origins.length === 0) return []
  const origin = allowedOrigin(request, origins)
  if (!origin) return ['Vary', 'Origin']
  const exposed = 'Link, Retry-After, Request-Id, WWW-Authenticate'
  return ['Vary', 'Origin', `${allow}Origin`, origin, 'Access-Control-Expose-Headers', exposed]
}

export function preflightAnswer(
  request: IncomingMessage,
  origins: readonly string[],
): HttpAnswer | undefined {
  const isAsked = request.headers['access-control-request-method'] !== undefined
  if (request.method !== 'OPTIONS' || !isAsked || !allowedOrigin(request, origins)) return undefined
  const methods = 'GET, POST, PATCH, DELETE'
  // By name: `*` does not cover Authorization.
  const names = 'Authorization, Content-Type, Idempotency-Key, Accept'
  const headers = [`${allow}Methods`, methods, `${allow}Headers`, names]
  return { status: 204, body: '', headers }
}

function allowedOrigin({ headers }: IncomingMessage, origins: readonly string[]) {
  return headers.origin && origins.find((each) => each === '*' || each === headers.origin)
}
