/**
 * Decides which connections are read, so that a flood on some of them does not make all others
 * wait.
 *
 * node:http parses up to 64 KiB of a connection at once. That can be thousands of pipelined
 * requests, or thousands of chunks of a body, whose parsing takes 30 ms. An iteration of the event
 * loop reads every connection that has received something, so three hundred such connections would
 * block it for nine seconds, and Node.js has no limit for this.
 *
 * So each such request, each chunk, and each KiB of a large body counts as a unit. When the units
 * of one iteration reach `maxFloodUnits`, all connections are paused: libuv then skips those that
 * it has not read yet in this iteration. The next iterations accept the new connections. Then the
 * paused ones resume in batches of 1, 2, 4 and so on. A batch that brings another flood causes the
 * next pause, which includes the connections that have not resumed yet.
 *
 * docs/design/http-connections.md explains the order in which they resume, the simpler rules that
 * were tried, and the other limits of a service.
 */
import type { Socket } from 'node:net'
import { setImmediate as nextIteration } from 'node:timers/promises'

/** A unit takes about 10 µs (`countFlood` lists them), so an iteration is blocked for 10 ms. */
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

interface Connection {
  /** The number of the pause since which the connection waits, from 1 on; 0 if it is not paused. */
  pausedSince: number
  hasAcceptedToken: boolean
  /**
   * Returns true while the body of its request must stay unread, because the request has no quota
   * yet.
   */
  mustStayPaused(): boolean
}

export class Connections {
  readonly #connections = new Map<Socket, Connection>()
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

  get acceptedCount(): number {
    return this.#acceptedCount
  }

  /** Call this for a connection that the system handed over. Its TLS handshake is yet to come. */
  countAccepted(): void {
    this.#acceptedCount += 1
  }

  /** @param mustStayPaused is called before the connection would resume after a pause */
  add(socket: Socket, mustStayPaused: () => boolean): void {
    const connection = { pausedSince: 0, hasAcceptedToken: false, mustStayPaused }
    this.#connections.set(socket, connection)
    if (this.#phase === 'reading') return
    connection.pausedSince = this.#pauseCount
    // node:http usually reads bytes from the handle of the socket, and `pause` does not hold back
    // bytes from there. With a listener for `data`, node:http reads from the stream, which holds
    // them back while it is paused.
    socket.on('data', () => undefined).pause()
  }

  /** Call this when the socket has closed. */
  remove(socket: Socket): void {
    this.#connections.delete(socket)
  }

  /** After a pause, a connection whose client has an accepted token resumes first. */
  prefer(socket: Socket): void {
    const connection = this.#connections.get(socket)
    if (connection) connection.hasAcceptedToken = true
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

  async #pauseAll(): Promise<void> {
    this.#phase = 'pausing'
    this.#pauseCount += 1
    // `resume` only schedules the start of the reading, for the next tick, and a `pause` in between
    // does not cancel it. So this waits for that tick before it pauses a socket.
    await undefined
    for (const [socket, connection] of this.#connections) {
      if (socket.isPaused()) continue
      socket.pause()
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
      for (const [socket, connection] of batch) {
        connection.pausedSince = 0
        if (!connection.mustStayPaused()) socket.resume()
      }
      await nextIteration()
    }
  }

  /**
   * Lists the paused connections in the order in which they resume, and in which libuv then reads
   * them. Clients with an accepted token are always first. The order of all others alternates from
   * pause to pause, so that neither many old connections nor many new ones keep a client out.
   */
  #listPausedConnections(): [Socket, Connection][] {
    const pausedConnections = [...this.#connections].filter(
      ([, { pausedSince }]) => pausedSince > 0,
    )
    const connectionsWithToken = pausedConnections.filter(
      ([, { hasAcceptedToken }]) => hasAcceptedToken,
    )
    const connectionsWithoutToken = pausedConnections.filter(
      ([, { hasAcceptedToken }]) => !hasAcceptedToken,
    )
    const putsLongestWaitFirst = this.#pauseCount % 2 === 1
    const sort = putsLongestWaitFirst ? putLongestWaitFirst : putSingleHeadsFirst
    return [...connectionsWithToken, ...sort(connectionsWithoutToken)]
  }
}

/**
 * Takes the first connections: at most `size` of them, and only as many as have received
 * `maxReadBytes` together, but at least one. A stream that resumes passes on all bytes that it has
 * received, and nothing can pause it before that. So a flood in a batch is never larger than a
 * flood that one read of a connection brings.
 */
function takeBatch(
  pausedConnections: [Socket, Connection][],
  size: number,
): [Socket, Connection][] {
  let receivedBytes = 0
  const batch: [Socket, Connection][] = []
  for (const connection of pausedConnections.slice(0, size)) {
    receivedBytes += connection[0].readableLength
    if (receivedBytes > maxReadBytes && batch.length > 0) break
    batch.push(connection)
  }
  return batch
}

/** Sorts the connections by the pause since which they wait, the earliest pause first. */
function putLongestWaitFirst(connections: [Socket, Connection][]): [Socket, Connection][] {
  return connections.toSorted(([, left], [, right]) => left.pausedSince - right.pausedSince)
}

/**
 * Puts the connections first that have sent no more than a head, as a client does that sends one
 * request. Both parts of the result begin with the newest connection.
 */
function putSingleHeadsFirst(connections: [Socket, Connection][]): [Socket, Connection][] {
  const hasSentNoMoreThanHead = ([{ readableLength }]: [Socket, Connection]) =>
    readableLength > 0 && readableLength <= maxHeadBytes
  const newestFirst = connections.toReversed()
  return [
    ...newestFirst.filter(hasSentNoMoreThanHead),
    ...newestFirst.filter((connection) => !hasSentNoMoreThanHead(connection)),
  ]
}
