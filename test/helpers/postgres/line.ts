import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'
import { onTestFinished } from 'vitest'
import { type Database, openShared } from '../postgres.js'

/** A message of the protocol, each character of whose body is a byte. */
function message(letter: string, body: string): string {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(body.length + 4)
  return `${letter}${length.toString('latin1')}${body}`
}

/** What a server says at a login (https://www.postgresql.org/docs/current/protocol-message-formats.html). */
export const says = {
  clear: message('R', '\0\0\0\x03'),
  md5: message('R', '\0\0\0\x05salt'),
  scram: message('R', '\0\0\0\x0aSCRAM-SHA-256\0\0'),
  refused: message('E', 'SFATAL\0C28P01\0Mwrong password\0\0'),
}

const sslRequest = '\0\0\0\x08\x04\xd2\x16\x2f'

/** Listens where a PostgreSQL server could, says what it is told to, and records what it hears. */
export class Listener {
  port = 0
  /** connections that have begun a login */
  logins = 0
  /** what clients have answered to what it has asked for, of all connections, without the letter and the length */
  readonly passwords: string[] = []
  readonly #answers: string[]
  readonly #tls: { cert: string; key: string } | undefined

  private constructor(answers: string[], tls: { cert: string; key: string } | undefined) {
    this.#answers = answers
    this.#tls = tls
  }

  /** @param answers to the startup message, and to each message after it, on every connection; then it closes */
  static async start(answers: string[], tls?: { cert: string; key: string }): Promise<Listener> {
    const listener = new Listener(answers, tls)
    const sockets = new Set<Socket>()
    const server = createServer((socket) => listener.#join(socket))
    server.on('connection', (socket) => sockets.add(socket))
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy()
      server.close()
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    listener.port = (server.address() as AddressInfo).port
    return listener
  }

  #join(socket: Socket): void {
    let answered = 0
    socket.on('error', () => undefined)
    socket.on('data', (data) => {
      const text = data.toString('latin1')
      if (text === sslRequest) {
        socket.write(this.#tls ? 'S' : 'N')
        if (!this.#tls) return
        const secureContext = createSecureContext(this.#tls)
        this.#join(
          new TLSSocket(socket.removeAllListeners('data'), { isServer: true, secureContext }),
        )
        return
      }
      if (text.startsWith('X')) return // a client that leaves
      if (answered === 0) this.logins += 1
      else this.passwords.push(text.slice(5))
      const answer = this.#answers[answered]
      answered += 1
      if (answer === undefined) socket.end()
      else socket.write(answer, 'latin1')
    })
  }
}

/**
 * When a connection is cut: "before" the server gets what was said; when it was "sent", so that the server goes on
 * alone; or when the server has "answered", and nobody has heard it.
 */
export type Moment = 'before' | 'sent' | 'answered'

interface Cut {
  text: string
  /** or the SQLSTATE of the error that is said in place of the answer */
  moment: Moment | { code: string }
  /** how many more connections are cut so */
  left: number
}

/** Opens the store of a database over a line. */
export async function openByLine(database: Database, options?: Parameters<typeof openShared>[1]) {
  const line = await Line.to(database)
  return { line, store: await openShared({ url: line.url, env: database.env }, options) }
}

/** A line to a server, which can be cut. */
export class Line {
  /** of a database, by the line */
  url = ''
  cuts = 0
  /** connections that were accepted */
  connections = 0
  readonly #server = createServer({ allowHalfOpen: true }, (socket) => this.#join(socket))
  readonly #sockets = new Set<Socket>()
  #target = 0
  #cuts: Cut[] = []
  #isSilent = false

  static async to({ url }: { url: string }): Promise<Line> {
    const address = new URL(url)
    const line = new Line()
    line.#target = Number(address.port)
    await once(line.#server.listen(0, '127.0.0.1'), 'listening')
    address.port = String((line.#server.address() as AddressInfo).port)
    line.url = address.href
    onTestFinished(() => line.end())
    return line
  }

  /** Cuts the next connection, or so many, over which a text goes to the server; then what is told next. */
  cut(text: string, moment: Moment, times = 1): void {
    this.#cuts.push({ text, moment, left: times })
  }

  /** Says an error in place of the next answer to a text, which the server gets. */
  answer(text: string, code: string): void {
    this.#cuts.push({ text, moment: { code }, left: 1 })
  }

  /** Lets nothing come back any more, whatever is sent. */
  silence(): void {
    this.#isSilent = true
  }

  /** Is a line again, for those who connect anew. */
  mend(): void {
    this.#isSilent = false
    this.#cuts = []
    this.cutAll()
  }

  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  end(): void {
    this.cutAll()
    this.#server.close()
  }

  #join(near: Socket): void {
    this.connections += 1
    const far = connect({ port: this.#target, host: '127.0.0.1', allowHalfOpen: true })
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(socket)
      socket.on('error', () => other.destroy()).on('close', () => this.#sockets.delete(socket))
      socket.on('end', () => other.end())
    }
    near.on('close', () => far.end()) // after what is on its way
    let isAwaited = false
    let code: string | undefined
    near.on('data', (data) => {
      const moment = this.#momentOf(data)
      if (moment === 'before') {
        near.destroy()
        far.destroy()
        return
      }
      far.write(data)
      isAwaited ||= moment === 'answered'
      if (typeof moment === 'object') code = moment.code
      if (moment === 'sent') near.destroy()
    })
    far.on('data', (data) => {
      const isOver = data.subarray(-6, -1).equals(readyForQuery)
      if (isAwaited && isOver) near.destroy()
      if (code === undefined) {
        if (!isAwaited && !this.#isSilent) near.write(data)
      } else if (isOver) {
        near.write(message('E', `SERROR\0C${code}\0Mlost\0\0`) + message('Z', 'I'), 'latin1')
        code = undefined
      }
    })
  }

  #momentOf(data: Buffer): Cut['moment'] | undefined {
    const cut = this.#cuts.find(({ left }) => left > 0)
    if (!cut || !data.includes(cut.text)) return undefined
    cut.left -= 1
    this.cuts += 1
    return cut.moment
  }
}

/** Without its last byte, the state. */
const readyForQuery = Buffer.from('Z\0\0\0\x05')
