import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Right } from '../stores/common/store.js'
import {
  busy,
  corsHeaders,
  type HttpAnswer,
  HttpError,
  preflightHeaders,
  respond,
  startResponse,
  toHttpError,
} from './answer.js'
import { authenticate, type Caller, freshness, type TokenSource } from './authenticator.js'
import { type ClientConnection, type InFlight, noBody } from './client-connection.js'
import type { Log } from './log.js'
import type { Hold, Shares } from './memory.js'
import { type Operation, type OperationId, openApi, operations } from './openapi.js'
import { validateBodyHeaders, validateHead } from './request-input.js'
import type { Handler } from './server.js'

export interface Answer extends HttpAnswer {
  outcome: string
  /** a stream, instead of `body`; always closed, even if the client disconnects */
  pieces?: AsyncIterable<string>
}

export interface Call {
  request: IncomingMessage
  response: ServerResponse
  requestId: string
  /** milliseconds */
  startedAt: number
  operation?: Operation
  /** of the route, or what was requested; and the last segment of that */
  path?: string
  id: string
  caller?: Caller
  /** empty unless the route has one */
  body: Buffer
  hold?: Hold
}

export type Handlers = Record<OperationId, (call: Call) => Promise<Answer>>

interface RouterOptions {
  /** those whose operations are offered */
  rights: readonly Right[]
  log: Pick<Log, 'record' | 'error'>
  findToken: TokenSource
  now(): number
  basePath: string
  inFlight: InFlight
  /** shared by tokens */
  memory: Shares
  /** whose pages may use the service: origins such as `https://garden.example.com`, or `*` */
  cors: readonly string[]
  printable: (text: string) => string
  streamTimeout?: number
}

/** What a path and a method are for. */
type Route = Operation | { method: string; path: string; hasBody?: false; answer: Answer }

/** milliseconds: a stream keeps a snapshot of the store, and with it the space of everything that changes meanwhile */
const maxStreamTime = 600_000

/** bytes that a page takes while it is read */
const maxPage = 16 * 1_048_576

/** characters */
const maxShownPath = 200

