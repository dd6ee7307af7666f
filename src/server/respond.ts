/**
 * Writes responses.
 *
 * The store commits many requests together, which all get their responses in one tick. A response
 * is therefore not written before all of them are built. Each write wakes a client, which then
 * competes with the service for the processor: with a write after each response, the responses of
 * one commit took 1.3 times as long.
 */
import { type ServerResponse, STATUS_CODES } from 'node:http'

export interface ServiceResponse {
  status: number
  /** The log and the metrics show this, such as `created`. The default is the status. */
  outcome?: string
  /** The default is `application/json`. */
  contentType?: string
  body: string
  /** Names and values alternate, as in `response.writeHead`: `['Allow', 'GET']`. */
  headers?: readonly string[]
}

/**
 * Node.js keeps, for each TLS connection, a buffer of the size of the largest write to it. A list
 * of 4 MiB would leave so much memory at each connection that once had one.
 */
const maxTlsWriteBytes = 65_536

/** @param commonHeaders every response has these headers, such as Request-Id */
export function respond(
  response: ServerResponse,
  serviceResponse: ServiceResponse,
  commonHeaders: readonly string[] = [],
): void {
  const { body } = serviceResponse
  const bodyBytes = Buffer.byteLength(body)
  writeHead(response, serviceResponse, bodyBytes, commonHeaders)
  // The response to a HEAD has the Content-Length of the body that a GET would get, and no body
  // (RFC 9110, 9.3.2).
  if (response.req.method === 'HEAD') response.end()
  else if (bodyBytes > maxTlsWriteBytes && 'encrypted' in response.req.socket)
    writeInBlocks(response, Buffer.from(body))
  else writeAtEndOfTick(response, body, bodyBytes)
}

function writeHead(
  response: ServerResponse,
  { status, contentType = 'application/json', headers = [] }: ServiceResponse,
  bodyBytes: number,
  commonHeaders: readonly string[],
): void {
  const allHeaders = status === 204 ? [] : ['Content-Type', contentType]
  if (status !== 204) allHeaders.push('Content-Length', `${bodyBytes}`)
  allHeaders.push(...headers, ...commonHeaders)
  response.writeHead(status, allHeaders)
}

function writeAtEndOfTick(response: ServerResponse, body: string, bodyBytes: number): void {
  // Without `cork`, the head and the body would be two writes.
  response.cork()
  const isAscii = bodyBytes === body.length
  response.write(body, isAscii ? 'latin1' : 'utf8')
  queueMicrotask(() => {
    response.uncork()
    response.end()
  })
}

function writeInBlocks(response: ServerResponse, bytes: Buffer): void {
  if (bytes.length <= maxTlsWriteBytes) {
    response.end(bytes)
    return
  }
  response.write(bytes.subarray(0, maxTlsWriteBytes), (error) => {
    if (!error) writeInBlocks(response, bytes.subarray(maxTlsWriteBytes))
  })
}

/**
 * Formats a response for which node:http gives no response object, because the client did not send
 * a valid request. The connection must be closed after this response.
 *
 * @param method undefined if node:http has not read the method of the request
 */
export function formatRawResponse(
  { status, body }: Pick<ServiceResponse, 'status' | 'body'>,
  method: string | undefined,
): string {
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ].join('\r\n')
  return `${head}\r\n\r\n${method === 'HEAD' ? '' : body}`
}
