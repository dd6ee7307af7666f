import type { Socket } from 'node:net'
import { createBusyError } from './http-error.js'
import type { Log } from './log.js'
import { formatRawResponse } from './respond.js'

interface ConnectionLimitOptions {
  /** The most open connections, which include those in a TLS handshake. */
  limit: number
  /** With TLS, no response can be sent before the handshake. */
  usesTls: boolean
  log: Pick<Log, 'warn'>
}

/** The log counts the connections that were closed for others, no more often than this. */
const reportIntervalMs = 60_000

/**
 * Holds a service at a number of open connections in such a way that strangers cannot fill it: for
 * a new connection, it closes the one that has been open longest without an accepted token. If all
 * others have one, it closes the new one.
 */
export class ConnectionLimit {
  readonly #limit: number
  readonly #usesTls: boolean
  readonly #log: ConnectionLimitOptions['log']
  readonly #open = new Set<Socket>()
  /** The connections without an accepted token, in the order in which they were opened. */
  readonly #withoutToken = new Set<Socket>()
  /**
   * With TLS, the TCP connection below each TLS connection, which Node.js does not give. The key is
   * the address of the client.
   */
  readonly #byClient = new Map<string, Socket>()
  #closedCount = 0
  #reportTimer: NodeJS.Timeout | undefined

  constructor({ limit, usesTls, log }: ConnectionLimitOptions) {
    this.#limit = limit
    this.#usesTls = usesTls
    this.#log = log
  }

  /** How many connections are open, including those in a TLS handshake. */
  get openCount(): number {
    return this.#open.size
  }

  /** @param socket a TCP connection or one of a Unix socket, before any TLS handshake */
  add(socket: Socket): void {
    this.#open.add(socket)
    this.#withoutToken.add(socket)
    socket.once('close', () => this.#forget(socket))
    if (this.#usesTls) this.#rememberClient(socket)
    if (this.#open.size <= this.#limit) return
    const [oldest = socket] = this.#withoutToken // It is the new one where all others have a token.
    this.#close(oldest)
    if (oldest === socket && !this.#usesTls) this.#respondBusy(socket)
    else oldest.destroy()
  }

  /**
   * Keeps a connection whose client has an accepted token.
   *
   * @param socket the connection, or the TLS connection above it
   */
  keep(socket: Socket): void {
    const connection = this.#usesTls ? this.#byClient.get(describeClient(socket)) : socket
    if (connection) this.#withoutToken.delete(connection)
  }

  /** Logs how many connections were closed that are not in the log yet. */
  report(): void {
    clearTimeout(this.#reportTimer)
    this.#reportTimer = undefined
    if (this.#closedCount === 0) return
    const connections =
      this.#closedCount === 1 ? '1 connection' : `${this.#closedCount} connections`
    this.#log.warn(`The limit of ${this.#limit} connections was reached: ${connections} closed`)
    this.#closedCount = 0
    this.#reportTimer = setTimeout(() => this.report(), reportIntervalMs).unref()
  }

  #rememberClient(socket: Socket): void {
    const client = describeClient(socket)
    this.#byClient.set(client, socket)
    socket.once('close', () => {
      if (this.#byClient.get(client) === socket) this.#byClient.delete(client)
    })
  }

  #close(socket: Socket): void {
    this.#forget(socket) // Its event `close` comes in a later iteration of the event loop.
    this.#closedCount += 1
    if (!this.#reportTimer) this.report()
  }

  /** Tells the client that nothing was stored, whatever it has sent already. */
  #respondBusy(socket: Socket): void {
    socket.end(formatRawResponse(createBusyError(), undefined), () => socket.destroy())
  }

  #forget(socket: Socket): void {
    this.#open.delete(socket)
    this.#withoutToken.delete(socket)
  }
}

function describeClient({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