/** Handles requests from their heads to the log. */
export function routerOf(handlers: Handlers, options: RouterOptions): Handler {
  const { rights, log, findToken, now, basePath, inFlight, memory, cors, printable } = options
  const { streamTimeout = maxStreamTime } = options
  const body = Buffer.from(openApi(basePath, rights))
  const relative: Route[] = [
    // The specification's operation exists in every service: one that does not offer it rejects each create.
    ...operations.filter(({ right }) => right === 'create' || rights.includes(right)),
    { method: 'GET', path: '/openapi.json', answer: { outcome: 'described', status: 200, body } },
  ]
  const routes = relative.map((route) => ({ ...route, path: `${basePath}${route.path}` }))
  const runId = randomBytes(4).toString('hex')
  let count = 0

  const handle: Handler = async (response, connection) => {
    const { req: request } = response
    const requestId = `${runId}-${(count++).toString(36)}`
    const call: Call = { request, response, requestId, startedAt: now(), id: '', body: noBody }
    try {
      validateHead(request)
      const route = findRoute(call)
      if (!route.hasBody) connection.dropBody(response)
      if ('answer' in route) return send(call, route.answer)
      call.operation = route
      if (route.hasBody) connection.collectBody(response)
      call.caller = await callerOf(call, connection)
      authorize(call.caller, route.right)
      if (route.hasBody) validateBodyHeaders(request, inFlight.bodyLimit)
      call.hold = await memory.ask(call.caller.name, sizeOf(call, route), response)
      if (response.closed) call.hold.release()
      else response.once('close', call.hold.release)
      connection.accept()
      if (route.hasBody) call.body = await receiveBody(call, connection)
      const answer = await process(call, route)
      if (answer.pieces) await stream(call, answer, answer.pieces)
      else send(call, answer)
    } catch (error) {
      connection.dropBody(response)
      fail(call, error)
    }
  }

  /** Throws 404 or 405. */
  function findRoute(call: Call): Route {
    const { method = '', url = '' } = call.request
    // A target may have a scheme and a host (RFC 9112, 3.2.2), which do not count.
    const target = url.replace(/^https?:\/\/[^/?#]*(?=\/)/i, '').replace(/[?#].*/s, '')
    const start = target.lastIndexOf('/') + 1
    call.id = target.slice(start)
    const at = (path: string) => routes.filter((each) => each.path === path)
    const withId = call.id === '' ? target : `${target.slice(0, start)}{id}`
    const path = at(target).length > 0 ? target : withId
    const found = at(path)
    call.path = found.length > 0 ? path : shown(target)
    const route = found.find((each) => each.method === (method === 'HEAD' ? 'GET' : method))
    if (route) return route
    const offered = found.filter((each) => 'answer' in each || rights.includes(each.right))
    if (offered.length === 0)
      throw new HttpError(404, `There is nothing at this path. The API is described at ${basePath}/openapi.json`)
    const headers = preflightHeaders(call.request, cors)
    if (headers) return { method, path, answer: { outcome: 'preflight', status: 204, body: '', headers } }
    const allowed = offered.map((each) => (each.method === 'GET' ? 'GET, HEAD' : each.method)).join(', ')
    throw new HttpError(405, `${path} allows ${allowed}, but not ${method}`, ['Allow', allowed])
  }

  /** A path without a route, for the log. Nothing is known of it: it may hold an id, a query, or even a token. */
  function shown(path: string): string {
    const whole = decodeVisible(path)?.replace(/^[a-z][a-z\d+.-]*:\/\/[^/]*|[?#].*/gis, '') ?? '***'
    const text = printable(whole)
      .replace(/plants_[\w-]{20,}/gi, '***')
      .replace(/(?<![\w{])-?\d+(?!\w)/g, '{id}')
    return text.length > maxShownPath ? `${text.slice(0, maxShownPath - 1)}…` : text
  }

  /** Throws 401. */
  async function callerOf({ request, response }: Call, connection: ClientConnection): Promise<Caller> {
    const { authorization } = request.headers
    const { known } = connection
    if (known && known.authorization === authorization && known.until > now()) return known.caller
    const caller = await authenticate(response, findToken)
    connection.known = { authorization, caller, until: now() + freshness / 2 }
    return caller
  }

  /** Throws 403. */
  function authorize(caller: Caller, right: Right): void {
    const challenge = 'Bearer realm="plants", error="insufficient_scope"' // RFC 6750, 3.1
    if (!rights.includes(right))
      throw new HttpError(403, `This service does not ${right} plants`, ['WWW-Authenticate', challenge])
    if (caller.rights.includes(right)) return
    const header = ['WWW-Authenticate', `${challenge}, scope="${right}"`]
    throw new HttpError(403, `This token has no right to ${right} plants`, header)
  }

  /** In bytes. How large a plant is, and how many there are in a page, is known when they are read. */
  function sizeOf({ request }: Call, { id, right }: Operation): number {
    const { 'content-length': length } = request.headers
    if (id === 'listPlants') return maxPage
    return right === 'create' && length !== undefined ? parseInt(length, 10) : inFlight.bodyLimit
  }

  /** Throws 413. */
  async function receiveBody({ response, startedAt }: Call, connection: ClientConnection): Promise<Buffer> {
    const body = await connection.bodyOf(response)
    // The token may have been revoked while the body came.
    if (now() - startedAt > freshness) await authenticate(response, findToken)
    return body
  }

  async function process(call: Call, { id }: Operation): Promise<Answer> {
    inFlight.requests += 1
    try {
      const answer = await handlers[id](call)
      call.hold?.resize(Buffer.byteLength(answer.body))
      return answer
    } finally {
      inFlight.requests -= 1
    }
  }

  function send(call: Call, answer: Answer): void {
    respond(call.response, answer, usualHeaders(call))
    record(call, answer.status, answer.outcome)
  }

  function usualHeaders({ request, operation, requestId }: Call): string[] {
    return [
      ...(operation?.id === 'listPlants' ? ['Vary', 'Accept'] : []),
      ...corsHeaders(request, cors),
      'Request-Id',
      requestId,
    ]
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
        call.hold?.resize(Buffer.byteLength(piece))
        const drained = response.write(piece) || once(response, 'drain', { signal }).catch(() => undefined)
        await new Promise(setImmediate) // a fast reader must not starve other requests
        await drained
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
    const { requestId, response, operation, path } = call
    const { headersSent, statusCode } = response
    const answer = toHttpError(failure, requestId)
    const { error, body, headers } = answer
    const outcome = String(error)
    if (answer !== failure && (error >= 500 || headersSent)) log.error(failure, requestId)
    if (headersSent) {
      response.destroy()
      record(call, statusCode, outcome)
      return
    }
    if (path === undefined) response.shouldKeepAlive = false // nothing after an invalid head can be trusted
    send(call, { status: operation && operation.right !== 'create' ? error : answer.status, body, headers, outcome })
  }

  function record({ request, requestId, caller, startedAt, path }: Call, status: number, outcome: string): void {
    const milliseconds = Math.round((now() - startedAt) * 1000) / 1000
    const { method, socket } = request
    log.record({
      requestId,
      status,
      outcome,
      milliseconds,
      token: caller?.name,
      method,
      path,
      from: socket.remoteAddress,
    })
  }

  return handle
}

/** Decodes visible ASCII characters, of which tokens and ids consist, also several times. Undefined for too many. */
function decodeVisible(text: string, rounds = 5): string | undefined {
  const decoded = text.replace(/%(2[1-9a-f]|[3-6][\da-f]|7[\da-e])/gi, (_, hex: string) =>
    String.fromCharCode(parseInt(hex, 16)),
  )
  if (decoded === text) return text
  return rounds > 0 ? decodeVisible(decoded, rounds - 1) : undefined
}

export function closeSignal(response: ServerResponse): AbortSignal {
  const closed = new AbortController()
  response.once('close', () => closed.abort(busy()))
  return closed.signal
}
