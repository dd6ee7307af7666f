import { type IncomingMessage, METHODS, type ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { errorBody, type Refusal, refusalOf } from './errors.js'
import type { Exchange } from './log.js'

export interface Witness {
  /** milliseconds, never going back */
  now(): number
  record(exchange: Exchange): void
  /** tells of a failure that is not the caller's */
  complain(requestId: string, error: unknown): void
}

interface Answer {
  outcome: string
  status: number
  json: string | Buffer
  /** names and values, one after the other */
  headers?: string[]
}

/**
 * Answers requests, and tells what came of them. Answers are written to node:http directly: Fastify's own way gives JSON
 * a charset, which it does not have (RFC 8259, 11), and takes a third more time.
 */
export class Answers {
  readonly #witness: Witness
  readonly #paths: readonly string[]

  /** @param paths what may be named in the log: another one may hold a token, or anything else */
  constructor(witness: Witness, paths: readonly string[]) {
    this.#witness = witness
    this.#paths = paths
  }

  send(request: FastifyRequest, reply: FastifyReply, answer: Answer): void {
    const { id: requestId, token, began } = request
    const { outcome, status, json, headers = [] } = answer
    reply.hijack()
    respond(reply.raw, status, json, ['Request-Id', requestId, ...headers])
    // A path that cannot be decoded comes in a request that Fastify has not decorated.
    const milliseconds = began ? Math.round((this.#witness.now() - began) * 1000) / 1000 : undefined
    const where = outcome === 'created' ? {} : this.#whereabouts(request.raw)
    this.#witness.record({ requestId, status, outcome, milliseconds, token, ...where })
  }

  refuse(request: FastifyRequest, reply: FastifyReply, error: unknown): void {
    if (reply.raw.headersSent) {
      this.#witness.complain(request.id, error)
      reply.raw.destroy()
      return
    }
    const refusal = refusalOf(error, request.id)
    if (refusal.status >= 500) this.#witness.complain(request.id, error)
    const { status, error: value, headers } = refusal
    this.send(request, reply, { outcome: String(value), status, json: errorBody(refusal), headers: Object.entries(headers).flat() })
  }

  #whereabouts({ method = '', url = '', socket }: IncomingMessage): Pick<Exchange, 'method' | 'path' | 'from'> {
    const path = url.replace(/[?#].*/s, '')
    return {
      method: METHODS.includes(method) ? method : undefined,
      path: this.#paths.includes(path) ? path : undefined,
      from: socket.remoteAddress,
    }
  }
}

/** Answers a request that goes no further, and closes its connection. */
export function refuseAndClose(response: ServerResponse, refusal: Refusal): void {
  response.shouldKeepAlive = false
  respond(response, refusal.status, errorBody(refusal), [])
}

/**
 * Writes a whole answer.
 *
 * @param headers names and values, one after the other
 */
export function respond(response: ServerResponse, status: number, json: string | Buffer, headers: string[]): void {
  const length = String(Buffer.byteLength(json))
  response.writeHead(status, [
    'Content-Type',
    'application/json',
    'Content-Length',
    length,
    'X-Content-Type-Options',
    'nosniff',
    ...headers,
  ])
  response.end(json)
  if (!response.req.complete) response.req.resume() // nobody reads its body, and node:http would keep it until the answer is taken
}
