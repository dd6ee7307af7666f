import type { NewPlant } from './plant.js'

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
  nameStart: Uint32Array
  nameEnd: Uint32Array
  /** `noTag` where a plant has none */
  tagStart: Uint32Array
  tagEnd: Uint32Array
  readonly #text: Buffer
  #decoded = Buffer.alloc(0)
  #decodedLength = 0

  /** @param capacity how many there may be; there can be more */
  constructor(bytes: Uint8Array = new Uint8Array(), capacity = 1024) {
    this.bytes = bytes
    this.#text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    this.idHigh = new Int32Array(capacity)
    this.idLow = new Uint32Array(capacity)
    this.nameStart = new Uint32Array(capacity)
    this.nameEnd = new Uint32Array(capacity)
    this.tagStart = new Uint32Array(capacity)
    this.tagEnd = new Uint32Array(capacity)
  }

  static of(plants: Iterable<NewPlant>): PlantRows {
    const rows = new PlantRows()
    for (const plant of plants) rows.add(plant)
    return rows
  }

  /** Adds a plant that has been checked. */
  add({ id, name, tag }: NewPlant): void {
    const row = this.next()
    this.idHigh[row] = Number(id >> 32n)
    this.idLow[row] = Number(id & 0xffffffffn)
    this.nameStart[row] = this.#keep(name)
    this.nameEnd[row] = this.bytes.length + this.#decodedLength
    this.tagStart[row] = tag === undefined ? noTag : this.#keep(tag)
    this.tagEnd[row] = tag === undefined ? noTag : this.bytes.length + this.#decodedLength
  }

  /** Makes room for one more, whose columns are then to be set. */
  next(): number {
    if (this.length === this.idLow.length) this.#grow()
    this.length += 1
    return this.length - 1
  }

  at(row: number): NewPlant {
    const name = this.textAt(this.nameStart[row] ?? 0, this.nameEnd[row] ?? 0)
    const tagStart = this.tagStart[row] ?? noTag
    return { id: this.idAt(row), name, ...(tagStart === noTag ? {} : { tag: this.textAt(tagStart, this.tagEnd[row] ?? 0) }) }
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

  #keep(text: string): number {
    const start = this.#decodedLength
    const length = Buffer.byteLength(text)
    if (start + length > this.#decoded.length) {
      const larger = Buffer.alloc(Math.max(2 * this.#decoded.length, start + length, 1024))
      this.#decoded.copy(larger)
      this.#decoded = larger
    }
    this.#decodedLength += this.#decoded.write(text, start)
    return this.bytes.length + start
  }

  #grow(): void {
    const capacity = 2 * this.idLow.length
    this.idHigh = enlarge(this.idHigh, new Int32Array(capacity))
    this.idLow = enlarge(this.idLow, new Uint32Array(capacity))
    this.nameStart = enlarge(this.nameStart, new Uint32Array(capacity))
    this.nameEnd = enlarge(this.nameEnd, new Uint32Array(capacity))
    this.tagStart = enlarge(this.tagStart, new Uint32Array(capacity))
    this.tagEnd = enlarge(this.tagEnd, new Uint32Array(capacity))
  }
}

export const noTag = 0xffffffff

function enlarge<Column extends Int32Array | Uint32Array>(column: Column, larger: Column): Column {
  larger.set(column)
  return larger
}
