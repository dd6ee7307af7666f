import type { QueryConfig } from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { escapeUnsafe } from '../../plant/exact-json.js'
import { plantColumns, type TextField, textFields } from '../../plant/fields.js'
import { type Delimiter, recordWriter } from '../../plant/records.js'
import type { Block, CountByQuery, SnapshotQuery } from '../common/store.js'
import type { ConnectionPool } from './pool.js'
import { type Client, maxAnswer, tooLarge } from './postgres-client.js'
import { driverError, explainDatabase } from './postgres-errors.js'
import { type Bind, pin, plants, toPlant, where } from './sql.js'

export function snapshot(connections: ConnectionPool, query: SnapshotQuery): AsyncGenerator<Block> {
  const { record, sort = 'id', desc, limit } = query
  const direction = desc ? 'DESC' : 'ASC'
  // with the collation "C", only the letters A to Z have another case
  const order = sort === 'id' ? `id ${direction}` : `${sort} IS NULL, lower(${sort} COLLATE "C") ${direction}, id`
  const columns = record === 'json' ? jsonRecord : plantColumns
  const statement = (bind: Bind) =>
    `SELECT ${columns} FROM ${plants} ${where(query, bind)} ORDER BY ${order} ${limitOf(limit, bind)}`
  return copyLines(connections, statement, record === 'json' ? readJson : rowReader(record))
}

export function countBy(connections: ConnectionPool, query: CountByQuery): AsyncGenerator<Block> {
  const { by, min = 1, limit } = query
  const record = `'{' || coalesce('"${by}":' || to_json(${by})::text || ',', '') || '"count":' || count(*) || '}'`
  const statement = (bind: Bind) =>
    `SELECT ${record} FROM ${plants} ${where(query, bind)} GROUP BY ${by} HAVING count(*) >= ${bind(min, 'bigint')}
      ORDER BY count(*) DESC, ${by} IS NULL, ${by} COLLATE "C" ${limitOf(limit, bind)}`
  return copyLines(connections, statement, readJson)
}

function limitOf(limit: number | undefined, bind: Bind): string {
  return limit === undefined ? '' : `LIMIT ${bind(limit, 'bigint')}`
}

/** @param read returns the text of some lines of COPY, with its escapes */
async function* copyLines(
  connections: ConnectionPool,
  statement: (bind: Bind) => string,
  read: (lines: string[]) => string,
): AsyncGenerator<Block> {
  const limits = connections.limits()
  const client = await connections.retry(limits, () => connections.lease(limits))
  const ask = (statement: QueryConfig) => {
    connections.setDeadline(client)
    return client.ask(statement)
  }
  try {
    const { parameters, copy } = copyStatements(statement)
    await ask({ text: `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${pin}; SET LOCAL statement_timeout = 0` })
    await ask(parameters)
    for await (const lines of wholeLines(chunksOf(copy, client, connections))) {
      const records = lines.split('\n')
      yield { text: read(records), plants: records.length }
    }
    await ask({ text: 'COMMIT' })
  } catch (error) {
    throw explainDatabase(error, connections.account)
  } finally {
    connections.release(client)
  }
}

/**
 * Passes parameters as settings of the transaction, since COPY has none. The COPY returns a line for each plant, with
 * escapes for the line feeds of its texts.
 */
function copyStatements(statement: (bind: Bind) => string): { parameters: QueryConfig; copy: string } {
  const values: unknown[] = []
  const rows = statement((value, type) => {
    values.push(String(value))
    return `current_setting('plants.parameter_${values.length}')::${type}`
  })
  const settings = values.map((_, index) => `set_config('plants.parameter_${index + 1}', $${index + 1}, true)`)
  return { parameters: { text: `SELECT ${settings.join() || '1'}`, values }, copy: `COPY (${rows}) TO STDOUT` }
}

const jsonRecord = `'{"id":' || id || ${textFields.map(jsonMember).join(' || ')} || '}'`

function jsonMember({ name, isRequired }: TextField): string {
  const member = `',"${name}":' || to_json(${name})::text`
  return isRequired ? member : `coalesce(${member}, '')`
}

function readJson(lines: string[]): string {
  return escapeUnsafe(lines.map(textOf).join('\n'))
}

/** Reads only those lines as plants that may need quotes, because that takes ten times as long. */
function rowReader(delimiter: Delimiter) {
  const write = recordWriter(delimiter)
  const row = (line: string) =>
    mayNeedQuotes.test(line)
      ? write(toPlant(line.split('\t').map((cell) => (cell === '\\N' ? null : textOf(cell)))))
      : line.replaceAll('\\N', '').replaceAll('\t', delimiter)
  return (lines: string[]) => lines.map(row).join('\n')
}

/** A delimiter, a quote, an escape other than NULL, or a cell that is empty or has a space at its ends. */
const mayNeedQuotes = /[",;|]|\\(?!N(?:\t|$))|\t(?=[ \t]|$)| (?=\t|$)/

/** The timeout applies to each chunk, but not to the time that the caller takes to use it. */
async function* chunksOf(copy: string, client: Client, connections: ConnectionPool): AsyncGenerator<Buffer> {
  const chunks = client.query(copyTo(copy)).iterator() as AsyncIterableIterator<Buffer>
  for (;;) {
    connections.setDeadline(client)
    const { value, done } = await chunks.next().catch((error: unknown) => {
      throw driverError(error)
    })
    if (done) return
    client.destroyAfter(Infinity)
    yield value
  }
}

/** Drops the line feed at the end of each block. */
async function* wholeLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let begun: Buffer[] = []
  let length = 0
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf('\n')
    if (end >= 0) {
      yield Buffer.concat([...begun, chunk.subarray(0, end)]).toString()
      begun = []
      length = 0
    }
    begun.push(chunk.subarray(end + 1))
    length += chunk.length - end - 1
    if (length > maxAnswer) throw tooLarge()
  }
}

/** Reads the escapes of COPY (https://www.postgresql.org/docs/current/sql-copy.html#id-1.9.3.55.9.2). */
function textOf(cell: string): string {
  return cell.includes('\\') ? cell.replace(/\\(.)/g, (_, letter: string) => escapes[letter] ?? letter) : cell
}

const escapes: Record<string, string> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }
