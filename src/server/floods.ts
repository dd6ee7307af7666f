/**
 * Which connections of a server are read while clients flood it.
 *
 * node:http parses up to 64 KiB of a connection at once. That can be thousands of pipelined
 * requests, or thousands of chunks of a body, whose parsing takes 30 ms. An iteration of the event
 * loop reads every connection that has received something, so three hundred such connections would
 * block it for nine seconds, and Node.js has no limit for this. So each such request, each of its
 * header lines, each chunk, and each KiB of a body counts as a unit. When the units of one
 * iteration reach `maxFloodUnits`, all connections are held: libuv then skips those that it has not
 * read yet. The next iterations accept the new connections. Then the held ones are released in
 * batches of 1, 2, 4 and so on. A batch that brings another flood causes the next pause, which
 * includes the connections that have not been released yet.
 *
 * docs/design/http-connections.md says why, and which simpler rules were tried.
 */
import { setImmediate as nextIteration } from 'node:timers/promises'
import type { Connection } from './connection.js'
import type { Connections } from './limit.js'

/** A unit takes about 10 µs, so an iteration is blocked for 10 ms. */
const maxFloodUnits = 1000

/** libuv reads no more than this of a connection at once. */
const maxReadBytes = 65_536

export class Floods {
  /** The units of the current iteration of the event loop. */
  #units = 0
  /**
   * - `reading`: no connection is held by this class.
   * - `pausing`: all connections are held, and new ones are accepted.
   * - `resuming`: batches of connections are released. New ones wait for their batch, too.
   */
  #phase: 'reading' | 'pausing' | 'resuming' = 'reading'
  /** The connections that are held. A Set keeps its order, so the first one waits longest. */
  readonly #held = new Set<Connection>()
  #pauseCount = 0
  /** The units that connections have brought since the phase `reading`. */
  #broughtUnits = new WeakMap<Connection, number>()

  constructor(private readonly connections: Connections) {}

  /** Holds a new connection during a pause. */
  add(connection: Connection): void {
    connection.socket.once('close', () => this.#held.delete(connection))
    if (this.#phase === 'reading') return
    // node:http usually reads bytes from the handle of the socket. With a listener for `data`, it
    // reads from the stream, which goes on receiving 64 KiB while it is paused. So their number
    // tells what the connection will bring.
    connection.socket.on('data', () => undefined)
    this.#hold(connection)
  }

  /**
   * Counts what clients may send without a token, and pauses all connections when it is too much
   * for one iteration.
   *
   * @param units 1 for a request that gets no response, for each of its header lines, for a chunk,
   * and for a whole KiB of a body. Most requests have none of these, so this is 0 for them.
   * @param connection undefined if it has been closed
   */
  countUnits(units: number, connection: Connection | undefined): void {
    if (units === 0) return
    if (this.#units === 0)
      setImmediate(() => {
        this.#units = 0
      })
    this.#units += units
    if (connection)
      this.#broughtUnits.set(connection, (this.#broughtUnits.get(connection) ?? 0) + units)
    const isFlood = this.#units >= maxFloodUnits
    if (isFlood && this.#phase !== 'pausing') void this.#pauseAll()
  }

  #hold(connection: Connection): void {
    if (!connection.isOpen) return
    this.#held.add(connection)
    connection.hold('flood')
  }

  async #pauseAll(): Promise<void> {
    this.#phase = 'pausing'
    this.#pauseCount += 1
    for (const connection of this.connections) this.#hold(connection)
    await nextIteration()
    await this.connections.waitUntilAllAccepted()
    this.#phase = 'resuming'
    await this.#resumeInBatches()
  }

  /**
   * Releases 1, 2, 4 and so on of the held connections, a batch in each iteration of the event
   * loop. A batch ends at 64 KiB that wait in streams. While it is read, all later ones are still
   * held. So even if it brings another flood, its connections have made progress. That flood begins
   * the next pause, which calls this method for the remaining connections, so the current call ends.
   *
   * Those come first that have sent least, so that a flood delays nobody else. But every fourth
   * pause begins with the connection that waits longest, so that each has its turn whatever the
   * others send.
   */
  async #resumeInBatches(): Promise<void> {
    for (let size = 1; this.#phase === 'resuming'; size *= 2) {
      if (this.#held.size === 0) {
        this.#phase = 'reading'
        this.#broughtUnits = new WeakMap()
        return
      }
      const takesLongestWait = size === 1 && this.#pauseCount % 4 === 0
      const held = takesLongestWait ? [...this.#held] : this.#sortByLoad()
      let waitingBytes = 0
      for (const connection of held.slice(0, size)) {
        waitingBytes += connection.socket.readableLength
        this.#held.delete(connection)
        connection.release('flood')
        if (waitingBytes >= maxReadBytes) break
      }
      await nextIteration()
    }
  }

  /**
   * Sorts the held connections by what they have sent, the least first: of equal ones, those with
   * an accepted token, then the newest. They are released, and libuv then reads them, in this order.
   */
  #sortByLoad(): Connection[] {
    return [...this.#held]
      .reverse()
      .map((connection) => ({ connection, rank: this.#rank(connection) }))
      .sort((left, right) => left.rank - right.rank)
      .map(({ connection }) => connection)
  }

  /** A connection ranks by its units in this flood, and by the KiB that wait in its stream. */
  #rank(connection: Connection): number {
    const waitingKibibytes = Math.floor(connection.socket.readableLength / 1024)
    const load = (this.#broughtUnits.get(connection) ?? 0) + waitingKibibytes
    return 2 * load + (connection.hasAcceptedToken ? 0 : 1)
  }
}
