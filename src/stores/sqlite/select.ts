import { plantColumns, textNames } from '../../plant/fields.js'
import { largestId, type NewPlant, smallestId, textLength } from '../../plant/plant.js'
import { type SoughtText, soughtTexts } from '../common/search.js'
import type { CountQuery, ListQuery } from '../common/store.js'
import type { Connection } from './sqlite-connection.js'
import { DamageError } from './sqlite-errors.js'
import { toPlant } from './sqlite-schema.js'

export interface Selection extends Pick<ListQuery, 'signal'> {
  /** to append to another condition; empty for all plants */
  sql: string
  /** of its parameters */
  values: string[]
}

export function selectionOf({ tag, search, signal }: ListQuery): Selection {
  const conditions: string[] = []
  const values: string[] = []
  if (tag === false) conditions.push('AND tag IS NULL')
  else if (tag !== undefined) conditions.push('AND tag = ?')
  if (typeof tag === 'string') values.push(tag)
  if (search !== undefined) {
    const contained = soughtTexts(search).flatMap((sought) =>
      textNames.map((name) => {
        values.push(sought.folded, globOf(sought))
        // GLOB takes twice as long, and ASCII does not need it
        const isAscii = `octet_length(${name}) = length(${name})`
        return `CASE WHEN ${isAscii} THEN instr(lower(${name}), ?) ELSE ${name} GLOB ? END`
      }),
    )
    conditions.push(`AND (${contained.join(' OR ')})`)
  }
  return { sql: conditions.join(' '), values, signal }
}

function globOf({ variants }: SoughtText): string {
  return `*${variants.map((each) => (each.includes('^') ? '^' : `[${each.join('')}]`)).join('')}*`
}

const selectBy = {
  id: `SELECT ${plantColumns} FROM plants WHERE id = ?`,
  idempotency_key: `SELECT ${plantColumns} FROM plants WHERE idempotency_key = ?`,
}

export function findPlant(
  connection: Connection,
  column: keyof typeof selectBy,
  value: bigint | string,
): NewPlant | undefined {
  const row: unknown = connection.prepare(selectBy[column]).get(value)
  return row === undefined ? undefined : toPlant(row)
}

export function countSelected(connection: Connection, query: CountQuery): bigint {
  const { sql, values } = selectionOf(query)
  const statement = `SELECT count(*) AS count FROM plants ${sql.replace(/^AND/, 'WHERE')}`
  return (connection.prepare(statement).get(...values) as { count: bigint }).count // a count gives one row
}

export async function readPage(
  connection: Connection,
  selection: Selection,
  after: bigint | undefined,
  rows: number,
): Promise<NewPlant[]> {
  const { sql, values } = selection
  const statement = `SELECT ${plantColumns} FROM plants WHERE id BETWEEN ? AND ? ${sql} ORDER BY id LIMIT ?`
  for (let from = after; ; ) {
    const range = await findRange(connection, selection, from)
    if (!range) return []
    const { first, last } = range
    const page = await connection.run(() =>
      readPlants(connection.prepare(statement).iterate(first, last, ...values, rows), first),
    )
    if (page.length > 0) return page // otherwise the plants were deleted after `findRange`
    from = last
  }
}

function readPlants(rows: Iterable<unknown>, first: bigint): NewPlant[] {
  const page: NewPlant[] = []
  let characters = 0
  let smallest = first
  for (const row of rows) {
    const plant = toPlant(row)
    checkOrder(plant.id, smallest)
    smallest = plant.id + 1n
    page.push(plant)
    characters += textLength(plant)
    if (characters >= pageCharacters) break
  }
  return page
}

const pageCharacters = 1_000_000

/** Greater than `largestId` when there is none. */
export function idFrom(after: bigint | undefined): bigint {
  return after === undefined ? smallestId : after + 1n
}

/** Throws `DamageError` for ids out of order: a scan of a corrupt b-tree may never end. */
export function checkOrder(id: bigint, first: bigint): void {
  if (id < first) throw new DamageError(`the id ${id} comes after ${first - 1n}`)
}

/**
 * A range that contains a selected plant: all ids without a filter, else those of a few hundred rows. Yields to the
 * event loop after each step, even if few plants are selected.
 */
export async function findRange(
  connection: Connection,
  { sql, values, signal }: Selection,
  after: bigint | undefined,
): Promise<IdRange | undefined> {
  let first = idFrom(after)
  while (first <= largestId) {
    if (sql === '') return { first, last: largestId }
    const step = await connection.run(() => {
      const range = { first, last: largestId }
      const { last } = rowsThatFit(connection, { sql: '', values: [] }, range, rowsAtOnce, bytesAtOnce) ?? range
      const found = connection
        .prepare(`SELECT 1 FROM plants WHERE id BETWEEN ? AND ? ${sql} LIMIT 1`)
        .get(first, last, ...values)
      return { first, last, isFound: found !== undefined }
    })
    if (step.isFound) return step
    first = step.last + 1n
    await new Promise(setImmediate)
    signal?.throwIfAborted()
  }
  return undefined
}

type IdRange = Record<'first' | 'last', bigint>

/**
 * The first rows of a range, at most `rows` and `bytes` of texts, or one row that is larger. Does not read the texts.
 * Undefined for no rows.
 */
export function rowsThatFit(
  connection: Connection,
  selection: Selection,
  range: IdRange,
  rows: number,
  bytes: bigint,
): RowRange | undefined {
  const { sql, values } = selection
  const { first } = range
  const sizes = `SELECT id, ${sizeOfTexts} AS size FROM plants WHERE id BETWEEN ? AND ? ${sql} ORDER BY id LIMIT ?`
  const select = connection.prepare(`SELECT max(id) AS last, count(*) AS plants, sum(size) AS size FROM (${sizes})`)
  const { last, plants, size } = select.get(first, range.last, ...values, rows) as Sizes
  if (last === null || size === null) return undefined
  checkOrder(last, first)
  if (size > bytes && plants > 1n)
    return rowsThatFit(connection, selection, range, Math.floor(Number(plants) / 2), bytes)
  return { first, last, plants: Number(plants) }
}

export type RowRange = IdRange & { plants: number }

type Sizes = Record<'last' | 'size', bigint | null> & { plants: bigint } // max and sum of no rows are NULL

const sizeOfTexts = textNames.map((name) => `ifnull(octet_length(${name}), 0)`).join(' + ')

/** rows and bytes of texts to search in one step, or one row */
const rowsAtOnce = 256
const bytesAtOnce = 262_144n
