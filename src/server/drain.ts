/**
 * Drains a server: it answers what clients have sent, and then ends.
 *
 * Each request that was sent within `graceMs` is answered, unless the time of the drain is over
 * before its response is ready. A client that connects later may be closed without an answer.
 * Clients learn of the drain late, from a load balancer that polls /ready. So the drain has three
 * steps:
 *
 * 1. The server goes on accepting connections for `graceMs`, and answers each with
 *    `Connection: close`.
 * 2. It closes the port. See `#closePort`, which says why responses are held back meanwhile.
 * 3. It waits for the requests in progress, and closes each connection that has none.
 *
 * docs/design/http-connections.md describes the connections that this ends.
 */
import type { Server, ServerResponse } from 'node:http'
import type { Server as SecureServer } from 'node:https'
import type { Socket } from 'node:net'
import { setImmediate as nextIteration, setTimeout as wait } from 'node:timers/promises'
import type { ConnectionLimit } from './connection-limit.js'
import type { Connections } from './connections.js'

interface DrainContext {
  server: Server | SecureServer
  connections: Pick<Connections, 'acceptedCount' | 'waitUntilAllAccepted'>
  limit: Pick<ConnectionLimit, 'openCount' | 'logClosedCount'>
  /** The keys are the open connections, and the values their requests that are in progress. */
  currentRequests: ReadonlyMap<Socket, { response: ServerResponse } | undefined>
  /** These connections have not had a whole request head yet. */
  unusedConnections: ReadonlySet<Socket>
  /** Handles the requests that arrived while the port was being closed. */
  handleQueuedRequests(): void
}

/** How long a load balancer may send requests before it knows that the service drains. */
const drainGraceMs = 500

export class Drain {
  readonly #context: DrainContext
  #hasBegun = false
  #isHolding = false
  #portClosing: Promise<void> | undefined

  constructor(context: DrainContext) {
    this.#context = context
  }

  get hasBegun(): boolean {
    return this.#hasBegun
  }

  /** This is true while the port is being closed: requests that arrive must wait. */
  get holdsRequests(): boolean {
    return this.#isHolding
  }

  /** Settles when responses may be sent again. It is undefined before the port is being closed. */
  get portClosing(): Promise<void> | undefined {
    return this.#portClosing
  }

  /** Resolves when no connection is open, or `timeoutMs` is over. */
  async run(timeoutMs: number): Promise<void> {
    const { currentRequests, limit } = this.#context
    const endMs = performance.now() + timeoutMs
    const graceMs = Math.min(drainGraceMs, timeoutMs / 2)
    this.#hasBegun = true
    // A response whose headers were sent already cannot say that its connection will be closed. So
    // the next request of that connection is answered, too.
    for (const request of currentRequests.values())
      if (request) request.response.shouldKeepAlive = false
    await wait(graceMs)
    this.#portClosing = this.#closePort(Math.min(drainGraceMs, timeoutMs / 4))
    await this.#portClosing
    // A client may have sent a part of its request.
    const unusedEndMs = Math.min(performance.now() + graceMs, endMs)
    await wait(graceMs / 5)
    await this.#finishRequests(endMs, unusedEndMs)
    limit.logClosedCount()
  }

  /**
   * When a port closes, the system resets the connections that it has not handed over yet, and
   * their clients get no answer. A client that opens a connection for each request opens the next
   * connection as soon as it has a response. So nobody gets a response while the connections that
   * wait in the system are accepted, until no client has come for a while. New clients may come all
   * the time, so this ends after `maxHoldMs`.
   */
  async #closePort(maxHoldMs: number): Promise<void> {
    const { server, connections, handleQueuedRequests } = this.#context
    this.#isHolding = true
    const endMs = performance.now() + maxHoldMs
    let countBefore: number
    do {
      countBefore = connections.acceptedCount
      await wait(maxHoldMs / 5)
      await connections.waitUntilAllAccepted()
    } while (connections.acceptedCount > countBefore && performance.now() < endMs)
    server.close()
    this.#isHolding = false
    handleQueuedRequests()
  }

  /**
   * Closes each connection when it has no request, until none is open or the time is over.
   *
   * @param endMs on the clock of `performance.now`, as is `unusedEndMs`
   * @param unusedEndMs until then, a connection that has had no request stays open, because a slow
   *   client may not have sent its whole first request yet
   */
  async #finishRequests(endMs: number, unusedEndMs: number): Promise<void> {
    const { currentRequests, unusedConnections } = this.#context
    while (this.#mayHaveRequests(unusedEndMs) && performance.now() < endMs) {
      const mayCloseUnused = performance.now() >= unusedEndMs
      // The system may have received a request that the next iteration of the event loop reads.
      await nextIteration()
      for (const [socket, request] of currentRequests)
        if (!request && (mayCloseUnused || !unusedConnections.has(socket))) socket.destroy()
      await wait(10)
    }
  }

  #mayHaveRequests(unusedEndMs: number): boolean {
    const { currentRequests, limit } = this.#context
    if (currentRequests.size > 0) return true
    // A connection in a TLS handshake may bring a request, and only the limit knows it.
    return performance.now() < unusedEndMs && limit.openCount > 0
  }
}
