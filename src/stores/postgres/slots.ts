import { within } from '../../platform/runtime.js'

/** How long to wait for a slot, and what ends the wait before. */
interface Patience {
  timeoutMs: number
  signals: AbortSignal[]
}

/**
 * Limits how many calls run at once. The others wait in their order.
 *
 * The searches of a store have as many slots as half of its connections, so that they never take
 * all of them: a search reads every plant, and creates, look-ups of tokens and `/ready` need a
 * connection, too.
 */
export class Slots {
  #free: number
  /** What gives a slot to each waiting call. */
  readonly #waiting = new Set<() => void>()

  constructor(count: number) {
    this.#free = count
  }

  /** @throws the reason of a signal, or a `TimeoutError` if no slot becomes free in time */
  async run<T>(action: () => Promise<T>, patience: Patience): Promise<T> {
    await this.#acquire(patience)
    try {
      return await action()
    } finally {
      this.#release()
    }
  }

  async #acquire({ timeoutMs, signals }: Patience): Promise<void> {
    for (const signal of signals) signal.throwIfAborted()
    if (this.#free > 0) this.#free -= 1
    else await within(timeoutMs, signals, (signal) => this.#waitForSlot(signal))
  }

  #waitForSlot(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.add(resolve)
      signal.addEventListener('abort', () => {
        // It stays without effect if the slot was given before.
        if (this.#waiting.delete(resolve)) reject(signal.reason)
      })
    })
  }

  #release(): void {
    const [giveSlot] = this.#waiting
    if (giveSlot === undefined) this.#free += 1
    else {
      this.#waiting.delete(giveSlot)
      giveSlot()
    }
  }
}
