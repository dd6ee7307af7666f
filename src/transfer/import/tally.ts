import { shorten } from '../../platform/escape.js'
import { Outcome } from '../../stores/conflict.js'
import type { Batch } from '../../stores/store.js'

/** What has come of an import so far. */
export interface Tally {
  created: number
  skipped: number
  /** how many were refused, by the `error` that says why */
  refused: Record<string, number>
  /** how many were sent, and may be stored or not */
  unknown: number
  /** how many plants had a field that no NewPlant has: the first thousand names, shortened */
  otherFields: Record<string, number>
}

export function emptyTally(): Tally {
  return { created: 0, skipped: 0, refused: {}, unknown: 0, otherFields: {} }
}

/** Counts what went well in a batch; the rest is counted where it is reported. */
export function countDone(tally: Tally, { outcomes }: Batch): void {
  for (const outcome of outcomes) {
    if (outcome === Outcome.created) tally.created += 1
    else if (outcome === Outcome.skipped) tally.skipped += 1
  }
}

export function countRefused(tally: Tally, error: number): void {
  tally.refused[error] = (tally.refused[error] ?? 0) + 1
}

export function countFields(tally: Tally, counts: ReadonlyMap<string, number>): void {
  const known = new Map(Object.entries(tally.otherFields))
  for (const [name, count] of counts) {
    const short = shorten(name)
    if (known.has(short) || known.size < mostFields) known.set(short, (known.get(short) ?? 0) + count)
  }
  tally.otherFields = Object.fromEntries(known)
}

/** names of fields that are counted */
const mostFields = 1000

export function refusedIn({ refused }: Tally): number {
  return Object.values(refused).reduce((sum, count) => sum + count, 0)
}

/** All that are done with, whatever came of them. */
export function settledIn(tally: Tally): number {
  return tally.created + tally.skipped + tally.unknown + refusedIn(tally)
}
