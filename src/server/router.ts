import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Right } from '../stores/common/store.js'
import type { Authenticate, Caller } from './authenticator.js'
import { type InFlight, noBody, takeBody } from './body.js'
import type { ClientConnection } from './client-connection.js'
import type { Cors } from './cors.js'
import { busy, HttpError, toHttpError } from './http-error.js'
import type { AccessLog } from './log.js'
import { expectsContinue, validateBodyHeaders } from './request-input.js'
import { type HttpAnswer, respond, respondWith } from './respond.js'
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
  route?: Route
  /** the `path` of the routes that match, or what was requested; and the last segment of that */
  path?: string
  id: string
  caller?: Caller
  /** empty unless the route has one */
  body: Buffer
}

interface RouterOptions {
  log: AccessLog
  authenticate: Authenticate
  /** milliseconds, monotonic */
  now(): number
  /** "" or "/v1" */
  basePath: string
  inFlight: InFlight
  cors: Cors | undefined
  printable: (text: string) => string
  /** milliseconds; 10 minutes by default */
  streamTimeout?: number
}

/**
 * milliseconds: a stream keeps a snapshot of the store open, and with it the space of everything that changes meanwhile
 */
const maxStreamTime = 600_000

/** milliseconds; if a body takes longer to arrive, the token is checked again */
const reauthenticateAfter = 100

/** characters */
const maxShownPath = 200

const vary = ['Vary', 'Accept']

export class Router {
  readonly #routes = new Map<string, Route[]>()
  readonly #options: RouterOptions
  readonly #runId = randomBytes(4).toString('hex')
  #count = 0

  constructor(routes: readonly Route[], options: RouterOptions) {
    for (const route of routes) this.#routes.set(route.path, [...(this.#routes.get(route.path) ?? []), route])
    this.#options = options
  }

  /** Rejects only if no response can be sent. */
  readonly handle: Handler = async (request, response, connection) => {
    const requestId = `${this.#runId}-${(this.#count++).toString(36)}`
    const startedAt = this.#options.now()
    const call: Call = { request, response, connection, requestId, startedAt, id: '', body: noBody }
    try {
      const route = this.#routeOf(call)
      call.route = route
      if (route.right === undefined) return this.#send(call, await route.handler(call))
      await this.#admit(call, route.right, route)
      // A Plant is at most as large as the body that it was created from: nothing is stored while its response has no
      // room.
      this.#requireRoom(call.body.length)
      const answer = await this.#process(call, route)
      if (answer.pieces) return await this.#stream(call, answer, answer.pieces)
      const size = Buffer.byteLength(answer.body)
      if (route.right === 'read') this.#requireRoom(size)
      this.#hold(size, response)
      this.#send(call, answer)
    } catch (error) {
      this.#fail(call, error)
    }
  }

