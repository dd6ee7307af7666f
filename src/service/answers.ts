import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Exchange } from './log.js'
import { errorBody, type Refusal, refusalOf } from './refusal.js'

export interface Witness {
  /** milliseconds, never going back */
  now(): number
  record(exchange: Exchange): void
  /** tells of a failure that is not the caller's */
  complain(requestId: string, error: unknown): void
}

/**
 * Answers requests, and tells what came of them. Answers are written to node:http directly: Fastify's own way gives JSON
 * a charset, which it does not have (RFC 8259, 11), and takes a third more time.
 */
export class Answers {
  readonly #witness: Witness

  constructor(witness: Witness) {
    this.#witness = witness
  }

  /** @param headers names and values, one after the other */
  send(request: FastifyRequest, reply: FastifyReply, answer: { outcome: string; status: number; json: string; headers?: string[] }): void {
    const { id: requestId, token, began } = request
    const { outcome, status, json, headers = [] } = answer
    reply.hijack()
    respond(reply.raw, status, json, ['Request-Id', requestId, ...headers])
    // A path that cannot be decoded comes in a request that Fastify has not decorated.
    const milliseconds = began ? Math.round((this.#witness.now() - began) * 1000) / 1000 : undefined
    this.#witness.record({ requestId, status, outcome, milliseconds, token, ...(outcome === 'created' ? {} : whereabouts(request.raw)) })
  }

  refuse(request: FastifyRequest, reply: FastifyReply, error: unknown): void {
    const refusal = refusalOf(error, request.id)
    if (refusal.status >= 500) this.#witness.complain(request.id, error)
    const { status, error: value, headers } = refusal
    this.send(request, reply, { outcome: String(value), status, json: errorBody(refusal), headers: Object.entries(headers).flat() })
  }
}

/** What a refusal was about: without the query, which may hold what is nobody's business. */
function whereabouts({ method, url, socket }: IncomingMessage): Pick<Exchange, 'method' | 'path' | 'from'> {
  return {
    method,
    path: url
      ?.replace(/[?#].*/s, '')
      .replace(/plants_[\w-]{20,}/g, '***')
      .slice(0, 200),
    from: socket.remoteAddress,
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
export function respond(response: ServerResponse, status: number, json: string, headers: string[]): void {
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
}
