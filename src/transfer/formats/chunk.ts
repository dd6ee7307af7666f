import type { NewPlant } from '../../plant/plant.js'
import { enlarge, PlantRows } from '../../plant/rows.js'
import type { Kind } from '../../platform/errors.js'
import { bodyLimit } from '../../platform/text-files.js'
import type { Batch } from '../../stores/store.js'

/** A piece of an input: its plants in columns, and its records that are no plants. */
export class Chunk implements Batch {
  readonly bytes: Buffer
  readonly rows: PlantRows
  order: Uint32Array | undefined
  outcomes = new Uint8Array()
  readonly rejections: Batch['rejections'] = new Map()
  /** in the order of the input */
  readonly invalid: InvalidRecord[] = []
  /** where the input stops being readable, after all other records of the chunk; nothing of it is read from there on */
  syntaxError: InvalidRecord | undefined
  /** where the first record stands in its JSON array, from 0; undefined where there is none */
  firstElement: number | undefined
  /** how many plants have a field that no NewPlant has */
  readonly otherFields = new Map<string, number>()
  /** where in `bytes` the record of each row begins and ends, and its line in the input */
  recordStart: Uint32Array
  recordEnd: Uint32Array
  recordLine: Float64Array

  readonly #maxRows: number
  readonly #maxInvalid: number

  /**
   * @param capacity how many plants there may be; there can be more
   * @param limit how many plants and invalid records it takes at most
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

  /** Whether to stop reading, and leave the rest to the next chunk: an invalid record takes a thousand times the byte that it may have. */
  get isFull(): boolean {
    return this.invalid.length >= this.#maxInvalid || this.syntaxError !== undefined || this.rows.length >= this.#maxRows
  }

  /** Whether the next record is likely to be invalid as well. */
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

  /** Counts a field that no NewPlant has, of up to a thousand names. */
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

/** A range of a chunk's bytes, exactly as they came, with the line break of a line; and the line of the first byte, from 1. */
export type RecordRange = Record<'start' | 'end' | 'line', number>

/** A record that is no NewPlant; without an error, it is the rest of the one before, which was too long to be kept. */
export interface InvalidRecord extends RecordRange {
  row: number
  error: RecordError | undefined
}

/** Why a record is no NewPlant. It is not an Error: an input can have millions of them, and a stack takes a kilobyte. */
export type RecordError = { kind: Kind; message: string }

/** bytes of a record at most: as many as of the body of a request */
export const maxRecordBytes = bodyLimit

export const recordTooLarge: RecordError = { kind: 'tooLarge', message: `The record is larger than 1 MiB (${maxRecordBytes} bytes)` }
export const notUtf8: RecordError = { kind: 'malformed', message: 'Not UTF-8' }

export function notJson(reason: string): RecordError {
  return { kind: 'malformed', message: `Not JSON: ${reason}` }
}

const maxInvalid = 1000
