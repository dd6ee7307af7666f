/**
 * The open connections of a server, in the order in which they were opened: how many there may be,
 * and which of them are read.
 *
 * **The limit.** When a new connection exceeds it, the one that has been open longest without an
 * accepted token is closed. If there is none, it is the one whose last accepted request is longest
 * ago. Node.js's own limit, `maxConnections`, rejects the new one, so that idle connections of
 * strangers would lock everybody else out.
 *
 * **The pauses.** node:http parses up to 64 KiB of a connection at once. That can be thousands of
 * pipelined requests, or thousands of chunks of a body, whose parsing takes 30 ms. An iteration of
 * the event loop reads every connection that has received something, so three hundred such
 * connections would block it for nine seconds, and Node.js has no limit for this. So each such
 * request, each of its header lines, each chunk, and each KiB of a body counts as a unit. When the
 * units of one iteration reach `maxFloodUnits`, all connections are paused: libuv then skips those
 * that it has not read yet. The next iterations accept the new connections. Then the paused ones
 * resume in batches of 1, 2, 4 and so on. A batch that brings another flood causes the next pause,
 * which includes the connections that have not resumed yet.
 *
 * docs/design/http-connections.md says why, and which simpler rules were tried.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate as nextIteration } from 'node:timers/promises'
import type { Caller } from './authenticate.js'
import type { Body } from './body.js'
import type { Log } from './log.js'

/** A request whose body or response is in progress. */
export interface PendingRequest {
  response: ServerResponse
  body: Body
  /** The number of further requests that came on its connection before its response. */
  droppedCount: number
}

export interface ClientConnection {
  readonly socket: Socket
  /** False during a TLS handshake, when `socket` is the TCP connection below it. */
  readonly isOpen: boolean
  /** Who sent the last accepted request of the connection. The token may be revoked by now. */
  caller: Caller | undefined
  /** When that request was accepted, on the clock of `performance.now`. */
  acceptedAtMs: number
  request: PendingRequest | undefined
  /** The number of the pause since which the connection waits, from 1 on; 0 if it is not paused. */
  pausedSince: number
}

interface ConnectionsOptions {
  /** The largest number of open connections. Those in a TLS handshake count. */
  limit: number
  log: Pick<Log, 'warn'>
}

/** A unit takes about 10 µs, so an iteration is blocked for 10 ms. */
const maxFloodUnits = 1000

/** libuv reads no more than this of a connection at once. */
export const maxReadBytes = 65_536

/** node:http rejects a larger head with 431. This is its default, `--max-http-header-size`. */
const maxHeadBytes = 16_384

/**
 * The largest number of connections that can wait in the system, which is Node.js's default for the
 * argument `backlog` of `listen`. One iteration of the event loop accepts one of them.
 */
const maxIterationsToAccept = 511

/** A flood would fill the log, so it has one line with a count for each interval. */
const reportIntervalMs = 60_000

export class Connections {
  readonly #options: ConnectionsOptions
  /** A Map keeps its order, so the first connection is the oldest. */
  readonly #connections = new Map<Socket, ClientConnection>()
  /** The number of connections that the limit closed since the last line of the log. */
  #closedCount = 0
  #reportTimer: NodeJS.Timeout | undefined
  /** This only grows: connections in a TLS handshake count, and those that have closed. */
  #acceptedCount = 0
  /** The units of the current iteration of the event loop. */
  #floodUnits = 0
  /**
   * - `reading`: no connection is paused by this class.
   * - `pausing`: all connections are paused, and new ones are accepted.
   * - `resuming`: batches of connections resume. New connections wait for their batch, too.
   */
  #phase: 'reading' | 'pausing' | 'resuming' = 'reading'
  #pauseCount = 0
  /** Settles in the iteration of the latest list. It never rejects. */
  #previousList = Promise.resolve()

  constructor(options: ConnectionsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#connections.size
  }

  [Symbol.iterator](): Iterator<ClientConnection> {
    return this.#connections.values()
  }

