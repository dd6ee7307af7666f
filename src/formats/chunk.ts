/*
 * The types that all readers of formats share. A reader gets a `FormatInput` and `InputOptions`,
 * and returns a `FormatReader`, which yields `Chunk`s of records.
 */
import { createInputError } from '../errors.js'
import type { FieldName } from '../plant/fields.js'
import type { SyntaxCause } from '../plant/json-syntax.js'
import { maxDocumentBytes } from '../platform/text-files.js'
import type { FormatName } from './write.js'

export interface InputOptions {
  /** The format of a text; undefined if it is detected. */
  format?: FormatName | undefined
  /** The key of the outermost JSON object that holds the list. */
  key?: string | undefined
  /** The name or the number of the sheet of a workbook. */
  sheet?: string | undefined
  /** A label of the Encoding Standard, a name of iconv-lite, or the number of a code page. */
  encoding?: string | undefined
  /** The character between the cells of a table; undefined if it is detected. */
  delimiter?: string | undefined
  /** False if a quote is an ordinary character in a table. */
  quotes?: boolean | undefined
  map: FieldMap
  /** The names of the columns of a table without a header. */
  columns?: readonly string[] | undefined
  /** A record without an id stands for the plant that has its name. */
  byName?: true | undefined
  /** With `update`, a record may lack its name or tag, which then stay as they are stored. */
  ifExists: 'same' | 'skip' | 'update'
}

/**
 * The columns or keys of each field that does not have its own name: `{ name: ['Kind'] }`. A column
 * can be given by its number. Several columns are joined to the name: `{ name: ['Genus',
 * 'Species'] }`. A field with an empty list is not read.
 */
export type FieldMap = Partial<Record<FieldName, readonly string[]>>

/** The header of a table, and the columns that were found in it. */
export interface Header {
  /** The names of all columns. */
  names: readonly string[]
  /** The indexes of the columns of each field, of which only the name may have several. */
  columns: ReadonlyMap<FieldName, readonly number[]>
  /** The names of the columns that are not read, for a warning. */
  unreadNames: readonly string[]
  /** The line of the header; undefined if `--columns` names the columns instead. */
  line?: number | undefined
  /** The line of a header that may be the first plant, because only `--map` says what it names. */
  guessedLine?: number | undefined
  /** How many rows above the header may be plants, because they have several filled cells. */
  rowsAbove?: number
}

/** An input whose format is not known yet. */
export interface FormatInput {
  /** The name of the file, for messages. */
  name: string
  /** The first block. */
  head: Buffer
  /** All blocks, with the first one. */
  blocks: AsyncIterable<Buffer>
  /** Whether the input is a pipe, for example, which is not examined before it is imported. */
  isReadOnce?: boolean
  signal: AbortSignal
}

/** An input whose format is known, and whose records can be read. */
export interface FormatReader {
  /** The format of JSON; undefined for a table, which has a header instead. */
  format?: FormatName
  header?: Header
  delimiter?: string | undefined
  /** The name of another sheet of a workbook that has the columns, too. It is not read. */
  otherSheet?: string | undefined
  /** The merged cells of a workbook. They are known when the chunks are read to their end. */
  mergedCells?: { readonly firstRange: string | undefined }
  /** The first rows or objects, about which the dialogue of an import asks. */
  sample: Sample
  fields: Omit<FieldReader, 'read'>
  chunks: AsyncGenerator<Chunk>
}

/** The first rows of an input, whatever its columns are. */
export interface Sample {
  noun: 'column' | 'key'
  /** A workbook in which no sheet has the columns has a head for each sheet. */
  heads: readonly TableHead[]
}

/** The first rows of a table or a sheet, at most 20. The first row of objects has their keys. */
export interface TableHead {
  rows: RawChunk<Cells>
  sheet?: string
}

/** Finds the fields of plants in records as they are written. */
export interface FieldReader<R extends RawRecord = RawRecord> {
  /** The names of columns or keys that were not read so far, for a warning. */
  readonly unreadNames: ReadonlySet<string>
  read(chunk: RawChunk<R>): Chunk
}

/** An input may have millions of names that are not read. */
export const maxUnreadNames = 1000

export async function* readFields<R extends RawRecord>(
  chunks: AsyncIterable<RawChunk<R>>,
  fields: FieldReader<R>,
): AsyncGenerator<Chunk> {
  for await (const chunk of chunks) yield fields.read(chunk)
}

/** The text of a JSON value, the cells of a row, or null for a line that is too large. */
export type RawRecord = string | Cells | null

/** The array of a row of a workbook is sparse: it lacks the cells that are not saved. */
export type Cells = readonly Cell[]

/**
 * The string of a cell, or undefined if the cell is empty. A cell whose value cannot be used has a
 * reason, which becomes the end of a sentence: "is the error value #N/A" becomes "the name is the
 * error value #N/A". `text` is the string of this cell in the rejects file.
 */
