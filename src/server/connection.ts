/**
 * One open connection: who sent its last accepted request, its request in progress, and whether its
 * socket may be read. Only this file pauses and resumes sockets of clients.
 *
 * A connection is held for reasons that do not know each other, and is read when the last of them
 * is released:
 *
 * - `flood`: too much came at once, and the connection waits for its batch (see `Floods`).
 * - `body`: the rest of a body must not be read before its request is admitted (see `Body`).
 * - `pipelined`: nothing after the request in progress is wanted, so this is never released.
 *
 * node:http also pauses and resumes the socket: it resumes it for the next part of a body, and when
 * the client has read a response. So a held socket that was resumed is paused again at its event
 * `resume`, before anything is read.
 */
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Caller } from './authenticate.js'
import type { Body } from './body.js'

/** A request whose head has arrived. */
export interface ReceivedRequest {
  connection: Connection
  response: ServerResponse
  body: Body
  /** The number of further requests that came on its connection before its response. */
  droppedCount: number
}

type HoldReason = 'flood' | 'body' | 'pipelined'

export class Connection {
  /** The request whose body or response is in progress. */
  request: ReceivedRequest | undefined
  /** When the last request with an accepted token came, on the clock of `performance.now`. */
  acceptedAtMs = 0
  #caller: Pick<Caller, 'isAccepted'> | undefined
  readonly #holdReasons = new Set<HoldReason>()
  /** True from a call of `resume` until its event, which comes in the next tick. */
  #isResuming = false

  constructor(
    readonly socket: Socket,
    /** False during a TLS handshake, when `socket` is the TCP connection below it. */
    readonly isOpen: boolean,
  ) {
    socket.on('resume', () => {
      this.#isResuming = false
      if (this.isHeld) socket.pause()
    })
  }

  get isHeld(): boolean {
    return this.#holdReasons.size > 0
  }

  /** Returns false if the token of its last accepted request is revoked by now. */
  get hasAcceptedToken(): boolean {
    return this.#caller?.isAccepted() === true
  }

  /**
   * Says whose token the request in progress has: its connection is read first after a pause, and
   * closed last at the limit.
   */
  setCaller(caller: Pick<Caller, 'isAccepted'>): void {
    this.#caller = caller
    this.acceptedAtMs = performance.now()
  }

  hold(reason: HoldReason): void {
    // `resume` only schedules the start of the reading, and a `pause` before its event would not
    // cancel it. The event then pauses the socket.
    const isPaused = this.isHeld || this.#isResuming
    this.#holdReasons.add(reason)
    if (!isPaused) this.socket.pause()
  }

  release(reason: HoldReason): void {
    if (!this.#holdReasons.delete(reason) || this.isHeld) return
    this.#isResuming = true
    this.socket.resume()
  }
}
