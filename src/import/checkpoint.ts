import { createHash, randomUUID } from 'node:crypto'
import { isObject } from '../plant/json.js'

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
  /**
   * Its device and inode. Undefined as long as this import has not written to it; empty if the file
   * is that of another program.
   */
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

/**
 * Returns undefined for what no version of this program has written: another program may have
 * written anything into the store. Of another version, only the number is known.
 */
export function parseCheckpoint(text: string): Checkpoint | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
  if (!isObject(value) || typeof value['version'] !== 'number') return undefined
  // The casts follow the checks.
  if (value['version'] !== 1) return value as object as Checkpoint
  const { importId, source, firstId, position } = value
  const areTexts = typeof importId === 'string' && typeof source === 'string'
  return areTexts && isIdText(firstId) && isPosition(position)
    ? (value as object as Checkpoint)
    : undefined
}

function isPosition(value: unknown): boolean {
  if (!isObject(value) || !isObject(value['counts'])) return false
  const { input, records, nextId, rejects } = value
  const { rejected, ...counts } = value['counts']
  const { created, updated, skipped, unknown } = counts
  const numbers = [input, records, created, updated, skipped, unknown]
  const areCounts = isObject(rejected) && [...numbers, ...Object.values(rejected)].every(isCount)
  return areCounts && isIdText(nextId) && (rejects === undefined || isRejectsFile(rejects))
}

function isRejectsFile(value: unknown): boolean {
  if (!isObject(value)) return false
  const { path, file = '', length, rows } = value
  return [path, file, rows].every((text) => typeof text === 'string') && isCount(length)
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function isIdText(value: unknown): boolean {
  // The next id may be the one after the last int64.
  return value === undefined || (typeof value === 'string' && /^-?\d{1,20}$/.test(value))
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
