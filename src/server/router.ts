import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Authenticator } from './authenticator.js'
import { HttpError, toHttpError } from './errors.js'
import type { AccessLog } from './log.js'
import { type ArrivingBody, type BodyOptions, receiveBody, takeBody, validateBodyHeaders } from './request.js'
import { type Handler, type HttpAnswer, respond } from './server.js'

/** An operation of the service. */
export interface Route {
  method: string
  /** `{name}` stands for one segment, which a call has in its `params` */
  path: string
  /** what a token must allow; undefined where no token is needed */
  right: 'create' | undefined
  /** Answers a call. An `HttpError` that it throws is an answer, too. */
  handler(call: Call, router: Router): LoggedAnswer | Promise<LoggedAnswer>
}

/** An answer, with its outcome as the log has it. */
export type LoggedAnswer = HttpAnswer & { outcome: string }

/** A request in flight. */
export interface Call {
  request: IncomingMessage
  response: ServerResponse
  requestId: string
  /** is there when the client waits for "100 Continue" */
  sendContinue: (() => void) | undefined
  /** the path of its route, and the segments that the route names */
  path?: string
  params?: Record<string, string> | undefined
  /** the name of the token, and when it was looked up, in milliseconds */
  token?: string
  startedAt?: number
  /** what has arrived while the token was looked up, or is arriving */
  body?: ArrivingBody
}

export interface RouterOptions extends BodyOptions {
  log: AccessLog
  authenticator: Authenticator
  /** milliseconds, never going back */
  now(): number
  /** "" or "/v1" */
  basePath: string
}

/** milliseconds; when a body takes longer to arrive, its token is checked again */
const promptly = 100

/** Finds the route of a request, authenticates, calls the handler, sends its answer and logs it. */
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

  /** Rejects only where no answer can be sent. */
  readonly handle: Handler = async (request, response, sendContinue) => {
    const requestId = `${this.#runId}-${(this.#count++).toString(36)}`
    const call: Call = { request, response, requestId, sendContinue }
    try {
      const route = this.#routeOf(call)
      if (route.right !== undefined) {
        call.startedAt = this.#options.now()
        const token = this.#authenticate(request)
        // node:http would keep each chunk that arrives during a lookup.
        if (typeof token !== 'string' && !request.complete) call.body = receiveBody(request, this.#options)
        call.token = typeof token === 'string' ? token : await token
      }
      this.#send(call, await route.handler(call, this))
    } catch (error) {
      this.#fail(call, error)
    }
  }

  /**
   * The body of a request.
   *
   * @throws {HttpError} 415; 413; 503 when the bodies of all requests are too large together; 401 when the token was revoked meanwhile
   */
  readBody(call: Call): Buffer | Promise<Buffer> {
    const { request, body } = call
    validateBodyHeaders(request.headers, this.#options.bodyLimit)
    call.sendContinue?.()
    if (request.complete && !body) return takeBody(request, this.#options)
    call.body ??= receiveBody(request, this.#options)
    return call.body.bytes.then(async (bytes) => {
      if (this.#options.now() - (call.startedAt ?? 0) > promptly) await this.#authenticate(request)
      return bytes
    })
  }

  #authenticate({ headers, socket }: IncomingMessage): string | Promise<string> {
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
      throw new HttpError(405, `${path} takes ${allowed}, but not ${method}`, ['Allow', allowed])
    }
    throw new HttpError(404, `There is nothing at this path. Create a plant with POST ${this.#options.basePath}/plants`)
  }

  #send(call: Call, answer: LoggedAnswer): void {
    const { request, response, requestId, token, startedAt, path } = call
    const { status, outcome } = answer
    const { log, now } = this.#options
    respond(response, answer, requestId)
    call.body?.discard()
    const milliseconds = startedAt === undefined ? undefined : Math.round((now() - startedAt) * 1000) / 1000
    const { method, socket } = request
    if (outcome === 'created') log.record({ requestId, status, outcome, milliseconds, token })
    else log.record({ requestId, status, outcome, milliseconds, token, method, path, from: socket.remoteAddress })
  }

  #fail(call: Call, error: unknown): void {
    const { requestId, response } = call
    const answer = toHttpError(error, requestId)
    if (response.headersSent || answer.status >= 500) this.#options.log.error(error, requestId)
    if (response.headersSent) response.destroy()
    else this.#send(call, answer)
  }
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
