import type { FieldName } from '../../plant/plant.js'
import type { FormatName } from '../../plant/records.js'
import { inputError, must, type PlantsError } from '../../platform/errors.js'
import { maxDocumentBytes } from '../../platform/text-files.js'
import { type Problem, problem } from '../../stores/common/change.js'

export interface FieldRules {
  /** Such as `CommonName` for `name`; an empty one is not read. */
  map: Partial<Record<FieldName, string>>
  /** The columns of a table without a header. */
  columns: readonly string[] | undefined
  /** The id of the first record without one. `next` is above all ids of the store and the inputs. */
  idFrom: bigint | 'next' | undefined
  /** A record without an id is the plant that has its name. */
  match?: 'name' | undefined
  /** Texts may be missing, and then stay as they are stored. */
  isPartial: boolean
}

export interface Header {
  /** As they are in the input; an unnamed column is empty. */
  names: readonly string[]
  columns: ReadonlyMap<FieldName, number>
  /** Unknown fields. */
  others: readonly number[]
  /** The columns that a rejects file repeats. */
  kept: readonly number[]
}

export interface InputOptions {
  format: FormatName | undefined
  /** Its name, or its number from 1. */
  sheet: string | undefined
  /** A name of the Encoding Standard (https://encoding.spec.whatwg.org), not a label such as `latin1`. */
  encoding: string | undefined
  /** One ASCII character. */
  delimiter: string | undefined
  rules: FieldRules
}

/** The error of an input with a line that is not of its encoding. */
export type Misencoded = (line: number) => PlantsError

/** `blocks` begins with `head`, which has at least 16 bytes, or all. */
export interface FormatInput {
  name: string
  head: Buffer
  blocks: AsyncIterable<Buffer>
  signal: AbortSignal
}

export interface FormatReader {
  format: FormatName | 'xlsx'
  header?: Header
  delimiter?: string
  /** Rows above the header. */
  skipped?: { rows: number; header: number } | undefined
  chunks: AsyncIterable<Chunk>
  /** Ends what reads the chunks. */
  close?(): void
}

/** A record as it is in the input: the text of a JSON value, or the cells of a row. */
export type RawRecord = string | Cells

/** The cells of a row, without empty ones at its end. An empty cell is undefined. */
export type Cells = readonly Cell[]

export type Cell = string | undefined | BadCell

/** A cell of a workbook that cannot be the value of a field. */
export interface BadCell {
  /** What a rejects file repeats. */
  text: string
  /** Follows the name of the field. */
  reason: string
  /** Of a number that is no id: what it is as a name or a tag. */
  digits?: string
}

/**
 * Some thousand records, as arrays: a generator that yields single ones costs three quarters of the speed of an import,
 * an object for each of them half of it.
 */
export class Chunk<R extends RawRecord = RawRecord> {
  readonly records: R[] = []
  /** The line where each record begins. */
  readonly lines: number[] = []
  /** Why a record cannot be read, by its index. */
  readonly problems = new Map<number, Problem>()

  add(record: R, line: number, why?: Problem): void {
    if (why) this.problems.set(this.records.length, why)
    this.records.push(record)
    this.lines.push(line)
  }

  clear(): void {
    this.records.length = 0
    this.lines.length = 0
    this.problems.clear()
  }

  slice(from: number, to: number): Chunk<R> {
    if (from === 0 && to >= this.records.length) return this
    const part = new Chunk<R>()
    for (const [index, record] of this.records.slice(from, to).entries())
      part.add(record, must(this.lines[from + index]), this.problems.get(from + index))
    return part
  }
}

export async function* skipRecords(
  chunks: AsyncIterable<Chunk>,
  count: number,
): AsyncGenerator<Chunk> {
  let left = count
  for await (const chunk of chunks) {
    const skipped = Math.min(left, chunk.records.length)
    left -= skipped
    if (skipped < chunk.records.length) yield chunk.slice(skipped, Infinity)
  }
}

export async function* prepend<T>(first: readonly T[], rest: AsyncIterable<T>): AsyncGenerator<T> {
  yield* first
  yield* rest
}

/** Undefined if there is more. */
export async function readWhole(
  blocks: AsyncIterable<Buffer>,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const parts: Buffer[] = []
  let length = 0
  for await (const block of blocks) {
    length += block.length
    if (length > maxBytes) return undefined
    parts.push(block)
  }
  return Buffer.concat(parts)
}

/** Limits the memory of a chunk: an invalid record of one byte takes hundreds. */
export const maxChunkRecords = 24_000

export const maxRecordBytes = maxDocumentBytes

export function isTooLarge(text: string): boolean {
  return text.length > maxRecordBytes / 3 && Buffer.byteLength(text) > maxRecordBytes
}

export const recordTooLarge = problem(
  'tooLarge',
  `The record is larger than 1 MiB (${maxRecordBytes} bytes)`,
)

/** @param orElse what to do where it is whole nowhere else */
export function incomplete(source: string, orElse: string, cause?: unknown): PlantsError {
  const message = `${source} is incomplete: its end is missing, as after a download or a copy that did not finish`
  return inputError(message, `Fetch or copy it again, or ${orElse}`, cause)
}
