import type { Socket } from 'node:net'
import type { Log } from './log.js'

interface ConnectionLimitOptions {
  /** The most open connections, which include those in a TLS handshake. */
  limit: number
  log: Pick<Log, 'warn'>
}

/** The log counts the connections that were closed for others, no more often than this. */
const reportIntervalMs = 60_000

/**
 * Limits the open connections of a service in such a way that strangers cannot use all of them. For
 * each new connection beyond the limit, it closes the one that has been open longest without an
 * accepted token. If all others have one, it closes the new one.
 */
export class ConnectionLimit {
  readonly #limit: number
  readonly #log: ConnectionLimitOptions['log']
  readonly #open = new Set<Socket>()
  /** The connections without an accepted token, in the order in which they were opened. */
  readonly #withoutToken = new Set<Socket>()
  /**
   * The connections by the address of their client: Node.js does not tell which TCP connection is
   * below a TLS connection.
   */
  readonly #byClient = new Map<string, Socket>()
  #closedCount = 0
  #reportTimer: NodeJS.Timeout | undefined

  constructor({ limit, log }: ConnectionLimitOptions) {
    this.#limit = limit
    this.#log = log
  }

  /** @param socket a TCP connection or one of a Unix socket, before any TLS handshake */
  add(socket: Socket): void {
    const client = describeClient(socket)
    this.#open.add(socket)
    this.#withoutToken.add(socket)
    this.#byClient.set(client, socket)
    socket.once('close', () => {
      this.#forget(socket)
      if (this.#byClient.get(client) === socket) this.#byClient.delete(client)
    })
    if (this.#open.size <= this.#limit) return
    // If all others have a token, the oldest one without is the new one.
    const [oldest] = this.#withoutToken
    if (oldest) this.#close(oldest)
  }

  /**
   * Keeps a connection whose client has an accepted token.
   *
   * @param socket the connection, or the TLS connection above it
   */
  keep(socket: Socket): void {
    const isBelowTls = !this.#open.has(socket)
    const connection = isBelowTls ? this.#byClient.get(describeClient(socket)) : socket
    if (connection) this.#withoutToken.delete(connection)
  }

  #close(socket: Socket): void {
    // Its event `close` comes in a later iteration of the event loop.
    this.#forget(socket)
    socket.destroy()
    this.#closedCount += 1
    if (!this.#reportTimer) this.#report()
  }

  #forget(socket: Socket): void {
    this.#open.delete(socket)
    this.#withoutToken.delete(socket)
  }

  #report(): void {
    this.#reportTimer = undefined
    if (this.#closedCount === 0) return
    const connections =
      this.#closedCount === 1 ? '1 connection' : `${this.#closedCount} connections`
    this.#log.warn(`The limit of ${this.#limit} connections was reached: ${connections} closed`)
    this.#closedCount = 0
    this.#reportTimer = setTimeout(() => this.#report(), reportIntervalMs).unref()
  }
}

function describeClient({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
