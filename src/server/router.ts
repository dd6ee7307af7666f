import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Right } from '../stores/common/store.js'
import { busy, type HttpAnswer, HttpError, respond, startResponse, toHttpError } from './answer.js'
import { authenticate, type Caller, freshness, type TokenSource } from './authenticator.js'
import { type ClientConnection, type InFlight, noBody } from './client-connection.js'
import { type Cors, preflightHeaders } from './cors.js'
import type { Log } from './log.js'
import { validateBodyHeaders, validateHead } from './request-input.js'
import type { Handler } from './server.js'

export interface Route {
  method: string
  /** with the base path; a last segment `{id}` matches any */
  path: string
  /** the right that the token must have; undefined if no token is needed, nor a body */
  right: Right | undefined
  /** if not, each request gets 403 */
  isOffered: boolean
  hasBody?: boolean
  /** whether its responses depend on Accept */
  varies?: boolean
  /** A thrown `HttpError` is sent as the response. */
  handler(call: Call): Promise<Answer>
}

export interface Answer extends HttpAnswer {
  outcome: string
  /** a stream, instead of `body`; always closed, even if the client disconnects */
  pieces?: AsyncIterable<string>
}

export interface Call {
  request: IncomingMessage
  response: ServerResponse
  connection: ClientConnection
  requestId: string
  /** milliseconds */
  startedAt: number
  route?: Route | undefined
  /** the `path` of the routes that match, or what was requested; and the last segment of that */
  path?: string
  id: string
  caller?: Caller
  /** empty unless the route has one */
  body: Buffer
}

interface RouterOptions {
  log: Pick<Log, 'record' | 'error'>
  findToken: TokenSource
  /** milliseconds, monotonic */
  now(): number
  /** "" or "/v1" */
  basePath: string
  inFlight: InFlight
  cors: Cors
  printable: (text: string) => string
  /** milliseconds; 10 minutes by default */
  streamTimeout?: number
}

/**
 * milliseconds: a stream keeps a snapshot of the store open, and with it the space of everything that changes meanwhile
 */
const maxStreamTime = 600_000

/** characters */
const maxShownPath = 200

