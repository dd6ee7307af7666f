import type { RecordKind } from '../../plant/records.js'
import type { Chunk } from './chunk.js'
import type { RecordMapper } from './record-mapper.js'

export const formatNames = ['ndjson', 'json', 'csv', 'tsv'] as const
export type FormatName = (typeof formatNames)[number]

/** As the Encoding Standard has them (https://encoding.spec.whatwg.org), where `latin1` is another name of `windows-1252`. */
export const encodingNames = ['utf-8', 'utf-16le', 'utf-16be', 'windows-1252', 'latin1'] as const
export type EncodingName = (typeof encodingNames)[number]

export interface Format {
  /** Whether an input that begins like this has the format. The formats are asked in the order of their table. */
  detect(head: Head): boolean
  read(mapper: RecordMapper): FormatReader
  write: FormatWriter
}

export interface Head {
  bytes: Buffer
  /** the first byte that is neither of a byte order mark nor white space */
  start: number
  isLast: boolean
}

/** Reads the records of an input. It keeps its place between chunks. */
export interface FormatReader {
  /**
   * Reads the complete records of a chunk's bytes: adds the plants to it, and the records that are invalid. Throws `malformed` for a header
   * that cannot be used. Gives where the first record begins that was not read: the end when all were, and always where `isLast`; or an
   * earlier place when the chunk is full: what is left is then for the next chunk.
   */
  read(chunk: Chunk, isLast: boolean): number
  /** what comes before the first row of a table, as it came, once it was read */
  readonly header?: Buffer | undefined
  /** What a new reader needs to continue here. */
  save(): ReaderState
  restore(state: ReaderState): void
}

/** Values that JSON can hold. */
export type ReaderState = Readonly<Record<string, string | number | boolean>>

export type FormatWriter = Record<'head' | 'between' | 'foot', string> & { record: RecordKind }

export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

/** Where the line of a place ends, without its line break. */
export function endOfLine(bytes: Buffer, from: number): number {
  const found = bytes.indexOf(0x0a, from)
  return found === -1 ? bytes.length : found
}
