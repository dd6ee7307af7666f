import { createHash, randomUUID } from 'node:crypto'
import type { Checkpoint, Counts, Position } from './parse-checkpoint.js'

/** Creates the checkpoint of an import that is at its beginning. */
export function createCheckpoint(
  properties: Pick<Checkpoint, 'source' | 'firstId' | 'restart' | 'answers'>,
): Checkpoint {
  const counts = { created: 0, updated: 0, skipped: 0, unknown: 0, rejected: {} }
  const position = { input: 0, records: 0, counts, nextId: properties.firstId }
  return { version: 1, importId: randomUUID(), ...properties, position }
}

/**
 * Returns the position after further records, and changes nothing.
 *
 * @param rejectedRows the rows of the rejects file that these records add
 */
export function movePosition(position: Position, records: number, rejectedRows: string): Position {
  const rejects = position.rejects && { ...position.rejects, rows: rejectedRows }
  return { ...position, records: position.records + records, rejects }
}

export function countRejected({ rejected }: Counts): number {
  return Object.values(rejected).reduce((sum, count) => sum + count, 0)
}

/** Counts the records that have an outcome, whichever it is. */
export function countDone(counts: Counts): number {
  return counts.created + counts.updated + counts.skipped + counts.unknown + countRejected(counts)
}

/** Builds the id of a row from what the row is about, such as the paths of the files. */
export function buildCheckpointId(...strings: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(strings)).digest('hex').slice(0, 32)
}
