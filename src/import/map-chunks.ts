import { type Chunk, type FormatReader, skipRecords } from '../formats/chunk.js'
import { PlainChunk } from '../formats/plain-chunk.js'
import type { Problem } from '../stores/change.js'
import { InvalidCheckpointError } from './checkpoint.js'
import type { ImportPlan } from './inputs.js'
import { Mapper, type MapperState } from './map-record.js'
import type { MappedChange } from './mapped-change.js'
import { ReadAhead } from './read-ahead.js'

/**
 * A chunk whose records are mapped to changes. It may be mapped before the chunk before it is
 * stored, and may never be stored, so it depends on nothing that is saved.
 */
export interface MappedChunk {
  chunk: Chunk
  /** What each record became: its change, or why it is rejected. */
  results: readonly (MappedChange | Problem)[]
  /** The changes among the results, which are written. */
  changes: readonly MappedChange[]
  /** The next generated id after the chunk. */
  nextId: bigint | undefined
}

/** Rows that a store may be able to create without records. */
interface PlainRows {
  rows: PlainChunk
  /**
   * Whether the store has created all of them. Whoever gets the rows must set this before the next
   * item is read, even ahead. If it resolves to false, the same rows follow as records.
   */
  areCreated?: Promise<boolean>
}

interface MapOptions {
  plan: ImportPlan
  /** The name of the input, for messages. */
  name: string
  /** What the mappers of all inputs share. */
  state: MapperState
  /** How many records of the input are skipped, because they have outcomes. */
  skippedRecords: number
  /** An idempotency key is this and the number of the record; undefined for a direct store. */
  keyPrefix: string | undefined
}

/**
 * Yields the chunks of an input after the skipped records.
 *
 * A plain chunk is yielded as rows first, and whoever gets them tries to create them: see
 * `PlainRows`. While that runs, the chunk after them is read. But what is yielded next is not known
 * before `areCreated` settles: that chunk if it is true, and otherwise the same rows, mapped.
 */
export async function* mapChunks(
  { header, chunks }: FormatReader,
  { plan, name, state, skippedRecords, keyPrefix }: MapOptions,
): AsyncGenerator<MappedChunk | PlainRows, void, undefined> {
  const maxRecords = keyPrefix === undefined ? maxRecordsAtOnce : maxRequests
  const mapper = new Mapper(plan, header, state)
  let recordsBefore = skippedRecords
  const wholeChunks = new ReadAhead(skipDoneRecords(chunks, skippedRecords, plan, name))
  try {
    for (;;) {
      const wholeChunk = await wholeChunks.read()
      if (wholeChunk === undefined) return
      if (wholeChunk instanceof PlainChunk) {
        const plainRows: PlainRows = { rows: wholeChunk }
        yield plainRows
        const { areCreated } = plainRows
        if (!areCreated) throw new TypeError('Whether the rows are created is unknown')
        wholeChunks.prepare()
        if (await areCreated) {
          recordsBefore += wholeChunk.length
          wholeChunk.release()
          continue
        }
      }
      for (const chunk of wholeChunk.split(maxRecords)) {
        const firstNumber = recordsBefore
        const results = chunk.records.map((raw, index) =>
          mapper.map(raw, keyPrefix && `${keyPrefix}${firstNumber + index}`),
        )
        const changes = results.filter(isChange)
        recordsBefore += chunk.records.length
        yield { chunk, results, changes, nextId: state.nextId }
      }
    }
  } finally {
    await wholeChunks.end()
  }
}

function isChange(result: MappedChange | Problem): result is MappedChange {
  return !('error' in result)
}

/** @throws {InvalidCheckpointError} if the input has fewer records */
async function* skipDoneRecords(
  chunks: AsyncIterable<Chunk>,
  count: number,
  plan: ImportPlan,
  name: string,
): AsyncGenerator<Chunk> {
  const missingCount = yield* skipRecords(chunks, count)
  if (missingCount > 0)
    throw new InvalidCheckpointError(
      `The checkpoint of this import is beyond the end of ${name}`,
      plan,
    )
}

/** A service answers this many requests in less than a second, after which Ctrl-C has an effect. */
const maxRequests = 500
/** A record of one byte that is not valid takes hundreds of bytes of memory. */
const maxRecordsAtOnce = 24_000
