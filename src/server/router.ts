import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Right } from '../stores/common/store.js'
import type { Authenticate, Caller } from './authenticator.js'
import { busy, HttpError, toHttpError } from './errors.js'
import type { AccessLog } from './log.js'
import { type BodyOptions, noBody, receiveBody, takeBody, validateBodyHeaders } from './request.js'
import { type Handler, type HttpAnswer, respond, respondWith } from './server.js'

/** An operation of the service. */
export interface Route {
  method: string
  /** with the base path; a last segment `{id}` matches any */
  path: string
  /** the right that the token must have; undefined if no token is needed, nor a body */
  right: Right | undefined
  /** whether a request has a body */
  hasBody: boolean
  /** Handles a call. A thrown `HttpError` is sent as the response. */
  handler(call: Call): Answer | Promise<Answer>
}

/** A response, with its outcome for the log. */
export interface Answer extends HttpAnswer {
  outcome: string
  /** the body of a stream, instead of `body`: produced as fast as the client reads, and always closed, even if the client disconnects */
  pieces?: AsyncIterable<string>
}

/** A request in flight. */
export interface Call {
  request: IncomingMessage
  response: ServerResponse
  requestId: string
  route?: Route
  /** the `path` of the routes that match, and the last segment of the path that was requested */
  path?: string
  id: string
  /** the holder of the token, and when its lookup started, in milliseconds */
  caller?: Caller
  startedAt?: number
  /** empty unless the route has one */
  body: Buffer
}

export interface RouterOptions extends BodyOptions {
  log: AccessLog
  authenticate: Authenticate
  /** milliseconds, monotonic */
  now(): number
  /** "" or "/v1" */
  basePath: string
}

/** milliseconds; if a body takes longer to arrive, the token is checked again */
const reauthenticateAfter = 100

/** Finds the route of a request, authenticates it, reads its body, calls the handler, sends the response and logs it. */
export class Router {
  /** the routes of each path */
  readonly #routes = new Map<string, Route[]>()
  readonly #options: RouterOptions
  readonly #runId = randomBytes(4).toString('hex')
  #count = 0

  constructor(routes: readonly Route[], options: RouterOptions) {
    for (const route of routes) this.#routes.set(route.path, [...(this.#routes.get(route.path) ?? []), route])
    this.#options = options
  }

  /** Rejects only if no response can be sent. */
  readonly handle: Handler = async (request, response, sendContinue) => {
    const requestId = `${this.#runId}-${(this.#count++).toString(36)}`
    const call: Call = { request, response, requestId, id: '', body: noBody }
    try {
      const route = this.#routeOf(call)
      call.route = route
      await this.#admit(call, route, sendContinue)
      const answer = await route.handler(call)
      if (answer.pieces) await this.#stream(call, answer, answer.pieces)
      else this.#send(call, answer)
    } catch (error) {
      this.#fail(call, error)
    }
  }

  /** Authenticates a request and reads its body. Throws 401, 403, 415, 413 or, if too many bodies are in flight, 503. */
  async #admit(call: Call, { right, hasBody }: Route, sendContinue?: () => void): Promise<void> {
    if (right === undefined) return
    const { request, response } = call
    const startedAt = this.#options.now()
    call.startedAt = startedAt
    // node:http would buffer every chunk that arrives while the token is looked up.
    if (!hasBody) request.resume()
    const arriving = hasBody && !request.complete ? receiveBody(response, this.#options) : undefined
    call.caller = await this.#authenticate(call)
    if (!call.caller.rights.includes(right)) {
      const challenge = `Bearer realm="plants", error="insufficient_scope", scope="${right}"` // RFC 6750, 3.1
      throw new HttpError(403, `This token has no right to ${right} plants`, ['WWW-Authenticate', challenge])
    }
    if (!hasBody) return
    validateBodyHeaders(request.headers, this.#options.bodyLimit)
    sendContinue?.()
    call.body = arriving === undefined ? takeBody(request, this.#options) : await arriving
    if (arriving !== undefined && this.#options.now() - startedAt > reauthenticateAfter) await this.#authenticate(call)
  }

  /** @throws {HttpError} 400, 404 or 405 */
  #routeOf(call: Call): Route {
    const { method = '', url = '' } = call.request
    const target = pathOf(url)
    const lastSegment = target.lastIndexOf('/') + 1
    call.id = target.slice(lastSegment)
    const path = this.#routes.has(target) || call.id === '' ? target : `${target.slice(0, lastSegment)}{id}`
    const routes = this.#routes.get(path)
    if (!routes) throw new HttpError(404, `There is nothing at this path. Create a plant with POST ${this.#options.basePath}/plants`)
    call.path = path
    const route = routes.find((each) => each.method === (method === 'HEAD' ? 'GET' : method))
    if (route) return route
    const allowed = routes.map((each) => (each.method === 'GET' ? 'GET, HEAD' : each.method)).join(', ')
    throw new HttpError(405, `${path} allows ${allowed}, but not ${method}`, ['Allow', allowed])
  }

  #authenticate({ request: { headers, socket } }: Call): Caller | Promise<Caller> {
    return this.#options.authenticate(headers.authorization, socket)
  }

  #send(call: Call, answer: Answer): void {
    respond(call.response, answer, call.requestId)
    this.#record(call, answer.status, answer.outcome)
  }

  /** Sends pieces until there are no more, the client disconnects, or its token is no longer accepted. */
  async #stream(call: Call, { status, contentType = '', outcome }: Answer, pieces: AsyncIterable<string>): Promise<void> {
    const { request, response, requestId } = call
    if (request.httpVersion === '1.0') throw new HttpError(400, 'HTTP/1.0 cannot mark the end of a stream: use HTTP/1.1')
    const signal = closeSignal(response)
    const begin = () => {
      if (!response.headersSent && !response.destroyed) respondWith(response, status, ['Content-Type', contentType], requestId)
    }
    for await (const piece of request.method === 'HEAD' ? [] : pieces) {
      if (response.headersSent) await this.#authenticate(call)
      if (response.destroyed) break
      begin()
      const drained = response.write(piece) || once(response, 'drain', { signal }).catch(() => undefined)
      await new Promise(setImmediate) // a fast reader must not starve other requests
      await drained
    }
    begin()
    const isWhole = !response.destroyed
    response.end()
    if (response.headersSent) this.#record(call, status, isWhole ? outcome : 'aborted')
  }

  /** Sends an error; if the response has begun, destroys the connection, so that the client does not mistake a part for the whole. */
  #fail(call: Call, failure: unknown): void {
    const { requestId, response, route } = call
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
    const milliseconds = startedAt === undefined ? undefined : Math.round((now() - startedAt) * 1000) / 1000
    const entry = { requestId, status, outcome, milliseconds, token: caller?.name }
    const { method, socket } = request
    log.record(outcome === 'created' ? entry : Object.assign(entry, { method, path, from: socket.remoteAddress }))
  }
}

/** Aborts when the response is sent, or the client disconnects. */
export function closeSignal(response: ServerResponse): AbortSignal {
  const closed = new AbortController()
  response.once('close', () => closed.abort(busy()))
  return closed.signal
}

/**
 * The path of a request target, decoded, without scheme and host (RFC 9112, 3.2.2).
 *
 * @throws {HttpError} 400
 */
function pathOf(url: string): string {
  const path = url.replace(/^https?:\/\/[^/?#]*(?=\/)/i, '').replace(/[?#].*/s, '')
  try {
    return path.includes('%') ? decodeURI(path) : path
  } catch {
    throw new HttpError(400, 'The path of the request is not valid')
  }
}
