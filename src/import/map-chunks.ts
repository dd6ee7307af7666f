import { type Chunk, type FormatReader, skipRecords } from '../formats/chunk.js'
import { PlainChunk } from '../formats/plain-chunk.js'
import type { Problem } from '../stores/change.js'
import type { ImportPlan } from './inputs.js'
import { Mapper, type MapperState } from './map-record.js'
import type { MappedChange } from './mapped-change.js'

/**
 * A chunk whose records are mapped to changes. It may be mapped before the chunk before it is
 * stored, and may never be stored, so it depends on nothing that is saved.
 */
export interface MappedChunk {
  chunk: Chunk
  /** For each record, its change, or why it is rejected. */
  mapped: readonly (MappedChange | Problem)[]
  changes: readonly MappedChange[]
  /** The next generated id after the chunk. */
  nextId: bigint | undefined
}

/**
 * Rows that a store may be able to create without records. Whoever receives the attempt tries that,
 * and says in `areCreated` whether it has worked before it asks for the next item. If not, the next
 * items are the same rows, mapped.
 */
export interface RowsAttempt {
  rows: PlainChunk
  areCreated: boolean
}

interface MapOptions {
  plan: ImportPlan
  /** What the mappers of all inputs share. */
  state: MapperState
  /** How many records of the input are skipped, because they have outcomes. */
  skippedRecords: number
  /** An idempotency key is this and the number of the record; undefined for a direct store. */
  keyPrefix: string | undefined
}

/** Yields the chunks of an input after the skipped records. */
export async function* mapChunks(
  { header, chunks }: FormatReader,
  { plan, state, skippedRecords, keyPrefix }: MapOptions,
): AsyncGenerator<MappedChunk | RowsAttempt> {
  const maxRecords = keyPrefix === undefined ? maxRecordsAtOnce : maxRequests
  const mapper = new Mapper(plan, header, state)
  let recordsBefore = skippedRecords
  for await (const wholeChunk of skipRecords(chunks, skippedRecords)) {
    if (wholeChunk instanceof PlainChunk) {
      const attempt = { rows: wholeChunk, areCreated: false }
      yield attempt
      if (attempt.areCreated) {
        recordsBefore += wholeChunk.length
        continue
      }
    }
    for (const chunk of wholeChunk.split(maxRecords)) {
      const firstNumber = recordsBefore
      const mapped = chunk.records.map((raw, index) =>
        mapper.map(raw, keyPrefix && `${keyPrefix}${firstNumber + index}`),
      )
      const changes = mapped.filter((change): change is MappedChange => !('error' in change))
      recordsBefore += chunk.records.length
      yield { chunk, mapped, changes, nextId: state.nextId }
    }
  }
}

/** A service answers this many requests in less than a second, after which Ctrl-C has an effect. */
const maxRequests = 500
/** A record of one byte that is not valid takes hundreds of bytes of memory. */
const maxRecordsAtOnce = 24_000
