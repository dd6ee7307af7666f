import type { Socket } from 'node:net'
import { assertDefined } from '../errors.js'
import { createBusyError } from './http-error.js'
import type { Log } from './log.js'
import { formatRawResponse } from './respond.js'

interface ConnectionLimitOptions {
  /** The largest number of open connections. Those in a TLS handshake count. */
  limit: number
  /** A service with TLS cannot send a response before the handshake. */
  usesTls: boolean
  log: Pick<Log, 'warn'>
}

/** A flood would fill the log, so it has one line with a count in this time, not one for each. */
const reportIntervalMs = 60_000

/**
 * Limits how many connections are open, in such a way that strangers cannot fill the service. When
 * a new connection exceeds the limit, the one is closed that has been open longest without an
 * accepted token. If all older connections have an accepted token, that is the new one. Node.js's
 * own limit, `maxConnections`, always rejects the new one, so that idle connections of strangers
 * would lock everybody else out.
 */
export class ConnectionLimit {
  readonly #limit: number
  readonly #usesTls: boolean
  readonly #log: ConnectionLimitOptions['log']
  readonly #open = new Set<Socket>()
  /** A Set keeps the order in which these were opened, so the first is the oldest. */
  readonly #withoutToken = new Set<Socket>()
  /**
   * This finds the TCP connection below a TLS connection by the address and port of the client,
   * because Node.js does not give it. Without TLS, it is empty.
   */
  readonly #byClient = new Map<string, Socket>()
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
    return this.#open.size
  }

  /**
   * Adds a connection that was accepted. If that exceeds the limit, the oldest one without an
   * accepted token is closed, which may be the new one.
   *
   * @param socket a TCP connection or one of a Unix socket, before any TLS handshake
   */
  add(socket: Socket): void {
    this.#open.add(socket)
    this.#withoutToken.add(socket)
    socket.once('close', () => this.#forget(socket))
    if (this.#usesTls) this.#rememberClient(socket)
    if (this.#open.size <= this.#limit) return
    // The new connection has no token yet, so there is one.
    const oldest = assertDefined(this.#withoutToken.values().next().value)
    this.#countClosed(oldest)
    if (oldest === socket && !this.#usesTls) this.#respondBusy(socket)
    else oldest.destroy()
  }

  /**
   * Protects a connection whose client has an accepted token: it is not closed for a new one.
   *
   * @param socket the connection, or the TLS connection above it
   */
  keep(socket: Socket): void {
    const connection = this.#usesTls ? this.#byClient.get(describeClient(socket)) : socket
    if (connection) this.#withoutToken.delete(connection)
  }

  /** Logs how many connections were closed since the last line, if any. A drain ends with it. */
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

  /** Counts a connection for the log, and forgets it before it is closed. */
  #countClosed(socket: Socket): void {
    // The event `close` comes in a later iteration of the event loop, but the next connection of
    // this iteration must not find this one again.
    this.#forget(socket)
    this.#closedCount += 1
    if (!this.#reportTimer) this.report()
  }

  /** The client may have sent a request already, so the response says that nothing was stored. */
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
