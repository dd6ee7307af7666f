import { inputError } from '../errors.js'
import type { FieldName } from '../plant/fields.js'
import { maxDocumentBytes } from '../platform/text-files.js'
import type { FormatName } from './write.js'

export interface InputOptions {
  format?: FormatName | undefined
  sheet?: string | undefined
  /** A label of the Encoding Standard, or a name of iconv-lite. */
  encoding?: string | undefined
  delimiter?: string | undefined
  /** False if a quote is an ordinary character in a table. */
  quotes?: boolean | undefined
  /** Such as `CommonName` for `name`; an empty one is not read. */
  map: Partial<Record<FieldName, string>>
  columns?: readonly string[] | undefined
  idFrom?: bigint | 'next' | undefined
  match?: 'name' | undefined
  /** With `update`, texts may be missing, and then stay as they are stored. */
  ifExists: 'same' | 'skip' | 'update'
  /** Whether plants are created from plain rows of a text: see `PlainChunk`. */
  takesRows?: boolean
}

export interface Header {
  names: readonly string[]
  columns: ReadonlyMap<FieldName, number>
  unread: readonly string[]
  /** Its line, if it was not found by its names, because `--map` has the numbers of columns. */
  guessedLine?: number | undefined
}

export interface FormatInput {
  name: string
  head: Buffer
  blocks: AsyncIterable<Buffer>
  /** An input of which no file is examined before it is imported, such as a pipe. */
  isReadOnce?: boolean
  signal: AbortSignal
}

export interface FormatReader {
  format?: FormatName
  header?: Header
  delimiter?: string | undefined
  /** Of a workbook: the next sheet that has the columns, too, and is not read. */
  otherSheet?: string | undefined
  chunks: AsyncIterable<Chunk>
}

/** The text of a JSON value, the cells of a row, or null for a line that is too large. */
export type RawRecord = string | Cells | null

export type Cells = readonly Cell[]

/**
 * Undefined if it is empty. With a reason, which follows the name of its field, it has no value.
 */
export type Cell = string | undefined | { text: string; reason: string }

/** Records as arrays: an object for each takes half the speed of an import. */
export class Chunk<R extends RawRecord = RawRecord> {
  readonly #records: R[]
  readonly #lines: number[]
  emptyRows = 0
  /** Rows of a workbook with cells to the right of the header, which are ignored. */
  surplusRows = 0
  /** The line of the first row with a cell that has line ends. */
  multilineRow: number | undefined
  characters = 0

  constructor(records: R[] = [], lines: number[] = []) {
    this.#records = records
    this.#lines = lines
  }

  get length(): number {
    return this.#records.length
  }

  get records(): readonly R[] {
    return this.#records
  }

  /** Of each record, the line in which it begins. */
  get lines(): readonly number[] {
    return this.#lines
  }

  /** With half as many, ids in no order take 1.2 times as long. */
  get isFull(): boolean {
    return this.length >= 6000 || this.characters >= 260_000
  }

  add(record: R, line: number): void {
    this.#records.push(record)
    this.#lines.push(line)
  }

  slice(from: number, to = Infinity): Chunk<R> {
    if (from === 0 && to >= this.length) return this
    if (from >= this.length) return new Chunk()
    return new Chunk(this.records.slice(from, to), this.lines.slice(from, to))
  }

  /** Yields at least one chunk. The first one has the counts of rows that are no records. */
  *split(maxRecords: number): Generator<Chunk<R>> {
    const first = this.slice(0, maxRecords)
    first.emptyRows = this.emptyRows
    first.surplusRows = this.surplusRows
    first.multilineRow = this.multilineRow
    yield first
    for (let from = maxRecords; from < this.length; from += maxRecords)
      yield this.slice(from, from + maxRecords)
  }
}

export async function* skipRecords<R extends RawRecord>(
  chunks: AsyncIterable<Chunk<R>>,
  count: number,
): AsyncGenerator<Chunk<R>> {
  let left = count
  for await (const chunk of chunks) {
    const skipped = Math.min(left, chunk.length)
    left -= skipped
    const rest = chunk.slice(skipped)
    rest.surplusRows = chunk.surplusRows
    rest.multilineRow = chunk.multilineRow
    yield rest
  }
}

export async function peek<T>(parts: AsyncGenerator<T>) {
  const { value: first }: IteratorResult<T, undefined> = await parts.next()
  return { first, all: prepend(first === undefined ? [] : [first], parts) }
}

export async function* prepend<T>(first: readonly T[], rest: AsyncIterable<T>): AsyncGenerator<T> {
  yield* first
  yield* rest
}

export const maxRecordBytes = maxDocumentBytes
export const maxUnpackedBytes = 268_435_456

export function isTooLarge(text: string): boolean {
  return text.length > maxRecordBytes / 3 && Buffer.byteLength(text) > maxRecordBytes
}

export const recordTooLarge = `The record is larger than 1 MiB (${maxRecordBytes} bytes)`

export function createBrokenRecord(
  name: string,
  line: number,
  reason: string,
  hint = 'Correct the input, and run the command again',
): Error {
  return inputError(`${name}:${line}: ${reason}`, hint)
}
