import type { Chunk } from './chunk.js'
import type { RecordMapper } from './record-mapper.js'

/** a name of the Encoding Standard (https://encoding.spec.whatwg.org), such as `windows-1252`, for which `latin1` is a label */
export type EncodingName = string

/** the most common encodings, for messages and completion */
export const commonEncodings = ['utf-8', 'utf-16le', 'windows-1252', 'iso-8859-2', 'shift_jis']

/** The name of the encoding with a label that the runtime can decode; undefined for any other label. */
export function encodingOf(label: string): EncodingName | undefined {
  try {
    return new TextDecoder(label).encoding
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

export interface Format {
  /** Whether an input with this head has the format. The table of the formats sets the order of detection. */
  detect(head: Head): boolean
  read(mapper: RecordMapper): FormatReader
}

export interface Head {
  bytes: Buffer
  /** the offset of the first byte that is not white space */
  start: number
  isLast: boolean
}

/** Reads the records of an input, one chunk after another. */
export interface FormatReader {
  /**
   * Reads the complete records of a chunk's bytes, and adds plants and invalid records to the chunk. Throws `malformed` for an unusable
   * header. Returns the offset of the first record that was not read: the end of the bytes if all were read, as always with `isLast`, or an
   * earlier one if the chunk is full or the last record is incomplete. The next chunk begins there.
   */
  read(chunk: Chunk, isLast: boolean): number
  /** the original bytes before the first row of a table, after they were read */
  readonly header?: Buffer | undefined
  /** The state from which a reader can continue here. */
  save(): ReaderState
  restore(state: ReaderState): void
}

/** The state of a reader, which JSON can represent. */
export type ReaderState = Readonly<Record<string, string | number | boolean>>

export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

/** The end of the line that contains an offset, without its line break. */
export function endOfLine(bytes: Buffer, from: number): number {
  const found = bytes.indexOf(0x0a, from)
  return found === -1 ? bytes.length : found
}
