/*
 * Parses the text format of COPY, in which a line feed occurs only at the end of a row:
 * https://www.postgresql.org/docs/current/sql-copy.html.
 */
import { isUtf8 } from 'node:buffer'
import { createTooLongError, maxRowBytes } from './client.js'
import type { Row } from './connection.js'
import { createInvalidRowError } from './rows.js'

/**
 * Joins pieces so that each buffer yielded has whole rows with their line feeds, in UTF-8.
 *
 * @param server the name of the server, for errors
 * @param minBytes how many bytes of rows are gathered before they are yielded, except at the end.
 * By default, the rows that a piece completes are yielded at once.
 * @throws {PlantsError} `accessDenied` for a row that is too long or not UTF-8
 */
export async function* splitCopyText(
  pieces: AsyncIterable<Buffer>,
  server: string,
  minBytes = 0,
): AsyncGenerator<Buffer> {
  let gathered: Buffer[] = []
  /** The bytes after the last line feed. */
  let begunBytes = 0
  let rowBytes = 0
  for await (const piece of pieces) {
    const end = piece.lastIndexOf('\n') + 1
    if (end > 0) rowBytes += begunBytes + end
    begunBytes = end > 0 ? piece.length - end : begunBytes + piece.length
    if (begunBytes > maxRowBytes) throw createTooLongError(server, 'row')
    gathered.push(piece)
    if (rowBytes === 0 || rowBytes < minBytes) continue
    const bytes = Buffer.concat(gathered)
    yield assertUtf8(bytes.subarray(0, rowBytes), server)
    gathered = [bytes.subarray(rowBytes)]
    rowBytes = 0
  }
  if (rowBytes > 0) yield assertUtf8(Buffer.concat(gathered, rowBytes), server)
}

function assertUtf8(bytes: Buffer, server: string): Buffer {
  if (!isUtf8(bytes)) throw createInvalidRowError(server, 'a text that is not UTF-8')
  return bytes
}

/** @param server the name of the server, for errors */
export async function* parseCopyRows(
  pieces: AsyncIterable<Buffer>,
  server: string,
): AsyncGenerator<Row[]> {
  for await (const bytes of splitCopyText(pieces, server))
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
  return cell.replace(/\\(.)/g, (_, letter: string) => controls.get(letter) ?? letter)
}

const controls = new Map(Object.entries({ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }))
