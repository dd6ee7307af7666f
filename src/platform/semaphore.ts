/** Callers wait in order of arrival. */
export class Semaphore {
  readonly #size: number
  #inside = 0
  readonly #waiters = new Set<() => void>()

  constructor(size: number) {
    this.#size = size
  }

  /** `leave` releases the permit. Throws the reason of the signal when it aborts first. */
  async enter(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    if (this.#inside < this.#size) {
      this.#inside += 1
      return
    }
    await new Promise<void>((resolve, reject) => {
      const enter = () => {
        signal?.removeEventListener('abort', giveUp)
        resolve()
      }
      const giveUp = () => {
        this.#waiters.delete(enter)
        reject(signal?.reason)
      }
      this.#waiters.add(enter)
      signal?.addEventListener('abort', giveUp, { once: true })
    })
  }

  /** Throws the reason of the signal when it aborts before there is a permit. */
  async run<T>(action: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.enter(signal)
    try {
      return await action()
    } finally {
      this.leave()
    }
  }

  leave(): void {
    const [next] = this.#waiters
    if (next === undefined) {
      this.#inside -= 1
      return
    }
    this.#waiters.delete(next)
    next()
  }
}
