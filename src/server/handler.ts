import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Right } from '../stores/common/token-store.js'
import { corsHeaders, HttpError, respond, startResponse, toHttpError } from './answer.js'
import { authenticate, type Caller, freshness, type TokenSource } from './authenticator.js'
import { noBody } from './body.js'
import type { Log } from './log.js'
import type { Hold, Shares } from './memory.js'
import type { Operation, OperationId } from './operations.js'
import type { Streams } from './plant-streams.js'
import { validateBodyHeaders, validateHead } from './request-input.js'
import type { Answer, Match, Routes } from './routes.js'
import type { Exchange } from './server.js'

/** An exchange, and what is known of it. */
class Call {
  /** Whether the head is valid. */
  isValid = false
  match: Match | undefined
  operation: Operation | undefined
  caller: Caller | undefined
  /** Milliseconds before the store is asked, without those in which the body came. */
  waited = 0
  readonly exchange: Exchange
  readonly requestId: string
  /** In milliseconds. */
  readonly startedAt: number

  constructor(exchange: Exchange, requestId: string, startedAt: number) {
    this.exchange = exchange
    this.requestId = requestId
    this.startedAt = startedAt
  }
}

/** What an operation is done with. */
export interface OperationInput {
  request: IncomingMessage
  response: ServerResponse
  /** The last segment of the path. */
  id: string
  /** Empty unless the operation has one. */
  body: Buffer
  /** The client has waited so many milliseconds before the store is asked, without those in which its body came. */
  waited: number
}

export type Handlers = Record<OperationId, (input: OperationInput) => Promise<Answer>>

interface HandlerOptions {
  handlers: Handlers
  routes: Routes
  /** Operations of these rights are offered. */
  rights: readonly Right[]
  findToken: TokenSource
  /** In bytes, shared by tokens. */
  memory: Shares
  streams: Streams
  log: Pick<Log, 'record' | 'error'>
  bodyLimit: number
  /** Pages of these origins may use the service: see `Routes`. */
  cors: readonly string[]
  /** Milliseconds, monotonic. */
  now(): number
}

/** In bytes, for a list while it is made: how large its plants are is known when they are read. */
const listSize = 16 * 1_048_576

/** Handles a request from its head to its line in the log. */
export class RequestHandler {
  /** These requests wait for the store. */
  waiting = 0
  readonly #options: HandlerOptions
  readonly #runId = randomBytes(4).toString('hex')
  #count = 0
  readonly #callers = new WeakMap<
    Socket,
    { authorization: string | undefined; caller: Caller; until: number }
  >()

  constructor(options: HandlerOptions) {
    this.#options = options
  }

