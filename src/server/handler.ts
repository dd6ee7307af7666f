import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Right } from '../stores/common/token-store.js'
import {
  corsHeaders,
  type HttpAnswer,
  HttpError,
  parserError,
  preflightAnswer,
  respond,
  toHttpError,
} from './answer.js'
import { authenticate, type Caller, type TokenSource } from './authenticator.js'
import type { Log } from './log.js'
import type { Memory } from './memory.js'
import { type Body, isUnambiguous, validateBodyHeaders } from './request-input.js'
import { type Operation, type OperationId, operationOf, type Route, routeOf } from './routes.js'
import type { Handler } from './server.js'

export interface Answer extends HttpAnswer {
  /** As the log and the metrics name it. */
  outcome: string
}

interface OperationInput {
  request: IncomingMessage
  response: ServerResponse
  idText: string
  /** Empty unless the operation has one. */
  body: Buffer
  /** Names the plant in the log. Returns its id. */
  note(id: bigint): bigint
}

export type Handlers = Readonly<Record<OperationId, (input: OperationInput) => Promise<Answer>>>

interface HandlerOptions {
  handlers: Handlers
  description: string
  basePath: string
  /** What is offered. */
  rights: readonly Right[]
  cors: readonly string[]
  findToken: TokenSource
  memory: Memory
  log: Log
  bodyLimitBytes: number
  now(): number
}

interface Call {
  response: ServerResponse
  body: Body
  requestId: string
  startedAt: number
  route?: Route
  operation?: Operation
  caller?: Caller
  /** In digits, as JSON readers may round numbers. */
  plantId?: string
}

/** A list is made in so many bytes at most, whatever its plants are. */
const listBytes = 4 * 1_048_576

const noBody = Buffer.alloc(0)

export function requestHandler(options: HandlerOptions): Handler {
  const runId = randomBytes(4).toString('hex')
  let count = 0
  return async (response, body) => {
    count += 1
    const requestId = `${runId}-${count.toString(36)}`
    const call: Call = { response, body, requestId, startedAt: options.now() }
    try {
      finish(call, await answer(call, options), options)
    } catch (error) {
      finish(call, answerToFailure(call, error, options), options)
    }
  }
}

/** The checks run in the order of docs/contract.md. */
async function answer(call: Call, options: HandlerOptions): Promise<Answer> {
  const { bodyLimitBytes, cors, memory } = options
  const { response } = call
  const { req: request } = response
  const { method = '', url = '', headers } = request
  if (!isUnambiguous(request)) {
    response.shouldKeepAlive = false // nothing after it can be trusted
    throw parserError()
  }
  const route = routeOf(url, options.basePath)
  call.route = route
  const preflight = preflightAnswer(request, cors)
  if (preflight) return { ...preflight, outcome: 'preflight' }
  const operation = operationOf(route, method)
  if (operation === 'describe')
    return { outcome: 'described', status: 200, body: options.description }
  call.operation = operation
  call.caller = await authenticate(headers.authorization, options.findToken)
  assertAllowed(operation.right, call.caller, options.rights)
  if (operation.hasBody) validateBodyHeaders(request, bodyLimitBytes)
  // A create takes the bytes of its body, which are at least those of its response.
  const length = operation.right === 'create' ? headers['content-length'] : undefined
  const bytes = operation.id === 'listPlants' ? listBytes : Number(length ?? bodyLimitBytes)
  await memory.take(call.caller.name, bytes, response)
  const body = operation.hasBody ? await call.body.read(bodyLimitBytes) : noBody
  const note = (id: bigint) => {
    call.plantId = String(id)
    return id
  }
  return options.handlers[operation.id]({ request, response, idText: route.idText, body, note })
}

/** @throws {HttpError} 403 */
function assertAllowed(right: Right, caller: Caller, offered: readonly Right[]): void {
  const isOffered = offered.includes(right)
  if (isOffered && caller.rights.includes(right)) return
  const message = isOffered
    ? `This token has no right to ${right} plants`
    : `This service does not ${right} plants`
  const scope = isOffered ? `, scope="${right}"` : ''
  const challenge = `Bearer realm="plants", error="insufficient_scope"${scope}` // RFC 6750, 3.1
  throw new HttpError(403, message, ['WWW-Authenticate', challenge])
}

function answerToFailure(call: Call, failure: unknown, { log }: HandlerOptions): Answer {
  const answer = toHttpError(failure, call.requestId)
  const { error, status } = answer
  if (error >= 500 && answer !== failure) log.error(failure, call.requestId)
  const isOther = call.operation && call.operation.right !== 'create'
  return { ...answer, status: isOther ? error : status, outcome: String(error) }
}

function finish(call: Call, answer: Answer, { cors, log, now }: HandlerOptions): void {
  const { response, requestId, startedAt } = call
  const { req: request, destroyed: isAborted } = response
  const { headers = [], status, outcome } = answer
  const all = [...headers, ...corsHeaders(request, cors), 'Request-Id', requestId]
  if (!isAborted) respond(response, { ...answer, headers: all })
  log.record({
    requestId,
    status: isAborted ? undefined : status,
    outcome: isAborted ? 'aborted' : outcome,
    milliseconds: Number((now() - startedAt).toFixed(3)),
    token: call.caller?.name,
    method: request.method,
    path: call.route?.path,
    plantId: call.plantId,
    from: request.socket.remoteAddress,
  })
}
