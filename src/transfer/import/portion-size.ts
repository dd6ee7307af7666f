import type { Clock } from '../../platform/clock.js'

interface Circumstances {
  /** whether the import may stop because of what is refused, which is known when a portion is done */
  mayBeLast: boolean
  /** whether the store keeps positions, and so is no service: in a file plants that are sorted take less time */
  keepsPositions: boolean
  clock: Pick<Clock, 'now'>
}

/** How many bytes of an input the next portion is to have. */
export class PortionSize {
  bytes: number
  readonly #circumstances: Circumstances
  /** when the portion before began */
  #begunAt: number

  constructor(circumstances: Circumstances) {
    const { mayBeLast, keepsPositions, clock } = circumstances
    this.#circumstances = circumstances
    this.bytes = mayBeLast ? smallest : keepsPositions ? first : small
    this.#begunAt = clock.now()
  }

  /**
   * A portion is read, and begun.
   *
   * @param wasUnsorted whether its plants had to be put in order: the more are sorted at once, the better
   */
  adapt(wasUnsorted: boolean): void {
    const { mayBeLast, keepsPositions } = this.#circumstances
    if (mayBeLast) return
    if (keepsPositions) this.bytes = wasUnsorted ? unsorted : sorted
    else this.#adaptToTime()
  }

  /** For a service, a portion is what takes about a second, so that one is soon told how it goes. */
  #adaptToTime(): void {
    const now = this.#circumstances.clock.now()
    const took = now - this.#begunAt
    this.#begunAt = now
    if (took > 2000) this.bytes = Math.max(smallest, this.bytes / 2)
    else if (took < 1000) this.bytes = Math.min(largestByTime, this.bytes * 2)
  }
}

const smallest = 8192
const small = 65_536
const first = 262_144
const sorted = 2_097_152
const unsorted = 16_777_216
const largestByTime = 1_048_576
