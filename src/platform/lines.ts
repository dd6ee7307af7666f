import { GrowingBuffer } from './growing-buffer.js'

interface LineOptions {
  /** The longest line that may wait for its end. */
  maxBytes: number
  /** Creates the error of a longer line. Without it, only the first bytes of the line are kept. */
  createTooLongError?: (() => Error) | undefined
  /** Returns the position after the last complete line, or 0. By default, a line feed ends it. */
  findLineEnd?(block: Buffer): number
}

/** Regroups blocks so that each block ends at the end of a line, except the last one. */
export async function* joinWholeLines(
  blocks: AsyncIterable<Uint8Array>,
  {
    maxBytes,
    createTooLongError,
    findLineEnd = (block) => block.lastIndexOf('\n') + 1,
  }: LineOptions,
): AsyncGenerator<Buffer> {
  let remainder = new GrowingBuffer()
  for await (const { buffer, byteOffset, byteLength } of blocks) {
    const block = Buffer.from(buffer, byteOffset, byteLength)
    const end = findLineEnd(block)
    if (end > 0) {
      yield remainder.length === 0
        ? block.subarray(0, end)
        : Buffer.concat([remainder.bytes, block.subarray(0, end)])
      remainder = new GrowingBuffer()
    }
    remainder.append(block.subarray(end, end + maxBytes + 1 - remainder.length))
    if (createTooLongError && remainder.length > maxBytes) throw createTooLongError()
  }
  if (remainder.length > 0) yield remainder.bytes
}
