/**
 * Collects pieces of bytes in one buffer. Time and memory are proportional to the number of bytes,
 * however small the pieces are.
 */
export class GrowingBuffer {
  length = 0
  #buffer: Buffer = Buffer.alloc(0)

  /** @param piece must not be changed afterwards */
  append(piece: Buffer): void {
    const start = this.length
    this.length += piece.length
    if (start === 0) {
      this.#buffer = piece // Most bodies of requests arrive in one piece, which is not copied.
      return
    }
    const isFull = this.length > this.#buffer.length
    if (isFull) this.#buffer = Buffer.concat([this.#buffer.subarray(0, start)], 2 * this.length)
    piece.copy(this.#buffer, start)
  }

  /** Returns the bytes. They are valid until the next piece is appended. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.length)
  }
}
