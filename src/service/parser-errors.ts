import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { systemCode } from '../errors.js'
import type { Exchange } from './log.js'
import { errorBody, type Refusal, refused, refusedWith } from './refusal.js'

/** By the code that node:http or its parser gives; any other is a request that is broken. */
const refusals: Record<string, Refusal> = {
  HPE_HEADER_OVERFLOW: refusedWith(431, 'The headers are too large').refusal,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: refused(413, 'The extensions of the chunks are too large').refusal,
  ERR_HTTP_REQUEST_TIMEOUT: refusedWith(408, 'The request did not come in time').refusal,
}

/**
 * Answers what the parser of node:http refuses, and closes the connection.
 *
 * @param open the responses on this connection that are not finished, in the order of their requests
 * @returns what it was, or undefined when there is nobody to answer, or they were answered before
 */
export function answerParserError(error: Error, socket: Duplex, open: readonly ServerResponse[]): Exchange | undefined {
  const code = systemCode(error) ?? ''
  if (closing.has(socket)) return undefined
  closing.add(socket)
  if (!socket.writable || code === 'ECONNRESET' || code === 'EPIPE') {
    socket.destroy()
    return undefined
  }
  const refusal = refusals[code] ?? refused(400, 'The request is not HTTP/1.1 as RFC 9112 has it').refusal
  const broken = open.at(-1)?.req.complete === false ? open.at(-1) : undefined
  const before = open.filter((response) => response !== broken).at(-1)
  const close = () => (broken?.headersSent ? lingerThenClose(socket) : answerRaw(socket, refusal))
  // What is in order is answered first.
  if (before) before.once('close', close)
  else close()
  return { outcome: String(refusal.error), code }
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
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  lingerThenClose(socket)
}

/** connections whose last answer is on its way */
const closing = new WeakSet<Duplex>()

/**
 * Closes our side, and a little later all (RFC 9112, 9.6): to close on what is still coming in would take the answer away
 * from whoever sends it.
 */
export function lingerThenClose(socket: Duplex): void {
  socket.end()
  socket.on('error', () => socket.destroy())
  socket.resume()
  const timer = setTimeout(() => socket.destroy(), 1000)
  socket.once('end', () => socket.destroy())
  socket.once('close', () => clearTimeout(timer))
}
