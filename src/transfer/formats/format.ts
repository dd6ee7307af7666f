import type { Chunk } from './chunk.js'
import type { RecordMapper } from './record-mapper.js'

/** a name of the Encoding Standard (https://encoding.spec.whatwg.org), not a label such as `latin1` */
export type EncodingName = string

/** for messages and completion */
export const commonEncodings = ['utf-8', 'utf-16le', 'windows-1252', 'iso-8859-2', 'shift_jis']

export function encodingOf(label: string): EncodingName | undefined {
  try {
    return new TextDecoder(label).encoding
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

export interface Format {
  /** tried in the order of `formats` */
  detect(head: Head): boolean
  read(mapper: RecordMapper): FormatReader
}

export interface Head {
  bytes: Buffer
  /** of the first byte that is not white space */
  start: number
  isLast: boolean
}

export interface FormatReader {
  /**
   * Adds the complete records. Returns the offset of the first that was not read, where the next chunk begins: all are
   * read with `isLast`, unless the chunk is full. Throws `malformed` for an unusable header.
   */
  read(chunk: Chunk, isLast: boolean): number
  /** of a table: the original bytes before its first row */
  readonly header?: Buffer | undefined
  save(): ReaderState
  restore(state: ReaderState): void
}

export type ReaderState = Readonly<Record<string, string | number | boolean>>

/** of JSON */
export function skipSpace(bytes: Buffer, start: number): number {
  let at = start
  for (let byte = bytes[at]; byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09; byte = bytes[at]) at += 1
  return at
}

export function endOfLine(bytes: Buffer, from: number): number {
  const found = bytes.indexOf(0x0a, from)
  return found === -1 ? bytes.length : found
}
