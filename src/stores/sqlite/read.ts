/**
 * Reads plants, and counts them.
 *
 * SQLite runs in this thread, so a long statement would block a service. Lists are therefore read
 * in steps, between which the event loop runs. A step has at most 1000 rows and 256 KiB, or one
 * larger plant. The last id of a step must be known before the step is read, because `all` takes
 * 0.6 of the time of an iterator that stops at a limit. So a first statement adds up the sizes of
 * the next rows, and finds the last id of the step (`IdRanges`).
 *
 * Searches and sorts compare folded names and tags (`foldString`). SQL can fold only ASCII, with
 * `lower`. So SQL selects all plants that a search may find, and then `matches` decides in
 * JavaScript. A function that SQLite calls for each name and tag would take twice the time.
 * docs/design/search.md says what else was tried.
 */

import type { StringFieldName } from '../../plant/fields.js'
import { buildPlant, measureFieldLength, type StoredPlant } from '../../plant/plant.js'
import { addCount, type CountQuery, type FieldCounts, type ReadQuery } from '../query.js'
import type { Connection } from './connection.js'
import { StoreDamageError } from './errors.js'
import { buildFilter, buildFoldedSortKey, everyPlantCondition } from './filter.js'
import { fromIdRange, type IdRange, IdRanges } from './id-ranges.js'

const stepRows = 1000
const stepBytes = 262_144

/** @throws {StoreDamageError} for a type that only another program can have written */
export function toPlant([id, name, tag]: unknown[]): StoredPlant {
  const isTag = tag === null || typeof tag === 'string'
  if (typeof id !== 'bigint' || typeof name !== 'string' || !isTag)
    throw new StoreDamageError(`plant ${id} has a value of another type`)
  return buildPlant(id, name, tag)
}

export async function* readPlants(connection: Connection, query: ReadQuery) {
  const { sort = 'id', limit = Infinity, signal } = query
  const readStep =
    sort === 'id'
      ? createReaderById(connection, query)
      : createReaderByField(connection, sort, query)
  for (let remainingRows = limit; remainingRows > 0; ) {
    signal?.throwIfAborted()
    const step = await connection.retryWhileLocked(() => readStep(remainingRows))
    const plants = step?.slice(0, remainingRows)
    if (!plants) return
    if (plants.length > 0) yield plants
    remainingRows -= plants.length
    await new Promise(setImmediate)
  }
}

/** @returns a function that reads the next step, and returns undefined at the end */
function createReaderById({ prepare }: Connection, query: ReadQuery) {
  const { desc = false } = query
  const { where, values, matches } = buildFilter(query)
  const order = `ORDER BY id ${desc ? 'DESC' : 'ASC'}`
  const select = `SELECT id, name, tag ${fromIdRange} AND ${where} ${order}`
  const ranges = new IdRanges(prepare, query, { rows: stepRows, bytes: stepBytes })

  return (remainingRows: number): StoredPlant[] | undefined => {
    const range = ranges.find(where === everyPlantCondition ? remainingRows : stepRows)
    if (!range) return undefined
    const plants = prepare(select)
      .all(...range, ...values)
      .map(toPlant)
    // A statement may find the store locked, and this function is then called again. So the range
    // advances only when all statements have succeeded.
    ranges.advance(range)
    return plants.filter(matches)
  }
}

/**
 * All steps read the rows of one statement, so they are consistent only within a transaction.
 *
 * @returns a function that reads the next step, and returns undefined at the end
 */
