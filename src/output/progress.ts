import { grouped } from '../plant/plant.js'
import { escapeControlChars } from '../platform/escape.js'
import type { Io, Output } from '../platform/io.js'

/** `done` counts plants; `part` is a fraction from 0 to 1. */
interface ProgressSnapshot {
  done?: number
  part?: number | undefined
  rejected?: number
}

export type Progress = ReturnType<typeof progressLine>

/**
 * The rate is measured from the first update, so that a resumed import does not count what an earlier run has done.
 */
export function progressLine(
  { now, stderr }: Pick<Io, 'now' | 'stderr'>,
  isShown: boolean,
  delayMs = 500,
) {
  let first: { time: number; snapshot: ProgressSnapshot } | undefined
  let last = now() + delayMs - intervalMs
  let isDrawn = false
  return {
    show: (snapshot: () => ProgressSnapshot): void => {
      const time = now()
      if (!isShown || time - last < intervalMs) return
      last = time
      isDrawn = true
      const current = snapshot()
      first ??= { time, snapshot: current }
      const text = describe(current, first.snapshot, (time - first.time) / 1000)
      void stderr.log(lineOf(text, stderr))
    },
    clear: async (): Promise<void> => {
      if (!isDrawn) return
      isDrawn = false
      last = -Infinity
      await stderr.write(lineOf('', stderr))
    },
  }
}

const intervalMs = 100

/** Replaces the line of the cursor. */
function lineOf(text: string, { columns }: Output): string {
  return `\r${text.slice(0, columns - 1)}\u001b[K`
}

/** The function shows how long a response has been awaited; `undefined` clears the line. */
export function waitingLine(
  { stderr }: Io,
  host: string,
): (milliseconds: number | undefined) => Promise<void> {
  let isShown = false
  return async (milliseconds) => {
    if (milliseconds === undefined && !isShown) return
    isShown = milliseconds !== undefined
    const text =
      milliseconds === undefined
        ? ''
        : `Waiting for ${host}\u2026 (${Math.round(milliseconds / 1000)} s)`
    await stderr.log(lineOf(escapeControlChars(text), stderr))
  }
}

export async function* withProgress<T>(
  parts: AsyncIterable<T>,
  countOf: (part: T) => number,
  progress: Progress,
): AsyncGenerator<T> {
  let done = 0
  try {
    for await (const part of parts) {
      yield part
      done += countOf(part)
      progress.show(() => ({ done }))
    }
  } finally {
    await progress.clear()
  }
}

function describe(
  { done, rejected = 0, part }: ProgressSnapshot,
  first: ProgressSnapshot,
  seconds: number,
): string {
  const passed = (part ?? 0) - (first.part ?? 0)
  return [
    part === undefined ? [] : `${Math.floor(part * 100)} %`,
    done === undefined ? [] : `${grouped(done)} done`,
    rejected > 0 ? `${grouped(rejected)} rejected` : [],
    done === undefined || seconds <= 0
      ? []
      : `${grouped(Math.round((done - (first.done ?? 0)) / seconds))}/s`,
    part === undefined || passed <= 0 || seconds < 1
      ? []
      : `${clockOf((seconds * (1 - part)) / passed)} left`,
  ]
    .flat()
    .join(', ')
}

/** 40 s, 1 min 30 s, 2 h 5 min */
export function clockOf(seconds: number): string {
  const whole = Math.max(1, Math.round(seconds))
  const minutes = Math.floor(whole / 60)
  if (whole < 60) return `${whole} s`
  return whole < 3600
    ? `${minutes} min ${whole % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
