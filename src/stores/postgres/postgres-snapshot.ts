import { to as copyTo } from 'pg-copy-streams'
import type { TextName } from '../../plant/fields.js'
import type { NewPlant } from '../../plant/plant.js'
import type { CountQuery, ReadQuery, TextCount } from '../common/store.js'
import type { ConnectionPool } from './pool.js'
import { maxAnswer, tooLarge } from './postgres-connection.js'
import { explainDatabase } from './postgres-errors.js'
import { listStatement, plants, type Row, toBigInt, toPlant, where } from './sql.js'

/** One consistent snapshot, in arrays of about 64 KiB. */
export async function* readSnapshot(connections: ConnectionPool, query: ReadQuery): AsyncGenerator<NewPlant[]> {
  for await (const rows of copyRows(connections, listStatement(query), query.signal)) yield rows.map(toPlant)
}

export async function* countTexts(
  connections: ConnectionPool,
  by: TextName,
  query: CountQuery,
): AsyncGenerator<TextCount[]> {
  const statement = `SELECT ${by}, count(*) FROM ${plants} ${where(query)} GROUP BY ${by}
    ORDER BY count(*) DESC, ${by} IS NULL, ${by} COLLATE "C"`
  for await (const rows of copyRows(connections, statement))
    yield rows.map(([text, count]) => ({ text: text ?? undefined, count: toBigInt(count) }))
}

/** COPY is by far the fastest way: a line for each row, with escapes for the line feeds of its texts. */
async function* copyRows(connections: ConnectionPool, statement: string, signal?: AbortSignal): AsyncGenerator<Row[]> {
  const limits = connections.limits(signal)
  const connection = await connections.retry(limits, () => connections.lease(limits))
  try {
    await connection.ask('BEGIN READ ONLY; SET LOCAL statement_timeout = 0')
    const chunks = connection.query(copyTo(`COPY (${statement}) TO STDOUT`)).iterator() as AsyncIterableIterator<Buffer>
    let begun: Buffer[] = []
    let length = 0
    for (;;) {
      // The timeout applies to each chunk, but not to the time that the caller takes to use it.
      const { value: chunk, done } = await connection.inTime(chunks.next())
      if (done) break
      const end = chunk.lastIndexOf('\n')
      if (end >= 0) {
        signal?.throwIfAborted()
        yield rowsIn(Buffer.concat([...begun, chunk.subarray(0, end)]).toString())
        begun = []
        length = 0
      }
      begun.push(chunk.subarray(end + 1))
      length += chunk.length - end - 1
      if (length > maxAnswer) throw tooLarge()
    }
    await connection.ask('COMMIT')
  } catch (error) {
    throw explainDatabase(error, connections.account)
  } finally {
    connections.release(connection)
  }
}

/** @param lines without the line feed of the last one */
function rowsIn(lines: string): Row[] {
  return lines.split('\n').map((line) => line.split('\t').map((cell) => (cell === '\\N' ? null : textOf(cell))))
}

/** Reads the escapes of COPY (https://www.postgresql.org/docs/current/sql-copy.html#id-1.9.3.55.9.2). */
function textOf(cell: string): string {
  return cell.includes('\\') ? cell.replace(/\\(.)/g, (_, letter: string) => escapes[letter] ?? letter) : cell
}

const escapes: Record<string, string> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }
