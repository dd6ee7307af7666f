import type { ServerResponse } from 'node:http'
import type { OwnStore } from '../stores/common/store.js'
import { busy, HttpError } from './answer.js'

/** In milliseconds. A stream keeps a snapshot of the store, and with it the space of everything that changes meanwhile. */
const maxDuration = 600_000

/** A stream goes on for so many milliseconds, however large the log of the store becomes, which is limited in bytes. */
const minDuration = 60_000
const maxLog = 1_073_741_824

/** At a time. Each lasts as long as its client takes to read it. */
const maxStreams = 8

/** In milliseconds. */
const checkInterval = 1000

export interface Stream {
  token: string
  response: ServerResponse
  /** Rejects with 401 when the token is not accepted any longer. */
  authenticate(): Promise<unknown>
  startedAt: number
  /** Why it was cut. */
  error?: HttpError
}

/** The streams of plants, of which each token may have one. */
export class Streams {
  readonly #store: Pick<OwnStore, 'maxSnapshots' | 'logSize'>
  readonly #now: () => number
  /** The oldest is first. */
  readonly #open = new Set<Stream>()
  #timer: NodeJS.Timeout | undefined

  constructor(store: Pick<OwnStore, 'maxSnapshots' | 'logSize'>, now: () => number) {
    this.#store = store
    this.#now = now
  }

  /** Throws 503. */
  add(stream: Stream): Stream {
    for (const { token } of this.#open)
      if (token === stream.token)
        throw busy('This token is reading a stream already, and may read one at a time')
    const isFull = this.#open.size >= Math.min(maxStreams, this.#store.maxSnapshots)
    // Streams that begin before others have ended would keep the log from ever being emptied.
    if (isFull || (this.#open.size > 0 && this.#store.logSize() > maxLog)) throw busy()
    this.#open.add(stream)
    this.#timer ??= setTimeout(() => this.#check(), checkInterval)
    return stream
  }

  remove(stream: Stream): void {
    this.#open.delete(stream)
    if (this.#open.size > 0) return
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #check(): void {
    this.#timer = setTimeout(() => this.#check(), checkInterval)
    const [oldest] = this.#open
    if (oldest && this.#now() - oldest.startedAt >= minDuration && this.#store.logSize() > maxLog)
      cut(
        oldest,
        new HttpError(
          503,
          'The stream kept the log of the store from being emptied, which has passed 1 GiB',
        ),
      )
    for (const stream of this.#open) {
      if (this.#now() - stream.startedAt >= maxDuration)
        cut(stream, new HttpError(503, 'The stream took too long'))
      stream.authenticate().catch((error: unknown) => {
        if (error instanceof HttpError && error.error === 401) cut(stream, error) // not for a lookup that fails
      })
    }
  }
}

function cut(stream: Stream, error: HttpError): void {
  stream.error ??= error
  stream.response.destroy()
}
