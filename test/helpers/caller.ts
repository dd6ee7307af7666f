import { once } from 'node:events'
import { Agent, type IncomingMessage, request as send } from 'node:http'
import { text } from 'node:stream/consumers'

interface CallOptions {
  method: 'GET' | 'POST'
  path: string
  headers?: Record<string, string>
  body?: string | Buffer
}

/** Asks a service over at most so many connections, which are kept. */
export class Caller {
  readonly #agent: Agent
  readonly #place: { host: string; port: string } | { socketPath: string }

  constructor(address: string, connections: number, socketPath?: string) {
    const { hostname, port } = new URL(address)
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections })
    this.#place = socketPath === undefined ? { host: hostname, port } : { socketPath }
  }

  /** Throws what the system says of a connection that ends. */
  async request({ body, ...options }: CallOptions) {
    const request = send({ ...this.#place, ...options, agent: this.#agent })
    request.on('error', () => undefined) // also those that come after the answer
    request.end(body)
    const [answer]: IncomingMessage[] = await once(request, 'response')
    if (!answer) throw new Error('A response comes with itself')
    return { status: answer.statusCode ?? 0, headers: answer.headers, text: await text(answer) }
  }

  destroy(): void {
    this.#agent.destroy()
  }
}
