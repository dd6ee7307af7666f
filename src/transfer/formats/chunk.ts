import type { NewPlant } from '../../plant/plant.js'
import { enlarge, PlantRows } from '../../plant/rows.js'
import type { Kind } from '../../platform/errors.js'
import { bodyLimit } from '../../platform/text-files.js'
import type { Batch } from '../../stores/common/store.js'

/** A part of an input: its plants in columns, and its invalid records. */
export class Chunk implements Batch {
  readonly bytes: Buffer
  readonly rows: PlantRows
  order: Uint32Array | undefined
  outcomes = new Uint8Array()
  readonly rejections: Batch['rejections'] = new Map()
  /** in the order of the input */
  readonly invalid: InvalidRecord[] = []
  /** an error that ends the input, after all other records of the chunk */
  syntaxError: InvalidRecord | undefined
  /** the index of the first record in a JSON array; undefined in any other input */
  firstElement: number | undefined
  /** the unknown fields, each with the number of records that have it */
  readonly otherFields = new Map<string, number>()
  /** the byte range of each row's record in `bytes`, and its line in the input */
  recordStart: Uint32Array
  recordEnd: Uint32Array
  recordLine: Float64Array

  readonly #maxRows: number
  readonly #maxInvalid: number

  /**
   * @param capacity the expected number of plants; more are possible
   * @param limit the maximum numbers of plants and of invalid records
   */
  constructor(bytes: Buffer, capacity = 1024, { rows = Infinity, invalid = maxInvalid }: ChunkLimit = {}) {
    this.bytes = bytes
    this.#maxRows = rows
    this.#maxInvalid = invalid
    this.rows = new PlantRows(bytes, capacity)
    this.recordStart = new Uint32Array(capacity)
    this.recordEnd = new Uint32Array(capacity)
    this.recordLine = new Float64Array(capacity)
  }

  /** Whether the rest belongs to the next chunk. An invalid record of one byte takes a thousand bytes of memory. */
  get isFull(): boolean {
    return this.invalid.length >= this.#maxInvalid || this.syntaxError !== undefined || this.rows.length >= this.#maxRows
  }

  /** Whether the next record is likely to be invalid, too. */
  get isSuspect(): boolean {
    return this.invalid.length >= 10
  }

  addPlant(plant: NewPlant, range: RecordRange): void {
    this.rows.add(plant)
    this.setRange(range.start, range.end, range.line)
  }

  setRange(start: number, end: number, line: number): void {
    const row = this.rows.length - 1
    if (row >= this.recordStart.length) this.#grow()
    this.recordStart[row] = start
    this.recordEnd[row] = end
    this.recordLine[row] = line
  }

  addInvalid(error: RecordError | undefined, { start, end, line }: RecordRange): void {
    this.invalid.push({ start, end, line, row: this.rows.length, error })
  }

  /** Counts an unknown field, up to a thousand names. */
  countField(name: string): void {
    const count = this.otherFields.get(name)
    if (count !== undefined || this.otherFields.size < 1000) this.otherFields.set(name, (count ?? 0) + 1)
  }

  #grow(): void {
    const capacity = 2 * this.recordStart.length
    this.recordStart = enlarge(this.recordStart, new Uint32Array(capacity))
    this.recordEnd = enlarge(this.recordEnd, new Uint32Array(capacity))
    this.recordLine = enlarge(this.recordLine, new Float64Array(capacity))
  }
}

export type ChunkLimit = { rows?: number; invalid?: number }

/** A byte range of a chunk, which includes the line break of a line, and the line number of its first byte. */
export type RecordRange = Record<'start' | 'end' | 'line', number>

/** A record that is not a NewPlant. Without an error, it is a further part of the record before it, which is too long for a chunk. */
export interface InvalidRecord extends RecordRange {
  row: number
  error: RecordError | undefined
}

/** Why a record is invalid. Not an Error, because an input can have millions of them, and a stack takes a kilobyte. */
export type RecordError = { kind: Kind; message: string }

/** the maximum size of a record in bytes, which is that of a request body */
export const maxRecordBytes = bodyLimit

export const recordTooLarge: RecordError = { kind: 'tooLarge', message: `The record is larger than 1 MiB (${maxRecordBytes} bytes)` }
export const notUtf8: RecordError = { kind: 'malformed', message: 'Not UTF-8' }

export function notJson(reason: string): RecordError {
  return { kind: 'malformed', message: `Not JSON: ${reason}` }
}

const maxInvalid = 1000
