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
 * batches that double, until a batch has another flood, which pauses the rest again. Clients that
 * have an accepted token come first. Of the others, those come first by turns that have waited
 * longest, and those that have sent no more than a head, then the newest: neither many old
 * connections nor many new ones keep a client out.
 *
 * Tried: to resume one connection in each iteration (where thousands were idle, new clients waited
 * for twelve seconds), and always the newest first (a flood that connects again and again kept out
 * those that were there before).
 *
 * docs/design/http-connections.md explains this with the other limits of a service.
 */
import type { Socket } from 'node:net'
import { setImmediate as nextIteration } from 'node:timers/promises'

/** A unit takes about 10 µs: see `countFlood`. */
const maxFloodPerIteration = 1000

/** libuv reads no more than this of a connection at once. */
export const maxReadBytes = 65_536

/** node:http rejects a larger head. */
const maxHeadBytes = 16_384

/**
 * One iteration of the event loop accepts one connection. This is Node.js's default for those that
 * wait.
 */
const maxIterationsToAccept = 511

interface Connection {
  /** The number of the pause since which it waits; 0 if it is not paused. */
  pausedSince: number
  hasToken: boolean
  /** Whether the body of its request is to stay unread until the request has its quota. */
  mustStayPaused(): boolean
}

export class Connections {
  readonly #connections = new Map<Socket, Connection>()
  /** How many were accepted, including those that are in a TLS handshake or closed by now. */
  #acceptedCount = 0
  #floodCount = 0
  #isPausing = false
  /** From a pause until all have resumed, new connections wait, too. */
  #isHolding = false
  #pauseCount = 0

  get acceptedCount(): number {
    return this.#acceptedCount
  }

  /** Counts a connection that the system handed over. With TLS, its handshake has yet to come. */
  countAccepted(): void {
    this.#acceptedCount += 1
  }

  /** @param mustStayPaused is asked before the connection is read again after a pause */
  add(socket: Socket, mustStayPaused: () => boolean): void {
    const connection = { pausedSince: 0, hasToken: false, mustStayPaused }
    this.#connections.set(socket, connection)
    if (!this.#isHolding) return
    connection.pausedSince = this.#pauseCount
    // With a listener, node:http reads through the stream, whose pause also holds what was received
    // already.
    socket.on('data', () => undefined).pause()
  }

  /** @param socket has closed */
  remove(socket: Socket): void {
    this.#connections.delete(socket)
  }

  /** Prefers a connection whose client has an accepted token. */
  prefer(socket: Socket): void {
    const connection = this.#connections.get(socket)
    if (connection) connection.hasToken = true
  }

  /**
   * Counts what clients may send without a token, and pauses all connections when it is too much
   * for one iteration.
   *
   * @param units 1 for a request that gets no response, for each of its header lines, for a chunk,
   * and for a whole KiB of a body
   */
  countFlood(units: number): void {
    if (units === 0) return // as of most requests
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
    this.#isHolding = true
    this.#pauseCount += 1
    // A socket that was resumed is read from the next tick on, even if it was paused since. This
    // waits for that tick.
    await undefined
    for (const [socket, connection] of this.#connections) {
      if (socket.isPaused()) continue
      socket.pause()
      connection.pausedSince = this.#pauseCount
    }
    await nextIteration()
    await this.acceptWaiting()
    this.#isPausing = false
    await this.#resumeInBatches()
  }

  /** Only the connections of a batch are read, so that each batch makes progress. */
  async #resumeInBatches(): Promise<void> {
    // The next pause ends this loop, and has its own.
    for (let size = 1; !this.#isPausing; size *= 2) {
      const batch = takeBatch(this.#listPaused(), size)
      if (batch.length === 0) {
        this.#isHolding = false
        return
      }
      for (const [socket, connection] of batch) {
        connection.pausedSince = 0
        if (!connection.mustStayPaused()) socket.resume()
      }
      await nextIteration()
    }
  }

  /** Lists the paused connections in the order in which they resume, and libuv reads them. */
  #listPaused(): [Socket, Connection][] {
    const paused = [...this.#connections].filter(([, { pausedSince }]) => pausedSince > 0)
    const preferred = paused.filter(([, { hasToken }]) => hasToken)
    const others = paused.filter(([, { hasToken }]) => !hasToken)
    const isTurnOfNewest = this.#pauseCount % 2 === 0
    return [...preferred, ...(isTurnOfNewest ? sortByAge(others) : sortByWait(others))]
  }
}

/**
 * Takes the first connections, at most `size`. A stream that resumes passes on what it has received
 * before anything can pause it again, so that a batch has no more of that than one connection may
 * have.
 */
function takeBatch(paused: [Socket, Connection][], size: number): [Socket, Connection][] {
  let receivedBytes = 0
  const batch: [Socket, Connection][] = []
  for (const connection of paused.slice(0, size)) {
    receivedBytes += connection[0].readableLength
    if (receivedBytes > maxReadBytes && batch.length > 0) break
    batch.push(connection)
  }
  return batch
}

function sortByWait(connections: [Socket, Connection][]): [Socket, Connection][] {
  return connections.toSorted(([, one], [, other]) => one.pausedSince - other.pausedSince)
}

/** Sorts those first that have sent no more than a head, and then the newest. */
function sortByAge(connections: [Socket, Connection][]): [Socket, Connection][] {
  const hasSentHead = ([{ readableLength }]: [Socket, Connection]) =>
    readableLength > 0 && readableLength <= maxHeadBytes
  const newestFirst = connections.toReversed()
  return [
    ...newestFirst.filter(hasSentHead),
    ...newestFirst.filter((connection) => !hasSentHead(connection)),
  ]
}
