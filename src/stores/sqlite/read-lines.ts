/*
 * Reads plants as lines of a file, for exports.
 *
 * To fetch three values of each row takes three times as long as to fetch one value with all rows.
 * So SQLite joins the rows of a range in the form of COPY, and most of their bytes are only copied
 * (line-writer.ts). But SQLite escapes nothing there. A name or a tag may contain a tab or a line
 * feed, and another program may have stored any value, such as U+0000, at which a driver may end a
 * string. Then a row cannot be parsed, or there are more rows than SQLite has counted, and the
 * plants of the range are read as separate rows. The plants of a search, and of a list in another
 * order than that of the ids, are always read as separate rows.
 */
import { isUtf8 } from 'node:buffer'
import { buildPlant } from '../../plant/plant.js'
import { writeLines } from '../line-writer.js'
import type { ReadQuery } from '../query.js'
import type { LineFormat, PlantLines } from '../store.js'
import type { Connection } from './connection.js'
import { buildFilter } from './filter.js'
import { fromIdRange, type IdRange, IdRanges } from './id-ranges.js'
import { readPlants, toPlant } from './read.js'

/** Larger steps save no time. */
const step = { rows: 5000, bytes: 262_144 }

export async function* readPlantLines(
  connection: Connection,
  query: ReadQuery,
  format: LineFormat,
): AsyncGenerator<PlantLines> {
  if (!canReadByRanges(query)) {
    for await (const plants of readPlants(connection, query))
      yield { length: plants.length, content: plants.map(format.format).join('') }
    return
  }
  const ranges = new IdRanges(connection.prepare, query, step)
  const readRange = createRangeReader(connection, query, format)
  for (;;) {
    query.signal?.throwIfAborted()
    const lines = await connection.retryWhileLocked(() => {
      const range = ranges.find(step.rows)
      if (!range) return undefined
      const linesOfRange = readRange(range)
      ranges.advance(range)
      return linesOfRange
    })
    if (!lines) return
    if (lines.length > 0) yield lines
  }
}

/**
 * Returns true if SQL alone selects the plants, and the list has all of them in ascending order of
 * id.
 */
function canReadByRanges({ search, sort = 'id', limit, desc = false }: ReadQuery): boolean {
  return search === undefined && limit === undefined && sort === 'id' && !desc
}

/**
 * A row with a value of another type becomes an empty string. So does a row with the tag `\N`,
 * which would be taken for a missing tag. An empty row cannot be parsed, so the plants of its range
 * are read as separate rows.
 */
const joinedRow = String.raw`CASE WHEN name >= '' AND name < x''
  AND (tag IS NULL OR (tag >= '' AND tag < x'' AND tag <> '\N'))
  THEN id || char(9) || name || char(9) || ifnull(tag, '\N') ELSE '' END`

function createRangeReader({ prepare }: Connection, query: ReadQuery, format: LineFormat) {
  const { where, values } = buildFilter(query)
  const select = `SELECT id, name, tag ${fromIdRange} AND ${where} ORDER BY id`
  const selectJoined = `SELECT count(*), CAST(group_concat(${joinedRow}, char(10)) || char(10)
    AS BLOB) FROM (${select})`

  return (range: IdRange): PlantLines => {
    const parameters = [...range, ...values]
    const [count, rows]: [bigint, Uint8Array | null] = prepare(selectJoined).get(...parameters)
    const lines = rows && isUtf8(rows) && writeLines(toBuffer(rows), format, formatRow)
    if (lines && lines.length === Number(count)) return lines
    const plants = prepare(select)
      .all(...parameters)
      .map(toPlant)
    return { length: plants.length, content: plants.map(format.format).join('') }
  }

  function formatRow(row: string): string | undefined {
    const [id, name, tag, ...furtherCells] = row.split('\t')
    if (id === undefined || name === undefined || tag === undefined) return undefined
    if (furtherCells.length > 0 || !isInteger.test(id) || row.includes('\0')) return undefined
    return format.format(buildPlant(BigInt(id), name, tag === String.raw`\N` ? null : tag))
  }
}

/** After a line feed within a name or a tag, a row may begin with any characters. */
const isInteger = /^-?\d+$/

function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}
