/**
 * Writes responses.
 *
 * A commit answers many requests in one tick. So a response to one of them is written when all of
 * them are built: each write wakes its client, which then competes for the processor, and the
 * responses of one commit took 1.3 times as long.
 */
import { type ServerResponse, STATUS_CODES } from 'node:http'

export interface ServiceResponse {
  status: number
  /** The default is JSON. */
  contentType?: string
  body: string
  /** Names and values alternate. */
  headers?: readonly string[]
}

/** Node.js keeps a buffer of the size of the largest write to a TLS connection. */
const maxTlsWriteBytes = 65_536

/** @param moreHeaders those of every response; names and values alternate */
export function respond(
  response: ServerResponse,
  content: ServiceResponse,
  moreHeaders: readonly string[] = [],
): void {
  const { body } = content
  const bodyBytes = Buffer.byteLength(body)
  writeHead(response, content, bodyBytes, moreHeaders)
  // The Content-Length of a HEAD is that of the body which a GET would get.
  if (response.req.method === 'HEAD') response.end()
  else if (bodyBytes > maxTlsWriteBytes && 'encrypted' in response.req.socket)
    writeInBlocks(response, Buffer.from(body))
  else writeAtEndOfTick(response, body, bodyBytes)
}

function writeHead(
  response: ServerResponse,
  { status, contentType = 'application/json', headers = [] }: ServiceResponse,
  bodyBytes: number,
  moreHeaders: readonly string[],
): void {
  const allHeaders = status === 204 ? [] : ['Content-Type', contentType]
  if (status !== 204) allHeaders.push('Content-Length', `${bodyBytes}`)
  allHeaders.push(...headers, ...moreHeaders)
  response.writeHead(status, allHeaders)
}

function writeAtEndOfTick(response: ServerResponse, body: string, bodyBytes: number): void {
  // Without this, `end` with a body would make a second write.
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
 * Formats a response to what node:http gives no response object for. It closes the connection.
 *
 * @param method undefined if node:http has not read it
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
  const hasBody = method !== 'HEAD'
  return `${head}\r\n\r\n${hasBody ? body : ''}`
}