  readonly handle = async (exchange: Exchange): Promise<void> => {
    const requestId = `${this.#runId}-${(this.#count++).toString(36)}`
    const call = new Call(exchange, requestId, this.#options.now())
    try {
      const answer = await this.#answer(call)
      if (answer.pieces) await this.#stream(call, answer, answer.pieces)
      else this.#send(call, answer)
    } catch (error) {
      this.#fail(call, error)
    }
  }

  /** The checks run in the order of docs/contract.md. */
  async #answer(call: Call): Promise<Answer> {
    const { request, response, body } = call.exchange
    const { routes, memory, bodyLimit } = this.#options
    validateHead(request)
    call.isValid = true
    call.match = routes.match(request.url ?? '')
    const route = routes.routeOf(request, call.match)
    if (!route.hasBody && !request.complete) body.drop()
    if ('answer' in route) return route.answer
    call.operation = route
    call.caller = await this.#callerOf(response)
    this.#authorize(call.caller, route.right)
    if (route.hasBody) validateBodyHeaders(request, bodyLimit)
    const hold = await memory.ask(call.caller.name, this.#sizeOf(request, route), response)
    call.exchange.isAccepted = true
    call.waited = this.#options.now() - call.startedAt
    try {
      return await this.#act(call, route, hold)
    } finally {
      if (response.closed) hold.release()
      else response.once('close', hold.release) // when the client has read it, or has left
    }
  }

  /** Throws 401. That of the connection's last request is known: nobody else can probe how long it takes to compare. */
  async #callerOf(response: ServerResponse): Promise<Caller> {
    const { findToken, now } = this.#options
    const { headers, socket } = response.req
    const known = this.#callers.get(socket)
    if (known && known.authorization === headers.authorization && known.until > now())
      return known.caller
    const caller = await authenticate(response, findToken)
    this.#callers.set(socket, {
      authorization: headers.authorization,
      caller,
      until: now() + freshness / 2,
    })
    return caller
  }

  /** Throws 403. */
  #authorize(caller: Caller, right: Right): void {
    const challenge = 'Bearer realm="plants", error="insufficient_scope"' // RFC 6750, 3.1
    if (!this.#options.rights.includes(right))
      throw new HttpError(403, `This service does not ${right} plants`, [
        'WWW-Authenticate',
        challenge,
      ])
    if (caller.rights.includes(right)) return
    const header = ['WWW-Authenticate', `${challenge}, scope="${right}"`]
    throw new HttpError(403, `This token has no right to ${right} plants`, header)
  }

  /** The bytes that an operation takes: of a create those of its body, which are at least those of its response. */
  #sizeOf({ headers }: IncomingMessage, { id, right }: Operation): number {
    const { bodyLimit } = this.#options
    if (id === 'listPlants') return listSize
    return right === 'create'
      ? parseInt(headers['content-length'] ?? `${bodyLimit}`, 10)
      : bodyLimit
  }

  async #act(call: Call, { id, hasBody }: Operation, hold: Hold): Promise<Answer> {
    const { request, response } = call.exchange
    const body = hasBody ? await this.#read(call) : noBody
    this.waiting += 1
    try {
      const { match, waited } = call
      const answer = await this.#options.handlers[id]({
        request,
        response,
        id: match?.id ?? '',
        body,
        waited,
      })
      hold.resize(Buffer.byteLength(answer.body))
      return answer
    } finally {
      this.waiting -= 1
    }
  }

  /** Throws 413, or 401 if the token was revoked while the body came. */
  async #read(call: Call): Promise<Buffer> {
    const { request, response, body } = call.exchange
    const { bodyLimit, findToken, now } = this.#options
    if (request.headers.expect?.toLowerCase() === '100-continue') response.writeContinue()
    const bytes = await body.read(bodyLimit)
    const time = now()
    if (time - call.startedAt - call.waited <= freshness) return bytes
    await authenticate(response, findToken)
    call.waited += now() - time
    return bytes
  }

  #send(call: Call, answer: Answer): void {
    respond(call.exchange.response, answer, this.#usualHeaders(call))
    this.#record(call, answer.outcome, answer.status)
  }

  #usualHeaders({ exchange, operation, requestId }: Call): string[] {
    const vary = operation?.id === 'listPlants' ? ['Vary', 'Accept'] : []
    return [...vary, ...corsHeaders(exchange.request, this.#options.cors), 'Request-Id', requestId]
  }

  /** Ends early if the client leaves, or the stream is cut. */
  async #stream(
    call: Call,
    { status, contentType = '', outcome }: Answer,
    pieces: AsyncIterable<string>,
  ) {
    const { request, response } = call.exchange
    const { streams, findToken, now } = this.#options
    if (request.httpVersion === '1.0')
      throw new HttpError(400, 'HTTP/1.0 cannot mark the end of a stream: use HTTP/1.1')
    const begin = () => {
      if (!response.headersSent && !response.destroyed)
        startResponse(response, status, ['Content-Type', contentType, ...this.#usualHeaders(call)])
    }
    const token = call.caller?.name ?? ''
    const stream = streams.add({
      token,
      response,
      startedAt: now(),
      authenticate: () => authenticate(response, findToken),
    })
    const closed = new AbortController()
    response.once('close', () => closed.abort())
    try {
      for await (const piece of request.method === 'HEAD' ? [] : pieces) {
        if (response.destroyed) break
        begin()
        const { signal } = closed
        if (!response.write(piece)) await once(response, 'drain', { signal }).catch(() => undefined)
        await new Promise(setImmediate) // a fast reader must not starve other requests
      }
    } finally {
      streams.remove(stream)
    }
    begin()
    const isWhole = !response.destroyed
    response.end()
    if (stream.error) throw stream.error
    if (response.headersSent) this.#record(call, isWhole ? outcome : 'aborted', status)
  }

  /** If the response has begun, destroys the connection, so that the client does not mistake a part for the whole. */
  #fail(call: Call, failure: unknown): void {
    const { requestId, operation, exchange } = call
    const { response, body } = exchange
    body.drop()
    const { headersSent, statusCode } = response
    if (response.destroyed && !headersSent) return void this.#record(call, 'aborted')
    const answer = toHttpError(failure, requestId)
    const { error, status, message, headers } = answer
    const outcome = String(error)
    if (answer !== failure && (error >= 500 || headersSent))
      this.#options.log.error(failure, requestId)
    if (headersSent) {
      response.destroy()
      return void this.#record(call, outcome, statusCode, answer === failure ? message : undefined)
    }
    if (!call.isValid) response.shouldKeepAlive = false // nothing after an invalid head can be trusted
    const isOther = operation && operation.right !== 'create'
    this.#send(call, { status: isOther ? error : status, body: answer.body, headers, outcome })
  }

  /** @param reason of a stream that was cut */
  #record(
    { exchange, requestId, caller, startedAt, match }: Call,
    outcome: string,
    status?: number,
    reason?: string,
  ) {
    const milliseconds = Math.round((this.#options.now() - startedAt) * 1000) / 1000
    const { method, socket } = exchange.request
    const token = caller?.name
    const path = match?.path
    const from = socket.remoteAddress
    this.#options.log.record({
      requestId,
      status,
      outcome,
      milliseconds,
      token,
      method,
      path,
      reason,
      from,
    })
  }
}
