import { randomBytes } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Right } from '../stores/common/token-store.js'
import {
  corsHeaders,
  type HttpAnswer,
  HttpError,
  invalidHttp,
  isPreflight,
  preflightHeaders,
  respond,
  toHttpError,
} from './answer.js'
import { authenticate, type Caller, type TokenSource } from './authenticator.js'
import type { Body } from './body.js'
import type { Log } from './log.js'
import type { Memory } from './memory.js'
import { validateBodyHeaders, validateHead } from './request-input.js'
import { type Operation, type OperationId, operationOf, type Route, routeOf } from './routes.js'

export interface Answer extends HttpAnswer {
  /** As the log and the metrics name it. */
  outcome: string
}

/** What an operation is done with. */
export interface OperationInput {
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
  /** Pages of these origins may use the service; `*` stands for all. */
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

const noBody = Buffer.alloc(0)

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
    body.drop()
  }

  /** The checks run in the order of docs/contract.md. */
  async #answer(response: ServerResponse, body: Body, call: Call): Promise<Answer> {
    const { handlers, description, basePath, cors, findToken, memory } = this.#options
    const { bodyLimitBytes } = this.#options
    const { req: request } = response
    const { method = '', url = '', headers } = request
    validateHead(request)
    call.route = routeOf(url, basePath)
    if (isPreflight(request, cors))
      return { outcome: 'preflight', status: 204, body: '', headers: preflightHeaders }
    const operation = operationOf(call.route, method)
    if (operation === 'describe') return { outcome: 'described', status: 200, body: description }
    call.operation = operation
    call.caller = await authenticate(headers.authorization, findToken)
    this.#authorize(call.caller, operation.right)
    if (operation.hasBody) validateBodyHeaders(request, bodyLimitBytes)
    const bytes = this.#bytesOf(operation, headers['content-length'])
    await memory.take(call.caller.name, bytes, response)
    const { idText } = call.route
    const read = operation.hasBody ? await body.read(bodyLimitBytes) : noBody
    this.waiting += 1
    try {
      return await handlers[operation.id]({ request, response, idText, body: read })
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
    // Nothing after an invalid head can be trusted.
    if (failure === invalidHttp) response.shouldKeepAlive = false
    const isOther = call.operation && call.operation.right !== 'create'
    const outcome = String(error)
    this.#send(response, call, { status: isOther ? error : status, body, headers, outcome })
  }

  #send(response: ServerResponse, call: Call, answer: Answer): void {
    const isAborted = response.destroyed
    const more = [...corsHeaders(response.req, this.#options.cors), 'Request-Id', call.requestId]
    if (!isAborted) respond(response, answer, more)
    const { outcome, status } = isAborted ? { outcome: 'aborted', status: undefined } : answer
    this.#record(response, call, outcome, status)
  }

  #record({ req: request }: ServerResponse, call: Call, outcome: string, status?: number): void {
    const { requestId, caller, route, startedAt } = call
    const milliseconds = Math.round((this.#options.now() - startedAt) * 1000) / 1000
    const { method, socket } = request
    const token = caller?.name
    const path = route?.path
    const from = socket.remoteAddress
    const entry = { requestId, status, outcome, milliseconds, token, method, path, from }
    this.#options.log.record(entry)
  }
}