/** Handles requests from their heads to the log. */
export function routerOf(routes: readonly Route[], options: RouterOptions): Handler {
  const { log, findToken, now, basePath, inFlight, cors, printable, streamTimeout = maxStreamTime } = options
  const paths = new Set(routes.map(({ path }) => path))
  const runId = randomBytes(4).toString('hex')
  let count = 0

  const handle: Handler = async (request, response, connection) => {
    const requestId = `${runId}-${(count++).toString(36)}`
    const call: Call = { request, response, connection, requestId, startedAt: now(), id: '', body: noBody }
    try {
      validateHead(request)
      const route = findRoute(call)
      if (!route.hasBody) connection.dropBody(response)
      const answer = route.right === undefined ? await route.handler(call) : await answerTo(call, route, route.right)
      if (answer.pieces) return await stream(call, answer, answer.pieces)
      send(call, answer)
    } catch (error) {
      fail(call, error)
    }
  }

  /** A request target may have a scheme and a host (RFC 9112, 3.2.2), which do not count. Throws 404 or 405. */
  function findRoute(call: Call): Route {
    const { method = '', url = '' } = call.request
    const target = url.replace(/^https?:\/\/[^/?#]*(?=\/)/i, '').replace(/[?#].*/s, '')
    const start = target.lastIndexOf('/') + 1
    call.id = target.slice(start)
    const path = paths.has(target) || call.id === '' ? target : `${target.slice(0, start)}{id}`
    const found = routes.filter((each) => each.path === path)
    call.path = found.length > 0 ? path : shown(target)
    call.route = found.find((each) => each.method === (method === 'HEAD' ? 'GET' : method))
    if (call.route) return call.route
    const offered = found.filter(({ isOffered }) => isOffered)
    if (offered.length === 0)
      throw new HttpError(404, `There is nothing at this path. The API is described at ${basePath}/openapi.json`)
    const handler = async () => ({ outcome: 'preflight', status: 204, body: '', headers: preflightHeaders })
    if (cors.isPreflight(call.request)) return { method, path, right: undefined, isOffered: true, handler }
    const allowed = offered.map((each) => (each.method === 'GET' ? 'GET, HEAD' : each.method)).join(', ')
    throw new HttpError(405, `${path} allows ${allowed}, but not ${method}`, ['Allow', allowed])
  }

  /** A path without a route, for the log. Nothing is known of it, so it may even hold a token. */
  function shown(path: string): string {
    const text = printable(path.replace(/^[a-z][a-z\d+.-]*:\/\/[^/]*/i, '')).replace(/plants_[\w-]{20,}/gi, '***')
    return text.length > maxShownPath ? `${text.slice(0, maxShownPath - 1)}…` : text
  }

  async function answerTo(call: Call, route: Route, right: Right): Promise<Answer> {
    const { response } = call
    await admit(call, route, right)
    const { length } = call.body
    // A Plant is at most as large as the body that it was created from: nothing is stored while its response has no
    // room.
    requireRoom(length)
    inFlight.requests += 1
    inFlight.bodies.used += length
    try {
      const answer = await route.handler(call)
      const size = Buffer.byteLength(answer.body)
      if (right === 'read') requireRoom(size)
      // until the client has read the response, or has disconnected
      if (!response.destroyed) {
        inFlight.unread.used += size
        response.once('close', () => (inFlight.unread.used -= size))
      }
      return answer
    } finally {
      inFlight.requests -= 1
      inFlight.bodies.used -= length
    }
  }

  /** Throws 401, 403, 415, 413 or, if too many bodies are in flight, 503. */
  async function admit(call: Call, { isOffered, hasBody }: Route, right: Right): Promise<void> {
    const { request, response, connection, startedAt } = call
    if (hasBody) connection.collectBody(response)
    call.caller = await authenticate(request.headers.authorization, findToken)
    connection.accept()
    const challenge = 'Bearer realm="plants", error="insufficient_scope"' // RFC 6750, 3.1
    if (!isOffered) throw new HttpError(403, `This service does not ${right} plants`, ['WWW-Authenticate', challenge])
    if (!call.caller.rights.includes(right)) {
      const header = ['WWW-Authenticate', `${challenge}, scope="${right}"`]
      throw new HttpError(403, `This token has no right to ${right} plants`, header)
    }
    if (!hasBody) return
    validateBodyHeaders(request, inFlight.bodyLimit)
    call.body = await connection.bodyOf(response)
    // The token may have been revoked while the body came.
    if (now() - startedAt > freshness) await authenticate(request.headers.authorization, findToken)
  }

  /** @throws {HttpError} 503 if the unread responses leave no room for so many bytes */
  function requireRoom(bytes: number): void {
    if (!inFlight.unread.hasRoom(bytes)) throw busy()
  }

  function send(call: Call, answer: Answer): void {
    respond(call.response, answer, usualHeaders(call))
    record(call, answer.status, answer.outcome)
  }

  function usualHeaders({ request, route, requestId }: Call): string[] {
    return [...(route?.varies ? ['Vary', 'Accept'] : []), ...cors.headersFor(request), 'Request-Id', requestId]
  }

  /** Ends early if the client disconnects, or the time is over. */
  async function stream(call: Call, { status, contentType = '', outcome }: Answer, pieces: AsyncIterable<string>) {
    const { request, response } = call
    if (request.httpVersion === '1.0')
      throw new HttpError(400, 'HTTP/1.0 cannot mark the end of a stream: use HTTP/1.1')
    const signal = closeSignal(response)
    let isLate = false
    const cut = () => {
      isLate = true
      response.destroy()
    }
    const timer = setTimeout(cut, streamTimeout)
    const begin = () => {
      if (!response.headersSent && !response.destroyed)
        startResponse(response, status, ['Content-Type', contentType, ...usualHeaders(call)])
    }
    try {
      for await (const piece of request.method === 'HEAD' ? [] : pieces) {
        if (response.destroyed) break
        begin()
        const size = Buffer.byteLength(piece)
        inFlight.unread.used += size
        const drained = response.write(piece) || once(response, 'drain', { signal }).catch(() => undefined)
        await new Promise(setImmediate) // a fast reader must not starve other requests
        await drained
        inFlight.unread.used -= size
      }
    } finally {
      clearTimeout(timer)
    }
    begin()
    const isWhole = !response.destroyed
    response.end()
    if (isLate) throw new HttpError(503, 'The stream took too long')
    if (response.headersSent) record(call, status, isWhole ? outcome : 'aborted')
  }

  /** If the response has begun, destroys the connection, so that the client does not mistake a part for the whole. */
  function fail(call: Call, failure: unknown): void {
    const { requestId, response, connection, route, path } = call
    const { headersSent, statusCode } = response
    const answer = toHttpError(failure, requestId)
    const { error, body, headers } = answer
    const outcome = String(error)
    if (answer !== failure && (error >= 500 || headersSent)) log.error(failure, requestId)
    if (headersSent) {
      response.destroy()
      record(call, statusCode, outcome)
    } else {
      connection.dropBody(response)
      if (path === undefined) response.shouldKeepAlive = false // nothing after an invalid head can be trusted
      const status = route && route.right !== 'create' ? error : answer.status
      send(call, { status, body, headers, outcome })
    }
  }

  function record({ request, requestId, caller, startedAt, path }: Call, status: number, outcome: string): void {
    const milliseconds = Math.round((now() - startedAt) * 1000) / 1000
    const { method, socket } = request
    const client = { token: caller?.name, method, path, from: socket.remoteAddress }
    log.record({ requestId, status, outcome, milliseconds, ...client })
  }

  return handle
}

export function closeSignal(response: ServerResponse): AbortSignal {
  const closed = new AbortController()
  response.once('close', () => closed.abort(busy()))
  return closed.signal
}
