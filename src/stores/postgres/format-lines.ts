/*
 * Turns rows of COPY into lines of a file, from bytes to bytes.
 */
import { assertDefined } from '../../errors.js'
import { writeLines } from '../line-writer.js'
import type { LineFormat, PlantLines } from '../store.js'
import { gatherWholeRows, parseCopyRow } from './copy-text.js'
import { parsePlantRow } from './rows.js'

/**
 * Yields the lines of a file in chunks.
 *
 * @param server the name of the server, for errors
 */
export async function* formatCopyLines(
  chunks: AsyncIterable<Buffer>,
  format: LineFormat,
  server: string,
): AsyncGenerator<PlantLines> {
  const formatRow = (row: string) => format.format(parsePlantRow(parseCopyRow(row), server))
  for await (const rows of gatherWholeRows(chunks, server, chunkBytes))
    yield assertDefined(writeLines(rows, format, formatRow))
}

/** Larger chunks save no time. */
const chunkBytes = 262_144
