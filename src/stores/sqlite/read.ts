/**
 * Reads plants, and counts them.
 *
 * SQLite runs in this thread, so a long statement would block a service. Lists are therefore read
 * in steps, between which the event loop runs. A step has at most 1000 rows and 256 KiB, or one
 * larger plant. The last id of a step must be known before the step is read, because `all` takes
 * 0.6 of the time of an iterator that stops at a limit. So a first statement adds up the sizes of
 * the next rows, and finds the last id of the step (`IdRanges`).
 */

import { largestId, type StringFieldName, smallestId } from '../../plant/fields.js'
import { foldString, listNormalForms } from '../../plant/folding.js'
import { buildPlant, measureFieldLength, type StoredPlant } from '../../plant/plant.js'
import { addCount, type CountQuery, type FieldCounts, type ReadQuery } from '../query.js'
import { type Connection, foldFunction } from './connection.js'
import { StoreDamageError } from './explain.js'

/** A range has at most so many rows and bytes. A plant with more bytes is a range of its own. */
const readStep = { rows: 1000, bytes: 262_144 }

/** @throws {StoreDamageError} for a type that only another program can have written */
export function toPlant([id, name, tag]: unknown[]): StoredPlant {
  const isTag = tag === null || typeof tag === 'string'
  if (typeof id !== 'bigint' || typeof name !== 'string' || !isTag)
    throw new StoreDamageError(`plant ${id} has a value of another type`)
  return buildPlant(id, name, tag)
}

