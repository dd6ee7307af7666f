import { setFlagsFromString } from 'node:v8'
import type { Dispatcher } from 'undici'
import buildConnector from 'undici/lib/core/connect.js'
import Pool from 'undici/lib/dispatcher/pool.js'
import { PlantsError, systemCode } from '../../platform/errors.js'
import type { RemoteAddress } from '../address.js'
import { defaultConcurrency } from '../store.js'
import { baseOf, type Request } from './request.js'
import { type Connect, Sockets, type Tunnel } from './sockets.js'
import type { Access, Observer } from './types.js'

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

/** Connections to one service. */
export class Connection {
  readonly #address: RemoteAddress
  readonly #dispatcher: Dispatcher
  readonly #sockets: Sockets
  readonly #observer: Observer | undefined
  readonly #base: { origin: string; path: string }

  private constructor(address: RemoteAddress, dispatcher: Dispatcher, sockets: Sockets, observer: Observer | undefined) {
    this.#address = address
    this.#dispatcher = dispatcher
    this.#sockets = sockets
    this.#observer = observer
    this.#base = baseOf(address)
  }

  /** @param limit connections that there are at most */
  static async open(address: RemoteAddress, access: Access, limit = defaultConcurrency): Promise<Connection> {
    compileParserOnce()
    const sockets = new Sockets(access.observer)
    return new Connection(address, await dispatcherOf(address, access, sockets, limit), sockets, access.observer)
  }

  /**
   * Sends a request below the base_url and reads the answer, up to 1 MiB. Redirects are not followed, and nothing is unpacked.
   *
   * @param signal ends it, with its reason as the cause
   * @throws {NoAnswer}
   */
  send(request: Request, signal: AbortSignal): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const stop = () => end(signal.reason)
      const end = this.start(request, (result) => {
        signal.removeEventListener('abort', stop)
        if (result instanceof NoAnswer) reject(result)
        else resolve(result)
      })
      signal.addEventListener('abort', stop, { once: true })
      if (signal.aborted) stop()
    })
  }

  /**
   * Does what `send` does, without the price of a signal: tells once what came of it.
   *
   * @returns what ends the request, with a reason that is the cause then
   */
  start(request: Request, tell: (result: Answer | NoAnswer) => void): (reason: unknown) => void {
    const { origin, path } = this.#base
    const reader = new Reader(this.#observer && this.#watch(request, this.#observer), tell)
    this.#dispatcher.dispatch({ ...request, origin, path: path + request.path, headersTimeout: 0, bodyTimeout: 0 }, reader)
    return (reason) => reader.end(reason)
  }

  #watch(request: Request, observer: Observer): Watch {
    const shown = { ...request, url: `${this.#address.name}${request.path}`, length: Buffer.byteLength(request.body ?? '') }
    return { observer, request: shown }
  }

  async close(): Promise<void> {
    this.#sockets.destroy()
    await this.#dispatcher.destroy()
  }
}

async function dispatcherOf(
  { url, socketPath }: RemoteAddress,
  { ca, proxy, beforeConnect }: Access,
  sockets: Sockets,
  connections: number,
): Promise<Dispatcher> {
  const tls = { rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) } // whatever NODE_TLS_REJECT_UNAUTHORIZED says
  const place = socketPath === undefined ? {} : { socketPath }
  if (proxy === undefined)
    return new Pool(url.origin, { connections, connect: checked(sockets.watch(buildConnector({ ...tls, ...place })), beforeConnect) })
  const { proxyAgent } = await import('./proxy.js')
  return proxyAgent(proxy, url.protocol === 'https:', { tls, connections }, sockets)
}

/** A connector that first looks whether it may connect. */
function checked(connect: Connect, check: Access['beforeConnect']): Tunnel {
  if (check === undefined) return connect
  return (options, ready) => {
    try {
      check()
    } catch (error) {
      if (!(error instanceof PlantsError)) throw error
      return ready(error, null)
    }
    connect(options, ready)
  }
}

/** bytes of an answer that are read */
const answerLimit = 1_048_576

/** Who is told of a request, and what of it is shown. */
interface Watch {
  observer: Observer
  request: Parameters<Observer['sent']>[0]
}

class Reader implements Dispatcher.DispatchHandler {
  readonly #watch: Watch | undefined
  readonly #tell: (result: Answer | NoAnswer) => void
  readonly #start = performance.now()
  readonly #chunks: Buffer[] = []
  #controller: Dispatcher.DispatchController | undefined
  #length = 0
  #head: Pick<Answer, 'status' | 'headers'> | undefined
  #isEnded = false

  constructor(watch: Watch | undefined, tell: (result: Answer | NoAnswer) => void) {
    this.#watch = watch
    this.#tell = tell
  }

  end(reason: unknown): void {
    this.#fail(reason)
    this.#controller?.abort(new Error('Too late'))
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.#watch?.observer.sent(this.#watch.request)
    if (this.#isEnded) controller.abort(new Error('Too late'))
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

  #finish(isWhole: boolean): void {
    if (!this.#head || this.#isEnded) return
    this.#isEnded = true
    this.#watch?.observer.ended(this.#length, this.#elapsed())
    const [first = nothing, ...others] = this.#chunks
    this.#tell({ ...this.#head, body: others.length === 0 ? first : Buffer.concat(this.#chunks), isWhole })
  }

  #elapsed(): number {
    return performance.now() - this.#start
  }

  #fail(cause: unknown): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#watch?.observer.failed(cause)
    this.#tell(new NoAnswer(cause, this.#controller !== undefined && !isOfProxy(cause)))
  }
}

const nothing = Buffer.alloc(0)

/** undici fails so when a proxy answers 407, which has sent nothing on. */
function isOfProxy(cause: unknown): boolean {
  return systemCode(cause) === 'UND_ERR_INVALID_ARG'
}

/**
 * Spares a run the second compilation of undici's parser, which is WebAssembly: V8 makes code of it at once, and better code in a
 * thread that the process waits for at its end. It is 50 ms of a create, and only who parses for minutes gains from it.
 * For the versions of Node that this was tried with; V8 complains about flags that it does not know.
 */
export function compileParserOnce(): void {
  const major = parseInt(process.versions.node, 10)
  if (!('bun' in process.versions) && major <= 26) setFlagsFromString('--liftoff-only')
}
