/*
 * Keeps the rows of a text as the offsets of their fields in the text.
 *
 * A record is an array or an object. It lives until its chunk is stored, and so do its strings. The
 * garbage collector copies all of them several times, so chunks of records must be small. The rows
 * of a plain chunk are numbers in three typed arrays next to the text, and the string of a field
 * lives only while its row is inserted. So a plain chunk can have four times as many rows. A file
 * whose ids are in no order needs large chunks: SQLite writes a page of the store once for each
 * chunk that has an id in this page.
 *
 * A row is plain if it is written as most programs write rows. Each format has a scanner that
 * decides this (`plain-json.ts`, `plain-table.ts`). If a text has any other row, the general parser
 * of the format (`json.ts`, `table.ts`) reads the whole text as records. If the store cannot create
 * all plants of a plain chunk, the general parser reads the chunk again, and each record gets its
 * own outcome. Tests compare the scanners with the general parsers.
 */

import { assertDefined } from '../errors.js'
import { isStorableString } from '../plant/fields.js'
import type { PlainRows, RowFields, RowValue } from '../plant/plant.js'
import { minus, zero } from '../platform/ascii.js'
import { Chunk, type InputOptions, maxRecordBytes, type RawRecord } from './chunk.js'
import { createRowArrays, growRowArrays, offsetsPerRow, type RowArrays } from './row-arrays.js'

/** How the rows of one input are found and read. */
export interface PlainFormat<R extends RawRecord = RawRecord> {
  /**
   * Finds the fields of a row that has an id, a name, and at most a tag, and sets their offsets.
   *
   * @returns the index after the line feed of the row; undefined if the row is not plain
   */
  scanRow(text: string, start: number, fields: FieldOffsets): number | undefined
  /** @returns the name or the tag; undefined if it is not valid in a plant */
  readField(text: string, start: number, end: number): string | undefined
  /** Parses complete rows with the general parser, and adds the records to the chunk. */
  parse(text: string, line: number, chunk: Chunk<R>): void
}

/**
 * The offsets of the fields of a row in its text. If the row has no tag, `tagStart` and `tagEnd`
 * are equal. One object is filled again for each row, because creating an object for each takes
 * longer.
 */
export class FieldOffsets {
  idStart = 0
  idEnd = 0
  /** The id as a number, which is rounded above 2^53. */
  id = 0
  nameStart = 0
  nameEnd = 0
  tagStart = 0
  tagEnd = 0
}

interface PlainText {
  text: string
  /** The index after the last complete row. */
  end: number
  /** The line in which the first row begins. */
  line: number
}

/** If the ids are in order, each page is written once, so a larger chunk would save nothing. */
const maxRowsInOrder = 8000
const maxRows = 25_000
/** The length of all texts of a chunk, in UTF-16 units. */
const maxCharacters = 2_600_000

export class PlainChunk<R extends RawRecord = RawRecord> extends Chunk<R> implements PlainRows {
  readonly #format: PlainFormat<R>
  readonly #freeArrays: RowArrays[]
  #texts: PlainText[] = []
  #length = 0
  #arrays: RowArrays
  #isInOrder = true
  #parsedChunk: Chunk<R> | undefined

  /** @param freeArrays arrays that chunks use again: `release` adds the arrays of this chunk */
  constructor(format: PlainFormat<R>, freeArrays: RowArrays[] = []) {
    super()
    this.#format = format
    this.#freeArrays = freeArrays
    this.#arrays = freeArrays.pop() ?? createRowArrays(8192)
  }

  /**
   * Returns the arrays for a later chunk, and drops the rows. Otherwise the arrays of all chunks
   * would stay in memory until V8 collects old garbage, which happens only three times in an
   * import.
   */
  release(): void {
    this.#freeArrays.push(this.#arrays)
    this.#arrays = createRowArrays(0)
    this.#texts = []
    this.#length = 0
  }