  /** Returns undefined for a connection that has closed, and for TLS before its handshake. */
  find(socket: Socket): ClientConnection | undefined {
    return this.#connections.get(socket)
  }

  /**
   * Says whose token the request in progress has: its connection is read first after a pause, and
   * closed last at the limit.
   */
  setCaller(socket: Socket, caller: Caller): void {
    const connection = this.#connections.get(socket)
    if (!connection) return
    connection.caller = caller
    connection.acceptedAtMs = performance.now()
  }

  /**
   * Adds a connection that the system handed over, and closes another one if the limit is exceeded.
   *
   * @param isOpen false if its TLS handshake is yet to come
   */
  accept(socket: Socket, isOpen: boolean): void {
    this.#acceptedCount += 1
    if (this.#connections.size >= this.#options.limit) this.#closeOne()
    this.#add(socket, isOpen)
  }

  /** Replaces a TCP connection by the TLS connection above it, whose handshake is done. */
  open(socket: Socket): void {
    // Node.js does not say which TCP connection is below. Both have the same client.
    const isBelow = ({ socket: { remoteAddress, remotePort }, isOpen }: ClientConnection) =>
      !isOpen && remotePort === socket.remotePort && remoteAddress === socket.remoteAddress
    const connection = [...this.#connections.values()].find(isBelow)
    if (connection) this.#connections.delete(connection.socket)
    this.#add(socket, true)
  }

  #add(socket: Socket, isOpen: boolean): void {
    const isPaused = isOpen && this.#phase !== 'reading'
    this.#connections.set(socket, {
      socket,
      isOpen,
      caller: undefined,
      acceptedAtMs: 0,
      request: undefined,
      pausedSince: isPaused ? this.#pauseCount : 0,
    })
    socket.once('close', () => this.#connections.delete(socket))
    // node:http usually reads bytes from the handle of the socket, and `pause` does not hold back
    // bytes from there. With a listener for `data`, node:http reads from the stream, which holds
    // them back while it is paused.
    if (isPaused) socket.on('data', () => undefined).pause()
  }

