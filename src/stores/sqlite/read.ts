/**
 * Lists come in steps, between which the event loop turns: at most 1000 rows and 256 KiB of text,
 * or one larger plant. Before each, SQLite adds up the sizes of the rows. To iterate until there is
 * enough takes 1.6 times as long as `all`.
 *
 * Search and sort compare texts as `foldText` makes them, which is SQLite's `lower` for ASCII. What
 * else a search may find is decided here: a function that SQLite calls for each text takes twice
 * the time. docs/design/search.md says what else was tried.
 */

import { largestId, smallestId, type TextName } from '../../plant/fields.js'
import { foldText, listNormalForms } from '../../plant/folding.js'
import { buildPlant, measureFields, type StoredPlant } from '../../plant/plant.js'
import { addCount, type CountQuery, type ReadQuery, type TextCounts } from '../query.js'
import { type Connection, foldFunction } from './connection.js'
import { StoreDamageError } from './errors.js'

const stepRows = 1000
const stepBytes = 262_144

/** Another program may have written anything into it. */
export function toPlant([id, name, tag]: unknown[]): StoredPlant {
  const isTag = tag === null || typeof tag === 'string'
  if (typeof id !== 'bigint' || typeof name !== 'string' || !isTag)
    throw new StoreDamageError(`plant ${id} has a value of another type`)
  return buildPlant(id, name, tag)
}

export async function* readPlants(connection: Connection, query: ReadQuery) {
  const { sort = 'id', limit = Infinity, signal } = query
  const nextStep =
    sort === 'id' ? stepsById(connection, query) : stepsByText(connection, sort, query)
  for (let left = limit; left > 0; ) {
    signal?.throwIfAborted()
    const plants = (await connection.retry(() => nextStep(left)))?.slice(0, left)
    if (!plants) return
    if (plants.length > 0) yield plants
    left -= plants.length
    await new Promise(setImmediate)
  }
}

function stepsById({ prepare }: Connection, query: ReadQuery) {
  const { desc = false } = query
  const { where, values, matches } = buildFilter(query)
  const order = `ORDER BY id ${desc ? 'DESC' : 'ASC'}`
  const select = `SELECT id, name, tag ${ofRange} AND ${where} ${order}`
  const ranges = new IdRanges(prepare, query, { rows: stepRows, bytes: stepBytes })

  return (left: number): StoredPlant[] | undefined => {
    const range = ranges.find(where === everything ? left : stepRows)
    if (!range) return undefined
    const plants = prepare(select)
      .all(...range, ...values)
      .map(toPlant)
    // After all that may find the store in use, and is then called again.
    ranges.advance(range)
    return plants.filter(matches)
  }
}

const ofRange = 'FROM plants WHERE id BETWEEN ? AND ?'

type IdRange = [first: bigint, last: bigint]

/** Cuts the ids of a store into ranges whose plants are read in one step. */
class IdRanges {
  readonly #prepare: Connection['prepare']
  readonly #isDescending: boolean
  readonly #sum: string
  readonly #maxRows: number
  readonly #maxBytes: number
  #rows: number
  #first: bigint
  #last: bigint

  /** @param step what the plants of a range are at most, unless it has only one */
  constructor(
    prepare: Connection['prepare'],
    { after, desc = false }: Pick<ReadQuery, 'after' | 'desc'>,
    step: { rows: number; bytes: number },
  ) {
    const bytes = 'octet_length(name) + ifnull(octet_length(tag), 0) AS bytes'
    const [end, order] = desc ? ['min', 'DESC'] : ['max', 'ASC']
    const rows = `SELECT id, ${bytes} ${ofRange} ORDER BY id ${order} LIMIT ?`
    this.#prepare = prepare
    this.#isDescending = desc
    this.#sum = `SELECT ${end}(id), sum(bytes) FROM (${rows})`
    this.#maxRows = step.rows
    this.#maxBytes = step.bytes
    this.#rows = step.rows
    this.#first = after === undefined || desc ? smallestId : after + 1n
    this.#last = after === undefined || !desc ? largestId : after - 1n
  }

  /**
   * @param left how many plants are still wanted
   * @returns undefined at the end
   */
  find(left: number): IdRange | undefined {
    const end = this.#findEnd(left)
    if (end === undefined) return undefined
    return this.#isDescending ? [end, this.#last] : [this.#first, end]
  }

