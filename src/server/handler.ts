import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Right } from '../stores/tokens.js'
import {
  authenticate,
  type Caller,
  createChallengeError,
  type TokenSource,
} from './authenticate.js'
import { parseBodyLength, validateBodyType } from './body.js'
import { buildCorsHeaders, buildPreflightResponse } from './cors.js'
import { createParserError, HttpError, toHttpError } from './http-error.js'
import type { Log } from './log.js'
import { hasUnseenHeaderLines, isUnambiguous, maxHeaderLines } from './parse-request.js'
import type { Quotas } from './quotas.js'
import { type HttpResponse, respond } from './respond.js'
import { type Operation, type OperationId, operationOf, type Route, routeOf } from './routes.js'
import type { Handler, ReceivedRequest } from './server.js'

export interface Answer extends HttpResponse {
  /** As the log and the metrics name it. */
  outcome: string
}

interface OperationInput {
  response: ServerResponse
  idText: string
  /** Empty unless the operation has one. */
  body: Buffer
  /** Of the plant that a change names, for the log. */
  id?: bigint
}

export type Handlers = Readonly<Record<OperationId, (input: OperationInput) => Promise<Answer>>>

interface HandlerOptions {
  handlers: Handlers
  description: string
  basePath: string
  rights: readonly Right[]
  cors: readonly string[]
  findToken: TokenSource
  quotas: Quotas
  log: Log
  bodyLimitBytes: number
}

interface Call {
  received: ReceivedRequest
  requestId: string
  startedAt: number
  route?: Route
  operation?: Operation
  caller?: Caller
  input?: OperationInput
}

export function requestHandler(options: HandlerOptions): Handler {
  const runId = randomBytes(4).toString('hex')
  let count = 0
  return async (received) => {
    count += 1
    const requestId = `${runId}-${count.toString(36)}`
    const startedAt = performance.now()
    const call: Call = { received, requestId, startedAt }
    try {
      finish(call, await answer(call, options), options)
    } catch (error) {
      finish(call, answerToFailure(call, error, options), options)
    }
  }
}

/** The checks run in the order of docs/http-api.md. */
async function answer(call: Call, options: HandlerOptions): Promise<Answer> {
  const { bodyLimitBytes, cors, quotas } = options
  const { response, body } = call.received
  const { req: request } = response
  const { method = '', url = '', headers } = request
  if (hasUnseenHeaderLines(request)) {
    response.shouldKeepAlive = false
    throw new HttpError(431, `The request has more than ${maxHeaderLines} header lines`)
  }
  if (!isUnambiguous(request)) {
    response.shouldKeepAlive = false // nothing after it can be trusted
    throw createParserError()
  }
  const route = routeOf(url, options.basePath)
  call.route = route
  const preflight = buildPreflightResponse(request, cors)
  if (preflight) return { ...preflight, outcome: 'preflight' }
  const operation = operationOf(route, method)
  if (operation === 'describe')
    return { outcome: 'described', status: 200, body: options.description }
  call.operation = operation
  call.caller = await authenticate(headers.authorization, options.findToken)
  call.received.preferConnection()
  assertAllowed(operation.right, call.caller, options.rights)
  if (operation.hasBody) validateBodyType(request)
  const bytes = Math.max(parseBodyLength(headers, bodyLimitBytes), operation.responseBytes)
  const receivedBytes = Math.min(body.receivedBytes, bytes)
  const isList = operation.id === 'listPlants'
  const isSearch = isList && hasSearch(url)
  await quotas.acquire(call.caller.name, { bytes, receivedBytes, isSearch }, response)
  if (isList) await call.received.acceptConnections()
  // A request without its whole body may still get a 400, and so must not be with the store.
  const bytesOfBody = await body.read(bodyLimitBytes)
  call.input = { response, idText: route.idText, body: bytesOfBody }
  return options.handlers[operation.id](call.input)
}

function hasSearch(url: string): boolean {
  return new URLSearchParams(url.replace(/^[^?]*/s, '')).has('search')
}

/** @throws {HttpError} 403 */
function assertAllowed(right: Right, caller: Caller, offered: readonly Right[]): void {
  const error = ', error="insufficient_scope"'
  if (!offered.includes(right))
    throw createChallengeError(403, `This service does not ${right} plants`, error)
  if (caller.rights.includes(right)) return
  const message = `This token has no right to ${right} plants`
  throw createChallengeError(403, message, `${error}, scope="${right}"`)
}

function answerToFailure(call: Call, failure: unknown, { log }: HandlerOptions): Answer {
  const answer = toHttpError(failure, call.requestId)
  const { status } = answer
  if (status >= 500 && answer !== failure) log.error(failure, call.requestId)
  // All that the specification gives a create.
  const isCreate = call.operation?.right === 'create' && status < 500
  return { ...answer, status: isCreate ? 400 : status, outcome: String(status) }
}

function finish(call: Call, answer: Answer, { cors, log }: HandlerOptions): void {
  const { requestId, startedAt } = call
  const { response } = call.received
  const { req: request, destroyed: isAborted } = response
  const { headers = [], status, outcome } = answer
  const all = [...headers, ...buildCorsHeaders(request, cors), 'Request-Id', requestId]
  if (!isAborted) respond(response, { ...answer, headers: all })
  log.record({
    requestId,
    status: isAborted ? undefined : status,
    outcome: isAborted ? 'aborted' : outcome,
    milliseconds: Math.round((performance.now() - startedAt) * 1000) / 1000,
    token: call.caller?.name,
    method: request.method,
    path: call.route?.path,
    plantId: call.input?.id?.toString(), // JSON readers may round a number
    from: request.socket.remoteAddress,
  })
}
