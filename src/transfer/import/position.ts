import * as z from 'zod/mini'
import type { Batch } from '../../stores/store.js'
import { formatNames } from '../formats/format-names.js'
import { settledIn } from './tally.js'

const count = z.number().check(z.int(), z.nonnegative())
const counts = z.record(z.string(), count)

const schema = z.object({
  /** which of the inputs */
  input: count,
  /** the format of the input, and how it goes on */
  format: z.enum(formatNames),
  reading: z.optional(z.object({ format: z.record(z.string(), z.any()), nextId: z.optional(z.string().check(z.regex(/^-?\d{1,20}$/))) })),
  /** unpacked bytes before the portion */
  offset: count,
  portion: z.object({ length: count.check(z.lte(64 * 1_048_576)), isLast: z.boolean() }),
  /** of all that was read, with the portion */
  hash: z.string(),
  /** what was reported before the portion */
  tally: z.object({ created: count, skipped: count, refused: counts, unknown: count, otherFields: counts }),
  /** bytes of the rejects file and of the reasons */
  rejects: z.optional(z.object({ records: count, reasons: count })),
  /** how the rows of the portion went, in the order in which they are taken: counts, each with its outcome */
  outcomes: z.string().check(z.regex(/^(\d{1,9}:[0-5]( |$))*$/)),
  /** the refusals of the portion: row, `error` and message */
  refusals: z.array(z.tuple([count, z.number(), z.string()])),
  /** rows of the portion that may have been sent to a service that keeps no keys */
  sent: count,
})

/** Where an import is: before a portion of an input, of which some rows may be settled. It is kept as JSON. */
export type Position = z.infer<typeof schema>

/** Reads a position that was kept for an import of so many inputs; undefined when it is none. */
export function readPosition(text: string, inputs: number): Position | undefined {
  try {
    const parsed = schema.safeParse(JSON.parse(text), { jitless: true })
    return parsed.success && parsed.data.input < inputs ? parsed.data : undefined
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return undefined
  }
}

export function packOutcomes({ rows, order, outcomes }: Batch): string {
  const runs: string[] = []
  let length = 0
  for (let rank = 0; rank < rows.length; rank += 1) {
    const outcome = outcomes[order?.[rank] ?? rank]
    const next = rank + 1 < rows.length ? outcomes[order?.[rank + 1] ?? rank + 1] : undefined
    length += 1
    if (outcome === next) continue
    runs.push(`${length}:${outcome}`)
    length = 0
  }
  return runs.join(' ')
}

/** Notes in a batch how its rows went; false when it has fewer of them. */
export function unpackOutcomes({ rows, order, outcomes }: Batch, text: string): boolean {
  let rank = 0
  for (const [, length = '', outcome = ''] of text.matchAll(/(\d+):(\d)/g)) {
    const end = rank + parseInt(length, 10)
    if (end > rows.length) return false
    for (; rank < end; rank += 1) outcomes[order?.[rank] ?? rank] = parseInt(outcome, 10)
  }
  return true
}

export function packRefusals({ refusals }: Batch): Position['refusals'] {
  return [...refusals].map(([row, { error, message }]) => [row, error, message])
}

export function unpackRefusals({ refusals }: Batch, packed: Position['refusals']): void {
  for (const [row, error, message] of packed) refusals.set(row, { error, message })
}

/** How many records are done with. */
export function settledAt({ tally, outcomes }: Position): number {
  const runs = outcomes.matchAll(/(\d+):([1-9])/g)
  return settledIn(tally) + Array.from(runs, ([, length = '']) => parseInt(length, 10)).reduce((sum, length) => sum + length, 0)
}
