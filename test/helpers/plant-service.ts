import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { onTestFinished } from 'vitest'
import { isLinux } from './linux.js'

export interface Post {
  id: string
  key: string | undefined
  authorization: string | undefined
  index: number
}

/**
 * What is done with a create instead of the usual: an answer; a connection that is reset when the
 * plant is stored ("lose"); or no answer and no plant ("hang").
 */
export type Deed =
  | { status: number; body?: object; headers?: Record<string, string> }
  | 'lose'
  | 'hang'
  | undefined

interface Manner {
  /** whether it keeps keys, and says so */
  isKeyed?: boolean
  deed?(post: Post): Deed | Promise<Deed>
}

/** Of this worker alone, on Linux: no other test gets the port of a service that is away. */
const host = isLinux ? `127.0.1.${process.env['VITEST_POOL_ID'] ?? 1}` : '127.0.0.1'

/** A service that keeps plants in memory, and answers as the specification says. */
export class PlantService {
  readonly posts: Post[] = []
  /** how often a plant was made, by its id */
  readonly made = new Map<string, number>()
  /** that were open at once */
  mostConnections = 0
  readonly #manner: Manner
  readonly #keys = new Map<string, string>()
  readonly #server = createServer((request, response) => void this.#answer(request, response))
  #port = 0

  private constructor(manner: Manner) {
    this.#manner = { isKeyed: true, ...manner }
    let connections = 0
    this.#server.on('connection', (socket) => {
      connections += 1
      this.mostConnections = Math.max(this.mostConnections, connections)
      socket.once('close', () => {
        connections -= 1
      })
    })
  }

  static async listen(manner: Manner = {}): Promise<PlantService> {
    const service = new PlantService(manner)
    await service.comeBack()
    service.#port = (service.#server.address() as AddressInfo).port // of a server on a port
    onTestFinished(() => service.close())
    return service
  }

  get url(): string {
    return `http://${host}:${this.#port}`
  }

  async comeBack(): Promise<void> {
    await once(this.#server.listen(this.#port, host), 'listening')
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    if (this.#server.listening) await new Promise((resolve) => this.#server.close(resolve))
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { isKeyed, deed } = this.#manner
    const say = (status: number, body: object = {}, headers: Record<string, string> = {}) =>
      void response
        .writeHead(status, { 'Content-Type': 'application/json', ...headers })
        .end(JSON.stringify(body))
    if (request.url?.endsWith('/openapi.json')) {
      const parameters = isKeyed ? [{ name: 'Idempotency-Key', in: 'header' }] : []
      return say(200, { paths: { '/plants': { post: { parameters } } } })
    }
    if (request.method === 'GET') return void response.writeHead(405).end()
    const body = await text(request)
    const { 'idempotency-key': key, authorization } = request.headers
    const id = /^\{"id":(-?\d+)/.exec(body)?.[1] ?? ''
    const post = { id, key: key?.toString(), authorization, index: this.posts.length }
    this.posts.push(post)
    const done = await deed?.(post)
    if (done === 'hang') return
    if (typeof done === 'object') return say(done.status, done.body, done.headers)
    const created = this.#create(body, post)
    if (done === 'lose') request.socket.resetAndDestroy()
    else if (created) say(200, created)
    else say(400, { error: 409, message: `A plant with id ${id} already exists` })
  }

  #create(body: string, { id, key = '' }: Post): object | undefined {
    const { name, tag }: { name: string; tag?: string } = JSON.parse(body)
    if (this.#manner.isKeyed && key !== '' && this.#keys.get(key) === body) return { name, tag }
    if (this.made.has(id)) return undefined
    this.made.set(id, 1)
    this.#keys.set(key, body)
    return { name, tag }
  }
}
