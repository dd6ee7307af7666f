/** Tells the lines of places in an input, which are asked for in their order. */
export class LineCounter {
  /** the line of the place that was asked for last, from 1 */
  line = 1
  /** how many bytes stand before that place in its line */
  column = 0
  #bytes: Buffer = Buffer.alloc(0)
  #place = 0
  #nextBreak = Infinity

  /** Goes on in other bytes, where `start` is the place that was asked for last. */
  begin(bytes: Buffer, start: number): void {
    this.#bytes = bytes
    this.#place = start
    this.#nextBreak = this.#breakFrom(start)
  }

  /** Goes to a place, and gives its line. */
  at(place: number): number {
    while (this.#nextBreak < place) {
      this.line += 1
      this.column = 0
      this.#place = this.#nextBreak + 1
      this.#nextBreak = this.#breakFrom(this.#place)
    }
    this.column += place - this.#place
    this.#place = place
    return this.line
  }

  #breakFrom(place: number): number {
    const found = this.#bytes.indexOf(0x0a, place)
    return found === -1 ? Infinity : found
  }
}
