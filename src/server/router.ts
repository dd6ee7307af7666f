import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Right } from '../stores/common/store.js'
import type { Authenticator, Caller } from './authenticator.js'
import { HttpError, toHttpError } from './errors.js'
import type { AccessLog } from './log.js'
import { type ArrivingBody, type BodyOptions, receiveBody, takeBody, validateBodyHeaders } from './request.js'
import { type Handler, type HttpAnswer, respond, respondWith } from './server.js'

/** An operation of the service. */
export interface Route {
  method: string
  /** `{name}` matches one segment, which is in the `params` of a call */
  path: string
  /** the right that the token must have; undefined if no token is needed */
  right: Right | undefined
  /** Handles a call. A thrown `HttpError` is sent as the response. */
  handler(call: Call, router: Router): LoggedAnswer | Promise<LoggedAnswer>
}

/** A response, complete or streamed, with its outcome for the log. */
export type LoggedAnswer = (HttpAnswer | StreamedAnswer) & { outcome: string }

/** A streamed response. Its pieces are produced as fast as the client reads them. */
interface StreamedAnswer {
  contentType: string
  /** always closed, even if the client disconnects */
  pieces: AsyncIterable<string>
}

/** A request in flight. */
export interface Call {
  request: IncomingMessage
  response: ServerResponse
  requestId: string
  /** set if the client waits for "100 Continue" */
  sendContinue: (() => void) | undefined
  route?: Route
  /** the path of its route, and the segments that match its parameters */
  path?: string
  params?: Record<string, string> | undefined
  /** the holder of the token, and when its lookup started, in milliseconds */
  caller?: Caller
  startedAt?: number
  /** the body, if it did not arrive with the headers */
  body?: ArrivingBody
}

export interface RouterOptions extends BodyOptions {
  log: AccessLog
  authenticator: Authenticator
  /** milliseconds, monotonic */
  now(): number
  /** "" or "/v1" */
  basePath: string
}

/** milliseconds; if a body takes longer to arrive, the token is checked again */
const reauthenticateAfter = 100

/** Finds the route of a request, authenticates it, calls the handler, sends the response and logs it. */
export class Router {
  readonly #options: RouterOptions
  readonly #paths: { path: string; pattern: RegExp; routes: Map<string, Route> }[] = []
  readonly #runId = randomBytes(4).toString('hex')
  #count = 0

  constructor(routes: readonly Route[], options: RouterOptions) {
    this.#options = options
    for (const route of routes) {
      const path = `${options.basePath}${route.path}`
      const known = this.#paths.find((entry) => entry.path === path)
      if (known) known.routes.set(route.method, route)
      else this.#paths.push({ path, pattern: patternOf(path), routes: new Map([[route.method, route]]) })
    }
  }

