import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** What is under way on a connection. */
export interface Exchanges {
  /** responses that are not finished, in the order of their requests */
  open: ServerResponse[]
  last: ServerResponse | undefined
  /** whether no more requests are processed, because too many wait, or node:http reads no more of them */
  isFull: boolean
  /** bytes that the system has taken, and when that was seen to change */
  sent: number
  sentAt: number
}

function newExchanges(): Exchanges {
  return { open: [], last: undefined, isFull: false, sent: -1, sentAt: 0 }
}

/** How many requests of a connection may wait until they are answered and the answers are taken. */
const mostOpen = 32

/** How many may wait on all connections together, not counting the first on each. */
const mostPipelined = 10_000

/** The connections of a server, and what is under way on them. */
export class Connections {
  /** how many there have been */
  count = 0
  isDraining = false
  readonly #sockets = new Set<Socket>()
  /** those that have not brought a request yet */
  readonly #fresh = new Set<Socket>()
  /**
   * By connection, because a set of all responses, which every request changes, keeps dead ones from the garbage collector
   * for long, and so takes a tenth of the speed.
   */
  readonly #exchanges = new Map<Socket, Exchanges>()
  #pipelined = 0

  /** A connection comes in; over TLS it is not yet one that can bring a request. */
  add(socket: Socket): void {
    this.count += 1
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
  }

  /** A connection can bring requests now. */
  open(socket: Socket): void {
    this.#fresh.add(socket)
    socket.once('close', () => this.#fresh.delete(socket))
  }

  /**
   * A request comes in.
   *
   * @param onClose called when its response is finished, or can be no more
   * @returns false when it `isClosing`
   */
  admit(response: ServerResponse, onClose?: () => void): boolean {
    const { socket } = response.req
    if (this.isClosing(socket)) return false
    const exchanges = this.#exchangesOn(socket)
    const { open } = exchanges
    exchanges.last = response
    open.push(response)
    if (open.length > 1) this.#pipelined += 1
    response.on('close', () => {
      if (open.length > 1) this.#pipelined -= 1
      if (open[0] === response) open.shift()
      else open.splice(open.indexOf(response), 1)
      onClose?.()
    })
    if (this.isDraining) this.#endWith(response, open.at(-2))
    if (open.length >= mostOpen || (open.length > 1 && this.#pipelined > mostPipelined)) {
      exchanges.isFull = true
      response.shouldKeepAlive = false
    }
    return true
  }

  /** Whether an answer closes the connection: requests after it are not to be processed (RFC 9112, 9.6). */
  isClosing(socket: Socket): boolean {
    const exchanges = this.#exchanges.get(socket)
    if (exchanges?.last === undefined) return false
    const { last, isFull } = exchanges
    return isFull || (!last.shouldKeepAlive && (last.headersSent || !this.isDraining))
  }

  /** From a CONNECT on, node:http neither reads the connection nor times it: the answers that are under way are its last. */
  cut(socket: Socket): void {
    this.#exchangesOn(socket).isFull = true
  }

  /**
   * Ends the connections whose reader has taken nothing of what was written for so many milliseconds, and those that process
   * no more requests, have answered all, and still were not closed.
   */
  endStalled(now: number, timeout: number): void {
    for (const [socket, exchanges] of this.#exchanges) {
      const sent = socket.bytesWritten - socket.writableLength
      const isOver = exchanges.isFull && exchanges.open.length === 0
      if ((socket.writableLength === 0 && !isOver) || sent !== exchanges.sent) {
        exchanges.sent = sent
        exchanges.sentAt = now
      } else if (now - exchanges.sentAt >= timeout) {
        socket.destroy()
      }
    }
  }

  on(socket: Socket): Readonly<Exchanges> {
    return this.#exchanges.get(socket) ?? newExchanges()
  }

  /** From now on the last response on each connection closes it. */
  startDraining(): void {
    this.isDraining = true
    for (const { open } of this.#exchanges.values()) for (const response of open.slice(-1)) response.shouldKeepAlive = false
  }

  /** Ends those that have brought nothing. */
  endFresh(): void {
    for (const socket of this.#sockets) if (socket.bytesRead === 0) socket.destroy()
    for (const socket of this.#fresh) socket.destroy()
  }

  /** Ends all, also those that are still at the beginning of TLS. */
  cutOff(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  /** A request that comes while the service drains takes over from the one before that its answer closes the connection. */
  #endWith(response: ServerResponse, before: ServerResponse | undefined): void {
    response.shouldKeepAlive = false
    if (before && !before.headersSent) before.shouldKeepAlive = true
  }

  #exchangesOn(socket: Socket): Exchanges {
    const known = this.#exchanges.get(socket)
    if (known) return known
    const exchanges = newExchanges()
    this.#exchanges.set(socket, exchanges)
    socket.once('close', () => {
      this.#exchanges.delete(socket)
      this.#pipelined -= Math.max(0, exchanges.open.length - 1)
      exchanges.open.length = 0
    })
    this.#fresh.delete(socket)
    return exchanges
  }
}
