/*
 * Opens an input as records: rows or JSON values in which the fields of plants are found.
 */
import { openFormat } from '../formats/detect.js'
import type {
  Cells,
  FormatInput,
  FormatOptions,
  JsonReader,
  TableReader,
  WorkbookFacts,
} from '../formats/reader.js'
import { assertKeys } from './assert-keys.js'
import { Chunk, type RawRecord } from './chunk.js'
import { createHeaderFinder, type Header, readHeader } from './header.js'
import type { Sample } from './missing-fields.js'
import type { FieldOptions } from './options.js'
import { ObjectReader } from './read-objects.js'
import { RowReader } from './read-rows.js'
import { isRejectsHeader } from './rejects-names.js'

export type InputOptions = FormatOptions & FieldOptions

/** An input whose records can be read. */
export type RecordReader = RowsReader | ObjectsReader

interface ChunkReader {
  /** The first rows or objects, about which the dialogue of an import asks. */
  sample: Sample
  /** Whether the input is a rejects file. */
  isRejects: boolean
  /** @param maxRecords a chunk has at most so many records */
  readChunks(maxRecords?: number): AsyncGenerator<Chunk>
}

export interface RowsReader extends ChunkReader {
  type: 'table'
  /** Undefined for a table without rows. */
  header: Header | undefined
  delimiter: string | undefined
  workbook: WorkbookFacts | undefined
  /** Reads the cells of a row again. */
  readCells(record: RawRecord): Cells
}

interface ObjectsReader extends ChunkReader {
  type: 'json'
}

/**
 * Opens an input, and checks that its first records have the fields of plants.
 *
 * @throws {PlantsError} `input` if the format is unknown, or columns or keys are missing
 */
export async function openRecords(
  input: FormatInput,
  options: InputOptions,
): Promise<RecordReader> {
  const reader = await openFormat(input, options, createHeaderFinder(options))
  const { name } = input
  return reader.type === 'table'
    ? openRows(reader, options, name)
    : openObjects(reader, options, name)
}

function openRows(reader: TableReader, options: InputOptions, name: string): RowsReader {
  const { batches, heads, delimiter, workbook, parseRow } = reader
  const header = readHeader(reader, options, name)
  // A table without rows has no header, and nothing to read.
  const rows = header && new RowReader(header, options.ifExists === 'update')
  return {
    type: 'table',
    header,
    delimiter,
    workbook,
    sample: { noun: 'column', heads },
    isRejects: isRejectsHeader(reader.head[0]?.cells),
    readChunks: (maxRecords) =>
      readChunks(batches, (row, chunk) => rows?.read(row, chunk), maxRecords),
    readCells: (record) =>
      typeof record === 'string' ? (parseRow?.(record) ?? []) : (record ?? []),
  }
}

function openObjects(reader: JsonReader, options: InputOptions, name: string): ObjectsReader {
  const { head, batches } = reader
  const sample = assertKeys(head, options, name)
  const objects = new ObjectReader(options)
  return {
    type: 'json',
    sample,
    isRejects: /^\{\s*"rejected_line"/.test(head[0]?.text ?? ''),
    readChunks: (maxRecords) =>
      readChunks(batches, (value, chunk) => objects.read(value, chunk), maxRecords),
  }
}

/** Reads records into chunks. The last chunk may have no records, but counts of rows. */
async function* readChunks<R>(
  batches: AsyncIterable<readonly R[]>,
  read: (record: R, chunk: Chunk) => void,
  maxRecords = Infinity,
): AsyncGenerator<Chunk> {
  let chunk = new Chunk()
  for await (const batch of batches)
    for (const record of batch) {
      read(record, chunk)
      if (!chunk.isFull && chunk.length < maxRecords) continue
      yield chunk
      chunk = new Chunk()
    }
  yield chunk
}
