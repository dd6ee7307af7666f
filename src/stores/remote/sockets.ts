import type { Socket } from 'node:net'
import type { buildConnector } from 'undici'

/** What makes a connection; undici's gives the socket at once, and tells when it is ready. */
export type Connect = (...args: Parameters<buildConnector.connector>) => Socket

/** The sockets of a client. undici forgets those that are still being connected, and they would keep the process for 10 s. */
export class Sockets {
  readonly #open = new Set<Socket>()

  watch(connect: Connect): Connect {
    return (options, ready) => {
      const socket = connect(options, ready)
      this.#open.add(socket)
      socket.once('close', () => this.#open.delete(socket))
      skipContinue(socket)
      return socket
    }
  }

  destroy(): void {
    for (const socket of this.#open) socket.on('error', () => undefined).destroy()
  }
}

/**
 * Leaves out "100 Continue" before an answer: a client must accept it although it did not ask (RFC 9110, 15.2), and undici
 * breaks the connection instead.
 */
function skipContinue(socket: Socket): void {
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
    held = Buffer.concat([held, chunk])
    const text = held.toString('latin1', 0, 4096).replace(/^(?:HTTP\/1\.1 100 [^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n)+/, '')
    const rest = held.subarray(Math.min(held.length, 4096) - text.length)
    const isUnclear = rest.length < 4096 && ('HTTP/1.1 100 '.startsWith(text) || text.startsWith('HTTP/1.1 100 '))
    isAwaited = isUnclear
    held = isUnclear ? rest : Buffer.alloc(0)
    return isUnclear ? Buffer.alloc(0) : rest
  }
}
