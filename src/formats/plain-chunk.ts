/*
 * Rows of a text as most files have them, kept as the places of their fields in that text.
 *
 * A record as an array or an object lives until its chunk is stored, and so do its strings: the
 * collector copies all of them, and chunks must be small. The rows of a plain chunk are numbers in
 * three arrays next to the text, and a string of a field lives while its row is inserted. So a
 * chunk can have four times as many rows, which files in no order need: a page of the store is
 * written once for each chunk that has an id in it.
 *
 * What is plain is decided by the scanners of each format. A text with any other row is read by the
 * general path, which also reads a plain chunk again if the store does not create all of its
 * plants. Tests hold both to the same plants.
 */
import { assertDefined } from '../errors.js'
import { isText } from '../plant/fields.js'
import type { NewPlantRows, RowValue } from '../plant/plant.js'
import { Chunk, type InputOptions, maxRecordBytes, type RawRecord } from './chunk.js'

/** How the rows of one input are found and read. */
export interface PlainFormat<R extends RawRecord = RawRecord> {
  /**
   * Finds a row that has an id, a name, and at most a tag.
   *
   * @returns the index after its line feed; undefined if the row is not plain
   */
  scanRow(text: string, start: number, fields: FieldPlaces): number | undefined
  /** Reads a name or a tag at its place; undefined if it is no text of a plant. */
  readText(text: string, start: number, end: number): string | undefined
  /** Reads complete rows as the general path does. */
  parse(text: string, line: number, chunk: Chunk<R>): void
}

/** Where the fields of a row are. A tag is missing where its end is its start. */
export class FieldPlaces {
  idStart = 0
  idEnd = 0
  /** The id, rounded. */
  id = 0
  nameStart = 0
  nameEnd = 0
  tagStart = 0
  tagEnd = 0
}

interface PlainText {
  text: string
  /** Where its last complete row ends. */
  end: number
  /** Of its first row. */
  line: number
}

/** Chunks in the order of ids gain nothing by more. */
const maxRowsInOrder = 8000
const maxRows = 25_000
const maxCharacters = 2_600_000
const placesPerRow = 6

export class PlainChunk<R extends RawRecord = RawRecord> extends Chunk<R> implements NewPlantRows {
  readonly #format: PlainFormat<R>
  readonly #texts: PlainText[] = []
  #length = 0
  #places = new Int32Array(placesPerRow * 8192)
  #ids = new Float64Array(8192)
  #textIndexes = new Uint16Array(8192)
  #isInOrder = true
  #parsed: Chunk<R> | undefined

