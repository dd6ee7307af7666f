import { PlantsError } from '../errors.js'
import type { Batch } from '../stores/store.js'
import type { FormatName } from './format-names.js'
import type { Extent, ReadingState } from './reader.js'
import type { Lengths } from './rejects.js'
import { settledIn, type Tally } from './tally.js'

/** Where an import is: before a portion of an input, of which some rows may be settled. It is kept as JSON. */
export interface Position {
  /** which of the inputs */
  input: number
  /** the format of the input, and how it goes on */
  format: FormatName
  reading: ReadingState | undefined
  /** unpacked bytes before the portion */
  offset: number
  portion: Extent
  /** of all that was read, with the portion */
  hash: string
  /** what was reported before the portion */
  tally: Tally
  rejects: Lengths | undefined
  /** how the rows of the portion went, in the order in which they are taken: counts, each with its outcome */
  outcomes: string
  /** the refusals of the portion: row, `error` and message */
  refusals: [number, number, string][]
  /** rows of the portion that may have been sent to a service that keeps no keys */
  sent: number
}

export function packOutcomes({ rows, order, outcomes }: Batch): string {
  const runs: string[] = []
  let count = 0
  for (let rank = 0; rank < rows.length; rank += 1) {
    const outcome = outcomes[order?.[rank] ?? rank]
    const next = rank + 1 < rows.length ? outcomes[order?.[rank + 1] ?? rank + 1] : undefined
    count += 1
    if (outcome === next) continue
    runs.push(`${count}:${outcome}`)
    count = 0
  }
  return runs.join(' ')
}

/** Notes in a batch how its rows went; false when it has fewer of them. */
export function unpackOutcomes({ rows, order, outcomes }: Batch, text: string): boolean {
  let rank = 0
  for (const [, count = '', outcome = ''] of text.matchAll(/(\d+):(\d)/g)) {
    for (const end = rank + parseInt(count, 10); rank < end; rank += 1) outcomes[order?.[rank] ?? rank] = parseInt(outcome, 10)
  }
  return rank <= rows.length
}

export function packRefusals({ refusals }: Batch): Position['refusals'] {
  return [...refusals].map(([row, { error, message }]) => [row, error, message])
}

export function unpackRefusals({ refusals }: Batch, packed: Position['refusals']): void {
  for (const [row, error, message] of packed) refusals.set(row, new PlantsError('refused', message, { error }))
}

/** How many records are done with. */
export function settledAt({ tally, outcomes }: Position): number {
  const runs = outcomes.matchAll(/(\d+):([1-9])/g)
  return settledIn(tally) + Array.from(runs, ([, count = '']) => parseInt(count, 10)).reduce((sum, count) => sum + count, 0)
}
