import * as z from 'zod/mini'
import { parseJson } from '../../plant/json.js'
import { formatNames } from '../../plant/records.js'
import type { Clock } from '../../platform/clock.js'
import { shorten } from '../../platform/escape.js'
import type { Batch, CheckpointStore, CreateManyOptions } from '../../stores/common/store.js'
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
  /** of the chunk, in bytes of the decompressed input in UTF-8 */
  offset: count,
  chunk: z.object({ length: count.check(z.lte(64 * 1_048_576)), isLast: z.boolean() }),
  /** the SHA-256 of the input up to the end of the chunk */
  hash: z.string(),
  /**
   * The records before the chunk. `rejected` counts records by their `error`, `unknown` those whose outcome is unknown, and
   * `otherFields` the records with an unknown field, for the first thousand names, shortened.
   */
  counters: z.object({ created: count, updated: count, skipped: count, rejected: counts, unknown: count, otherFields: counts }),
  rejects: z.optional(z.object({ records: count, reasons: count })),
  /** whether the rows of the chunk are created in the order of their ids */
  isSorted: z.boolean(),
  /** the outcomes of the rows of the chunk, in the order of creation, as run lengths: `LENGTH:OUTCOME …` */
  outcomes: z.string().check(z.regex(/^(\d{1,9}:[0-6]( |$))*$/)),
  /** the rejections of the chunk: row, `error` and message */
  rejections: z.array(z.tuple([count, z.number(), z.string()])),
  /** rows of the chunk that may have been sent to a service without idempotency keys */
  sent: count,
})

/** The position of an import, which is kept as JSON: the start of a chunk of an input, and the outcomes of its settled rows. */
export type Position = z.infer<typeof schema>

export type Counters = Position['counters']

export function countFields(counters: Counters, counts: ReadonlyMap<string, number>): void {
  const known = new Map(Object.entries(counters.otherFields))
  for (const [name, count] of counts) {
    const short = shorten(name)
    if (known.has(short) || known.size < 1000) known.set(short, (known.get(short) ?? 0) + count)
  }
  counters.otherFields = Object.fromEntries(known)
}

export function rejectedIn({ rejected }: Counters): number {
  return Object.values(rejected).reduce((sum, count) => sum + count, 0)
}

export function settledIn(counters: Counters): number {
  return counters.created + counters.updated + counters.skipped + counters.unknown + rejectedIn(counters)
}

/** Returns undefined for an invalid position, and for one of an input beyond `inputs`. */
export function readPosition(text: string, inputs: number): Position | undefined {
  const parsed = parseJson(text)
  const { data } = schema.safeParse('value' in parsed ? parsed.value : undefined, { jitless: true })
  return data && data.input < inputs ? data : undefined
}

export function packBatch({ rows, order, outcomes, rejections }: Batch): Pick<Position, 'outcomes' | 'rejections'> {
  const outcomeAt = (rank: number) => (rank < rows.length ? outcomes[order?.[rank] ?? rank] : undefined)
  const runs: string[] = []
  let [outcome, start] = [outcomeAt(0), 0]
  for (let end = 1; end <= rows.length; end += 1) {
    const next = outcomeAt(end)
    if (next === outcome) continue
    runs.push(`${end - start}:${outcome}`)
    ;[outcome, start] = [next, end]
  }
  return { outcomes: runs.join(' '), rejections: [...rejections].map(([row, { error, message }]) => [row, error, message]) }
}

export function unpackBatch({ rows, order, outcomes, rejections }: Batch, position: Position): boolean {
  for (const [row, error, message] of position.rejections) rejections.set(row, { error, message })
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

/** Keeps the position of an import: in the transaction of its plants if the store has checkpoints, else in the journal, if there is one. */
export type Checkpoints = ReturnType<typeof checkpointsIn>

/** @param store the store, if it has checkpoints */
export function checkpointsIn(store: CheckpointStore | undefined, journal: Journal | undefined, { now }: Pick<Clock, 'now'>) {
  let savedAt = 0
  return {
    areInStore: store !== undefined,
    /** the number of rows of the chunk that may have been sent, and how many of them were sent by an earlier run */
    sent: 0,
    sentBefore: 0,

    begin(sentBefore: number): void {
      this.sent = sentBefore
      this.sentBefore = sentBefore
    },

    optionsFor(position: () => Position): Pick<CreateManyOptions, 'checkpoint' | 'beforeSend' | 'onProgress'> {
      return {
        checkpoint:
          journal &&
          store &&
          (() => {
            journal.assertHeld()
            return { id: journal.id, state: JSON.stringify(position()) }
          }),
        beforeSend: async (row) => {
          journal?.assertHeld()
          if (row < this.sent) return
          this.sent = row + rowsAhead
          journal?.save(position())
        },
        onProgress: () => {
          journal?.assertHeld()
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

const saveInterval = 500

const rowsAhead = 200
