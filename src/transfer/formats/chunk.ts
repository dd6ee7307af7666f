import type { PlantPatch } from '../../plant/plant.js'
import { PlantRows } from '../../plant/rows.js'
import { type ErrorType, errorValue } from '../../platform/errors.js'
import { maxDocumentBytes } from '../../platform/text-files.js'
import { must } from '../../platform/values.js'
import type { Batch } from '../../stores/common/store.js'

/** A part of an input: its plants in columns, and its invalid records. */
export class Chunk implements Batch {
  readonly bytes: Buffer
  readonly rows: PlantRows
  order: Uint32Array | undefined
  outcomes = new Uint8Array()
  readonly rejections: Batch['rejections'] = new Map()
  readonly invalid: InvalidRecord[] = []
  /** ends the input, after all other records of the chunk */
  syntaxError: InvalidRecord | undefined
  /** the index of the first record in a JSON array */
  firstElement: number | undefined
  /** numbers of records by unknown field */
  readonly otherFields = new Map<string, number>()
  readonly recordStart: Uint32Array
  readonly recordEnd: Uint32Array
  readonly recordLine: Float64Array

  readonly #maxRecords: number

  constructor(bytes: Buffer, maxRecords = maxChunkRecords) {
    const capacity = Math.min(maxRecords, bytes.length)
    this.bytes = bytes
    this.#maxRecords = maxRecords
    this.rows = new PlantRows(bytes, capacity)
    this.recordStart = new Uint32Array(capacity)
    this.recordEnd = new Uint32Array(capacity)
    this.recordLine = new Float64Array(capacity)
  }

  get length(): number {
    return this.rows.length + this.invalid.length
  }

  /** The rest belongs to the next chunk: an invalid record of one byte takes a thousand bytes of memory. */
  get isFull(): boolean {
    return this.invalid.length >= maxInvalid || this.syntaxError !== undefined || this.length >= this.#maxRecords
  }

  get isSuspect(): boolean {
    return this.invalid.length >= 10
  }

  addPlant(patch: PlantPatch, range: RecordRange): void {
    this.rows.add(patch)
    this.setRange(range.start, range.end, range.line)
  }

  setRange(start: number, end: number, line: number): void {
    const row = this.rows.length - 1
    this.recordStart[row] = start
    this.recordEnd[row] = end
    this.recordLine[row] = line
  }

  rangeOf(row: number): RecordRange {
    return { start: must(this.recordStart[row]), end: must(this.recordEnd[row]), line: must(this.recordLine[row]) }
  }

  addInvalid({ error, message }: Reason, { start, end, line }: RecordRange): void {
    this.invalid.push({ start, end, line, row: this.rows.length, error, message })
  }

  /** Counts up to a thousand names. */
  countField(name: string): void {
    const count = this.otherFields.get(name)
    if (count !== undefined || this.otherFields.size < 1000) this.otherFields.set(name, (count ?? 0) + 1)
  }
}

/** Bytes of a chunk, including the line break of a line, and the line number of the first. */
export type RecordRange = Record<'start' | 'end' | 'line', number>

/** A record that is not a NewPlant, before `row`. */
interface InvalidRecord extends RecordRange, Reason {
  row: number
}

/**
 * The specification's `error` and `message`. Not an Error: a stack takes a kilobyte, and an input can have millions.
 */
export type Reason = { error: number; message: string }

export const maxRecordBytes = maxDocumentBytes

export const recordTooLarge = reason('tooLarge', `The record is larger than 1 MiB (${maxRecordBytes} bytes)`)
export const notUtf8 = reason('malformed', 'Not UTF-8. If the input has another encoding, name it with --encoding')

export function reason(type: ErrorType, message: string): Reason {
  return { error: errorValue(type), message }
}

const maxInvalid = 1000

/** Limits a transaction to about a tenth of a second, together with `chunkBytes`. */
const maxChunkRecords = 65_536
