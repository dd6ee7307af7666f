import { type PlantPatch, textFields } from './fields.js'

/**
 * A column of texts, as byte ranges; `noText` for a plant that has none, `missingText` for a record that does not say.
 */
type TextColumn = Record<'start' | 'end', Uint32Array>

/**
 * Many plants in columns, without an object per plant. Ids are int64 in two halves. Texts are ranges of UTF-8: of
 * `bytes` or, for decoded texts, of `decoded`, whose offsets begin at `bytes.length`.
 */
export class PlantRows {
  readonly bytes: Uint8Array
  length = 0
  idHigh: Int32Array
  idLow: Uint32Array
  readonly texts: readonly TextColumn[]
  readonly #text: Buffer
  #decoded = Buffer.alloc(0)
  #decodedLength = 0

  /** @param capacity the expected number of plants; more are possible */
  constructor(bytes: Uint8Array, capacity: number) {
    this.bytes = bytes
    this.#text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    this.idHigh = new Int32Array(capacity)
    this.idLow = new Uint32Array(capacity)
    this.texts = textFields.map(() => ({ start: new Uint32Array(capacity), end: new Uint32Array(capacity) }))
  }

  add(patch: PlantPatch): void {
    const row = this.next()
    this.idHigh[row] = Number(patch.id >> 32n)
    this.idLow[row] = Number(patch.id & 0xffffffffn)
    for (const [index, column] of this.texts.entries()) {
      const text = patch[textFields[index]?.name ?? 'name']
      const none = text === null ? noText : missingText
      column.start[row] = text == null ? none : this.#keep(text, Buffer.byteLength(text))
      column.end[row] = text == null ? none : this.bytes.length + this.#decodedLength
    }
  }

  /** Adds a row and returns its index. The caller sets its columns. */
  next(): number {
    if (this.length === this.idLow.length) this.#grow()
    this.length += 1
    return this.length - 1
  }

  at(row: number): PlantPatch {
    const patch: PlantPatch = { id: this.idAt(row) }
    for (const [index, { name }] of textFields.entries()) {
      const column = this.texts[index]
      const start = column?.start[row] ?? missingText
      if (start !== missingText) patch[name] = start === noText ? null : this.textAt(start, column?.end[row] ?? 0)
    }
    return patch
  }

  isComplete(row: number): boolean {
    return textFields.every(({ isRequired }, index) => !isRequired || isText(this.texts[index]?.start[row] ?? missingText))
  }

  sizeAt(row: number): number {
    let size = 0
    for (const { start, end } of this.texts) size += (end[row] ?? 0) - (start[row] ?? 0)
    return size
  }

  idAt(row: number): bigint {
    return (BigInt(this.idHigh[row] ?? 0) << 32n) | BigInt(this.idLow[row] ?? 0)
  }

  hasSameId(row: number, other: number): boolean {
    return this.idLow[row] === this.idLow[other] && this.idHigh[row] === this.idHigh[other]
  }

  /** Its offsets begin at `bytes.length`. */
  get decoded(): Buffer {
    return this.#decoded
  }

  textAt(start: number, end: number): string {
    const base = this.bytes.length
    return start < base ? this.#text.toString('utf8', start, end) : this.#decoded.toString('utf8', start - base, end - base)
  }

  /** Decodes the JSON string between the quotes at `start - 1` and `end`; undefined if it is invalid. */
  keepString(start: number, end: number): { start: number; end: number } | undefined {
    const text = parseString(this.#text.toString('utf8', start - 1, end + 1))
    if (text === undefined || !text.isWellFormed() || text.includes('\0')) return undefined
    // An escape is never shorter than the UTF-8 bytes of its character.
    return { start: this.#keep(text, end - start), end: this.bytes.length + this.#decodedLength }
  }

  #keep(text: string, bytes: number): number {
    const start = this.#decodedLength
    if (start + bytes > this.#decoded.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.#decoded.length, start + bytes, 1024))
      this.#decoded.copy(larger)
      this.#decoded = larger
    }
    this.#decodedLength = start + this.#decoded.write(text, start)
    return this.bytes.length + start
  }

  #grow(): void {
    const capacity = 2 * this.idLow.length
    this.idHigh = enlarge(this.idHigh, new Int32Array(capacity))
    this.idLow = enlarge(this.idLow, new Uint32Array(capacity))
    for (const column of this.texts) {
      column.start = enlarge(column.start, new Uint32Array(capacity))
      column.end = enlarge(column.end, new Uint32Array(capacity))
    }
  }
}

/** The start of a text that a plant does not have, and of one that a record does not say. */
export const noText = 0xffffffff
export const missingText = 0xfffffffe

export function isText(start: number): boolean {
  return start < missingText
}

function parseString(json: string): string | undefined {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

export function enlarge<Column extends Int32Array | Uint32Array | Float64Array>(column: Column, larger: Column): Column {
  larger.set(column)
  return larger
}
