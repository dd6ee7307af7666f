/*
 * Parses the text format of COPY, in which a line feed occurs only at the end of a row:
 * https://www.postgresql.org/docs/current/sql-copy.html.
 */
import { isUtf8 } from 'node:buffer'
import { createTooLongError, maxRowBytes } from './client.js'
import type { Row } from './connection.js'
import { createInvalidRowError } from './rows.js'

/**
 * Divides the chunks of a COPY at the ends of rows: each yielded buffer has whole rows with their
 * line feeds, in UTF-8.
 *
 * @param server the name of the server, for errors
 * @param minBytes the smallest number of bytes that are yielded at once, except at the end. By
 *   default, the rows that a chunk completes are yielded at once.
 * @throws {PlantsError} `accessDenied` for a row that is too long or not UTF-8
 */
export async function* gatherWholeRows(
  chunks: AsyncIterable<Buffer>,
  server: string,
  minBytes = 0,
): AsyncGenerator<Buffer> {
  let gatheredChunks: Buffer[] = []
  /** The bytes after the last line feed. */
  let partialRowBytes = 0
  let wholeRowBytes = 0
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf('\n') + 1
    if (end > 0) wholeRowBytes += partialRowBytes + end
    partialRowBytes = end > 0 ? chunk.length - end : partialRowBytes + chunk.length
    if (partialRowBytes > maxRowBytes) throw createTooLongError(server, 'row')
    gatheredChunks.push(chunk)
    if (wholeRowBytes === 0 || wholeRowBytes < minBytes) continue
    const bytes = Buffer.concat(gatheredChunks)
    yield assertUtf8(bytes.subarray(0, wholeRowBytes), server)
    gatheredChunks = [bytes.subarray(wholeRowBytes)]
    wholeRowBytes = 0
  }
  if (wholeRowBytes > 0) yield assertUtf8(Buffer.concat(gatheredChunks, wholeRowBytes), server)
}

function assertUtf8(bytes: Buffer, server: string): Buffer {
  if (!isUtf8(bytes)) throw createInvalidRowError(server, 'a text that is not UTF-8')
  return bytes
}

/** @param server the name of the server, for errors */
export async function* parseCopyRows(
  chunks: AsyncIterable<Buffer>,
  server: string,
): AsyncGenerator<Row[]> {
  for await (const bytes of gatherWholeRows(chunks, server))
    yield bytes
      .toString('utf8', 0, bytes.length - 1)
      .split('\n')
      .map(parseCopyRow)
}

/** @param line a row without its line feed */
export function parseCopyRow(line: string): Row {
  return line.split('\t').map(parseCopyCell)
}

function parseCopyCell(cell: string): string | null {
  if (!cell.includes('\\')) return cell
  if (cell === '\\N') return null
  return cell.replace(/\\(.)/g, (_, letter: string) => controlCharacters.get(letter) ?? letter)
}

const controlCharacters = new Map(
  Object.entries({ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }),
)