  /** Rejects only if no response can be sent. */
  readonly handle: Handler = async (request, response, sendContinue) => {
    const requestId = `${this.#runId}-${(this.#count++).toString(36)}`
    const call: Call = { request, response, requestId, sendContinue }
    try {
      const route = this.#routeOf(call)
      call.route = route
      if (route.right !== undefined) {
        call.startedAt = this.#options.now()
        const caller = this.#authenticate(call)
        // node:http would buffer every chunk that arrives during a lookup, without a limit.
        if (caller instanceof Promise && !request.complete) call.body = receiveBody(request, this.#options)
        call.caller = caller instanceof Promise ? await caller : caller
        if (!call.caller.rights.includes(route.right)) throw forbidden(route.right)
      }
      const answer = await route.handler(call, this)
      if ('pieces' in answer) await this.#stream(call, answer)
      else this.#send(call, answer)
    } catch (error) {
      this.#fail(call, error)
    }
  }

  /**
   * The body of a request.
   *
   * @throws {HttpError} 415; 413; 503 when the bodies in flight exceed their limit; 401 when the token has been revoked meanwhile
   */
  readBody(call: Call): Buffer | Promise<Buffer> {
    const { request, body } = call
    validateBodyHeaders(request.headers, this.#options.bodyLimit)
    call.sendContinue?.()
    if (request.complete && !body) return takeBody(request, this.#options)
    call.body ??= receiveBody(request, this.#options)
    return call.body.bytes.then(async (bytes) => {
      if (this.#options.now() - (call.startedAt ?? 0) > reauthenticateAfter) await this.#authenticate(call)
      return bytes
    })
  }

  #authenticate({ request: { headers, socket } }: Call): Caller | Promise<Caller> {
    return this.#options.authenticator.authenticate(headers.authorization, socket)
  }

  /** @throws {HttpError} 400, 404 or 405 */
  #routeOf(call: Call): Route {
    const { method = '', url = '' } = call.request
    const target = pathOf(url)
    for (const { path, pattern, routes } of this.#paths) {
      const match = pattern.exec(target)
      if (!match) continue
      call.path = path
      call.params = match.groups
      const route = routes.get(method === 'HEAD' ? 'GET' : method)
      if (route) return route
      const allowed = [...routes.keys()].map((name) => (name === 'GET' ? 'GET, HEAD' : name)).join(', ')
      throw new HttpError(405, `${path} allows ${allowed}, but not ${method}`, ['Allow', allowed])
    }
    throw new HttpError(404, `There is nothing at this path. Create a plant with POST ${this.#options.basePath}/plants`)
  }

  #send(call: Call, answer: HttpAnswer & { outcome: string }): void {
    respond(call.response, answer, call.requestId)
    call.body?.discard()
    this.#record(call, answer.status, answer.outcome)
  }

  /** Sends pieces until there are no more, the client disconnects, or its token is no longer accepted. */
  async #stream(call: Call, { contentType, pieces, outcome }: StreamedAnswer & { outcome: string }): Promise<void> {
    const { request, response, requestId } = call
    if (request.httpVersion === '1.0') throw new HttpError(400, 'HTTP/1.0 cannot mark the end of a stream: use HTTP/1.1')
    const begin = () => {
      if (!response.headersSent && !response.destroyed) respondWith(response, 200, ['Content-Type', contentType], requestId)
    }
    for await (const piece of request.method === 'HEAD' ? [] : pieces) {
      if (response.headersSent) await this.#authenticate(call)
      if (response.destroyed) break
      begin()
      const drained = response.write(piece) ? undefined : untilDrained(response)
      await new Promise(setImmediate) // a fast reader must not starve other requests
      await drained
    }
    begin()
    const isWhole = !response.destroyed
    response.end()
    if (response.headersSent) this.#record(call, 200, isWhole ? outcome : 'aborted')
  }

  /** Sends an error; if the response has begun, destroys the connection, so that the client does not mistake a part for the whole. */
  #fail(call: Call, failure: unknown): void {
    const { requestId, response, route } = call
    const { status, error, body, headers, outcome } = toHttpError(failure, requestId)
    const isBegun = response.headersSent
    if (!(failure instanceof HttpError) && (error >= 500 || isBegun)) this.#options.log.error(failure, requestId)
    if (isBegun) {
      response.destroy()
      this.#record(call, response.statusCode, outcome)
    } else this.#send(call, { status: route && route.right !== 'create' ? error : status, body, headers, outcome })
  }

  #record({ request, requestId, caller, startedAt, path }: Call, status: number, outcome: string): void {
    const { log, now } = this.#options
    const milliseconds = startedAt === undefined ? undefined : Math.round((now() - startedAt) * 1000) / 1000
    const token = caller?.name
    const { method, socket } = request
    if (outcome === 'created') log.record({ requestId, status, outcome, milliseconds, token })
    else log.record({ requestId, status, outcome, milliseconds, token, method, path, from: socket.remoteAddress })
  }
}

/** Resolves when the write buffer is drained, or the client disconnects. */
function untilDrained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (response.destroyed) return resolve() // `close` has already been emitted
    const end = () => {
      response.off('drain', end).off('close', end)
      resolve()
    }
    response.on('drain', end).on('close', end)
  })
}

/** RFC 6750, 3.1 */
function forbidden(right: Right): HttpError {
  const challenge = `Bearer realm="plants", error="insufficient_scope", scope="${right}"`
  return new HttpError(403, `This token has no right to ${right} plants`, ['WWW-Authenticate', challenge])
}

/** RFC 9112, 3.2.2 */
const absoluteForm = /^https?:\/\/[^/?#]*(?=\/)/i

/**
 * The path of a request target, decoded.
 *
 * @throws {HttpError} 400
 */
function pathOf(url: string): string {
  const path = url.replace(absoluteForm, '').replace(/[?#].*/s, '')
  try {
    return path.includes('%') ? decodeURI(path) : path
  } catch {
    throw new HttpError(400, 'The path of the request is not valid')
  }
}

/** Matches a path whose `{name}` segments become groups. */
function patternOf(path: string): RegExp {
  const literal = path.replace(/[.*+?^$()|[\]\\]/g, '\\$&')
  return new RegExp(`^${literal.replace(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`)
}