  /** Call it when the plants of a range were read. */
  advance([first, last]: IdRange): void {
    if (this.#isDescending) this.#last = first - 1n
    else this.#first = last + 1n
  }

  #findEnd(left: number): bigint | undefined {
    // a few more than fitted
    this.#rows = Math.min(left, this.#maxRows, Math.ceil(this.#rows * 1.25))
    while (this.#first <= this.#last) {
      const sum = this.#prepare(this.#sum)
      const [end, size]: (bigint | null)[] = sum.get(this.#first, this.#last, this.#rows)
      if (end == null) return undefined
      // A corrupt tree can lead back to one of its pages, without end.
      if (end < this.#first || end > this.#last)
        throw new StoreDamageError(`the id ${end} is out of order`)
      if (this.#rows === 1 || Number(size) <= this.#maxBytes) return end
      this.#rows = Math.ceil(this.#rows / 2)
    }
    return undefined
  }
}

/** Of one statement: a transaction must hold its moment. */
function stepsByText({ prepare }: Connection, sort: 'name' | 'tag', query: ReadQuery) {
  const { after, limit, desc, search } = query
  const { where, values, matches } = buildFilter(query)
  const direction = desc ? 'DESC' : 'ASC'
  // With any LIMIT, SQLite sorts into a b-tree, in twice the time.
  const select = `SELECT id, name, tag FROM plants
    WHERE ${where} ${after === undefined ? '' : `AND id > ${after}`}
    ORDER BY ${sort} IS NULL, ${buildFoldedText(sort)} ${direction}, ${sort} ${direction}, id
    ${limit === undefined || search !== undefined ? '' : `LIMIT ${limit}`}`
  let rows: Iterator<unknown[]> | undefined
  return (): StoredPlant[] | undefined => {
    // It is prepared in a step because SQLite may fail at that, which the caller explains.
    rows ??= prepare(select).iterate(...values)
    const plants: StoredPlant[] = []
    for (let length = 0; plants.length < stepRows && length < stepBytes; ) {
      const { value, done } = rows.next()
      if (done) break
      const plant = toPlant(value)
      plants.push(plant)
      length += measureFields(plant)
    }
    return plants.length > 0 ? plants.filter(matches) : undefined
  }
}

/** A count reads less of a plant than a list does, so that its steps have more plants. */
const countStep = { rows: 10_000, bytes: 1_048_576 }

export async function countPlants(connection: Connection, query: CountQuery = {}): Promise<bigint> {
  if (query.search !== undefined) return countMatches(connection, query)
  if (query.inSteps) return countInSteps(connection, query)
  const { where, values } = buildFilter(query)
  const select = `SELECT count(*) FROM plants WHERE ${where}`
  const [count] = await connection.retry(() => connection.prepare(select).get(...values))
  return count
}

/** Decides here what a search finds, as a list does. */
async function countMatches(connection: Connection, query: CountQuery): Promise<bigint> {
  let count = 0n
  for await (const plants of readPlants(connection, query)) count += BigInt(plants.length)
  return count
}

async function countInSteps(connection: Connection, query: CountQuery): Promise<bigint> {
  const { where, values } = buildFilter(query)
  const select = `SELECT count(*) ${ofRange} AND ${where}`
  let count = 0n
  await forEachRange(connection, query, (range) => {
    const [found]: [bigint] = connection.prepare(select).get(...range, ...values)
    return () => {
      count += found
    }
  })
  return count
}

export async function countTexts(
  connection: Connection,
  field: TextName,
  query: CountQuery,
): Promise<TextCounts> {
  const counts: TextCounts = new Map()
  if (query.search !== undefined) {
    for await (const plants of readPlants(connection, query))
      for (const { [field]: text } of plants) addCount(counts, text, 1n)
    return counts
  }
  const { where, values } = buildFilter(query)
  const select = `SELECT ${field}, count(*) ${ofRange} AND ${where} GROUP BY ${field}`
  await forEachRange(connection, query, (range) => {
    const rows: [unknown, bigint][] = connection.prepare(select).all(...range, ...values)
    return () => {
      for (const [text, count] of rows) addCount(counts, toText(field, text), count)
    }
  })
  return counts
}

/** @param readRange may find the store in use, and is then called again; what it returns is not */
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
    const step = await connection.retry(readNext)
    if (!step) return
    step.addResult()
    ranges.advance(step.range)
    await new Promise(setImmediate)
  }
}

/** Another program may have written anything into it. */
function toText(field: TextName, value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (value === null && field === 'tag') return undefined
  throw new StoreDamageError(`a ${field} has a value of another type`)
}

/** A plant matches that `where` finds, and `matches`. */
function buildFilter({ tag, search }: CountQuery) {
  const conditions: string[] = []
  const values: string[] = []
  if (tag === false) conditions.push('tag IS NULL')
  else if (tag !== undefined) {
    const forms = listNormalForms(tag)
    conditions.push(`tag IN (${forms.map(() => '?')})`)
    values.push(...forms)
  }
  const folded = foldText(search ?? '')
  if (search !== undefined) {
    conditions.push(`(${mayContain('name')} OR ${mayContain('tag')})`)
    values.push(folded, folded)
  }
  const matches = ({ name, tag = '' }: StoredPlant) =>
    search === undefined || [name, tag].some((text) => foldText(text).includes(folded))
  return { where: conditions.join(' AND ') || everything, values, matches }
}

const everything = 'true'

/** The SQL of `foldText`. */
function buildFoldedText(column: string): string {
  return `CASE WHEN ${isNotAscii(column)} THEN ${foldFunction}(${column}) ELSE lower(${column}) END`
}

function mayContain(column: string): string {
  return `CASE WHEN ${isNotAscii(column)} THEN true ELSE instr(lower(${column}), ?) END`
}

/** False for NULL. Bytes and characters are counted sooner than looked at. */
function isNotAscii(column: string): string {
  return `octet_length(${column}) <> length(${column})`
}
