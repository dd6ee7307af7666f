import { escapeUnsafe } from '../../plant/exact-json.js'
import { type TextField, textFields, textNames } from '../../plant/fields.js'
import type { RecordFormat } from '../../plant/records.js'
import type { Block, CountByQuery, SnapshotQuery } from '../common/store.js'
import { findRange, type RowRange, rowsThatFit, type Selection, selectionOf } from './select.js'
import type { Connection } from './sqlite-connection.js'

/** SQLite writes the text, which is three times as fast as JavaScript. */
export async function* readBlocks(connection: Connection, query: SnapshotQuery): AsyncGenerator<Block> {
  const selection = { ...selectionOf(query), record: query.record }
  let after = query.after
  for (let left = query.limit ?? Infinity; left > 0; ) {
    const range = await findRange(connection, selection, after)
    const rows = Math.min(left, blockRows)
    const block = range && (await connection.run(() => rowsThatFit(connection, selection, range, rows, blockBytes)))
    if (block === undefined) return
    yield { text: await connection.run(() => readText(connection, selection, block)), plants: block.plants }
    after = block.last
    left -= block.plants
  }
}

export function readSorted(connection: Connection, query: SnapshotQuery): AsyncGenerator<Block> {
  const { sql, values } = selectionOf(query)
  const { record, after, limit = noLimit, sort = 'id', desc } = query
  const direction = desc ? 'DESC' : 'ASC'
  const order = sort === 'id' ? `id ${direction}` : `${sort} IS NULL, lower(${sort}) ${direction}, id`
  const select = `SELECT CAST(${recordIn(record)} AS BLOB) AS bytes FROM plants`
  const statement = `${select} WHERE ${after === undefined ? 'true' : 'id > ?'} ${sql} ORDER BY ${order} LIMIT ?`
  return readLines(connection, record, statement, [...(after === undefined ? [] : [after]), ...values, limit])
}

export function readCounts(connection: Connection, query: CountByQuery): AsyncGenerator<Block> {
  const { sql, values } = selectionOf(query)
  const { by, min = 1, limit = noLimit } = query
  const member = `CASE WHEN ${by} IS NULL THEN '' ELSE '"${by}":' || json_quote(${by}) || ',' END`
  const record = `'{' || ${member} || '"count":' || count(*) || '}'`
  const groups = `SELECT CAST(${record} AS BLOB) AS bytes FROM plants WHERE true ${sql} GROUP BY ${by} HAVING count(*) >= ?`
  const statement = `${groups} ORDER BY count(*) DESC, ${by} IS NULL, ${by} LIMIT ?`
  return readLines(connection, 'json', statement, [...values, min, limit])
}

const noLimit = -1

/** SQLite spills to a temporary file what does not fit into its cache. */
async function* readLines(
  connection: Connection,
  record: RecordFormat,
  statement: string,
  values: (bigint | number | string)[],
): AsyncGenerator<Block> {
  // Prepared by the connection, which keeps it: the driver finalizes a statement that is garbage, also while it is
  // read.
  const rows = connection.prepare(statement).iterate(...values)
  for (;;) {
    const lines = await connection.run(() => takeLines(rows))
    if (lines.length === 0) return
    const text = lines.join('\n')
    yield { text: record === 'json' ? escapeUnsafe(text) : text, plants: lines.length }
  }
}

function takeLines(rows: Iterator<unknown>): string[] {
  const lines: string[] = []
  for (let bytes = 0; lines.length < blockRows && bytes < blockBytes; ) {
    const { value, done } = rows.next()
    if (done) break
    const line = (value as { bytes: Uint8Array }).bytes // the column of the statement
    lines.push(textIn(line))
    bytes += line.byteLength
  }
  return lines
}

/** As a BLOB: drivers truncate TEXT at U+0000, or fail on invalid UTF-8. Other programs can write both. */
function readText(
  connection: Connection,
  { sql, values, record }: Selection & Pick<SnapshotQuery, 'record'>,
  { first, last }: RowRange,
): string {
  const select =
    connection.prepare(`SELECT CAST(group_concat(${recordIn(record)}, char(10) ORDER BY id) AS BLOB) AS bytes FROM plants
    WHERE id BETWEEN ? AND ? ${sql}`)
  const { bytes } = select.get(first, last, ...values) as { bytes: Uint8Array } // of at least one row
  const text = textIn(bytes)
  return record === 'json' ? escapeUnsafe(text) : text
}

function textIn({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString()
}

function recordIn(format: RecordFormat): string {
  return format === 'json'
    ? `'{"id":' || id || ${textFields.map(jsonMember).join(' || ')} || '}'`
    : cells(`char(${format.charCodeAt(0)})`)
}

function jsonMember({ name, isRequired }: TextField): string {
  const member = `',"${name}":' || json_quote(${name})`
  return isRequired ? member : `CASE WHEN ${name} IS NULL THEN '' ELSE ${member} END`
}

function cells(separator: string): string {
  return ['id', ...textNames.map((name) => `ifnull(${cell(name, separator)}, '')`)].join(` || ${separator} || `)
}

/** Quotes as `recordWriter` does. Uses `instr` and `trim`, since other functions stop at U+0000. */
function cell(column: string, separator: string): string {
  const special = [separator, `'"'`, 'char(10)', 'char(13)'].map((character) => `instr(${column}, ${character})`)
  const isSpaced = `trim(${column}, ' ' || char(9)) <> ${column}`
  return `CASE WHEN ${column} = '' OR ${special.join(' OR ')} OR ${isSpaced} THEN '"' || replace(${column}, '"', '""') || '"' ELSE ${column} END`
}

// The most in a block, which bounds the memory of an export.
const blockRows = 1000
const blockBytes = 131_072n
