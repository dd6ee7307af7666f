import type { Socket } from 'node:net'
import { assertDefined } from '../errors.js'
import { createUnavailableError } from './http-error.js'
import type { Log } from './log.js'
import { formatRawResponse } from './respond.js'

interface ConnectionLimitOptions {
  /** The largest number of open connections. Those in a TLS handshake count. */
  limit: number
  /** A service with TLS cannot send a response before the handshake. */
  usesTls: boolean
  log: Pick<Log, 'warn'>
}

/**
 * A flood would fill the log, so the log has one line with a count for each interval, and not one
 * line for each connection.
 */
const reportIntervalMs = 60_000

/**
 * Limits how many connections are open, in such a way that strangers cannot fill the service. When
 * a new connection exceeds the limit, the oldest connection without an accepted token is closed. If
 * all older connections have an accepted token, the new connection itself is closed. Node.js's own
 * limit, `maxConnections`, always rejects the new one, so that idle connections of strangers would
 * lock everybody else out.
 */
export class ConnectionLimit {
  readonly #limit: number
  readonly #usesTls: boolean
  readonly #log: ConnectionLimitOptions['log']
  readonly #openConnections = new Set<Socket>()
  /** A Set keeps the order in which connections were added, so the first one is the oldest. */
  readonly #connectionsWithoutToken = new Set<Socket>()
  /**
   * The TCP connections by the address and the port of their clients. This finds the TCP connection
   * below a TLS connection, which Node.js does not give. Without TLS, the map is empty.
   */
  readonly #connectionsByClient = new Map<string, Socket>()
  /** The number of connections that were closed since the last line of the log. */
  #closedCount = 0
  #reportTimer: NodeJS.Timeout | undefined

  constructor({ limit, usesTls, log }: ConnectionLimitOptions) {
    this.#limit = limit
    this.#usesTls = usesTls
    this.#log = log
  }

  /** This counts the connections in a TLS handshake, too. */
  get openCount(): number {
    return this.#openConnections.size
  }

  /**
   * Adds an accepted connection. If it exceeds the limit, the oldest connection without an accepted
   * token is closed, which may be the new connection itself.
   *
   * @param socket a TCP connection or one of a Unix socket, before any TLS handshake
   */
  add(socket: Socket): void {
    this.#openConnections.add(socket)
    this.#connectionsWithoutToken.add(socket)
    socket.once('close', () => this.#forget(socket))
    if (this.#usesTls) this.#rememberClient(socket)
    if (this.#openConnections.size <= this.#limit) return
    // The new connection has no token yet, so the set is not empty.
    const oldest = assertDefined(this.#connectionsWithoutToken.values().next().value)
    this.#forgetAndCount(oldest)
    if (oldest === socket && !this.#usesTls) this.#respondAndClose(socket)
    else oldest.destroy()
  }

  /**
   * Protects a connection whose client has an accepted token: no new connection closes it.
   *
   * @param socket the connection, or the TLS connection above it
   */
  protect(socket: Socket): void {
    const connection = this.#usesTls
      ? this.#connectionsByClient.get(describeClient(socket))
      : socket
    if (connection) this.#connectionsWithoutToken.delete(connection)
  }

  /**
   * Logs how many connections were closed since the last line, unless none was. A drain ends with
   * such a line.
   */
  logClosedCount(): void {
    clearTimeout(this.#reportTimer)
    this.#reportTimer = undefined
    if (this.#closedCount === 0) return
    const connections =
      this.#closedCount === 1 ? '1 connection' : `${this.#closedCount} connections`
    this.#log.warn(`The limit of ${this.#limit} connections was reached: ${connections} closed`)
    this.#closedCount = 0
    this.#reportTimer = setTimeout(() => this.logClosedCount(), reportIntervalMs).unref()
  }

  #rememberClient(socket: Socket): void {
    const client = describeClient(socket)
    this.#connectionsByClient.set(client, socket)
    socket.once('close', () => {
      if (this.#connectionsByClient.get(client) === socket) this.#connectionsByClient.delete(client)
    })
  }

  /** Counts a connection for the log, and forgets it before it is closed. */
  #forgetAndCount(socket: Socket): void {
    // The event `close` comes in a later iteration of the event loop, but the next connection of
    // this iteration must not find this one again.
    this.#forget(socket)
    this.#closedCount += 1
    if (!this.#reportTimer) this.logClosedCount()
  }

  /** The client may have sent a request already, so the response says that nothing was stored. */
  #respondAndClose(socket: Socket): void {
    socket.end(formatRawResponse(createUnavailableError(), undefined), () => socket.destroy())
  }

  #forget(socket: Socket): void {
    this.#openConnections.delete(socket)
    this.#connectionsWithoutToken.delete(socket)
  }
}

function describeClient({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
