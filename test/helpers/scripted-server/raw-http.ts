import { once } from 'node:events'
import { connect, type NetConnectOpts, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { waitFor } from '../sandbox/wait.js'

interface RawResponse {
  status: number
  /** The headers by lower-case names. The values of a repeated header are joined by a comma. */
  headers: Record<string, string>
  body: string
  /** The status and the body. Of an Error, it has the message, and the `error` if that differs. */
  text: string
}

export interface RawRequest {
  method?: string
  target?: string
  /** These headers are added to the usual ones, or replace them. Undefined omits one. */
  headers?: Record<string, string | string[] | undefined>
  body?: string | Uint8Array
}

/** Builds the bytes of a valid request, with the changes that a test asks for. */
export function buildRequest(
  token: string,
  { method = 'POST', target = '/plants', headers = {}, body = '' }: RawRequest = {},
): Buffer {
  const bytes = Buffer.from(body)
  const usualHeaders = {
    Host: 'localhost',
    Authorization: `Bearer ${token}`,
    'Content-Type': 'application/json',
    'Content-Length': `${bytes.length}`,
  }
  const lines = Object.entries({ ...usualHeaders, ...headers }).flatMap(([name, value]) =>
    [value ?? []].flat().map((text) => `${name}: ${text}`),
  )
  const head = [`${method} ${target} HTTP/1.1`, ...lines, '', ''].join('\r\n')
  return Buffer.concat([Buffer.from(head, 'latin1'), bytes])
}

export async function connectTo(endpoint: NetConnectOpts): Promise<RawConnection> {
  const connection = new RawConnection(endpoint)
  onTestFinished(() => void connection.socket.destroy())
  const connected = once(connection.socket, 'connect')
  await waitFor(connected, () => `a connection to ${JSON.stringify(endpoint)}`)
  return connection
}

/** Sends a request on a connection of its own, and returns the response. It fails without one. */
export async function exchangeOnce(
  { endpoint, token }: { endpoint: NetConnectOpts; token: string },
  request: RawRequest = {},
): Promise<RawResponse> {
  const connection = new RawConnection(endpoint)
  try {
    const response = await connection.send(buildRequest(token, request)).readResponse(request)
    if (!response) throw new Error('The connection was closed without a response')
    return response
  } finally {
    connection.socket.destroy()
  }
}

/** A connection that sends any bytes, and parses responses strictly. */
export class RawConnection {
  readonly socket: Socket
  #received = Buffer.alloc(0)
  #isEnded = false
  notify = () => {}

  constructor(endpoint: NetConnectOpts) {
    const end = () => {
      this.#isEnded = true
      this.notify()
    }
    this.socket = connect({ allowHalfOpen: true, ...endpoint })
    this.socket.on('end', end).on('error', end).on('close', end)
    this.socket.on('data', (chunk) => {
      this.#received = Buffer.concat([this.#received, chunk])
      this.notify()
    })
  }

  send(bytes: string | Uint8Array): this {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
    return this
  }

  /** Returns the next response, or undefined if the server has closed the connection instead. */
  async readResponse({
    method = 'POST',
    limitMs,
  }: {
    method?: string
    limitMs?: number
  } = {}): Promise<RawResponse | undefined> {
    for (;;) {
      const nextResponse = parseResponse(this.#received, method)
      if (nextResponse) {
        this.#received = this.#received.subarray(nextResponse.length)
        return nextResponse.response
      }
      if (this.#isEnded && this.#received.length === 0) return undefined
      const show = () => this.#received.toString('latin1')
      if (this.#isEnded) throw new Error(`No whole response: ${show()}`)
      const received = new Promise<void>((resolve) => {
        this.notify = resolve
      })
      await waitFor(received, () => `a whole response; so far there is: ${show()}`, limitMs)
    }
  }

  async readResponses(): Promise<RawResponse[]> {
    const responses: RawResponse[] = []
    for (let next = await this.readResponse(); next; next = await this.readResponse())
      responses.push(next)
    return responses
  }
}

/** Parses the response at the start of the bytes; undefined until it is whole (RFC 9112, 6.3). */
function parseResponse(bytes: Buffer, method: string) {
  const start = bytes.indexOf('\r\n\r\n') + 4
  if (start < 4) return undefined
  const [first = '', ...lines] = bytes.toString('latin1', 0, start - 4).split('\r\n')
  const status = Number(/^HTTP\/1\.1 ([1-5]\d\d) [ -~]*$/.exec(first)?.[1])
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const [, name = '', value = ''] = /^([!#$%&'*+.^`|~\w-]+): ?(.*?) *$/.exec(line) ?? []
    const before = headers[name.toLowerCase()]
    headers[name.toLowerCase()] = before === undefined ? value : `${before}, ${value}`
  }
  const hasNoBody = status < 200 || status === 204 || method === 'HEAD'
  const end = start + (hasNoBody ? 0 : Number(headers['content-length']))
  if (!(status && end >= start) || '' in headers)
    throw new Error(`No response with a length: ${JSON.stringify([first, ...lines])}`)
  if (bytes.length < end) return undefined
  const body = bytes.toString('utf8', start, end)
  return { response: { status, headers, body, text: formatResponse(status, body) }, length: end }
}

function formatResponse(status: number, body: string): string {
  const [, error, message = ''] = /^\{"error":(\d+),"message":(".*")\}$/.exec(body) ?? []
  if (error === undefined) return `${status} ${body}`.trimEnd()
  return `${status}${error === `${status}` ? '' : ` (${error})`} ${JSON.parse(message)}`
}
