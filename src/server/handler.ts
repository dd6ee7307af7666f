/**
 * Handles a request from top to bottom: the checks, the operation, its response and its log line.
 * `runOperation` makes the checks one after the other, and throws an HttpError for one that fails.
 * `RequestState` collects what the checks find out about the request, because its log line needs
 * this even if a later check fails.
 */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Right } from '../stores/tokens.js'
import type { Admission } from './admission.js'
import {
  authenticate,
  type Caller,
  createChallengeError,
  type TokenSource,
} from './authenticate.js'
import { validateBodyType } from './body.js'
import type { ReceivedRequest } from './connection.js'
import { createInvalidHttpError, toHttpError } from './http-error.js'
import type { Log } from './log.js'
import { type PageQuery, parseListQuery } from './parse-query.js'
import { hasUnseenHeaderLines, isUnambiguous } from './parse-request.js'
import { respond, type ServiceResponse } from './respond.js'
import {
  findOperation,
  findRoute,
  type Operation,
  type OperationId,
  openApiJson,
  type Route,
} from './routes.js'
import type { Handler } from './server.js'

interface OperationInput {
  response: ServerResponse
  /** This is the last segment of the path. It is empty for operations on all plants. */
  idText: string
  /** Only a list or a count has a query. For other operations, it has the defaults of a list. */
  query: PageQuery
  /** The body is empty if the request has none. */
  body: Buffer
  /** A handler sets this for the log, as soon as it knows which plant it changes. */
  plantId?: bigint
}

export type OperationHandlers = Readonly<
  Record<OperationId, (input: OperationInput) => Promise<ServiceResponse>>
>

interface HandlerOptions {
  handlers: OperationHandlers
  rights: readonly Right[]
  cors: readonly string[]
  findCaller: TokenSource
  admission: Admission
  log: Log
}

/**
 * A request, and what the steps of `runOperation` have found out about it. A field is undefined
 * until its step is done.
 */
interface RequestState {
  receivedRequest: ReceivedRequest
  /**
   * This is an id such as `9f86d081-3`: its first part is random for each run, and its second part
   * counts requests.
   */
  requestId: string
  /** This is on the clock of `performance.now`. */
  startedAtMs: number
  route?: Route
  operation?: Operation
  caller?: Caller
  input?: OperationInput
}

const defaultQuery = parseListQuery('')

export function createHandler(options: HandlerOptions): Handler {
  const runId = randomBytes(4).toString('hex')
  let requestCount = 0
  return async (receivedRequest) => {
    requestCount += 1
    const requestId = `${runId}-${requestCount.toString(36)}`
    const state: RequestState = { receivedRequest, requestId, startedAtMs: performance.now() }
    const response = await runOperation(state, options).catch((error: unknown) =>
      buildErrorResponse(state, error, options.log),
    )
    sendAndLog(state, response, options)
  }
}

/** Checks the request, and carries out its operation. */
async function runOperation(
  state: RequestState,
  options: HandlerOptions,
): Promise<ServiceResponse> {
  const { connection, response, body } = state.receivedRequest
  const { req: request } = response
  const { method = '', url = '', headers } = request
  assertTrustworthy(response)
  const route = findRoute(url)
  state.route = route
  const preflight = buildPreflightResponse(request, options.cors)
  if (preflight) return preflight
  const operation = findOperation(route, method)
  if (operation === 'describe') return { outcome: 'described', status: 200, body: openApiJson }
  state.operation = operation
  state.caller = await authenticate(headers.authorization, options.findCaller)
  connection.setCaller(state.caller)
  assertAllowed(operation.right, state.caller, options.rights)
  if (operation.hasBody) validateBodyType(request)
  const { parameters } = operation
  const query = parameters ? parseListQuery(url, parameters) : defaultQuery
  const { name: token } = state.caller
  const release = await options.admission.admit({ token, operation, query, response })
  try {
    // Until its whole body has arrived, a request may get a 408 or a 400. So the store must not be
    // asked before that.
    const bytes = await body.read()
    await options.admission.waitToParse(token, bytes.length)
    state.input = { response, idText: route.idText, query, body: bytes }
    return await options.handlers[operation.id](state.input)
  } finally {
    // The response is in memory until its client has read it.
    if (response.closed) release()
    else response.once('close', release)
  }
}

/**
 * Rejects a request that a proxy may have understood differently. The proxy may have seen the end
 * of the request at another place, so the next bytes of the connection may be a part of a body
 * instead of a request of its client (request smuggling; RFC 9112, 11.2). So the rejected request
 * is the last of its connection.
 *
 * @throws {HttpError} 431 or 400
 */
