import type { Dispatcher } from 'undici'
import buildConnector from 'undici/lib/core/connect.js'
import Pool from 'undici/lib/dispatcher/pool.js'
import type { Access, Observer, RemoteAddress } from '../store.js'
import { compileParserOnce } from './parser.js'
import { Sockets } from './sockets.js'

/** What a service answered, as it came. */
export interface Answer {
  status: number
  headers: Readonly<Record<string, string | string[] | undefined>>
  body: Buffer
  /** false when the body was longer than is read */
  isWhole: boolean
}

/** An exchange that ended without an answer. Its cause is what the system or the connection says. */
export class NoAnswer extends Error {
  /** whether the service may have got the request */
  readonly isSent: boolean

  constructor(cause: unknown, isSent: boolean) {
    super('No answer', { cause })
    this.isSent = isSent
  }
}

export interface Request {
  method: 'GET' | 'POST'
  path: string
  headers: Record<string, string>
  body?: string
}

/** The request of a create: the specification's one operation. */
export function requestToCreate({ token, userAgent }: Access, body: string, idempotencyKey?: string): Request {
  const headers = {
    ...{ accept: 'application/json', authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    'user-agent': userAgent,
  }
  return { method: 'POST', path: '/plants', headers, body }
}

/** Connections to one service. */
export class Connection {
  readonly #address: RemoteAddress
  readonly #dispatcher: Dispatcher
  readonly #sockets: Sockets
  readonly #observer: Observer | undefined

  private constructor(address: RemoteAddress, dispatcher: Dispatcher, sockets: Sockets, observer: Observer | undefined) {
    this.#address = address
    this.#dispatcher = dispatcher
    this.#sockets = sockets
    this.#observer = observer
  }

  static async open(address: RemoteAddress, access: Access): Promise<Connection> {
    compileParserOnce()
    const sockets = new Sockets(access.observer)
    return new Connection(address, await dispatcherOf(address, access, sockets), sockets, access.observer)
  }

  /**
   * Sends a request below the base_url and reads the answer, up to 1 MiB. Redirects are not followed, and nothing is unpacked.
   *
   * @param signal ends it, with its reason as the cause
   * @throws {NoAnswer}
   */
  send(request: Request, signal: AbortSignal): Promise<Answer> {
    const { origin, pathname } = this.#address.url
    const path = `${pathname.replace(/\/$/, '')}${request.path}`
    const shown = { ...request, url: `${this.#address.name}${request.path}`, length: Buffer.byteLength(request.body ?? '') }
    const watch = this.#observer && { observer: this.#observer, request: shown }
    return new Promise((resolve, reject) => {
      const reader = new Reader(signal, watch, resolve, reject)
      this.#dispatcher.dispatch({ ...request, origin, path, headersTimeout: 0, bodyTimeout: 0 }, reader)
    })
  }

  async close(): Promise<void> {
    this.#sockets.destroy()
    await this.#dispatcher.destroy()
  }
}

async function dispatcherOf({ url, socketPath }: RemoteAddress, { ca, proxy }: Access, sockets: Sockets): Promise<Dispatcher> {
  const tls = { rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) } // whatever NODE_TLS_REJECT_UNAUTHORIZED says
  const place = socketPath === undefined ? {} : { socketPath }
  if (proxy === undefined) return new Pool(url.origin, { connect: sockets.watch(buildConnector({ ...tls, ...place })) })
  const { proxyAgent } = await import('./proxy.js')
  return proxyAgent(proxy, url.protocol === 'https:', tls, sockets)
}

/** bytes of an answer that are read */
const answerLimit = 1_048_576

/** Who is told of a request, and what of it is shown. */
interface Watch {
  observer: Observer
  request: Parameters<Observer['sent']>[0]
}

class Reader implements Dispatcher.DispatchHandler {
  readonly #signal: AbortSignal
  readonly #watch: Watch | undefined
  readonly #resolve: (answer: Answer) => void
  readonly #reject: (error: NoAnswer) => void
  readonly #start = performance.now()
  readonly #chunks: Buffer[] = []
  #controller: Dispatcher.DispatchController | undefined
  #length = 0
  #head: Pick<Answer, 'status' | 'headers'> | undefined

  constructor(signal: AbortSignal, watch: Watch | undefined, resolve: (answer: Answer) => void, reject: (error: NoAnswer) => void) {
    this.#signal = signal
    this.#watch = watch
    this.#resolve = resolve
    this.#reject = reject
    if (signal.aborted) queueMicrotask(this.#abort)
    signal.addEventListener('abort', this.#abort, { once: true })
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.#watch?.observer.sent(this.#watch.request)
    if (this.#signal.aborted) controller.abort(new Error('Too late'))
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: Answer['headers']): void {
    this.#head = { status, headers }
    this.#watch?.observer.answered(this.#head, this.#elapsed())
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#length += chunk.length
    this.#chunks.push(chunk)
    if (this.#length <= answerLimit) return
    this.#finish(false)
    controller.abort(new Error('Too long'))
  }

  onResponseEnd(): void {
    this.#finish(true)
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error)
  }

  readonly #abort = (): void => {
    const reason: unknown = this.#signal.reason
    this.#fail(reason)
    this.#controller?.abort(new Error('Too late'))
  }

  #finish(isWhole: boolean): void {
    this.#leave()
    if (!this.#head) return
    this.#watch?.observer.ended(this.#length, this.#elapsed())
    this.#resolve({ ...this.#head, body: Buffer.concat(this.#chunks), isWhole })
  }

  #elapsed(): number {
    return performance.now() - this.#start
  }

  #fail(cause: unknown): void {
    this.#leave()
    this.#watch?.observer.failed(cause)
    this.#reject(new NoAnswer(cause, this.#controller !== undefined && !isOfProxy(cause)))
  }

  #leave(): void {
    this.#signal.removeEventListener('abort', this.#abort)
  }
}

/** undici says so of a proxy that wants a password, and has sent nothing on. */
function isOfProxy(cause: unknown): boolean {
  return cause instanceof Error && cause.message.startsWith('Proxy Authentication Required')
}
