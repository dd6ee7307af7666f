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

  get isFull(): boolean {
    return this.#freeCount === 0
  }

  get waitingCount(): number {
    return this.#waitingCalls.size
  }

  /** Takes a slot as `acquire` does, and frees it when the action has settled. */
  async run<T>(action: () => Promise<T>, limits?: WaitLimits): Promise<T> {
    const release = await this.acquire(limits)
    try {
      return await action()
    } finally {
      release()
    }
  }

  /**
   * Waits for a slot.
   *
   * @param limits by default, the call waits until it has a slot
   * @returns a function that frees the slot, which must be called once
   * @throws the reason of a signal, or a `TimeoutError` if no slot becomes free in time
   */
  async acquire(limits?: WaitLimits): Promise<() => void> {
    for (const signal of limits?.signals ?? []) signal.throwIfAborted()
    if (this.#freeCount > 0) this.#freeCount -= 1
    else if (limits === undefined) await this.#waitForSlot()
    else await runWithin(limits.timeoutMs, limits.signals, (signal) => this.#waitForSlot(signal))
    return () => this.#release()
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
