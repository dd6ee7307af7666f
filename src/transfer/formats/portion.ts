import type { NewPlant } from '../../plant/plant.js'
import { PlantRows } from '../../plant/rows.js'
import type { Batch } from '../../stores/store.js'
import type { RecordError } from './record-error.js'

/** What was read of an input in one go: its plants, and the records that are none. */
export class Portion implements Batch {
  readonly bytes: Buffer
  readonly rows: PlantRows
  order: Uint32Array | undefined
  outcomes = new Uint8Array()
  readonly refusals: Batch['refusals'] = new Map()
  /** in the order of the input */
  readonly problems: Problem[] = []
  /** how many plants have a field that no NewPlant has */
  readonly otherFields = new Map<string, number>()
  /** where in `bytes` the record of each row begins and ends, and its line in the input */
  recordStart: Uint32Array
  recordEnd: Uint32Array
  recordLine: Float64Array

  /** @param capacity how many plants there may be; there can be more */
  constructor(bytes: Buffer, capacity = 1024) {
    this.bytes = bytes
    this.rows = new PlantRows(bytes, capacity)
    this.recordStart = new Uint32Array(capacity)
    this.recordEnd = new Uint32Array(capacity)
    this.recordLine = new Float64Array(capacity)
  }

  /** Whether it has so many problems that the rest of its bytes is better left for another: a problem takes a thousand times the byte that it may have. */
  get isFull(): boolean {
    return this.problems.length >= mostProblems
  }

  /** Whether it has so many problems that its next record is likely to be one as well. */
  get isSuspect(): boolean {
    return this.problems.length >= 10
  }

  addPlant(plant: NewPlant, place: Place): void {
    this.rows.add(plant)
    this.placeLast(place.start, place.end, place.line)
  }

  /** Notes where the row stands that was added last. */
  placeLast(start: number, end: number, line: number): void {
    const row = this.rows.length - 1
    if (row >= this.recordStart.length) this.#grow()
    this.recordStart[row] = start
    this.recordEnd[row] = end
    this.recordLine[row] = line
  }

  addProblem(error: RecordError | undefined, place: Place): void {
    this.problems.push({ ...place, row: this.rows.length, error })
  }

  /** Counts a field that no NewPlant has; of a thousand names more, nobody would read. */
  countField(name: string): void {
    const count = this.otherFields.get(name)
    if (count !== undefined || this.otherFields.size < 1000) this.otherFields.set(name, (count ?? 0) + 1)
  }

  #grow(): void {
    const capacity = 2 * this.recordStart.length
    const [start, end, line] = [new Uint32Array(capacity), new Uint32Array(capacity), new Float64Array(capacity)]
    start.set(this.recordStart)
    end.set(this.recordEnd)
    line.set(this.recordLine)
    this.recordStart = start
    this.recordEnd = end
    this.recordLine = line
  }
}

/** Where a record stands: a range of a portion's bytes, exactly as it came, with the line break behind it if it has one; and the line of its first byte, from 1. */
export interface Place {
  start: number
  end: number
  line: number
}

/** A record that is no NewPlant; without an error, it is the rest of the one before, which was too long to be kept. */
export interface Problem extends Place {
  /** how many rows stand before it */
  row: number
  error: RecordError | undefined
}

const mostProblems = 1000
