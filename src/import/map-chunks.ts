import { type Chunk, type FormatReader, skipRecords } from '../formats/chunk.js'
import { InvalidCheckpointError } from './checkpoint.js'
import type { ImportPlan } from './inputs.js'
import { Mapper, type MapperState } from './map-record.js'
import type { MappedChange } from './mapped-change.js'
import type { RecordProblem } from './rejection-cause.js'

/**
 * A chunk whose records are mapped to changes. It may be mapped before the previous chunk is
 * stored, or may never be stored itself. So it must not depend on anything in the store.
 */
export interface MappedChunk {
  chunk: Chunk
  /** For each record, its change, or the reason why it is rejected. */
  results: readonly (MappedChange | RecordProblem)[]
  /** The changes among the results, which are written. */
  changes: readonly MappedChange[]
  /** The next generated id after the chunk. */
  nextId: bigint | undefined
}

interface MapOptions {
  plan: ImportPlan
  /** The name of the input, for messages. */
  name: string
  /** What the mappers of all inputs share. */
  state: MapperState
  /** How many records of the input are skipped, because they have outcomes. */
  skippedRecords: number
  /**
   * The beginning of the idempotency keys. The number of the record follows. It is undefined for a
   * direct store.
   */
  keyPrefix: string | undefined
}

/** Yields the chunks of an input after the skipped records. */
export async function* mapChunks(
  { header, chunks }: FormatReader,
  options: MapOptions,
): AsyncGenerator<MappedChunk, void, undefined> {
  const { plan, name, state, skippedRecords } = options
  const mapper = new Mapper(plan, header, state)
  let recordsBefore = skippedRecords
  for await (const chunk of skipImportedRecords(chunks, skippedRecords, plan, name)) {
    yield* mapInParts(chunk, recordsBefore, mapper, options)
    recordsBefore += chunk.length
  }
}

/**
 * Divides a chunk if it has too many records for one transaction. Each part is mapped only when the
 * caller takes it.
 *
 * @param firstNumber how many records of the input precede the chunk
 */
function* mapInParts(
  chunk: Chunk,
  firstNumber: number,
  mapper: Mapper,
  { state, keyPrefix }: MapOptions,
): Generator<MappedChunk, void, undefined> {
  const maxRecords = keyPrefix === undefined ? maxRecordsAtOnce : maxRequests
  let recordNumber = firstNumber
  for (const part of chunk.split(maxRecords)) {
    const results: (MappedChange | RecordProblem)[] = []
    for (const record of part.records) {
      results.push(mapper.map(record, keyPrefix && `${keyPrefix}${recordNumber}`))
      recordNumber += 1
    }
    yield { chunk: part, results, changes: results.filter(isChange), nextId: state.nextId }
  }
}

function isChange(result: MappedChange | RecordProblem): result is MappedChange {
  return !('error' in result)
}

/** @throws {InvalidCheckpointError} if the input has fewer records */
async function* skipImportedRecords(
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

/**
 * A service answers this many requests in less than a second, so that Ctrl-C has an effect then.
 */
const maxRequests = 500
/** An invalid record of one byte takes hundreds of bytes of memory as a problem. */
const maxRecordsAtOnce = 24_000