function createReaderByField({ prepare }: Connection, sort: 'name' | 'tag', query: ReadQuery) {
  const { after, limit, desc, search } = query
  const { where, values, matches } = buildFilter(query)
  const direction = desc ? 'DESC' : 'ASC'
  // With a LIMIT, even a large one, SQLite sorts by a b-tree instead of a merge, in twice the time.
  const select = `SELECT id, name, tag FROM plants
    WHERE ${where} ${after === undefined ? '' : `AND id > ${after}`}
    ORDER BY ${sort} IS NULL, ${buildFoldedSortKey(sort)} ${direction}, ${sort} ${direction}, id
    ${limit === undefined || search !== undefined ? '' : `LIMIT ${limit}`}`
  let rows: Iterator<unknown[]> | undefined
  return (): StoredPlant[] | undefined => {
    // SQLite may fail to prepare this. Within a step, the caller explains the error.
    rows ??= prepare(select).iterate(...values)
    const plants: StoredPlant[] = []
    for (let length = 0; plants.length < stepRows && length < stepBytes; ) {
      const { value, done } = rows.next()
      if (done) break
      const plant = toPlant(value)
      plants.push(plant)
      length += measureFieldLength(plant)
    }
    return plants.length > 0 ? plants.filter(matches) : undefined
  }
}

/** A count reads less of each plant than a list does, so its steps can have more plants. */
const countStep = { rows: 10_000, bytes: 1_048_576 }

export async function countPlants(connection: Connection, query: CountQuery = {}): Promise<bigint> {
  if (query.search !== undefined) return countMatches(connection, query)
  if (query.inSteps) return countInSteps(connection, query)
  const { where, values } = buildFilter(query)
  const select = `SELECT count(*) FROM plants WHERE ${where}`
  const [count] = await connection.retryWhileLocked(() => connection.prepare(select).get(...values))
  return count
}

/** JavaScript decides which plants a search finds, so the plants are read as for a list. */
async function countMatches(connection: Connection, query: CountQuery): Promise<bigint> {
  let count = 0n
  for await (const plants of readPlants(connection, query)) count += BigInt(plants.length)
  return count
}

async function countInSteps(connection: Connection, query: CountQuery): Promise<bigint> {
  const { where, values } = buildFilter(query)
  const select = `SELECT count(*) ${fromIdRange} AND ${where}`
  let count = 0n
  await forEachRange(connection, query, (range) => {
    const [countOfRange]: [bigint] = connection.prepare(select).get(...range, ...values)
    return () => {
      count += countOfRange
    }
  })
  return count
}

export async function countByField(
  connection: Connection,
  field: StringFieldName,
  query: CountQuery,
): Promise<FieldCounts> {
  const counts: FieldCounts = new Map()
  if (query.search !== undefined) {
    for await (const plants of readPlants(connection, query))
      for (const { [field]: text } of plants) addCount(counts, text, 1n)
    return counts
  }
  const { where, values } = buildFilter(query)
  const select = `SELECT ${field}, count(*) ${fromIdRange} AND ${where} GROUP BY ${field}`
  await forEachRange(connection, query, (range) => {
    const rows: [unknown, bigint][] = connection.prepare(select).all(...range, ...values)
    return () => {
      for (const [text, count] of rows) addCount(counts, toFieldValue(field, text), count)
    }
  })
  return counts
}

/**
 * @param readRange may find the store locked, and is then called again. So it must not change
 *   anything. It returns a function that adds its result, and this function is called once.
 */
async function forEachRange(
  connection: Connection,
  { signal }: CountQuery,
  readRange: (range: IdRange) => () => void,
): Promise<void> {
  const ranges = new IdRanges(connection.prepare, {}, countStep)
  const readNext = () => {
    const range = ranges.find(countStep.rows)
    return range && { range, addResult: readRange(range) }
  }
  for (;;) {
    signal?.throwIfAborted()
    const step = await connection.retryWhileLocked(readNext)
    if (!step) return
    step.addResult()
    ranges.advance(step.range)
    await new Promise(setImmediate)
  }
}

/** @throws {StoreDamageError} for a type that only another program can have written */
function toFieldValue(field: StringFieldName, value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (value === null && field === 'tag') return undefined
  throw new StoreDamageError(`a ${field} has a value of another type`)
}