export type Cell = string | undefined | UnusableCell

interface UnusableCell {
  text: string
  reason: string
  /** Set if the cell has a formula without a value, which a spreadsheet would compute and save. */
  isUnsavedFormula?: true
}

/** The records as they are written, in which the fields are not found yet. */
export class RawChunk<R extends RawRecord = RawRecord> {
  readonly #records: R[]
  readonly #lines: number[]
  /** How many rows of a workbook have cells to the right of the header, which are ignored. */
  surplusRows = 0
  /** The line of the first row with a cell that has line ends. */
  multilineRow: number | undefined
  /** The length of the text that was read for the chunk, in UTF-16 units. */
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

  /** The line in which each record begins. */
  get lines(): readonly number[] {
    return this.#lines
  }

  /** If chunks were half as large, an import of ids in no order would take 1.1 times as long. */
  get isFull(): boolean {
    return this.length >= 4000 || this.characters >= 260_000
  }

  add(record: R, line: number): void {
    this.#records.push(record)
    this.#lines.push(line)
  }

  slice(from: number, to: number): RawChunk<R> {
    return new RawChunk(this.records.slice(from, to), this.lines.slice(from, to))
  }
}

/** Why a record cannot be read. */
export interface ReadProblem {
  kind: 'input' | 'invalid' | 'tooLarge'
  message: string
  cause?: 'surplusCells' | SyntaxCause | undefined
}

/**
 * The records of one transaction. Their fields are in arrays, because an object for each record
 * would take a quarter of the time of an import.
 *
 * A field is undefined if the record lacks it, and null if its cell is empty. An id is a bigint if
 * it is an integer.
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
  /** How many rows without an id, a name and a tag were left out. */
  emptyRows = 0
  /** How many rows of a workbook have cells to the right of the header, which are ignored. */
  surplusRows = 0
  /** The line of the first row with a cell that has line ends. */
  multilineRow: number | undefined

  get length(): number {
    return this.records.length
  }

  addProblem(problem: ReadProblem, record: RawRecord, line: number): void {
    this.problems.set(this.length, problem)
    this.ids.push(undefined)
    this.names.push(undefined)
    this.tags.push(undefined)
    this.records.push(record)
    this.lines.push(line)
  }

  /**
   * Divides the chunk. It yields at least one chunk, even if there are no records, because the
   * first chunk has the counts of rows that were left out.
   */
  *split(maxRecords: number): Generator<Chunk> {
    if (this.length <= maxRecords) {
      yield this
      return
    }
    for (let from = 0; from < this.length; from += maxRecords) {
      const part = this.#slice(from, from + maxRecords)
      if (from === 0) {
        part.emptyRows = this.emptyRows
        part.surplusRows = this.surplusRows
        part.multilineRow = this.multilineRow
      }
      yield part
    }
  }

  #slice(from: number, to: number): Chunk {
    const part = new Chunk()
    part.ids.push(...this.ids.slice(from, to))
    part.names.push(...this.names.slice(from, to))
    part.tags.push(...this.tags.slice(from, to))
    part.records.push(...this.records.slice(from, to))
    part.lines.push(...this.lines.slice(from, to))
    for (const [index, problem] of this.problems)
      if (index >= from && index < to) part.problems.set(index - from, problem)
    return part
  }
}

/** Reads the first item, and returns this item and a generator of all items, the first included. */
export async function peek<T>(items: AsyncGenerator<T>) {
  const { value: first }: IteratorResult<T, undefined> = await items.next()
  return { first, all: prepend(first === undefined ? [] : [first], items) }
}

export async function* prepend<T>(
  firstItems: readonly T[],
  items: AsyncIterable<T>,
): AsyncGenerator<T> {
  yield* firstItems
  yield* items
}

export const maxRecordBytes = maxDocumentBytes
/** A workbook and a JSON text are in memory as a whole, and must not be larger than 256 MiB. */
export const maxUnpackedBytes = 268_435_456

/** Whether a record is larger than 1 MiB in UTF-8. Its bytes are counted only if it is long. */
export function isTooLarge(text: string): boolean {
  return text.length > maxRecordBytes / 3 && Buffer.byteLength(text) > maxRecordBytes
}

export const recordTooLargeReason = `The record is larger than 1 MiB (${maxRecordBytes} bytes)`

/** Creates the error for a record that ends the import, because the rest cannot be read. */
export function createBrokenRecordError(
  name: string,
  line: number,
  reason: string,
  hint = 'Correct the input, and run the command again',
): Error {
  return createInputError(`${name}:${line}: ${reason}`, hint)
}

/**
 * Creates the error for a file without bytes whose format needs some.
 *
 * @param action the verb for how the file is made
 */
export function createEmptyFileError(name: string, action: 'compress' | 'save'): Error {
  return createInputError(
    `${name} is damaged or incomplete: it has no bytes`,
    `Download or ${action} the file again`,
  )
}
