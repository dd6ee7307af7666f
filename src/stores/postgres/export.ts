import type { QueryConfig } from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { type FieldName, plantColumns, type TextField, textFields } from '../../plant/fields.js'
import { escapeUnsafe } from '../../plant/json.js'
import type { RecordFormat } from '../../plant/records.js'
import type { Block, SnapshotQuery } from '../common/store.js'
import { type Client, maxAnswer, tooLarge } from './client.js'
import { driverError, explainDatabase } from './errors.js'
import type { ConnectionPool } from './pool.js'
import { begin, plants, where } from './sql.js'

export async function* snapshot(connections: ConnectionPool, query: SnapshotQuery): AsyncGenerator<Block> {
  const limits = connections.limits()
  const client = await connections.retry(limits, () => connections.lease(limits))
  const ask = (statement: QueryConfig) => {
    connections.setDeadline(client, connections.limits().deadline)
    return client.ask(statement)
  }
  try {
    const { parameters, copy } = copyStatements(query)
    await ask({ text: `${begin('ISOLATION LEVEL REPEATABLE READ READ ONLY').text}; SET LOCAL statement_timeout = 0` })
    await ask(parameters)
    for await (const { bytes, plants } of wholeRecords(chunksOf(copy, client, connections), query.record !== 'json')) {
      yield { text: fromCopy[query.record](bytes.toString()), plants }
    }
    await ask({ text: 'COMMIT' })
  } catch (error) {
    throw explainDatabase(error, connections.account)
  } finally {
    connections.release(client)
  }
}

/** Sets the parameters of a query as settings of the transaction, since COPY has no parameters, and a COPY that reads them. */
function copyStatements({ limit, record, sort, ...query }: SnapshotQuery): { parameters: QueryConfig; copy: string } {
  const values: unknown[] = []
  const bind = (value: bigint | number | string, type: string) => {
    values.push(String(value))
    return `current_setting('plants.parameter_${values.length}')::${type}`
  }
  const condition = where(query, bind)
  const select = `SELECT ${record === 'json' ? jsonRecord : plantColumns} FROM ${plants} ${condition} ORDER BY ${orderOf(sort)}`
  const rows = limit === undefined ? select : `${select} LIMIT ${bind(limit, 'bigint')}`
  const settings = values.map((_, index) => `set_config('plants.parameter_${index + 1}', $${index + 1}, true)`)
  return { parameters: { text: `SELECT ${settings.join() || '1'}`, values }, copy: `COPY (${rows}) TO STDOUT (${copyOptions[record]})` }
}

/** With the collation "C", only the letters A to Z have another case. */
function orderOf(sort: FieldName = 'id'): string {
  return sort === 'id' ? 'id' : `${sort} IS NULL, lower(${sort} COLLATE "C"), id`
}

/** The text of records from the output of COPY, which doubles backslashes in text, and does not quote cells with a space at their ends. */
const fromCopy: Record<RecordFormat, (text: string) => string> = {
  json: (text) => escapeUnsafe(text.replaceAll('\\\\', '\\')),
  csv: (text) => (/[ \t](?:[,\n]|$)|(?:^|[,\n])[ \t]/.test(text) ? text.replace(/"[^"]*"|[^",\n]+/g, quoteSpaced) : text),
  tsv: (text) => (/ (?:[\t\n]|$)|(?:^|[\t\n]) /.test(text) ? text.replace(/"[^"]*"|[^"\t\n]+/g, quoteSpaced) : text),
}

function quoteSpaced(cell: string): string {
  return /^[ \t]|[ \t]$/.test(cell) ? `"${cell}"` : cell
}

const copyOptions: Record<RecordFormat, string> = {
  json: 'FORMAT text',
  csv: 'FORMAT csv',
  tsv: `FORMAT csv, DELIMITER E'\\t'`,
}

const jsonRecord = `'{"id":' || id || ${textFields.map(jsonMember).join(' || ')} || '}'`

function jsonMember({ name, isRequired }: TextField): string {
  const member = `',"${name}":' || to_json(${name})::text`
  return isRequired ? member : `coalesce(${member}, '')`
}

/** The output of a COPY. The timeout applies to each chunk, but not to the time that the caller takes to use it. */
async function* chunksOf(copy: string, client: Client, connections: ConnectionPool): AsyncGenerator<Buffer> {
  const chunks = client.query(copyTo(copy)).iterator() as AsyncIterableIterator<Buffer>
  for (;;) {
    connections.setDeadline(client, connections.limits().deadline)
    const { value, done } = await chunks.next().catch((error: unknown) => {
      throw driverError(error)
    })
    if (done) return
    client.destroyAfter(Infinity)
    yield value
  }
}

/** Splits chunks at the ends of records: at line feeds, except in quotes. Drops the line feed at the end of each block. */
async function* wholeRecords(chunks: AsyncIterable<Buffer>, hasQuotes: boolean): AsyncGenerator<{ bytes: Buffer; plants: number }> {
  const begun: Buffer[] = []
  let length = 0
  let isQuoted = false
  for await (const chunk of chunks) {
    let plants = 0
    let end = 0
    let line = 0
    const pass = (lineEnd: number) => {
      if (hasQuotes && count(quote, chunk.subarray(line, lineEnd)) % 2 === 1) isQuoted = !isQuoted
      line = lineEnd
    }
    for (let at = chunk.indexOf(lineFeed); at >= 0; at = chunk.indexOf(lineFeed, at + 1)) {
      pass(at)
      if (isQuoted) continue
      plants += 1
      end = at + 1
    }
    pass(chunk.length)
    if (plants > 0) yield { bytes: Buffer.concat([...begun.splice(0), chunk.subarray(0, end - 1)]), plants }
    begun.push(chunk.subarray(end))
    length = chunk.length - end + (plants > 0 ? 0 : length)
    if (length > maxAnswer) throw tooLarge()
  }
}

function count(byte: number, bytes: Buffer): number {
  let found = 0
  for (let at = bytes.indexOf(byte); at >= 0; at = bytes.indexOf(byte, at + 1)) found += 1
  return found
}

const quote = 0x22
const lineFeed = 0x0a
