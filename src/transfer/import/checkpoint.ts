import { createHash, randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { isAbsolute } from 'node:path'
import * as z from 'zod/mini'
import { parseJson } from '../../plant/exact-json.js'
import { inCaseOfDisk } from '../../platform/files.js'

const count = z.number().check(z.int(), z.nonnegative())
const int64 = z.string().check(z.regex(/^-?\d{1,20}$/))

const schema = z.object({
  /** The time at which it was complete; first, so that stores find the oldest ones. */
  done: z.optional(z.string()),
  /** Increased with each change of the other fields. */
  version: z.literal(2),
  /** The beginning of its idempotency keys. */
  id: z.string().check(z.regex(/^[\da-f-]{36}$/)),
  /** The options that determine how records are read and rejected, by the names that the caller has for them. */
  flags: z.record(z.string(), z.optional(z.string())),
  /** The first number above all ids; a restart begins with it, too, so that it creates no plant twice. */
  firstId: z.optional(int64),
  /** The end of the last part that was written. */
  position: z
    .object({
      /** The index of the input that is read. */
      input: count,
      /** How many of its records are settled. */
      records: count,
      /** `rejected` by their `error` */
      counts: z.object({
        ...{ created: count, updated: count, skipped: count, unknown: count },
        rejected: z.record(z.string(), count),
      }),
      nextId: z.optional(int64),
      /** The range of the ids of created records that had none. Others may have some in it. */
      numbered: z.optional(z.object({ first: int64, last: int64, count })),
      /** The length of the rejects file. */
      rejects: z.optional(count),
      /** The SHA-256 of the last bytes up to there. */
      rejectsTail: z.optional(z.object({ bytes: count, hash: z.string() })),
      /** The size of each input that was begun, unless it is a pipe, and the SHA-256 of the bytes that were read. */
      files: z.array(z.object({ size: z.optional(count), bytes: count, hash: z.string() })),
    })
    .check(z.refine(({ rejects = 0, rejectsTail: tail }) => (tail?.bytes ?? 0) <= rejects)),
})

export type SavedImport = z.infer<typeof schema>

/** The records of the inputs up to there are settled. */
export type Position = SavedImport['position']

export type Counts = Position['counts']

const start: Position = {
  input: 0,
  records: 0,
  counts: { created: 0, updated: 0, skipped: 0, unknown: 0, rejected: {} },
  files: [],
}

export function rejectedIn({ rejected }: Counts): number {
  return Object.values(rejected).reduce((sum, count) => sum + count, 0)
}

export function settledIn(counts: Counts): number {
  return counts.created + counts.updated + counts.skipped + counts.unknown + rejectedIn(counts)
}

/** The same for the same store and inputs on one machine. */
export function checkpointId(store: string, inputs: string[]): string {
  const named = (path: string) => (isAbsolute(path) ? inCaseOfDisk(path) : path)
  const key = JSON.stringify([hostname(), named(store), inputs.map(named)])
  return createHash('sha256').update(key).digest('hex').slice(0, 32)
}

/**
 * @returns the state, unless it is damaged or of an older version, and what that has stored, unless it is damaged
 * @param inputs their number
 */
export function parseCheckpoint(
  state: string,
  inputs: number,
): { saved?: SavedImport | undefined; stored?: Pick<Counts, 'created' | 'updated'> | undefined } {
  const parsed = parseJson(state)
  const value = 'value' in parsed ? parsed.value : undefined
  const { data } = schema.safeParse(value, { jitless: true })
  if (data && data.position.files.length <= inputs)
    return { saved: data, stored: data.position.counts }
  const old = oldImport.safeParse(value, { jitless: true }).data
  return { stored: old && { created: 0, updated: 0, ...old.position?.counters } }
}

const oldImport = z.object({
  version: z.literal(1),
  position: z.optional(z.object({ counters: z.object({ created: count, updated: count }) })),
})

export function newImport(flags: SavedImport['flags'], firstId: bigint | undefined): SavedImport {
  return { version: 2, id: randomUUID(), flags, firstId: firstId?.toString(), position: start }
}
