import { runWithin } from './runtime.js'

/** How long a call waits for a slot at most, and the signals that end its wait. */
interface WaitLimits {
  timeoutMs: number
  signals: AbortSignal[]
}

/** Limits how many calls run at once. Further calls wait in the order in which they came. */
export class Slots {
  #freeCount: number
  /** For each call that waits, the function that gives it a slot. The first call waits longest. */
  readonly #waitingCalls = new Set<() => void>()

  constructor(count: number) {
    this.#freeCount = count
  }

  /**
   * @param limits by default, the call waits until it has a slot
   * @throws the reason of a signal, or a `TimeoutError` if no slot becomes free in time
   */
  async run<T>(action: () => Promise<T>, limits?: WaitLimits): Promise<T> {
    await this.#acquire(limits)
    try {
      return await action()
    } finally {
      this.#release()
    }
  }

  async #acquire(limits: WaitLimits | undefined): Promise<void> {
    for (const signal of limits?.signals ?? []) signal.throwIfAborted()
    if (this.#freeCount > 0) this.#freeCount -= 1
    else if (limits === undefined) await this.#waitForSlot()
    else await runWithin(limits.timeoutMs, limits.signals, (signal) => this.#waitForSlot(signal))
  }

  #waitForSlot(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waitingCalls.add(resolve)
      signal?.addEventListener('abort', () => {
        // The abort has no effect if the call already has its slot.
        if (this.#waitingCalls.delete(resolve)) reject(signal.reason)
      })
    })
  }

  #release(): void {
    const [giveSlot] = this.#waitingCalls
    if (giveSlot === undefined) this.#freeCount += 1
    else {
      this.#waitingCalls.delete(giveSlot)
      giveSlot()
    }
  }
}
