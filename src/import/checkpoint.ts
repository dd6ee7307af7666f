import { createHash, randomUUID } from 'node:crypto'
import type { Checkpoint, Counts } from './parse-checkpoint.js'

export function createCheckpoint(
  properties: Pick<Checkpoint, 'source' | 'firstId' | 'restart' | 'answers'>,
): Checkpoint {
  const counts = { created: 0, updated: 0, skipped: 0, unknown: 0, rejected: {} }
  const position = { input: 0, records: 0, counts, nextId: properties.firstId }
  return { version: 1, importId: randomUUID(), ...properties, position }
}

export function countRejected({ rejected }: Counts): number {
  return Object.values(rejected).reduce((sum, count) => sum + count, 0)
}

/** How many records have an outcome. */
export function countDone(counts: Counts): number {
  return counts.created + counts.updated + counts.skipped + counts.unknown + countRejected(counts)
}

/** The id of the row that is about these words. */
export function buildCheckpointId(...words: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(words)).digest('hex').slice(0, 32)
}
