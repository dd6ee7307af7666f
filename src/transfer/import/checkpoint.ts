import { createHash, randomUUID } from 'node:crypto'
import { usageError } from '../../platform/errors.js'

/** The state of an import after the last chunk that is on disk: a row of its store, or of the journal. */
export interface Checkpoint {
  version: 1
  /** The beginning of its idempotency keys. */
  importId: string
  /** The contents of its files, and the options that say what their records are. */
  source: string
  /** The first number of records without an id. */
  firstId?: string | undefined
  position: Position
}

export interface Position {
  input: number
  records: number
  counts: Counts
  nextId?: string | undefined
  rejects?: RejectsPosition | undefined
}

export interface RejectsPosition {
  /** Its device and inode. */
  file: string
  length: number
}

export interface Counts {
  created: number
  updated: number
  skipped: number
  unknown: number
  /** By their `error`. */
  rejected: Record<string, number>
}

export function newCheckpoint(source: string, first: bigint | undefined): Checkpoint {
  const counts = { created: 0, updated: 0, skipped: 0, unknown: 0, rejected: {} }
  const firstId = first?.toString()
  const position = { input: 0, records: 0, counts, nextId: firstId }
  return { version: 1, importId: randomUUID(), source, firstId, position }
}

export function parseCheckpoint(state: string): Checkpoint {
  const checkpoint = JSON.parse(state) as Checkpoint // only this program writes it
  if (checkpoint.version === 1) return checkpoint
  throw usageError('Another version of plants began this import', 'Finish it with that version')
}

export function rejectedIn({ rejected }: Counts): number {
  return Object.values(rejected).reduce((sum, count) => sum + count, 0)
}

export function doneIn(counts: Counts): number {
  return counts.created + counts.updated + counts.skipped + counts.unknown + rejectedIn(counts)
}

export function idOfCheckpoint(...words: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(words)).digest('hex').slice(0, 32)
}
