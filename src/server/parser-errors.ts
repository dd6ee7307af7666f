import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { systemCode } from '../platform/errors.js'
import type { Exchanges } from './connections.js'
import type { Exchange } from './log.js'
import { errorBody, notHttp, type Refusal, refused, refusedWith } from './refusal.js'

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
