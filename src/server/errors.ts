import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { toWireJson } from '../plant/json.js'
import { PlantsError, systemCode } from '../platform/errors.js'
import type { Exchanges } from './connections.js'
import type { Exchange } from './log.js'

/** What the service answers when it does not create a plant: the specification's Error, the status, and what else HTTP wants. */
export interface Refusal {
  status: number
  error: number
  message: string
  headers: Record<string, string>
}

/** A refusal on its way to the one place that answers. */
export class Refused extends Error {
  readonly refusal: Refusal

  constructor(refusal: Refusal, cause?: unknown) {
    super(refusal.message, { cause })
    this.refusal = refusal
  }
}

/** A refusal of the operation itself: the status is 400, as the specification says, and `error` tells the reason. */
export function refused(error: 400 | 401 | 409 | 413 | 415 | 422, message: string, headers: Record<string, string> = {}): Refused {
  return new Refused({ status: 400, error, message, headers })
}

/** A refusal outside of the operation: the status is the `error`. */
export function refusedWith(status: 404 | 405 | 408 | 431 | 500 | 503, message: string, headers: Record<string, string> = {}): Refused {
  return new Refused({ status, error: status, message, headers })
}

/** What the parser of node:http refuses, or should. */
export const notHttp = 'The request is not HTTP/1.1 as RFC 9112 has it'

/** Refuses what would be more than the service can hold. */
export function busy(): Refused {
  return refusedWith(503, 'The service is busy, and nothing was stored', comeAgain)
}

/** "Come again, nothing was stored": in how many seconds. */
const comeAgain = { 'Retry-After': '1' }

/**
 * What a caller gets to know of a failure. Of the inside it gets no more than the id of the request.
 *
 * @param requestId what the log calls the request
 */
export function refusalOf(error: unknown, requestId: string): Refusal {
  if (error instanceof Refused) return error.refusal
  const kind = error instanceof PlantsError ? error.kind : 'defect'
  const inside = `Ask its operator about the request ${requestId}`
  if (error instanceof PlantsError && kind === 'conflict') return refused(409, error.message).refusal
  if (kind === 'unavailable') return refusedWith(503, `The store is not available, and nothing was stored. ${inside}`, comeAgain).refusal
  const message = kind === 'unknownOutcome' ? 'Whether the plant is stored is not known' : 'The service made a mistake'
  return refusedWith(500, `${message}. ${inside}`).refusal
}

/** The specification's Error. */
export function errorBody({ error, message }: Pick<Refusal, 'error' | 'message'>): string {
  return toWireJson({ error, message })
}

/** By the code that node:http or its parser gives; any other is a request that is broken. */
const refusals: Record<string, Refusal> = {
  HPE_HEADER_OVERFLOW: refusedWith(431, 'The headers are too large').refusal,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: refused(413, 'The extensions of the chunks are too large').refusal,
  ERR_HTTP_REQUEST_TIMEOUT: refusedWith(408, 'The request did not come in time').refusal,
}

/**
 * Answers what the parser of node:http refuses, and closes the connection.
 *
 * @param exchanges the responses on this connection that are not finished, in the order of their requests, and the last of all
 * @returns what it was, or undefined when there is nobody to answer, or they were answered before
 */
export function answerParserError(error: Error, socket: Duplex, { open, last }: Readonly<Exchanges>): Exchange | undefined {
  const code = systemCode(error) ?? ''
  if (closing.has(socket)) return undefined
  closing.add(socket)
  // Bytes behind an answer that closes the connection, or the rest of a body whose request was answered before it came.
  if (code === 'HPE_CLOSED_CONNECTION' || (last?.writableFinished && !last.req.complete)) {
    whenAnswered(open.at(-1), () => lingerThenClose(socket))
    return undefined
  }
  if (!socket.writable || code === 'ECONNRESET' || code === 'EPIPE') {
    socket.destroy()
    return undefined
  }
  const refusal = refusals[code] ?? refused(400, notHttp).refusal
  const broken = open.at(-1)?.req.complete === false ? open.at(-1) : undefined
  const before = open.filter((response) => response !== broken).at(-1)
  const close = () => (broken?.headersSent ? lingerThenClose(socket) : answerRaw(socket, refusal))
  whenAnswered(before, close)
  return { outcome: String(refusal.error), code }
}

/** What is in order is answered first. */
export function whenAnswered(before: ServerResponse | undefined, next: () => void): void {
  if (before) before.once('close', next)
  else next()
}

/** Answers where there is no response object of node:http, and closes the connection. */
export function answerRaw(socket: Duplex, refusal: Refusal): void {
  const body = errorBody(refusal)
  const head = [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'X-Content-Type-Options: nosniff',
    'Connection: close',
  ]
  if (socket.writable) socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  lingerThenClose(socket)
}

/** connections whose last answer is on its way */
const closing = new WeakSet<Duplex>()

/** connections whose last answer is sent */
const lingering = new WeakSet<Duplex>()

/**
 * Closes our side, and a little later all (RFC 9112, 9.6): to close on what is still coming in would take the answer away
 * from whoever sends it.
 */
export function lingerThenClose(socket: Duplex): void {
  if (lingering.has(socket)) return
  lingering.add(socket)
  closing.add(socket)
  socket.end()
  socket.on('error', () => socket.destroy())
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), 1000)
  socket.once('end', () => socket.destroy())
  socket.once('close', () => clearTimeout(timer))
}