  override get length(): number {
    return this.#length
  }

  override get isFull(): boolean {
    const isLong = this.#length >= (this.#isInOrder ? maxRowsInOrder : maxRows)
    return isLong || this.characters >= maxCharacters
  }

  override get records(): readonly R[] {
    return this.#parseAll().records
  }

  override get lines(): readonly number[] {
    return this.#parseAll().lines
  }

  /**
   * Parses all rows as records, once. This takes the time that a plain chunk otherwise saves.
   * `slice`, with which an import that resumes skips records, needs this, too.
   */
  #parseAll(): Chunk<R> {
    if (this.#parsedChunk) return this.#parsedChunk
    const parsedChunk = new Chunk<R>()
    for (const { text, end, line } of this.#texts)
      this.#format.parse(text.slice(0, end), line, parsedChunk)
    this.#parsedChunk = parsedChunk
    return parsedChunk
  }

  /**
   * Adds the rows of a text if all of them are plain, or none.
   *
   * @param end the index after the last line feed
   * @param line the line in which the first row begins
   * @returns the number of rows; undefined if none was added
   */
  addText(text: string, end: number, line: number): number | undefined {
    if (!isStorableString(text)) return undefined
    const lengthBefore = this.#length
    const wasInOrder = this.#isInOrder
    const fields = new FieldOffsets()
    for (let start = 0; start < end; ) {
      const nextStart = this.#format.scanRow(text, start, fields)
      if (nextStart === undefined || nextStart - start > maxRecordBytes / 3) {
        this.#length = lengthBefore
        this.#isInOrder = wasInOrder
        return undefined
      }
      this.#addRow(fields)
      start = nextStart
    }
    this.#texts.push({ text, end, line })
    this.characters += text.length
    return this.#length - lengthBefore
  }

  #addRow({ id, idStart, idEnd, nameStart, nameEnd, tagStart, tagEnd }: FieldOffsets): void {
    const row = this.#length
    if (row === this.#arrays.ids.length) this.#arrays = growRowArrays(this.#arrays)
    const { offsets, ids, textIndexes } = this.#arrays
    const rowOffset = row * offsetsPerRow
    offsets[rowOffset] = idStart
    offsets[rowOffset + 1] = idEnd
    offsets[rowOffset + 2] = nameStart
    offsets[rowOffset + 3] = nameEnd
    offsets[rowOffset + 4] = tagStart
    offsets[rowOffset + 5] = tagEnd
    ids[row] = id
    textIndexes[row] = this.#texts.length
    this.#isInOrder &&= row === 0 || assertDefined(ids[row - 1]) <= id
    this.#length = row + 1
  }

  /**
   * Lists the rows in the order of their ids, or returns undefined if they are in this order. Ids
   * above 2^53 are rounded, which does no harm: the order only decides in which order the pages of
   * the store are written.
   */
  listIndexesById(): Uint32Array | undefined {
    if (this.#isInOrder) return undefined
    const { ids } = this.#arrays
    const rows = Uint32Array.from({ length: this.#length }, (_, row) => row)
    return rows.sort((a, b) => assertDefined(ids[a]) - assertDefined(ids[b]))
  }

  addValues(row: number, values: RowValue[]): boolean {
    const texts = this.readFields(row)
    if (texts) values.push(BigInt(texts.id), texts.name, texts.tag)
    return texts !== undefined
  }

  readFields(row: number): RowFields | undefined {
    const { offsets, textIndexes } = this.#arrays
    const { text } = assertDefined(this.#texts[assertDefined(textIndexes[row])])
    const rowOffset = row * offsetsPerRow
    const name = this.#format.readField(
      text,
      assertDefined(offsets[rowOffset + 2]),
      assertDefined(offsets[rowOffset + 3]),
    )
    const [tagStart, tagEnd] = [
      assertDefined(offsets[rowOffset + 4]),
      assertDefined(offsets[rowOffset + 5]),
    ]
    const tag = tagEnd > tagStart ? this.#format.readField(text, tagStart, tagEnd) : null
    if (name === undefined || tag === undefined) return undefined
    return { id: text.slice(offsets[rowOffset], offsets[rowOffset + 1]), name, tag }
  }
}

/**
 * Whether an import creates each plant under its own id, in a store that can create plants from
 * rows. Any other import needs records.
 */
export function readsPlainRows(options: InputOptions): boolean {
  const { takesPlainRows = false, idFrom, match, ifExists } = options
  return takesPlainRows && idFrom === undefined && match === undefined && ifExists !== 'update'
}

/**
 * Gathers the rows of a file in plain chunks and in chunks of records, in the order of the file.
 * The first text is always parsed as records, because the columns or keys are looked for in them.
 */
export class ChunkGatherer<R extends RawRecord> {
  /** How plain rows are read; undefined if all rows must become records. */
  plainFormat: PlainFormat<R> | undefined
  readonly #freeArrays: RowArrays[] = []
  #isFirstText = true
  #plainChunk: PlainChunk<R> | undefined
  /** The records of texts that are not plain. */
  generalChunk = new Chunk<R>()

  constructor(plainFormat?: PlainFormat<R>) {
    this.plainFormat = plainFormat
  }

  /**
   * Adds the rows of a text to the plain chunk, if all of them are plain.
   *
   * @param end the index after the last line feed
   * @param line the line in which the first row begins
   * @returns the number of rows; undefined if none was added, and the caller must add the records
   *   of the text to `generalChunk`
   */
  addPlain(text: string, end: number, line: number): number | undefined {
    const mayBePlain = !this.#isFirstText && end > 0
    this.#isFirstText = false
    if (!this.plainFormat || !mayBePlain) return undefined
    this.#plainChunk ??= new PlainChunk(this.plainFormat, this.#freeArrays)
    return this.#plainChunk.addText(text, end, line)
  }

  /**
   * Yields the chunks to which nothing will be added: a chunk that is full, and, so that the rows
   * stay in the order of the file, a chunk of the other kind than the latest text.
   *
   * @param latest the kind to which the latest text was added
   */
  *yieldCompleteChunks(latest: 'plain' | 'general'): Generator<Chunk<R>> {
    if (latest === 'plain') {
      if (this.generalChunk.length > 0) yield* this.yieldGeneralChunk()
      if (this.#plainChunk?.isFull) yield* this.yieldPlainChunk()
    } else {
      yield* this.yieldPlainChunk()
      if (this.generalChunk.isFull) yield* this.yieldGeneralChunk()
    }
  }

  /** Yields the plain chunk if it has rows, and begins another one. */
  *yieldPlainChunk(): Generator<Chunk<R>> {
    if (this.#plainChunk && this.#plainChunk.length > 0) yield this.#plainChunk
    this.#plainChunk = undefined
  }

  /** Yields the general chunk, and begins another one. */
  *yieldGeneralChunk(): Generator<Chunk<R>> {
    yield this.generalChunk
    this.generalChunk = new Chunk()
  }
}

/** A number up to here is an int64, whatever its rounding has done to the last digits. */
const largestRoundedId = 9.223372e18

/**
 * Reads an int64 of decimal digits as a number.
 *
 * @returns the number, which is rounded above 2^53; NaN for anything that is not surely an int64
 */
export function scanId(text: string, start: number, end: number): number {
  const isNegative = text.charCodeAt(start) === minus
  let id = 0
  const firstDigit = isNegative ? start + 1 : start
  if (firstDigit === end || end - firstDigit > 19) return Number.NaN
  for (let index = firstDigit; index < end; index += 1) {
    const digit = text.charCodeAt(index) - zero
    if (digit < 0 || digit > 9) return Number.NaN
    id = id * 10 + digit
  }
  if (id > largestRoundedId) return Number.NaN
  return isNegative ? -id : id
}
