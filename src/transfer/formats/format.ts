import type { FormatName } from '../../plant/records.js'
import type { Chunk } from './chunk.js'
import type { EncodingName } from './encoding.js'
import type { FieldRules, Header } from './header.js'

export interface InputOptions {
  /** by default by the name of the file, or by its first bytes */
  format: FormatName | undefined
  /** of a workbook: a name, or a number from 1 */
  sheet: string | undefined
  encoding: EncodingName | undefined
  /** one ASCII character */
  delimiter: string | undefined
  rules: FieldRules
}

/** `blocks` begins with `head`, which has at least 16 bytes, or all. */
export interface FormatInput {
  name: string
  head: Buffer
  blocks: AsyncIterable<Buffer>
  signal: AbortSignal
}

export interface FormatReader {
  format: FormatName | 'xlsx'
  /** of a table or a workbook */
  header?: Header
  delimiter?: string
  /** rows above the header */
  skipped?: { rows: number; header: number }
  chunks: AsyncIterable<Chunk>
}
