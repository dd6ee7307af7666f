import { plantColumns, type TextField, textFields } from '../../plant/fields.js'
import { escapeUnsafe } from '../../plant/json.js'
import type { Block, RecordKind, SnapshotQuery } from '../store.js'
import { explainDatabase } from './failure.js'
import { Asking, type Use } from './session.js'
import { literal, plants, sizeOfTexts, where } from './sql.js'

/** Reads plants as `ReadableStore.snapshot` has it, in one transaction. The server writes the text. */
export async function* snapshot(use: Use, query: SnapshotQuery): AsyncGenerator<Block> {
  const { clock, timeout } = use.options
  const asking = await Asking.begin(use, { deadline: clock.now() + timeout, signal: clock.signal })
  let isDone = false
  try {
    await asking.ask('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    yield* readBlocks(asking, query)
    await asking.ask('COMMIT')
    isDone = true
  } catch (error) {
    throw explainDatabase(error, use.account)
  } finally {
    asking.end(isDone)
  }
}

/** While a block is used, the server writes the next one. */
async function* readBlocks(asking: Asking, { limit = Infinity, ...query }: SnapshotQuery): AsyncGenerator<Block> {
  let left = limit
  let coming = readBlock(asking, query, left)
  for (let found = await coming; found !== undefined; found = await coming) {
    left -= found.block.plants
    coming = readBlock(asking, { ...query, after: found.last }, left)
    coming.catch(() => undefined) // which is heard when it is waited for
    yield found.block
  }
}

async function readBlock(asking: Asking, query: SnapshotQuery, left: number): Promise<{ block: Block; last: bigint } | undefined> {
  if (left <= 0) return undefined
  const [[last, count, text] = []] = await asking.ask(blockStatement(query, Math.min(left, blockRows)))
  if (last == null) return undefined
  const block = { text: query.record === 'json' ? escapeUnsafe(text ?? '') : (text ?? ''), plants: Number(count) }
  return { block, last: BigInt(last) }
}

/** The plants of a block are found by their sizes, so that no more texts are read than it has; one that is too large has a block of its own. */
function blockStatement({ record, between, ...query }: SnapshotQuery, rows: number): string {
  const sizes = `SELECT ${plantColumns}, ${sizeOfTexts} AS size FROM ${plants} ${where(query)} ORDER BY id LIMIT ${rows}`
  const sums = `SELECT *, sum(size) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS bytes FROM (${sizes}) AS sizes`
  return `SELECT max(id), count(*), string_agg(${records[record]}, ${literal(between)} ORDER BY id) FROM (${sums}) AS sums
    WHERE bytes <= ${blockBytes} OR bytes = size`
}

/** SQL that writes a row. */
const records: Record<RecordKind, string> = {
  json: `'{"id":' || id || ${textFields.map(jsonMember).join(' || ')} || '}'`,
  csv: cells("','"),
  tsv: cells('chr(9)'),
}

function jsonMember({ name, isRequired }: TextField): string {
  const member = `',"${name}":' || to_json(${name})::text`
  return isRequired ? member : `coalesce(${member}, '')`
}

function cells(separator: string): string {
  return ['id', ...textFields.map(({ name }) => `coalesce(${cell(name, separator)}, '')`)].join(` || ${separator} || `)
}

/** In quotes where RFC 4180 wants them, and where the text is empty. */
function cell(column: string, separator: string): string {
  const special = [separator, `'"'`, 'chr(10)', 'chr(13)'].map((character) => `strpos(${column}, ${character}) > 0`)
  return `CASE WHEN ${column} = '' OR ${special.join(' OR ')} THEN '"' || replace(${column}, '"', '""') || '"' ELSE ${column} END`
}

/** A block ends at whichever comes first, so that an export needs the same memory for any plants. */
const blockRows = 4096
const blockBytes = 524_288
