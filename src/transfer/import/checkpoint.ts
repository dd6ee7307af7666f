import { createHash, randomUUID } from 'node:crypto'

/** The state of an import after the last chunk that is on disk: a row of its store, or of the journal. */
export interface Checkpoint {
  version: 1
  /** The beginning of its idempotency keys. */
  importId: string
  source: string
  firstId?: string | undefined
  /** Begun with `--restart`, which then resumes it. */
  restart?: true | undefined
  position: Position
}

export interface Position {
  input: number
  records: number
  counts: Counts
  nextId?: string | undefined
  rejects?: RejectsFile | undefined
}

export interface RejectsFile {
  path: string
  /** Its device and inode. Undefined as long as it has no rows. */
  file?: string
  length: number
  /** Of the last chunk, as long as they may not be in the file. */
  rows: string
}

export interface Counts {
  created: number
  updated: number
  skipped: number
  unknown: number
  /** By their `error`. */
  rejected: Record<string, number>
}

export function newCheckpoint(
  given: Pick<Checkpoint, 'source' | 'firstId' | 'restart'>,
): Checkpoint {
  const counts = { created: 0, updated: 0, skipped: 0, unknown: 0, rejected: {} }
  const position = { input: 0, records: 0, counts, nextId: given.firstId }
  return { version: 1, importId: randomUUID(), ...given, position }
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