  constructor(format: PlainFormat<R>) {
    super()
    this.#format = format
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

  #parseAll(): Chunk<R> {
    if (this.#parsed) return this.#parsed
    const parsed = new Chunk<R>()
    for (const { text, end, line } of this.#texts)
      this.#format.parse(text.slice(0, end), line, parsed)
    this.#parsed = parsed
    return parsed
  }

  /**
   * Adds the rows of a text, if all of them are plain.
   *
   * @param end after a line feed
   * @returns how many there are; undefined if none was added
   */
  addText(text: string, end: number, line: number): number | undefined {
    if (!isText(text)) return undefined
    const first = this.#length
    const wasInOrder = this.#isInOrder
    const fields = new FieldPlaces()
    for (let start = 0; start < end; ) {
      const next = this.#format.scanRow(text, start, fields)
      if (next === undefined || next - start > maxRecordBytes / 3) {
        this.#length = first
        this.#isInOrder = wasInOrder
        return undefined
      }
      this.#addRow(fields)
      start = next
    }
    this.#texts.push({ text, end, line })
    this.characters += text.length
    return this.#length - first
  }

  #addRow({ id, idStart, idEnd, nameStart, nameEnd, tagStart, tagEnd }: FieldPlaces): void {
    const row = this.#length
    if (row === this.#ids.length) this.#grow()
    const places = this.#places
    const at = row * placesPerRow
    places[at] = idStart
    places[at + 1] = idEnd
    places[at + 2] = nameStart
    places[at + 3] = nameEnd
    places[at + 4] = tagStart
    places[at + 5] = tagEnd
    this.#ids[row] = id
    this.#textIndexes[row] = this.#texts.length
    this.#isInOrder &&= row === 0 || assertDefined(this.#ids[row - 1]) <= id
    this.#length = row + 1
  }

  #grow(): void {
    const [places, ids, textIndexes] = [this.#places, this.#ids, this.#textIndexes]
    this.#places = new Int32Array(2 * places.length)
    this.#places.set(places)
    this.#ids = new Float64Array(2 * ids.length)
    this.#ids.set(ids)
    this.#textIndexes = new Uint16Array(2 * textIndexes.length)
    this.#textIndexes.set(textIndexes)
  }

  /** Rounded ids suffice: they decide which pages of the store come one after the other. */
  listById(): Uint32Array | undefined {
    if (this.#isInOrder) return undefined
    const ids = this.#ids
    const rows = Uint32Array.from({ length: this.#length }, (_, row) => row)
    return rows.sort((a, b) => assertDefined(ids[a]) - assertDefined(ids[b]))
  }

  addValues(row: number, values: RowValue[]): boolean {
    const { text } = assertDefined(this.#texts[assertDefined(this.#textIndexes[row])])
    const places = this.#places
    const at = row * placesPerRow
    const name = this.#format.readText(
      text,
      assertDefined(places[at + 2]),
      assertDefined(places[at + 3]),
    )
    const [tagStart, tagEnd] = [assertDefined(places[at + 4]), assertDefined(places[at + 5])]
    const tag = tagEnd > tagStart ? this.#format.readText(text, tagStart, tagEnd) : null
    if (name === undefined || tag === undefined) return false
    values.push(BigInt(text.slice(places[at], places[at + 1])), name, tag)
    return true
  }
}

/**
 * Whether an import creates each plant under its own id, in a store that takes rows. Any other
 * import needs records.
 */
export function readsPlainRows(options: InputOptions): boolean {
  const { takesRows = false, idFrom, match, ifExists } = options
  return takesRows && idFrom === undefined && match === undefined && ifExists !== 'update'
}

/**
 * Gathers the texts of a file in plain chunks and in others. The first text is read by the general
 * path, which looks for columns and keys in it.
 */
export class ChunkGatherer<R extends RawRecord> {
  readonly #getFormat: () => PlainFormat<R> | undefined
  #isFirst = true
  #plain: PlainChunk<R> | undefined
  /** For what is not plain. */
  general = new Chunk<R>()

  constructor(getFormat: () => PlainFormat<R> | undefined) {
    this.#getFormat = getFormat
  }

  /** @returns how many rows were added; undefined if the general path must read the text */
  addPlain(text: string, end: number, line: number): number | undefined {
    const format = this.#isFirst || end === 0 ? undefined : this.#getFormat()
    this.#isFirst = false
    if (!format) return undefined
    this.#plain ??= new PlainChunk(format)
    return this.#plain.addText(text, end, line)
  }

  /** Yields the chunks that are full, or followed by one of the other kind. */
  *takeChunks(latest: 'plain' | 'general'): Generator<Chunk<R>> {
    if (latest === 'plain') {
      if (this.general.length > 0) yield* this.takeGeneral()
      if (this.#plain?.isFull) yield* this.takePlain()
    } else {
      yield* this.takePlain()
      if (this.general.isFull) yield* this.takeGeneral()
    }
  }

  *takePlain(): Generator<Chunk<R>> {
    if (this.#plain && this.#plain.length > 0) yield this.#plain
    this.#plain = undefined
  }

  *takeGeneral(): Generator<Chunk<R>> {
    yield this.general
    this.general = new Chunk()
  }
}

const zero = 48
const minus = 45

/** Whatever rounding does to its last digits, a number up to here is an int64. */
const largestRoundedId = 9.223372e18

/**
 * Returns the int64 of decimal digits as a number, rounded; NaN for anything else, and for one that
 * may be beyond an int64.
 */
export function scanId(text: string, start: number, end: number): number {
  const isNegative = text.charCodeAt(start) === minus
  let id = 0
  const first = isNegative ? start + 1 : start
  if (first === end || end - first > 19) return Number.NaN
  for (let at = first; at < end; at += 1) {
    const digit = text.charCodeAt(at) - zero
    if (digit < 0 || digit > 9) return Number.NaN
    id = id * 10 + digit
  }
  if (id > largestRoundedId) return Number.NaN
  return isNegative ? -id : id
}