  async #process(call: Call, route: Route): Promise<Answer> {
    const { inFlight } = this.#options
    inFlight.requests += 1
    inFlight.bodies.used += call.body.length
    try {
      return await route.handler(call)
    } finally {
      inFlight.requests -= 1
      inFlight.bodies.used -= call.body.length
    }
  }

  /** A request target may have a scheme and a host (RFC 9112, 3.2.2), which do not count. Throws 404 or 405. */
  #routeOf(call: Call): Route {
    const { method = '', url = '' } = call.request
    const target = url.replace(/^https?:\/\/[^/?#]*(?=\/)/i, '').replace(/[?#].*/s, '')
    const start = target.lastIndexOf('/') + 1
    call.id = target.slice(start)
    const path = this.#routes.has(target) || call.id === '' ? target : `${target.slice(0, start)}{id}`
    const routes = this.#routes.get(path) ?? []
    call.path = routes.length > 0 ? path : this.#shown(target)
    const route = routes.find((each) => each.method === (method === 'HEAD' ? 'GET' : method))
    if (route) return route
    const offered = routes.filter(({ isOffered }) => isOffered)
    const api = `${this.#options.basePath}/openapi.json`
    if (offered.length === 0) throw new HttpError(404, `There is nothing at this path. The API is described at ${api}`)
    const preflight = this.#options.cors?.preflightOf(call.request)
    const handler = async () => ({ outcome: 'preflight', status: 204, body: '', headers: preflight })
    if (preflight) return { method, path, right: undefined, isOffered: true, handler }
    const allowed = offered.map((each) => (each.method === 'GET' ? 'GET, HEAD' : each.method)).join(', ')
    throw new HttpError(405, `${path} allows ${allowed}, but not ${method}`, ['Allow', allowed])
  }

  /** A path without a route, for the log. Nothing is known of it, so it may even hold a token. */
  #shown(path: string): string {
    const text = this.#options
      .printable(path.replace(/^[a-z][a-z\d+.-]*:\/\/[^/]*/i, ''))
      .replace(/plants_[\w-]{20,}/gi, '***')
    return text.length > maxShownPath ? `${text.slice(0, maxShownPath - 1)}…` : text
  }

  /** Throws 401, 403, 415, 413 or, if too many bodies are in flight, 503. */
  async #admit(call: Call, right: Right, { isOffered, hasBody }: Route): Promise<void> {
    const { request, response, connection, startedAt } = call
    const { inFlight, now } = this.#options
    const { bodyLimit, bodies } = inFlight
    const arriving = hasBody ? connection.collectBody(response, bodyLimit, connection.unverified) : undefined
    if (!hasBody) connection.dropBody(response)
    call.caller = await this.#authenticate(call)
    connection.accept(response, bodies)
    const challenge = 'Bearer realm="plants", error="insufficient_scope"' // RFC 6750, 3.1
    if (!isOffered) throw new HttpError(403, `This service does not ${right} plants`, ['WWW-Authenticate', challenge])
    if (!call.caller.rights.includes(right)) {
      const header = ['WWW-Authenticate', `${challenge}, scope="${right}"`]
      throw new HttpError(403, `This token has no right to ${right} plants`, header)
    }
    if (!hasBody) return
    validateBodyHeaders(request, bodyLimit)
    if (expectsContinue(request)) response.writeContinue()
    call.body = arriving === undefined ? takeBody(request, inFlight) : await arriving.whole()
    if (arriving !== undefined && now() - startedAt > reauthenticateAfter) await this.#authenticate(call)
  }

  #authenticate({ request: { headers, socket } }: Call): Caller | Promise<Caller> {
    return this.#options.authenticate(headers.authorization, socket)
  }

  /** @throws {HttpError} 503 if the unread responses leave no room for so many bytes */
  #requireRoom(bytes: number): void {
    if (!this.#options.inFlight.unread.hasRoom(bytes)) throw busy()
  }

  /** Counts bytes as unread until the client has read the response, or has disconnected. */
  #hold(bytes: number, response: ServerResponse): void {
    if (response.destroyed) return
    const { unread } = this.#options.inFlight
    unread.used += bytes
    response.once('close', () => {
      unread.used -= bytes
    })
  }

  #send(call: Call, answer: Answer): void {
    const { request, response, requestId, route } = call
    // Without a 100, the client may send the body or leave it out: nothing after it can be parsed.
    if (call.body === noBody && expectsContinue(request)) response.shouldKeepAlive = false
    respond(response, route?.varies ? { ...answer, headers: [...vary, ...(answer.headers ?? [])] } : answer, requestId)
    this.#record(call, answer.status, answer.outcome)
  }

  /** Ends early if the client disconnects, its token is no longer accepted, or the time is over. */
  async #stream(
    call: Call,
    { status, contentType = '', outcome }: Answer,
    pieces: AsyncIterable<string>,
  ): Promise<void> {
    const { request, response, requestId } = call
    if (request.httpVersion === '1.0')
      throw new HttpError(400, 'HTTP/1.0 cannot mark the end of a stream: use HTTP/1.1')
    const { inFlight, streamTimeout = maxStreamTime } = this.#options
    const signal = closeSignal(response)
    let isLate = false
    const cut = () => {
      isLate = true
      response.destroy()
    }
    const timer = setTimeout(cut, streamTimeout)
    const begin = () => {
      if (response.headersSent || response.destroyed) return
      respondWith(response, status, ['Content-Type', contentType, ...vary], requestId)
    }
    try {
      for await (const piece of request.method === 'HEAD' ? [] : pieces) {
        if (response.headersSent) await this.#authenticate(call)
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
    if (response.headersSent) this.#record(call, status, isWhole ? outcome : 'aborted')
  }

  /** If the response has begun, destroys the connection, so that the client does not mistake a part for the whole. */
  #fail(call: Call, failure: unknown): void {
    const { requestId, response, connection, route } = call
    connection.dropBody(response)
    const { headersSent, statusCode } = response
    const answer = toHttpError(failure, requestId)
    const { status, error, body, headers } = answer
    const outcome = String(error)
    if (answer !== failure && (error >= 500 || headersSent)) this.#options.log.error(failure, requestId)
    if (headersSent) {
      response.destroy()
      this.#record(call, statusCode, outcome)
    } else this.#send(call, { status: route && route.right !== 'create' ? error : status, body, headers, outcome })
  }

  #record({ request, requestId, caller, startedAt, path }: Call, status: number, outcome: string): void {
    const { log, now } = this.#options
    const milliseconds = Math.round((now() - startedAt) * 1000) / 1000
    const { method, socket } = request
    const client = { token: caller?.name, method, path, from: socket.remoteAddress }
    log.record({ requestId, status, outcome, milliseconds, ...client })
  }
}

export function closeSignal(response: ServerResponse): AbortSignal {
  const closed = new AbortController()
  response.once('close', () => closed.abort(busy()))
  return closed.signal
}
