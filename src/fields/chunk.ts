import { type Cells, maxBatchCharacters, maxBatchRecords } from '../formats/reader.js'
import type { SyntaxCause } from '../plant/json-syntax.js'

/**
 * A record as it is written: the text of a row or of a JSON value, the cells of a row of a
 * workbook, or null for a value that is too large.
 */
export type RawRecord = string | Cells | null

/** Why a record cannot be read. */
export interface ReadProblem {
  kind: 'input' | 'invalid' | 'tooLarge'
  message: string
  cause?: 'surplusCells' | SyntaxCause | undefined
  /** The id that can be read all the same: a rejected record, too, claims the plant with its id. */
  id?: unknown
  /** The name, if the id can be read. */
  name?: unknown
}

/**
 * Consecutive records, which an import writes in one transaction. Their fields are in arrays,
 * because an object for each record would take a quarter of the time of an import.
 *
 * A field is undefined if the record lacks it. A name or a tag whose cell is empty is null. An id is
 * a bigint if it is an integer.
 */
export class Chunk {
  readonly ids: unknown[] = []
  readonly names: unknown[] = []
  readonly tags: unknown[] = []
  /** The records as they are written, for the rejects file. */
  readonly records: RawRecord[] = []
  /** The line in which each record begins. */
  readonly lines: number[] = []
  /** The records that cannot be read, by their indexes. */
  readonly problems = new Map<number, ReadProblem>()
  /** The keys of JSON objects that are not read. */
  readonly unreadKeys = new Set<string>()
  /** How many rows with other values, but no id, name and tag, were left out. */
  emptyRows = 0
  /** How many rows of a workbook have cells to the right of the header, which are ignored. */
  rowsWithIgnoredCells = 0
  /** The line of the first row with a cell that has line ends. */
  multilineRow: number | undefined
  /** The length of the text that was read for the chunk, in UTF-16 units. */
  characters = 0
  #isAscending = true
  #lastId: bigint | undefined

  get length(): number {
    return this.records.length
  }

  /**
   * The ids of a transaction are sorted before they are stored. So of ids in no order, a larger
   * chunk writes fewer pages: four times as many records take 0.6 of the time. Of ascending ids, it
   * would only take more memory.
   */
  get isFull(): boolean {
    const factor = this.#isAscending ? 1 : unsortedFactor
    return this.length >= maxBatchRecords * factor || this.characters >= maxBatchCharacters * factor
  }

  /** Adds a record, whose fields may have any values. */
  add(id: unknown, name: unknown, tag: unknown, record: RawRecord, line: number): void {
    this.ids.push(id)
    this.names.push(name)
    this.tags.push(tag)
    this.records.push(record)
    this.lines.push(line)
    if (typeof id !== 'bigint') return
    if (this.#lastId !== undefined && id < this.#lastId) this.#isAscending = false
    this.#lastId = id
  }

  addProblem(problem: ReadProblem, record: RawRecord, line: number): void {
    this.problems.set(this.length, problem)
    this.add(problem.id, problem.name, undefined, record, line)
  }
}

/** How many times as large a chunk of ids in no order is. */
const unsortedFactor = 4
