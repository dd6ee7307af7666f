import { groupDigits } from '../plant/plant.js'
import type { Io, Output } from '../platform/io.js'

const redrawMs = 100

interface ProgressState {
  done: number
  /** The part of the work that is done, from 0 to 1; undefined if its end is not known. */
  part?: number | undefined
  rejected?: number
}

/** A line on a terminal that is drawn again at most ten times a second. */
export class Progress {
  /** The first state that was drawn, from which the rate is counted. */
  #firstDraw: { timeMs: number; state: ProgressState } | undefined
  #nextDrawMs: number
  #isDrawn = false

  constructor(
    private readonly io: Pick<Io, 'now' | 'stderr'>,
    private readonly isShown: boolean,
    delayMs = 500,
  ) {
    this.#nextDrawMs = io.now() + delayMs
  }

  show(state: ProgressState): void {
    const timeMs = this.io.now()
    if (!this.isShown || timeMs < this.#nextDrawMs) return
    this.#nextDrawMs = timeMs + redrawMs
    this.#isDrawn = true
    this.#firstDraw ??= { timeMs, state }
    const seconds = (timeMs - this.#firstDraw.timeMs) / 1000
    const text = describeProgress(state, this.#firstDraw.state, seconds)
    void this.io.stderr.log(formatLine(text, this.io.stderr))
  }

  /** Ignores that the terminal has closed, which must not hide why the work ends. */
  async clear(): Promise<void> {
    if (!this.#isDrawn) return
    this.#isDrawn = false
    this.#nextDrawMs = -Infinity
    await this.io.stderr.log(formatLine('', this.io.stderr))
  }
}

/** Replaces the line on which the cursor is. */
function formatLine(text: string, { columns }: Output): string {
  return `\r${text.slice(0, columns - 1)}\u001b[K`
}

/** Returns a text such as `50 %, 760,216 done, 3 rejected, 100,000/s, 2 s left`. */
function describeProgress(
  { done, part, rejected = 0 }: ProgressState,
  first: ProgressState,
  seconds: number,
): string {
  const texts = [`${groupDigits(done)} done`]
  if (part !== undefined) texts.unshift(`${Math.floor(part * 100)} %`)
  if (rejected > 0) texts.push(`${groupDigits(rejected)} rejected`)
  if (seconds > 0) texts.push(`${groupDigits(Math.round((done - first.done) / seconds))}/s`)
  const partOfRun = (part ?? 0) - (first.part ?? 0)
  if (part !== undefined && partOfRun > 0 && seconds >= 1)
    texts.push(`${formatDuration((seconds * (1 - part)) / partOfRun)} left`)
  return texts.join(', ')
}

/** Returns a duration such as `40 s`, `1 min 30 s` or `2 h 5 min`. */
function formatDuration(seconds: number): string {
  const wholeSeconds = Math.max(1, Math.round(seconds))
  const minutes = Math.floor(wholeSeconds / 60)
  if (minutes === 0) return `${wholeSeconds} s`
  if (minutes < 60) return `${minutes} min ${wholeSeconds % 60} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
