/*
 * Parses the text format of COPY, in which a line feed occurs only at the end of a row:
 * https://www.postgresql.org/docs/current/sql-copy.html.
 */
import { isUtf8 } from 'node:buffer'
import type { Row } from './connection.js'
import { createInvalidRowError } from './rows.js'

/**
 * Yields the rows of each chunk. A row that a chunk does not complete belongs to the next one.
 *
 * @param server the name of the server, for errors
 * @throws {PlantsError} `accessDenied` for a row that is not UTF-8
 */
export async function* parseCopyRows(
  chunks: AsyncIterable<Buffer>,
  server: string,
): AsyncGenerator<Row[]> {
  let partialRow: Buffer[] = []
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf('\n')
    const rows = end === -1 ? [] : [...partialRow, chunk.subarray(0, end)]
    if (end !== -1) partialRow = []
    partialRow.push(chunk.subarray(end + 1))
    if (rows.length > 0) yield parseRows(Buffer.concat(rows), server)
  }
}

function parseRows(bytes: Buffer, server: string): Row[] {
  if (!isUtf8(bytes)) throw createInvalidRowError(server, 'a text that is not UTF-8')
  const lines = bytes.toString().split('\n')
  return lines.map((line) => line.split('\t').map(parseCopyCell))
}

function parseCopyCell(cell: string): string | null {
  if (!cell.includes('\\')) return cell
  if (cell === '\\N') return null
  return cell.replace(/\\(.)/g, (_, letter: string) => controlCharacters.get(letter) ?? letter)
}

const controlCharacters = new Map(
  Object.entries({ b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }),
)
