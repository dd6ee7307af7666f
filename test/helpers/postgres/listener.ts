import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'
import { onTestFinished } from 'vitest'

/** A message of the protocol, each character of whose body is a byte. */
export function message(letter: string, body: string): string {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(body.length + 4)
  return `${letter}${length.toString('latin1')}${body}`
}

/** What a server says at a login (https://www.postgresql.org/docs/current/protocol-message-formats.html). */
export const says = {
  accepted: message('R', '\0\0\0\0'),
  clear: message('R', '\0\0\0\x03'),
  md5: message('R', '\0\0\0\x05salt'),
  scram: message('R', '\0\0\0\x0aSCRAM-SHA-256\0\0'),
  challenge: (text: string) => message('R', `\0\0\0\x0b${text}`),
  proof: (text: string) => message('R', `\0\0\0\x0c${text}`),
  ready: message('Z', 'I'),
  refused: message('E', 'SFATAL\0C28P01\0Mwrong password\0\0'),
}

/** What is said next, to what a client has said last. */
export type Answer = string | ((heard: string) => string)

/** Listens where a PostgreSQL server could, says what it is told to, and records what it hears. */
export class Listener {
  port = 0
  /** connections that have begun a login */
  logins = 0
  /** what clients have answered to what it has asked for, of all connections, without the letter and the length */
  readonly passwords: string[] = []
  readonly #answers: Answer[]
  readonly #tls: { cert: string; key: string } | undefined

  private constructor(answers: Answer[], tls: { cert: string; key: string } | undefined) {
    this.#answers = answers
    this.#tls = tls
  }

  /**
   * @param answers to the startup message, and to each message after it, on every connection; then it closes
   * @param place a host, or the path of a Unix socket
   */
  static async start(
    answers: Answer[],
    tls?: { cert: string; key: string },
    place = '127.0.0.1',
  ): Promise<Listener> {
    const listener = new Listener(answers, tls)
    const sockets = new Set<Socket>()
    const server = createServer((socket) => {
      sockets.add(socket)
      listener.#join(socket)
    })
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    await once(place.startsWith('/') ? server.listen(place) : server.listen(0, place), 'listening')
    if (!place.startsWith('/')) listener.port = (server.address() as AddressInfo).port
    return listener
  }

  #join(socket: Socket): void {
    let answered = 0
    socket.on('error', () => undefined)
    socket.on('data', (data) => {
      const text = data.toString('latin1')
      if (text === sslRequest) {
        socket.write(this.#tls ? 'S' : 'N')
        if (this.#tls) this.#join(this.#secure(socket, this.#tls))
        return
      }
      if (text.startsWith('X')) return // a client that leaves
      if (answered === 0) this.logins += 1
      else this.passwords.push(text.slice(5))
      const answer = this.#answers[answered]
      answered += 1
      if (answer === undefined) socket.end()
      else socket.write(typeof answer === 'string' ? answer : answer(text), 'latin1')
    })
  }

  #secure(socket: Socket, tls: { cert: string; key: string }): Socket {
    socket.removeAllListeners('data')
    return new TLSSocket(socket, { isServer: true, secureContext: createSecureContext(tls) })
  }
}

const sslRequest = '\0\0\0\x08\x04\xd2\x16\x2f'
