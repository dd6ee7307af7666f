import { EventEmitter, once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { createServer as createSecureServer, type TlsOptions } from 'node:tls'
import { onTestFinished } from 'vitest'

/** Nothing listens on this port, and the system never chooses it for a test. */
export const closedPort = 9

interface ReceivedRequest {
  line: string
  /** The headers by their lower-case names. */
  headers: Record<string, string>
  body: string
}

export type ScriptedResponse =
  | string
  | Buffer
  | ((socket: Socket, request: ReceivedRequest) => void)

interface Script {
  /** The response to each POST in turn. The last one is repeated. */
  posts?: ScriptedResponse[]
  /** The responses to other requests, by their first lines without a query: `GET /plants/1`. */
  others?: Record<string, ScriptedResponse[]>
  openapi?: ScriptedResponse
  onConnect?(socket: Socket): void
  tls?: TlsOptions
  host?: string
}

/** A server that answers as its script says, and keeps the requests. */
export class ScriptedServer extends EventEmitter<{ connection: []; request: [ReceivedRequest] }> {
  port = 0
  connections = 0
  bytes = Buffer.alloc(0)
  readonly requests: ReceivedRequest[] = []
  readonly #script: Script
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  private constructor(script: Script) {
    super()
    this.#script = script
    const accept = (socket: Socket) => this.#accept(socket)
    this.#server = script.tls ? createSecureServer(script.tls, accept) : createServer(accept)
  }

  static async listen(script: Script): Promise<ScriptedServer> {
    const server = new ScriptedServer(script)
    await server.listenAgain()
    onTestFinished(() => server.close())
    return server
  }

  /** Listens again on the port that it had before. */
  async listenAgain(): Promise<void> {
    const { host = '127.0.0.1' } = this.#script
    await once(this.#server.listen(this.port, host), 'listening')
    this.port = (this.#server.address() as AddressInfo).port // of a server on a port
  }

  get url(): string {
    return `${this.#script.tls ? 'https' : 'http'}://127.0.0.1:${this.port}`
  }

  get lines(): string[] {
    return this.requests.map(({ line }) => line)
  }

  get posts(): ReceivedRequest[] {
    return this.requests.filter(({ line }) => line.startsWith('POST'))
  }

  get keys(): (string | undefined)[] {
    return this.posts.map(({ headers }) => headers['idempotency-key'])
  }

  closeConnections(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async close(): Promise<void> {
    this.closeConnections()
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve))
  }

  #accept(socket: Socket): void {
    this.connections += 1
    this.#sockets.add(socket)
    socket.on('error', () => undefined) // the other side may hang up on whatever it is sent
    socket.once('close', () => this.#sockets.delete(socket))
    let incompleteRequest: Buffer = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      const isHello = chunk[0] === 0x16 && socket.bytesRead === chunk.length // of TLS
      if (isHello) return void socket.destroy()
      this.bytes = Buffer.concat([this.bytes, chunk])
      incompleteRequest = this.answerCompleteRequests(
        Buffer.concat([incompleteRequest, chunk]),
        socket,
      )
    })
    this.#script.onConnect?.(socket)
    this.emit('connection')
  }

  /** Answers each complete request, and returns the bytes of an incomplete one. */
  answerCompleteRequests(bytes: Buffer, socket: Socket): Buffer {
    const end = bytes.indexOf('\r\n\r\n')
    if (end < 0) return bytes
    const [line = '', ...fields] = bytes.toString('latin1', 0, end).split('\r\n')
    const headers: Record<string, string> = {}
    for (const field of fields) {
      const [name = '', value = ''] = field.split(/: *(.*)/, 2)
      headers[name.toLowerCase()] = value.trim()
    }
    const next = end + 4 + Number(headers['content-length'] ?? 0)
    if (bytes.length < next) return bytes
    const body = bytes.toString('utf8', end + 4, next)
    const request = { line: line.replace(/ HTTP.*/, ''), headers, body }
    this.requests.push(request)
    this.#answer(request, socket)
    this.emit('request', request)
    return this.answerCompleteRequests(bytes.subarray(next), socket)
  }

  #answer(request: ReceivedRequest, socket: Socket): void {
    const { line } = request
    const { posts = [], openapi = buildResponse(404), others = {} } = this.#script
    const otherResponses = others[line.replace(/\?.*/s, '')] ?? []
    const response = line.startsWith('POST')
      ? (posts[this.posts.length - 1] ?? posts.at(-1))
      : ((otherResponses.length > 1 ? otherResponses.shift() : otherResponses[0]) ?? openapi)
    if (typeof response === 'function') response(socket, request)
    else if (response !== undefined) socket.write(response)
  }
}

/**
 * Starts a proxy that forwards requests in absolute form, and opens every tunnel.
 *
 * @param options.to the port to which it connects; by default, that of each request
 * @param options.errorStatus the status with which it answers every request instead
 */
export async function startForwardProxy(options: { to?: number; errorStatus?: number } = {}) {
  const { to, errorStatus } = options
  const openTunnel = (socket: Socket) => {
    const { hostname, port } = new URL(`http://${proxy.lines.at(-1)?.replace('CONNECT ', '')}`)
    const onward = connect(to ?? Number(port), to ? '127.0.0.1' : hostname, () =>
      socket.write('HTTP/1.1 200 Connected\r\n\r\n'),
    )
    socket.once('close', () => onward.destroy())
    onward.on('error', () => socket.destroy()).pipe(socket)
    const record = (chunk: Buffer) => {
      proxy.bytes = Buffer.concat([proxy.bytes, chunk])
    }
    socket.removeAllListeners('data').on('data', record).pipe(onward)
  }
  const forwardOrOpenTunnel: ScriptedResponse = (socket, request) =>
    request.line.startsWith('CONNECT') ? openTunnel(socket) : forward(socket, request, to)
  const response = errorStatus === undefined ? forwardOrOpenTunnel : buildResponse(errorStatus)
  const proxy = await ScriptedServer.listen({ openapi: response, posts: [response] })
  return proxy
}

/** Forwards a request without its headers for the proxy (RFC 9110, 7.6.1). */
function forward(socket: Socket, { line, headers, body }: ReceivedRequest, to?: number): void {
  const [method = '', target = ''] = line.split(' ')
  const { hostname, port, pathname, search } = new URL(target)
  const fields = Object.entries(headers).filter(([name]) => !name.startsWith('proxy-'))
  const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const onward = connect(to ?? Number(port || 80), to ? '127.0.0.1' : hostname, () =>
    onward.write(`${method} ${pathname}${search} HTTP/1.1\r\n${head}\r\n${body}`),
  )
  socket.once('close', () => onward.destroy())
  onward.on('error', () => socket.destroy()).pipe(socket)
}

type Fields = Record<string, string | number>

export function buildResponse(
  status: number,
  body: string | Buffer = '',
  headers: Fields = {},
): Buffer {
  const fields = Object.entries({ 'Content-Length': Buffer.byteLength(body), ...headers })
  const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  const start = Buffer.from(`HTTP/1.1 ${status} Said\r\n${head}\r\n`)
  return Buffer.concat([start, Buffer.from(body)])
}

export function buildJsonResponse(status: number, value: unknown, headers?: Fields): Buffer {
  const body = typeof value === 'string' ? value : JSON.stringify(value)
  return buildResponse(status, body, { 'Content-Type': 'application/json', ...headers })
}
