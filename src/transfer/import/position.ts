import * as z from 'zod/mini'
import type { Clock } from '../../platform/clock.js'
import { shorten } from '../../platform/escape.js'
import type { Batch, CheckpointStore, CreateManyOptions } from '../../stores/store.js'
import { formatNames } from '../formats/format.js'
import type { Journal } from './journal.js'

const count = z.number().check(z.int(), z.nonnegative())
const counts = z.record(z.string(), count)

const schema = z.object({
  input: count,
  /** the format of the input, and the state of its reader */
  format: z.enum(formatNames),
  reading: z.optional(
    z.object({
      format: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])),
      nextId: z.optional(z.string().check(z.regex(/^-?\d{1,20}$/))),
    }),
  ),
  /** bytes before the chunk, decompressed, and in UTF-8 */
  offset: count,
  chunk: z.object({ length: count.check(z.lte(64 * 1_048_576)), isLast: z.boolean() }),
  /** of all that was read, with the chunk */
  hash: z.string(),
  /**
   * What was reported before the chunk: `refused` by the `error` that says why, `unknown` were sent and have no known outcome, and
   * `otherFields` has the first thousand names, shortened, of fields that no NewPlant has.
   */
  counters: z.object({ created: count, updated: count, skipped: count, refused: counts, unknown: count, otherFields: counts }),
  rejects: z.optional(z.object({ records: count, reasons: count })),
  /** whether the rows of the chunk are taken in the order of their ids */
  isSorted: z.boolean(),
  /** the outcomes of the rows of the chunk, in the order in which they are taken: run lengths, each with its outcome */
  outcomes: z.string().check(z.regex(/^(\d{1,9}:[0-6]( |$))*$/)),
  /** the refusals of the chunk: row, `error` and message */
  refusals: z.array(z.tuple([count, z.number(), z.string()])),
  /** rows of the chunk that may have been sent to a service without idempotency keys */
  sent: count,
})

/** Where an import is: before a chunk of an input, of which some rows may be settled. It is kept as JSON. */
export type Position = z.infer<typeof schema>

export type Counters = Position['counters']

/** Adds the fields of a chunk that no NewPlant has. */
export function countFields(counters: Counters, counts: ReadonlyMap<string, number>): void {
  const known = new Map(Object.entries(counters.otherFields))
  for (const [name, count] of counts) {
    const short = shorten(name)
    if (known.has(short) || known.size < 1000) known.set(short, (known.get(short) ?? 0) + count)
  }
  counters.otherFields = Object.fromEntries(known)
}

export function rejectedIn({ refused }: Counters): number {
  return Object.values(refused).reduce((sum, count) => sum + count, 0)
}

export function settledIn(counters: Counters): number {
  return counters.created + counters.updated + counters.skipped + counters.unknown + rejectedIn(counters)
}

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

export function packBatch({ rows, order, outcomes, rejections }: Batch): Pick<Position, 'outcomes' | 'refusals'> {
  const outcomeAt = (rank: number) => (rank < rows.length ? outcomes[order?.[rank] ?? rank] : undefined)
  const runs: string[] = []
  let [outcome, start] = [outcomeAt(0), 0]
  for (let end = 1; end <= rows.length; end += 1) {
    const next = outcomeAt(end)
    if (next === outcome) continue
    runs.push(`${end - start}:${outcome}`)
    ;[outcome, start] = [next, end]
  }
  return { outcomes: runs.join(' '), refusals: [...rejections].map(([row, { error, message }]) => [row, error, message]) }
}

/** Restores the outcomes of a batch; false when it has fewer rows. */
export function unpackBatch({ rows, order, outcomes, rejections }: Batch, position: Position): boolean {
  for (const [row, error, message] of position.refusals) rejections.set(row, { error, message })
  let rank = 0
  for (const [, length = '', outcome = ''] of position.outcomes.matchAll(/(\d+):(\d)/g)) {
    const end = rank + parseInt(length, 10)
    if (end > rows.length) return false
    for (; rank < end; rank += 1) outcomes[order?.[rank] ?? rank] = parseInt(outcome, 10)
  }
  return true
}

export function settledAt({ counters, outcomes }: Position): number {
  let settled = settledIn(counters)
  for (const [, length = ''] of outcomes.matchAll(/(\d+):[1-9]/g)) settled += parseInt(length, 10)
  return settled
}

/** Keeps the position of an import: with its plants in a store that can do that, else in the journal; nowhere without a journal. */
export type Checkpoints = ReturnType<typeof checkpointsIn>

/** @param store the store, if it keeps positions */
export function checkpointsIn(store: CheckpointStore | undefined, journal: Journal | undefined, { now }: Pick<Clock, 'now'>) {
  let savedAt = 0
  return {
    areInStore: store !== undefined,
    /** rows of the chunk that may have been sent before their outcome is kept, and as many of them as an earlier run has kept */
    sent: 0,
    sentBefore: 0,

    begin(sentBefore: number): void {
      this.sent = sentBefore
      this.sentBefore = sentBefore
    },

    /** What keeps the position while the rows of a chunk are created. */
    optionsFor(position: () => Position): Pick<CreateManyOptions, 'checkpoint' | 'beforeSend' | 'onProgress'> {
      return {
        checkpoint: journal && store && (() => ({ id: journal.id, state: JSON.stringify(position()) })),
        beforeSend: async (row) => {
          if (row < this.sent) return
          this.sent = row + rowsAhead
          journal?.save(position())
        },
        onProgress: () => {
          if (store || !journal || now() - savedAt < saveInterval) return
          savedAt = now()
          journal.save(position())
        },
      }
    },

    async find(): Promise<string | undefined> {
      return journal && store ? store.findCheckpoint(journal.id) : journal?.position
    },

    async keep(position: Position): Promise<void> {
      if (journal && store) await store.keepCheckpoint({ id: journal.id, state: JSON.stringify(position) })
      else journal?.save(position)
    },

    async remove(): Promise<void> {
      journal?.remove()
      if (journal) await store?.removeCheckpoint(journal.id)
    },
  }
}

/** milliseconds between two saves of the position, where the store does not keep it */
const saveInterval = 500

/** rows that are kept as sent before they are */
const rowsAhead = 200