function assertTrustworthy(response: ServerResponse): void {
  const { req: request } = response
  if (hasUnseenHeaderLines(request)) {
    response.shouldKeepAlive = false
    // Later versions of Node.js reject such a request themselves with this code.
    throw createInvalidHttpError('HPE_HEADER_OVERFLOW')
  }
  if (!isUnambiguous(request)) {
    response.shouldKeepAlive = false
    throw createInvalidHttpError()
  }
}

/** @throws {HttpError} 403 */
function assertAllowed(right: Right, caller: Caller, offeredRights: readonly Right[]): void {
  const error = ', error="insufficient_scope"'
  if (!offeredRights.includes(right))
    throw createChallengeError(403, `This service does not ${right} plants`, error)
  if (caller.rights.includes(right)) return
  const message = `This token has no right to ${right} plants`
  throw createChallengeError(403, message, `${error}, scope="${right}"`)
}

/** Builds the response to a request that failed, and logs what its client may not know. */
function buildErrorResponse(state: RequestState, failure: unknown, log: Log): ServiceResponse {
  const error = toHttpError(failure, state.requestId)
  const { status } = error.response
  // `toHttpError` returns an HttpError as it is: its client gets all that is known. Any other
  // failure may have a cause and a stack.
  const mayHaveDetails = error !== failure
  if (status >= 500 && mayHaveDetails) log.error(failure, state.requestId)
  // The specification has only the status 400 for every create that is rejected, also for one
  // without a token. The body has the more exact number, such as 409.
  const isBadCreate = state.operation?.right === 'create' && status < 500
  return { ...error.response, status: isBadCreate ? 400 : status, outcome: String(status) }
}

/**
 * Sends the response, and logs the request. If the client has left meanwhile, nothing is sent, and
 * the outcome is `aborted`, although the store may have made the change.
 */
function sendAndLog(state: RequestState, result: ServiceResponse, options: HandlerOptions): void {
  const { requestId, startedAtMs } = state
  const { response } = state.receivedRequest
  const { req: request, destroyed: isAborted } = response
  const { status, outcome = String(status) } = result
  const headers = [...buildCorsHeaders(request, options.cors), 'Request-Id', requestId]
  if (!isAborted) respond(response, result, headers)
  options.log.record({
    requestId,
    status: isAborted ? undefined : status,
    outcome: isAborted ? 'aborted' : outcome,
    milliseconds: Math.round((performance.now() - startedAtMs) * 1000) / 1000,
    token: state.caller?.name,
    method: request.method,
    path: state.route?.path,
    // An id may exceed 2^53, and many readers of JSON would round it as a number.
    plantId: state.input?.plantId?.toString(),
    from: request.socket.remoteAddress,
  })
}

/*
 * Lets web pages of other origins use the service. A browser asks before some requests (a
 * preflight), and lets the page read the response only if the headers allow it:
 * https://fetch.spec.whatwg.org/#http-cors-protocol
 */

const allowedMethods = 'GET, POST, PATCH, DELETE'

/** These are named one by one, because `*` does not cover Authorization. */
const allowedRequestHeaders = 'Authorization, Content-Type, Idempotency-Key, Accept'

const exposedResponseHeaders = 'Link, Retry-After, Request-Id, WWW-Authenticate'

/**
 * If origins are configured, each response has `Vary: Origin`, even the response to a request
 * without an origin. Otherwise a cache could give a response to a page of another origin.
 *
 * @param origins the pages of these may use the service; `*` stands for all
 * @returns names and values, which alternate
 */
function buildCorsHeaders(request: IncomingMessage, origins: readonly string[]): string[] {
  if (origins.length === 0) return []
  const vary = ['Vary', 'Origin']
  const origin = findAllowedOrigin(request, origins)
  if (!origin) return vary
  return [
    ...vary,
    'Access-Control-Allow-Origin',
    origin,
    'Access-Control-Expose-Headers',
    exposedResponseHeaders,
  ]
}

/** @returns undefined unless the request is a preflight of an allowed origin */
function buildPreflightResponse(
  request: IncomingMessage,
  origins: readonly string[],
): ServiceResponse | undefined {
  const hasMethod = request.headers['access-control-request-method'] !== undefined
  const isPreflight = request.method === 'OPTIONS' && hasMethod
  if (!isPreflight || !findAllowedOrigin(request, origins)) return undefined
  const headers = [
    'Access-Control-Allow-Methods',
    allowedMethods,
    'Access-Control-Allow-Headers',
    allowedRequestHeaders,
  ]
  return { status: 204, outcome: 'preflight', body: '', headers }
}

function findAllowedOrigin(
  { headers: { origin } }: IncomingMessage,
  origins: readonly string[],
): string | undefined {
  if (!origin) return undefined
  return origins.find((allowedOrigin) => allowedOrigin === '*' || allowedOrigin === origin)
}
