import { runWithin } from './runtime.js'

/** How long a call waits for a slot at most, and the signals that end its wait. */
interface WaitLimits {
  timeoutMs: number
  signals: AbortSignal[]
}

interface WaitingCall {
  slotCount: number
  start(): void
}

/** Limits how many calls run at once. Further calls wait in the order in which they came. */
export class Slots {
  #freeCount: number
  /** For each call that waits, what gives it its slots. The first call waits longest. */
  readonly #waitingCalls = new Set<WaitingCall>()

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
   * Waits for a slot, or for several.
   *
   * @param limits by default, the call waits until it has its slots
   * @returns a function that frees the slots, which must be called once
   * @throws the reason of a signal, or a `TimeoutError` if the slots do not become free in time
   */
  async acquire(limits?: WaitLimits, slotCount = 1): Promise<() => void> {
    for (const signal of limits?.signals ?? []) signal.throwIfAborted()
    if (this.#waitingCalls.size === 0 && this.#freeCount >= slotCount) this.#freeCount -= slotCount
    else if (limits === undefined) await this.#wait(slotCount)
    else
      await runWithin(limits.timeoutMs, limits.signals, (signal) => this.#wait(slotCount, signal))
    return () => this.#release(slotCount)
  }

  #wait(slotCount: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const call = { slotCount, start: resolve }
      this.#waitingCalls.add(call)
      signal?.addEventListener('abort', () => {
        // The abort has no effect if the call already has its slots.
        if (this.#waitingCalls.delete(call)) reject(signal.reason)
      })
    })
  }

  #release(slotCount: number): void {
    this.#freeCount += slotCount
    for (const call of this.#waitingCalls) {
      if (call.slotCount > this.#freeCount) return
      this.#freeCount -= call.slotCount
      this.#waitingCalls.delete(call)
      call.start()
    }
  }
}
