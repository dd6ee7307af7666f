/**
 * The open connections of a server, in the order in which they were opened, and how many there may
 * be.
 *
 * When a new connection exceeds the limit, the one that has been open longest without an accepted
 * token is closed. If there is none, it is the one whose last accepted request is longest ago.
 * Node.js's own limit, `maxConnections`, rejects the new one, so that idle connections of strangers
 * would lock everybody else out.
 */
import type { Socket } from 'node:net'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { Connection } from './connection.js'
import type { Log } from './log.js'

/**
 * The largest number of connections that can wait in the system, which is Node.js's default for the
 * argument `backlog` of `listen`. One iteration of the event loop accepts one of them.
 */
const maxIterationsToAccept = 511

/** A flood would fill the log, so it has one line for each interval. */
const reportIntervalMs = 60_000

export class Connections {
  /** A Map keeps its order, so the first connection is the oldest. */
  readonly #connections = new Map<Socket, Connection>()
  /** When the limit was last reported, on the clock of `performance.now`. */
  #reportedAtMs = -Infinity
  /** This only grows: connections in a TLS handshake count, and those that have closed. */
  #acceptedCount = 0

  /** @param limit the largest number of open connections. Those in a TLS handshake count. */
  constructor(
    private readonly limit: number,
    private readonly log: Pick<Log, 'warn'>,
  ) {}

  get size(): number {
    return this.#connections.size
  }

  [Symbol.iterator](): Iterator<Connection> {
    return this.#connections.values()
  }

  /** Returns undefined for a connection that has closed, and for TLS before its handshake. */
  find(socket: Socket): Connection | undefined {
    return this.#connections.get(socket)
  }

  /**
   * Adds a connection that the system handed over, and closes another one if the limit is exceeded.
   *
   * @param isOpen false if its TLS handshake is yet to come
   */
  accept(socket: Socket, isOpen: boolean): Connection {
    this.#acceptedCount += 1
    if (this.#connections.size >= this.limit) this.#closeOne()
    return this.#add(socket, isOpen)
  }

  /** Replaces a TCP connection by the TLS connection above it, whose handshake is done. */
  open(socket: Socket): Connection {
    // Node.js does not say which TCP connection is below. Both have the same client.
    const isBelow = ({ socket: { remoteAddress, remotePort }, isOpen }: Connection) =>
      !isOpen && remotePort === socket.remotePort && remoteAddress === socket.remoteAddress
    const connection = [...this.#connections.values()].find(isBelow)
    if (connection) this.#connections.delete(connection.socket)
    return this.#add(socket, true)
  }

  #add(socket: Socket, isOpen: boolean): Connection {
    const connection = new Connection(socket, isOpen)
    this.#connections.set(socket, connection)
    socket.once('close', () => this.#connections.delete(socket))
    return connection
  }

  #closeOne(): void {
    const connections = [...this.#connections.values()]
    const oldest =
      connections.find((connection) => !connection.hasAcceptedToken) ??
      connections.reduce((left, right) => (right.acceptedAtMs < left.acceptedAtMs ? right : left))
    // The event `close` comes in a later iteration of the event loop, but the next connection of
    // this iteration must not find this one again.
    this.#connections.delete(oldest.socket)
    oldest.socket.destroy()
    if (performance.now() < this.#reportedAtMs + reportIntervalMs) return
    this.#reportedAtMs = performance.now()
    this.log.warn(`The limit of ${this.limit} connections was reached: the oldest are closed`)
  }

  /**
   * Waits until the connections that wait in the system are accepted. The event loop accepts one
   * connection in each iteration, so this ends after an iteration that has accepted none.
   */
  async waitUntilAllAccepted(): Promise<void> {
    let countBefore = -1
    for (let iterations = 0; iterations < maxIterationsToAccept; iterations += 1) {
      if (this.#acceptedCount === countBefore) return
      countBefore = this.#acceptedCount
      await nextIteration()
    }
  }
}
