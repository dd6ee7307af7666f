import { longestTimer } from '../../platform/clock.js'

/** What one loop waits for, and any number of callbacks tell. */
export class Change {
  #isTold = false
  #wake: (() => void) | undefined

  readonly tell = (): void => {
    this.#isTold = true
    this.#wake?.()
  }

  /** Resolves when something was told since the last time, or so many milliseconds later; they may be without end. */
  async within(milliseconds: number): Promise<void> {
    if (!this.#isTold) {
      await new Promise<void>((resolve) => {
        const timer = milliseconds === Infinity ? undefined : setTimeout(resolve, Math.min(Math.ceil(milliseconds), longestTimer))
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    this.#wake = undefined
    this.#isTold = false
  }
}
