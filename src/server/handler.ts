import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Right } from '../stores/common/token-store.js'
import {
  corsHeaders,
  type HttpAnswer,
  HttpError,
  invalidHttp,
  preflightAnswer,
  respond,
  toHttpError,
} from './answer.js'
import { authenticate, type Caller, type TokenSource } from './authenticator.js'
import type { Body } from './body.js'
import type { Log } from './log.js'
import type { Memory } from './memory.js'
import { isUnambiguous, validateBodyHeaders } from './request-input.js'
import { type Operation, type OperationId, operationOf, type Route, routeOf } from './routes.js'

export interface Answer extends HttpAnswer {
  /** As the log and the metrics name it. */
  outcome: string
}

/** What an operation is done with. */
interface OperationInput {
  request: IncomingMessage
  response: ServerResponse
  /** The last segment of the path. */
  idText: string
  /** Empty unless the operation has one. */
  body: Buffer
}

export type Handlers = Readonly<Record<OperationId, (input: OperationInput) => Promise<Answer>>>

interface HandlerOptions {
  handlers: Handlers
  /** As JSON. */
  description: string
  basePath: string
  /** Operations of these rights are offered. */
  rights: readonly Right[]
  cors: readonly string[]
  findToken: TokenSource
  memory: Memory
  log: Pick<Log, 'record' | 'error'>
  bodyLimitBytes: number
  /** Milliseconds, monotonic. */
  now(): number
}

/** What is known of a request. */
interface Call {
  requestId: string
  startedAt: number
  route?: Route
  operation?: Operation
  caller?: Caller
}

/** A list is made in so many bytes at most, whatever its plants are. */
const listBytes = 4 * 1_048_576

/** Handles a request from its head to its line in the log. */
export class RequestHandler {
  /** These requests wait for the store. */
  waiting = 0
  readonly #options: HandlerOptions
  readonly #runId = randomBytes(4).toString('hex')
  #count = 0

  constructor(options: HandlerOptions) {
    this.#options = options
  }

  readonly handle = async (response: ServerResponse, body: Body): Promise<void> => {
    this.#count += 1
    const requestId = `${this.#runId}-${this.#count.toString(36)}`
    const call: Call = { requestId, startedAt: this.#options.now() }
    try {
      this.#send(response, call, await this.#answer(response, body, call))
    } catch (error) {
      this.#fail(response, call, error)
    }
  }

  /** The checks run in the order of docs/contract.md. */
  async #answer(response: ServerResponse, body: Body, call: Call): Promise<Answer> {
    const { handlers, description, basePath, cors, findToken, memory } = this.#options
    const { bodyLimitBytes } = this.#options
    const { req: request } = response
    const { method = '', url = '', headers } = request
    if (!isUnambiguous(request)) {
      response.shouldKeepAlive = false // nothing after it can be trusted
      throw invalidHttp
    }
    const route = routeOf(url, basePath)
    call.route = route
    const preflight = preflightAnswer(request, cors)
    if (preflight) return { ...preflight, outcome: 'preflight' }
    const operation = operationOf(route, method)
    if (operation === 'describe') return { outcome: 'described', status: 200, body: description }
    call.operation = operation
    call.caller = await authenticate(headers.authorization, findToken)
    this.#authorize(call.caller, operation.right)
    if (operation.hasBody) validateBodyHeaders(request, bodyLimitBytes)
    const bytes = this.#bytesOf(operation, headers['content-length'])
    await memory.take(call.caller.name, bytes, response)
    const read = operation.hasBody ? await body.read(bodyLimitBytes) : Buffer.alloc(0)
    this.waiting += 1
    try {
      return await handlers[operation.id]({ request, response, idText: route.idText, body: read })
    } finally {
      this.waiting -= 1
    }
  }

  /** @throws {HttpError} 403 */
  #authorize(caller: Caller, right: Right): void {
    const isOffered = this.#options.rights.includes(right)
    if (isOffered && caller.rights.includes(right)) return
    const message = isOffered
      ? `This token has no right to ${right} plants`
      : `This service does not ${right} plants`
    const scope = isOffered ? `, scope="${right}"` : ''
    const challenge = `Bearer realm="plants", error="insufficient_scope"${scope}` // RFC 6750, 3.1
    throw new HttpError(403, message, ['WWW-Authenticate', challenge])
  }

  /** What an operation takes: a create those of its body, which are at least those of its response. */
  #bytesOf({ id, right }: Operation, contentLength: string | undefined): number {
    const { bodyLimitBytes } = this.#options
    if (id === 'listPlants') return listBytes
    if (right !== 'create' || contentLength === undefined) return bodyLimitBytes
    return parseInt(contentLength, 10)
  }

  #fail(response: ServerResponse, call: Call, failure: unknown): void {
    const answer = toHttpError(failure, call.requestId)
    const { error, status, body, headers } = answer
    if (error >= 500 && answer !== failure) this.#options.log.error(failure, call.requestId)
    const isOther = call.operation && call.operation.right !== 'create'
    const outcome = String(error)
    this.#send(response, call, { status: isOther ? error : status, body, headers, outcome })
  }

  #send(response: ServerResponse, call: Call, answer: Answer): void {
    const { req: request, destroyed: isAborted } = response
    const { requestId, caller, route, startedAt } = call
    const more = [...corsHeaders(request, this.#options.cors), 'Request-Id', requestId]
    if (!isAborted) respond(response, answer, more)
    this.#options.log.record({
      requestId,
      status: isAborted ? undefined : answer.status,
      outcome: isAborted ? 'aborted' : answer.outcome,
      milliseconds: Math.round((this.#options.now() - startedAt) * 1000) / 1000,
      token: caller?.name,
      method: request.method,
      path: route?.path,
      from: request.socket.remoteAddress,
    })
  }
}