export async function* readPlants(connection: Connection, query: ReadQuery) {
  const { sort = 'id', limit = Infinity, signal } = query
  const readNext =
    sort === 'id'
      ? createReaderById(connection, query)
      : createReaderByField(connection, sort, query)
  for (let remainingRows = limit; remainingRows > 0; ) {
    signal?.throwIfAborted()
    const step = await connection.retryWhileLocked(() => readNext(remainingRows))
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
  const { where, values } = buildFilter(query)
  const order = `ORDER BY id ${desc ? 'DESC' : 'ASC'}`
  const select = `SELECT id, name, tag ${fromIdRange} AND ${where} ${order}`
  const ranges = new IdRanges(prepare, query, readStep)

  return (remainingRows: number): StoredPlant[] | undefined => {
    const range = ranges.find(where === everyPlantCondition ? remainingRows : readStep.rows)
    if (!range) return undefined
    const rows = prepare(select).all(...range, ...values)
    // A statement may find the store locked, and this function is then called again. So the range
    // advances only when all statements have succeeded.
    ranges.advance(range)
    return rows.map(toPlant)
  }
}

/**
 * All steps read the rows of one statement, so they are consistent only within a transaction.
 *
 * @returns a function that reads the next step, and returns undefined at the end
 */
function createReaderByField({ prepare }: Connection, sort: 'name' | 'tag', query: ReadQuery) {
  const { after, limit, desc } = query
  const { where, values } = buildFilter(query)
  const direction = desc ? 'DESC' : 'ASC'
  // With a LIMIT, even a large one, SQLite sorts by a b-tree instead of a merge, in twice the time.
  const select = `SELECT id, name, tag FROM plants
    WHERE ${where} ${after === undefined ? '' : 'AND id > ?'}
    ORDER BY ${sort} IS NULL, ${buildFolding(sort)} ${direction}, ${sort} ${direction}, id
    ${limit === undefined ? '' : 'LIMIT ?'}`
  const parameters = [...values, after, limit].filter((value) => value !== undefined)
  let rows: Iterator<unknown[]> | undefined
  return (): StoredPlant[] | undefined => {
    // SQLite may fail to prepare this. Within a step, the caller explains the error.
    rows ??= prepare(select).iterate(...parameters)
    const plants: StoredPlant[] = []
    for (let length = 0; plants.length < readStep.rows && length < readStep.bytes; ) {
      const { value, done } = rows.next()
      if (done) break
      const plant = toPlant(value)
      plants.push(plant)
      length += measureFieldLength(plant)
    }
    return plants.length > 0 ? plants : undefined
  }
}

/** A count without a search reads less of each plant than a list, so its steps can be larger. */
const countStep = { rows: 10_000, bytes: 1_048_576 }

export async function countPlants(connection: Connection, query: CountQuery = {}): Promise<bigint> {
  if (query.inSteps || query.search !== undefined) return countInSteps(connection, query)
  const { where, values } = buildFilter(query)
  const select = `SELECT count(*) FROM plants WHERE ${where}`
  const [count] = await connection.retryWhileLocked(() => connection.prepare(select).get(...values))
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
  { signal, search }: CountQuery,
  readRange: (range: IdRange) => () => void,
): Promise<void> {
  const step = search === undefined ? countStep : readStep
  const ranges = new IdRanges(connection.prepare, {}, step)
  const readNext = () => {
    const range = ranges.find(step.rows)
    return range && { range, addResult: readRange(range) }
  }
  for (;;) {
    signal?.throwIfAborted()
    const counted = await connection.retryWhileLocked(readNext)
    if (!counted) return
    counted.addResult()
    ranges.advance(counted.range)
    await new Promise(setImmediate)
  }
}

/** @throws {StoreDamageError} for a type that only another program can have written */
function toFieldValue(field: StringFieldName, value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (value === null && field === 'tag') return undefined
  throw new StoreDamageError(`a ${field} has a value of another type`)
}

/**
 * Builds the condition under which a plant is selected, and the values of its parameters. The text
 * has no values in it, so a service prepares few statements, whatever its clients search for.
 */
function buildFilter({ tag, search }: CountQuery): { where: string; values: string[] } {
  const conditions: string[] = []
  const values: string[] = []
  if (tag === false) conditions.push('tag IS NULL')
  else if (tag !== undefined) {
    const forms = listNormalForms(tag)
    conditions.push(`tag IN (${forms.map(() => '?')})`)
    values.push(...forms)
  }
  if (search !== undefined) {
    const tests = ['name', 'tag'].map((column) => `instr(${buildFolding(column)}, ?)`)
    conditions.push(`(${tests.join(' OR ')})`)
    const foldedSearch = foldString(search)
    values.push(foldedSearch, foldedSearch)
  }
  return { where: conditions.join(' AND ') || everyPlantCondition, values }
}

/** The SQL of a condition that every plant meets. */
const everyPlantCondition = 'true'

/**
 * Builds SQL that folds a field as `foldString` does. It calls `foldString` only for a field with
 * characters beyond ASCII, which takes six times as long. To compare the numbers of bytes and
 * characters takes less time than to examine each character.
 */
function buildFolding(column: string): string {
  const isAscii = `octet_length(${column}) = length(${column})`
  return `CASE WHEN ${isAscii} THEN lower(${column}) ELSE ${foldFunction}(${column}) END`
}

const fromIdRange = 'FROM plants WHERE id BETWEEN ? AND ?'

type IdRange = [first: bigint, last: bigint]

/**
 * Divides the ids of a store into ranges, so that a long read has several steps. Each step reads
 * the plants of one range.
 */
class IdRanges {
  readonly #isDescending: boolean
  readonly #selectSum: string
  #rows: number
  #first: bigint
  #last: bigint

  constructor(
    private readonly prepare: Connection['prepare'],
    { after, desc = false }: Pick<ReadQuery, 'after' | 'desc'>,
    private readonly step: typeof readStep,
  ) {
    const bytes = 'octet_length(name) + ifnull(octet_length(tag), 0) AS bytes'
    const [end, order] = desc ? ['min', 'DESC'] : ['max', 'ASC']
    const rows = `SELECT id, ${bytes} ${fromIdRange} ORDER BY id ${order} LIMIT ?`
    this.#isDescending = desc
    this.#selectSum = `SELECT ${end}(id), sum(bytes) FROM (${rows})`
    this.#rows = this.step.rows
    this.#first = after === undefined || desc ? smallestId : after + 1n
    this.#last = after === undefined || !desc ? largestId : after - 1n
  }

  /**
   * @param neededRows the range needs no more plants than this
   * @returns the next range; undefined at the end
   */
  find(neededRows: number): IdRange | undefined {
    const end = this.#findRangeEnd(neededRows)
    if (end === undefined) return undefined
    return this.#isDescending ? [end, this.#last] : [this.#first, end]
  }

  /** Call this when the plants of a range were read. Before that, `find` returns the same range. */
  advance([first, last]: IdRange): void {
    if (this.#isDescending) this.#last = first - 1n
    else this.#first = last + 1n
  }

  /**
   * Returns the last id of the next range. It begins with a quarter more rows than the previous
   * range had, and halves their number until their bytes fit.
   */
  #findRangeEnd(neededRows: number): bigint | undefined {
    this.#rows = Math.min(neededRows, this.step.rows, Math.ceil(this.#rows * 1.25))
    while (this.#first <= this.#last) {
      const sum = this.prepare(this.#selectSum)
      const [end, size]: (bigint | null)[] = sum.get(this.#first, this.#last, this.#rows)
      if (end == null) return undefined
      // In a corrupt tree, a page can lead back to an earlier page, and the loop would never end.
      if (end < this.#first || end > this.#last)
        throw new StoreDamageError(`the id ${end} is out of order`)
      if (this.#rows === 1 || Number(size) <= this.step.bytes) return end
      this.#rows = Math.ceil(this.#rows / 2)
    }
    return undefined
  }
}
