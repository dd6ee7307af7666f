import { type NewPlant, textFields } from './fields.js'
import { plantFrom } from './plant.js'

/** A column of texts, as ranges of bytes; `noText` where a plant has none. */
interface TextColumn {
  start: Uint32Array
  end: Uint32Array
}

/**
 * Many NewPlants in columns, with no object for each: what an import reads and a store takes. Ids are int64 in two halves. Texts
 * are ranges of UTF-8 bytes, of `bytes` or, from `bytes.length` on, of a buffer of their own for those that had to be decoded.
 */
export class PlantRows {
  /** what most texts are ranges of */
  readonly bytes: Uint8Array
  length = 0
  idHigh: Int32Array
  idLow: Uint32Array
  /** one for each of `textFields` */
  readonly texts: readonly TextColumn[]
  readonly #text: Buffer
  #decoded = Buffer.alloc(0)
  #decodedLength = 0

  /** @param capacity how many there may be; there can be more */
  constructor(bytes: Uint8Array = new Uint8Array(), capacity = 1024) {
    this.bytes = bytes
    this.#text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    this.idHigh = new Int32Array(capacity)
    this.idLow = new Uint32Array(capacity)
    this.texts = textFields.map(() => ({ start: new Uint32Array(capacity), end: new Uint32Array(capacity) }))
  }

  static of(plants: Iterable<NewPlant>): PlantRows {
    const rows = new PlantRows()
    for (const plant of plants) rows.add(plant)
    return rows
  }

  /** Adds a plant that has been checked. */
  add(plant: NewPlant): void {
    const row = this.next()
    this.idHigh[row] = Number(plant.id >> 32n)
    this.idLow[row] = Number(plant.id & 0xffffffffn)
    for (const [index, column] of this.texts.entries()) {
      const text = plant[textFields[index]?.name ?? 'name']
      column.start[row] = text === undefined ? noText : this.#keep(text)
      column.end[row] = text === undefined ? noText : this.bytes.length + this.#decodedLength
    }
  }

  /** Makes room for one more, whose columns are then to be set. */
  next(): number {
    if (this.length === this.idLow.length) this.#grow()
    this.length += 1
    return this.length - 1
  }

  at(row: number): NewPlant {
    return plantFrom(this.idAt(row), (_, index) => {
      const column = this.texts[index]
      const start = column?.start[row] ?? noText
      return start === noText ? undefined : this.textAt(start, column?.end[row] ?? 0)
    })
  }

  /** bytes of all texts of a row, in UTF-8 */
  sizeAt(row: number): number {
    let size = 0
    for (const { start, end } of this.texts) size += (end[row] ?? 0) - (start[row] ?? 0)
    return size
  }

  idAt(row: number): bigint {
    return (BigInt(this.idHigh[row] ?? 0) << 32n) | BigInt(this.idLow[row] ?? 0)
  }

  /** The buffer that a range lies in; its places there are those of the range less `bytes.length`, where that is less than its start. */
  get decoded(): Buffer {
    return this.#decoded
  }

  textAt(start: number, end: number): string {
    const base = this.bytes.length
    return start < base ? this.#text.toString('utf8', start, end) : this.#decoded.toString('utf8', start - base, end - base)
  }

  /**
   * Decodes the escapes of a JSON string and keeps the text.
   *
   * @param bytes what stands between its quotes, in UTF-8
   * @returns where the text begins, and where it ends; undefined for an escape that JSON does not have, and for half of a surrogate pair or U+0000
   */
  keepString(bytes: Uint8Array): { start: number; end: number } | undefined {
    this.#reserve(bytes.length) // an escape is never shorter than what it stands for
    const start = this.#decodedLength
    let at = start
    for (let from = 0; from < bytes.length; from += 1) {
      const byte = bytes[from] ?? 0
      if (byte !== backslash) this.#decoded[at++] = byte
      else {
        const code = characterOf(bytes, from + 1)
        if (code === 0) return undefined
        at = this.#put(at, code)
        from += bytes[from + 1] === letterU ? 5 : 1
      }
    }
    this.#decodedLength = at
    return { start: this.bytes.length + start, end: this.bytes.length + at }
  }

  /** Writes a character of the first plane in UTF-8. */
  #put(at: number, code: number): number {
    const bytes = this.#decoded
    if (code < 0x80) {
      bytes[at] = code
      return at + 1
    }
    if (code < 0x800) {
      bytes[at] = 0xc0 | (code >> 6)
      bytes[at + 1] = 0x80 | (code & 0x3f)
      return at + 2
    }
    bytes[at] = 0xe0 | (code >> 12)
    bytes[at + 1] = 0x80 | ((code >> 6) & 0x3f)
    bytes[at + 2] = 0x80 | (code & 0x3f)
    return at + 3
  }

  #keep(text: string): number {
    const start = this.#decodedLength
    this.#reserve(Buffer.byteLength(text))
    this.#decodedLength += this.#decoded.write(text, start)
    return this.bytes.length + start
  }

  #reserve(length: number): void {
    const start = this.#decodedLength
    if (start + length <= this.#decoded.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(2 * this.#decoded.length, start + length, 1024))
    this.#decoded.copy(larger)
    this.#decoded = larger
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

export const noText = 0xffffffff

const backslash = 0x5c
const letterU = 0x75

/** What the byte behind a backslash stands for (RFC 8259, 7). */
const escapes = new Uint8Array(256)
for (const [letter, character] of ['""', '\\\\', '//', 'b\b', 'f\f', 'n\n', 'r\r', 't\t'])
  escapes[letter?.charCodeAt(0) ?? 0] = character?.charCodeAt(0) ?? 0

/** The character that an escape stands for, from behind its backslash; 0 for what is none, or half of one. */
function characterOf(bytes: Uint8Array, start: number): number {
  if (bytes[start] !== letterU) return escapes[bytes[start] ?? 0] ?? 0
  const code = hexAt(bytes, start + 1)
  return code >= 0xd800 && code < 0xe000 ? 0 : code
}

/** The number that four hexadecimal digits are; 0 when they are none. */
function hexAt(bytes: Uint8Array, start: number): number {
  let value = 0
  for (let at = start; at < start + 4; at += 1) {
    const byte = bytes[at] ?? 0
    const letter = (byte | 0x20) - 0x57
    const digit = byte >= 0x30 && byte <= 0x39 ? byte - 0x30 : letter >= 10 && letter <= 15 ? letter : -1
    if (digit < 0) return 0
    value = value * 16 + digit
  }
  return value
}

/** Copies a column into a larger one. */
export function enlarge<Column extends Int32Array | Uint32Array | Float64Array>(column: Column, larger: Column): Column {
  larger.set(column)
  return larger
}
