import type { ServerResponse } from 'node:http'

export interface HttpAnswer {
  status: number
  /** application/json by default */
  contentType?: string
  body: string | Buffer
  /** alternating names and values */
  headers?: readonly string[] | undefined
}

/** Those that every response to a request has because of its Origin. */
export const originHeaders = new WeakMap<ServerResponse, readonly string[]>()

export function respond(response: ServerResponse, answer: HttpAnswer, requestId?: string): void {
  const { status, contentType = 'application/json', body, headers = [] } = answer
  if (status === 204) {
    respondWith(response, status, headers, requestId)
    return void response.end()
  }
  const length = Buffer.byteLength(body)
  // `end` with a body would make a second write.
  response.cork()
  respondWith(response, status, ['Content-Type', contentType, 'Content-Length', String(length), ...headers], requestId)
  response.write(body, length === body.length ? 'latin1' : 'utf8')
  response.uncork()
  response.end()
}

export function respondWith(
  response: ServerResponse,
  status: number,
  headers: readonly string[],
  requestId?: string,
): void {
  const own = ['X-Content-Type-Options', 'nosniff', ...(originHeaders.get(response) ?? [])]
  if (requestId !== undefined) own.push('Request-Id', requestId)
  response.writeHead(status, [...headers, ...own])
  // node:http would buffer an unread body until the client has read the response.
  if (!response.req.readableEnded) response.req.resume()
}