  #closeOne(): void {
    const connections = [...this.#connections.values()]
    const oldest =
      connections.find((connection) => !hasAcceptedToken(connection)) ??
      connections.reduce((left, right) => (right.acceptedAtMs < left.acceptedAtMs ? right : left))
    // The event `close` comes in a later iteration of the event loop, but the next connection of
    // this iteration must not find this one again.
    this.#connections.delete(oldest.socket)
    oldest.socket.destroy()
    this.#closedCount += 1
    if (!this.#reportTimer) this.logClosedCount()
  }

  /** Logs how many connections the limit closed since the last line, unless it closed none. */
  logClosedCount(): void {
    clearTimeout(this.#reportTimer)
    this.#reportTimer = undefined
    if (this.#closedCount === 0) return
    const { limit, log } = this.#options
    const connections =
      this.#closedCount === 1 ? '1 connection' : `${this.#closedCount} connections`
    log.warn(`The limit of ${limit} connections was reached: ${connections} closed`)
    this.#closedCount = 0
    this.#reportTimer = setTimeout(() => this.logClosedCount(), reportIntervalMs).unref()
  }

  /**
   * Counts what clients may send without a token, and pauses all connections when it is too much
   * for one iteration.
   *
   * @param units 1 for a request that gets no response, for each of its header lines, for a chunk,
   * and for a whole KiB of a body. Most requests have none of these, so this is 0 for them.
   */
  countUnits(units: number): void {
    if (units === 0) return
    if (this.#floodUnits === 0)
      setImmediate(() => {
        this.#floodUnits = 0
      })
    this.#floodUnits += units
    const isFlood = this.#floodUnits >= maxFloodUnits
    if (isFlood && this.#phase !== 'pausing') void this.#pauseAll()
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

  /**
   * Waits for an iteration in which no other list, count or large body begins: each of them blocks
   * the event loop, and the requests of other tokens come in between.
   */
  waitForOwnIteration(): Promise<void> {
    this.#previousList = this.#previousList.then(() => this.waitUntilAllAccepted())
    return this.#previousList
  }

  async #pauseAll(): Promise<void> {
    this.#phase = 'pausing'
    this.#pauseCount += 1
    // `resume` only schedules the start of the reading, for the next tick, and a `pause` in between
    // does not cancel it. So this waits for that tick before it pauses a socket.
    await undefined
    for (const connection of this.#connections.values()) {
      if (!connection.isOpen || connection.socket.isPaused()) continue
      connection.socket.pause()
      connection.pausedSince = this.#pauseCount
    }
    await nextIteration()
    await this.waitUntilAllAccepted()
    this.#phase = 'resuming'
    await this.#resumeInBatches()
  }

  /**
   * Resumes 1, 2, 4 and so on of the paused connections, a batch in each iteration of the event
   * loop. While a batch is read, all later ones are still paused. So even if the batch brings
   * another flood, its connections have made progress. That flood begins the next pause, which
   * calls this method for the remaining connections, so the current call ends.
   */
  async #resumeInBatches(): Promise<void> {
    for (let size = 1; this.#phase === 'resuming'; size *= 2) {
      const batch = takeBatch(this.#listPausedConnections(), size)
      const haveAllResumed = batch.length === 0
      if (haveAllResumed) {
        this.#phase = 'reading'
        return
      }
      for (const connection of batch) {
        connection.pausedSince = 0
        if (!connection.request?.body.mustStayPaused) connection.socket.resume()
      }
      await nextIteration()
    }
  }

  /**
   * Lists the paused connections in the order in which they resume, and in which libuv then reads
   * them. Those with an accepted token are always first. The order of all others alternates from
   * pause to pause, so that neither many old connections nor many new ones keep a client out.
   */
  #listPausedConnections(): ClientConnection[] {
    const paused = [...this.#connections.values()].filter(({ pausedSince }) => pausedSince > 0)
    const withToken = new Set(paused.filter(hasAcceptedToken))
    const withoutToken = paused.filter((connection) => !withToken.has(connection))
    const putsLongestWaitFirst = this.#pauseCount % 2 === 1
    const sort = putsLongestWaitFirst ? putLongestWaitFirst : putSingleHeadsFirst
    return [...withToken, ...sort(withoutToken)]
  }
}

/** Returns false if the token of its last accepted request is revoked by now. */
function hasAcceptedToken({ caller }: ClientConnection): boolean {
  return caller?.isAccepted() === true
}

/**
 * Takes the first connections: at most `size` of them, and only as many as have received
 * `maxReadBytes` together, but at least one. A stream that resumes passes on all bytes that it has
 * received, and nothing can pause it before that. So a flood in a batch is never larger than a
 * flood that one read of a connection brings.
 */
function takeBatch(pausedConnections: ClientConnection[], size: number): ClientConnection[] {
  let receivedBytes = 0
  const batch: ClientConnection[] = []
  for (const connection of pausedConnections.slice(0, size)) {
    receivedBytes += connection.socket.readableLength
    if (receivedBytes > maxReadBytes && batch.length > 0) break
    batch.push(connection)
  }
  return batch
}

/** Sorts the connections by the pause since which they wait, the earliest pause first. */
function putLongestWaitFirst(connections: ClientConnection[]): ClientConnection[] {
  return connections.toSorted((left, right) => left.pausedSince - right.pausedSince)
}

/**
 * Puts the connections first that have sent no more than a head, as a client does that sends one
 * request. Both parts of the result begin with the newest connection.
 */
function putSingleHeadsFirst(connections: ClientConnection[]): ClientConnection[] {
  const hasSentNoMoreThanHead = ({ socket: { readableLength } }: ClientConnection) =>
    readableLength > 0 && readableLength <= maxHeadBytes
  const newestFirst = connections.toReversed()
  return [
    ...newestFirst.filter(hasSentNoMoreThanHead),
    ...newestFirst.filter((connection) => !hasSentNoMoreThanHead(connection)),
  ]
}
