import { createHash, randomUUID } from 'node:crypto'
import { isObject } from '../plant/json.js'
import { type ImportAnswers, isImportAnswers } from './answers.js'

/** The state of an import after its last chunk that is on disk: a row of its store or journal. */
export interface Checkpoint {
  version: 1
  /** The beginning of its idempotency keys. */
  importId: string
  /** What the import reads, and how: see `describeSource`. */
  source: string
  firstId?: string | undefined
  /** Whether it was begun with `--restart`, which then resumes it. */
  restart?: true | undefined
  /** What a person has answered, and no option says. */
  answers?: ImportAnswers | undefined
  position: Position
}

export interface Position {
  /** The index of the input. */
  input: number
  /** How many records of the input are done. */
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
  /** In bytes. */
  length: number
  /** The rows of the last chunk, as long as they may not be in the file. */
  rows: string
}

export interface Counts {
  created: number
  updated: number
  skipped: number
  unknown: number
  /** The rejected records by their `error`. */
  rejected: Record<string, number>
}

export function createCheckpoint(
  properties: Pick<Checkpoint, 'source' | 'firstId' | 'restart' | 'answers'>,
): Checkpoint {
  const counts = { created: 0, updated: 0, skipped: 0, unknown: 0, rejected: {} }
  const position = { input: 0, records: 0, counts, nextId: properties.firstId }
  return { version: 1, importId: randomUUID(), ...properties, position }
}

/**
 * Returns `invalid` for what no version of this program has written: another program may have
 * written anything into the store. Of another version, only the number is known.
 */
export function parseCheckpoint(text: string): Checkpoint | 'otherVersion' | 'invalid' {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return 'invalid'
    throw error
  }
  if (!isObject(value) || typeof value['version'] !== 'number') return 'invalid'
  if (value['version'] !== 1) return 'otherVersion'
  const { importId, source, firstId, answers, position } = value
  const areStrings = typeof importId === 'string' && typeof source === 'string'
  const areAnswers = answers === undefined || isImportAnswers(answers)
  const isValid = areStrings && areAnswers && isIdText(firstId) && isPosition(position)
  // The cast follows the checks.
  return isValid ? (value as object as Checkpoint) : 'invalid'
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
  return [path, file, rows].every((field) => typeof field === 'string') && isCount(length)
}

function isCount(value: unknown): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function isIdText(value: unknown): boolean {
  // The next id may be the one after the last int64.
  return value === undefined || (typeof value === 'string' && /^-?\d{1,20}$/.test(value))
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
