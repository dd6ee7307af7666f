import { plantColumns, textFields } from '../../plant/fields.js'
import { type NewPlant, textLength } from '../../plant/plant.js'
import type { CountQuery, ListQuery } from '../store.js'
import type { Connection } from './connection.js'
import { BadRowError } from './errors.js'
import { largestId, smallestId, toPlant } from './schema.js'

/** What a query selects plants by, besides their ids: SQL that follows another condition, and the values of its parameters. */
export function filterOf({ tag, search }: CountQuery) {
  const contains = textFields.map(({ name }) => `instr(lower(${name}), lower(?))`) // of ASCII alone
  return {
    sql: `${tag === undefined ? '' : 'AND tag = ?'} ${search === undefined ? '' : `AND (${contains.join(' OR ')})`}`.trim(),
    values: [tag ?? [], search === undefined ? [] : contains.map(() => search)].flat(),
  }
}

export function countSelected(connection: Connection, query: CountQuery): bigint {
  const { sql, values } = filterOf(query)
  const statement = `SELECT count(*) AS count FROM plants ${sql.replace(/^AND/, 'WHERE')}`
  return (connection.prepare(statement).get(...values) as { count: bigint }).count // a count gives one row
}

interface IdRange {
  first: bigint
  last: bigint
}

/** Reads the first plants that a query selects after an id, at most so many; none at the end. */
export async function readPage(connection: Connection, query: ListQuery, after: bigint | undefined, rows: number): Promise<NewPlant[]> {
  const { sql, values } = filterOf(query)
  const statement = `SELECT ${plantColumns} FROM plants WHERE id BETWEEN ? AND ? ${sql} ORDER BY id LIMIT ?`
  for (let range = await findRange(connection, query, after); range; range = await findRange(connection, query, range.last)) {
    const { first, last } = range
    const page = await connection.run(() => readPlants(connection.prepare(statement).iterate(first, last, ...values, rows), first))
    if (page.length > 0) return page // else what was found there was deleted meanwhile
  }
  return []
}

function readPlants(rows: Iterable<unknown>, first: bigint): NewPlant[] {
  const page: NewPlant[] = []
  let characters = 0
  let smallest = first
  for (const row of rows) {
    const plant = toPlant(row)
    if (plant.id < smallest) throw new BadRowError(`the plant ${plant.id} comes after ${smallest - 1n}`)
    smallest = plant.id + 1n
    page.push(plant)
    characters += textLength(plant)
    if (characters >= pageCharacters) break
  }
  return page
}

/** of a page, about */
const pageCharacters = 1_000_000

/**
 * Finds ids after one, among which there is a plant that a query selects: all of them where it selects by ids alone, else those of some rows.
 * Others get a turn after each such step, however few plants are selected.
 *
 * @returns undefined when there is none
 */
export async function findRange(connection: Connection, query: ListQuery, after: bigint | undefined): Promise<IdRange | undefined> {
  const { sql, values } = filterOf(query)
  let first = after === undefined ? smallestId : after + 1n
  while (first <= largestId) {
    if (sql === '') return { first, last: largestId }
    const step = await connection.run(() => {
      const row = connection.prepare(`SELECT id FROM plants WHERE id >= ? ORDER BY id LIMIT 1 OFFSET ${rowsAtOnce - 1}`).get(first)
      const last = (row as { id: bigint } | undefined)?.id ?? largestId // a row id
      if (last < first) throw new BadRowError(`the plant ${last} comes after ${first - 1n}`)
      const found = connection.prepare(`SELECT 1 FROM plants WHERE id BETWEEN ? AND ? ${sql} LIMIT 1`).get(first, last, ...values)
      return { first, last, isFound: found !== undefined }
    })
    if (step.isFound) return step
    first = step.last + 1n
    await new Promise(setImmediate)
    query.signal?.throwIfAborted()
  }
  return undefined
}

/** rows that are searched at once, each of which may hold some MiB */
const rowsAtOnce = 256
