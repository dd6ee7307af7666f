import type { Socket } from 'node:net'
import type { buildConnector } from 'undici'
import type { Observer, Steps } from './types.js'

/** What makes a connection; undici's gives the socket at once, and tells when it is ready. */
export type Connect = (...args: Parameters<buildConnector.connector>) => Socket

export type Tunnel = (...args: Parameters<buildConnector.connector>) => void

/** The sockets of a client. undici forgets those that are still being connected, and they would keep the process for 10 s. */
export class Sockets {
  readonly #open = new Set<Socket>()
  readonly #observer: Observer | undefined

  constructor(observer: Observer | undefined) {
    this.#observer = observer
  }

  watch(connect: Connect): Connect {
    return (options, ready) => {
      const socket = connect(options, ready)
      this.#open.add(socket)
      socket.once('close', () => this.#open.delete(socket))
      skipInterim(socket)
      if (this.#observer) time(socket, 'servername' in options && options.protocol === 'https:', this.#observer)
      return socket
    }
  }

  /** What makes a tunnel through a proxy tells no steps, and gives the socket when it is ready. */
  watchTunnel(connect: Tunnel): Tunnel {
    return (options, ready) => {
      const start = performance.now()
      return connect(options, (...result) => {
        const [, socket] = result
        if (socket) {
          skipInterim(socket)
          this.#observer?.connected({ tunnel: performance.now() - start })
        }
        ready(...result)
      })
    }
  }

  destroy(): void {
    for (const socket of this.#open) socket.on('error', () => undefined).destroy()
  }
}

/** Tells how long each step of a connection took, when it is there. */
function time(socket: Socket, isSecure: boolean, observer: Observer): void {
  const steps: Steps = {}
  let last = performance.now()
  const step = (name: keyof Steps) => {
    const now = performance.now()
    steps[name] = now - last
    last = now
  }
  socket.prependOnceListener('lookup', () => step('name'))
  socket.prependOnceListener('connect', () => {
    step('connect')
    if (!isSecure) observer.connected(steps)
  })
  socket.prependOnceListener('secureConnect', () => {
    step('tls')
    observer.connected(steps)
  })
}

/**
 * Leaves out "100 Continue" and its like before an answer: a client must accept them although it did not ask (RFC 9110, 15.2),
 * and undici breaks the connection instead.
 */
function skipInterim(socket: Socket): void {
  const { read, write } = socket
  let isAwaited = false
  let held: Buffer = Buffer.alloc(0)
  socket.write = ((...args: Parameters<typeof write>) => {
    isAwaited = true
    return write.apply(socket, args)
  }) as typeof write // of its overloads
  socket.read = (size?: number): Buffer | null => {
    const chunk: Buffer | null = read.call(socket, size)
    if (chunk === null || !isAwaited) return chunk
    if (held.length === 0 && chunk.length > 9 && chunk[9] !== one) {
      isAwaited = false // the usual answer, in a fifth of the time
      return chunk
    }
    held = Buffer.concat([held, chunk])
    const start = held.toString('latin1', 0, longestInterim)
    const text = start.replace(interim, '')
    const rest = held.subarray(start.length - text.length)
    isAwaited = rest.length < longestInterim && ('HTTP/1.1 1'.startsWith(text) || /^HTTP\/1\.1 1(?!01)/.test(text))
    held = isAwaited ? rest : Buffer.alloc(0)
    return isAwaited ? Buffer.alloc(0) : rest
  }
}

/** Whole answers with a status of 1xx, but not 101, which changes the protocol. */
const interim = /^(?:HTTP\/1\.1 1(?!01)\d\d[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n)+/

/** what the status of an interim answer begins with, behind "HTTP/1.1 " */
const one = '1'.charCodeAt(0)

/** bytes that are looked at for them */
const longestInterim = 4096
