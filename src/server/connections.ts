/**
 * Decides which connections are read, so that a flood on some of them does not make all others
 * wait.
 *
 * node:http parses up to 64 KiB of a connection at once. They can hold thousands of pipelined
 * requests, or of chunks of a body, and then take 30 ms. An iteration of the event loop reads every
 * connection that has received something, so three hundred such connections would block it for nine
 * seconds, and Node.js has no limit for this.
 *
 * So each such request and chunk is counted, as are large bodies. When one iteration has had
 * `maxFloodPerIteration` of them, all connections are paused: libuv then skips those that it has
 * not read yet. The next iterations accept the new connections. Then the paused ones resume in
 * batches that double, until a batch has another flood, which pauses the rest again. Those that are
 * likely not to be a flood come first: clients that have an accepted token, then new ones that have
 * sent no more than a head, then the newest of the others.
 *
 * Two other ways were tried. Where one connection resumed in each iteration, and thousands were
 * idle, new clients waited for twelve seconds. Where the newest came first in any case, and a flood
 * had connected after them, clients waited for its end.
 */
import type { Socket } from 'node:net'
import { setImmediate as nextIteration } from 'node:timers/promises'

/** A unit takes about 10 µs: see `countFlood`. */
const maxFloodPerIteration = 1000

/** node:http rejects a larger head. */
const maxHeadBytes = 16_384

/**
 * One iteration of the event loop accepts one connection. The system lets no more than this wait,
 * because it is the default of Node.js.
 */
const maxIterationsToAccept = 511

interface Connection {
  isPaused: boolean
  hasToken: boolean
  /** Whether the body of its request is to stay unread until the request has its quota. */
  mustStayPaused(): boolean
}

export class Connections {
  readonly #connections = new Map<Socket, Connection>()
  #acceptedCount = 0
  #floodCount = 0
  #isPausing = false

  /** @param mustStayPaused is asked before the connection is read again after a pause */
  add(socket: Socket, mustStayPaused: () => boolean): void {
    this.#acceptedCount += 1
    const connection = { isPaused: false, hasToken: false, mustStayPaused }
    this.#connections.set(socket, connection)
    socket.once('close', () => this.#connections.delete(socket))
    if (!this.#isPausing) return
    connection.isPaused = true
    // With a listener, node:http reads through the stream, whose pause also holds what was received
    // already.
    socket.on('data', () => undefined).pause()
  }

  /** Prefers a connection whose client has an accepted token. */
  prefer(socket: Socket): void {
    const connection = this.#connections.get(socket)
    if (connection) connection.hasToken = true
  }

  /**
   * Counts what clients may send without a token, and pauses all connections when it is too much
   * for one iteration of the event loop.
   *
   * @param units 1 for a request that gets no response, for each of its header lines, for a chunk,
   * and for a KiB of a body
   */
  countFlood(units: number): void {
    if (this.#floodCount === 0)
      setImmediate(() => {
        this.#floodCount = 0
      })
    this.#floodCount += units
    if (this.#floodCount >= maxFloodPerIteration && !this.#isPausing) void this.#pauseAll()
  }

  /** Accepts the connections that wait in the system, one in each iteration of the event loop. */
  async acceptWaiting(): Promise<void> {
    let countBefore = -1
    for (let iterations = 0; iterations < maxIterationsToAccept; iterations += 1) {
      if (this.#acceptedCount === countBefore) return
      countBefore = this.#acceptedCount
      await nextIteration()
    }
  }

  async #pauseAll(): Promise<void> {
    this.#isPausing = true
    // A socket that was resumed is read from the next tick on, even if it was paused since. This
    // waits for that tick.
    await undefined
    for (const [socket, connection] of this.#connections) {
      if (socket.isPaused()) continue
      socket.pause()
      connection.isPaused = true
    }
    await nextIteration()
    await this.acceptWaiting()
    this.#isPausing = false
    await this.#resumeInBatches()
  }

  async #resumeInBatches(): Promise<void> {
    const paused = this.#listPaused()
    // The next pause ends this loop, and has its own.
    for (let size = 1; paused.length > 0 && !this.#isPausing; size *= 2) {
      for (const [socket, connection] of paused.splice(0, size)) {
        connection.isPaused = false
        if (!connection.mustStayPaused()) socket.resume()
      }
      await nextIteration()
    }
  }

  /**
   * Lists the paused connections in the order in which they resume, which is also that in which
   * libuv reads them.
   */
  #listPaused(): [Socket, Connection][] {
    const newestFirst = [...this.#connections].filter(([, { isPaused }]) => isPaused).reverse()
    return newestFirst.toSorted((one, other) => rank(one) - rank(other))
  }
}

function rank([socket, { hasToken }]: [Socket, Connection]): number {
  if (hasToken) return 0
  const hasReceivedLittle = socket.readableLength > 0 && socket.readableLength <= maxHeadBytes
  return hasReceivedLittle ? 1 : 2
}
