/**
 * The statements of a store. PostgreSQL takes several statements in one message only without parameters, and what a
 * statement depends on must be in its own message (see `pin`), so values are literals.
 */
import { type NewPlant, newPlant } from '../../plant/plant.js'
import { markedLetter, type Sought, soughtText } from '../common/search.js'
import { type ReadQuery, type Right, rights } from '../common/store.js'

export type Row = (string | null)[]

export const schemaName = 'plant_store'

export const plants = `${schemaName}.plants`
export const tokens = `${schemaName}.tokens`
export const imports = `${schemaName}.imports`
export const versions = `${schemaName}.schema_version`

/**
 * For the transaction of a message: behind PgBouncer, the next one may go to another session. Only built-in functions
 * and operators are found (https://www.postgresql.org/docs/current/ddl-schemas.html#DDL-SCHEMAS-PATTERNS), and a commit
 * returns when it is on disk.
 *
 * @param timeout milliseconds for each statement; 0 for none
 */
export function pin(timeout: number): string[] {
  return [
    'SET LOCAL search_path = pg_catalog, pg_temp',
    'SET LOCAL synchronous_commit = on',
    `SET LOCAL statement_timeout = ${Math.ceil(timeout)}`,
  ]
}

/** The type of an id is explicit, since PostgreSQL takes a large one for a numeric. */
export function literal(value: bigint | number | string | null | undefined): string {
  if (value === null || value === undefined) return 'NULL'
  if (typeof value !== 'string') return `'${value}'::bigint`
  if (value.includes('\0')) throw new RangeError('U+0000 would end the message') // no plant has it
  return `E'${value.replace(/['\\]/g, '$&$&')}'`
}

/** Of VALUES. */
function rowOf(...values: Parameters<typeof literal>[0][]): string {
  return `(${values.map(literal).join()})`
}

function idsOf(ids: readonly bigint[]): string {
  return `'{${ids.join()}}'::bigint[]`
}

const columns = 'id, name, tag'

export interface KeyedPlant {
  plant: NewPlant
  key?: string | undefined
}

/**
 * Creates the plants whose id and key are free, and returns their ids.
 *
 * @param created in ascending order of id, as all writers send them, which prevents deadlocks
 */
export function insertStatement(created: KeyedPlant[]): string {
  const rows = created.map(({ plant: { id, name, tag }, key }) => rowOf(id, name, tag, key))
  return `INSERT INTO ${plants} (${columns}, idempotency_key) VALUES ${rows.join()} ON CONFLICT DO NOTHING RETURNING id`
}

/** Returns the columns of each plant, and its key. */
export function findStatement(ids: bigint[], keys: string[]): string {
  const hasKey = keys.length === 0 ? '' : ` OR idempotency_key IN ${rowOf(...keys)}`
  return `SELECT ${columns}, idempotency_key FROM ${plants} WHERE id = ANY (${idsOf(ids)})${hasKey}`
}

export const copyStatement = `COPY ${plants} (${columns}, idempotency_key) FROM STDIN (FORMAT csv)`

/** A row for `copyStatement`, in PostgreSQL's CSV, where NULL is an empty cell without quotes. */
export function copyLine({ plant: { id, name, tag }, key }: KeyedPlant): string {
  return `${id},${copyCell(name)},${copyCell(tag)},${copyCell(key)}\n`
}

function copyCell(text: string | undefined): string {
  return text === undefined ? '' : `"${text.includes('"') ? text.replaceAll('"', '""') : text}"`
}

export function getStatement(ids: readonly bigint[]): string {
  return `SELECT ${columns} FROM ${plants} WHERE id = ANY (${idsOf(ids)})`
}

/** Limits a page by rows and by bytes of text, but to at least one row. */
export function pageStatement(query: ReadQuery, rows: number): string {
  const order = orderOf(query)
  const size = 'octet_length(name) + coalesce(octet_length(tag), 0)'
  const page = `SELECT ${columns}, ${size} AS size FROM ${plants} ${where(query)} ORDER BY ${order} LIMIT ${rows}`
  const sums = `SELECT *, sum(size) OVER (ORDER BY ${order} ROWS UNBOUNDED PRECEDING) AS bytes FROM (${page}) AS page`
  return `SELECT ${columns} FROM (${sums}) AS sums WHERE bytes <= ${pageBytes} OR bytes = size ORDER BY ${order}`
}

const pageBytes = 1_000_000

export function listStatement(query: ReadQuery): string {
  const limit = query.limit === undefined ? '' : `LIMIT ${query.limit}`
  return `SELECT ${columns} FROM ${plants} ${where(query)} ORDER BY ${orderOf(query)} ${limit}`
}

/** With the collation "C", only the letters A to Z have another case. */
function orderOf({ sort = 'id', desc }: ReadQuery): string {
  const direction = desc ? 'DESC' : 'ASC'
  return sort === 'id' ? `id ${direction}` : `${sort} IS NULL, lower(${sort} COLLATE "C") ${direction}, id`
}

export function where({ after, tag, search, sort = 'id', desc }: ReadQuery): string {
  const conditions: string[] = []
  if (after !== undefined) conditions.push(`id ${desc && sort === 'id' ? '<' : '>'} ${literal(after)}`)
  if (tag === false) conditions.push('tag IS NULL')
  else if (tag !== undefined) conditions.push(`tag = ${literal(tag)}`)
  if (search !== undefined) {
    const sought = soughtText(search)
    conditions.push(`(${contains('name', sought)} OR ${contains('tag', sought)})`)
  }
  return conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
}

/** As `contains` of the search does, with a short way for ASCII. */
function contains(column: string, { folded, translations }: Sought): string {
  const text = `normalize(regexp_replace(normalize(${column}, NFD), ${literal(markedLetter)}, ${literal('\\1')}, 'g'), NFC)`
  const [from, to] = [[...translations.keys()].join(''), [...translations.values()].join('')].map(literal)
  const isAscii = `octet_length(${column}) = char_length(${column})`
  const whole = `CASE WHEN ${isAscii} THEN lower(${column} COLLATE "C") ELSE translate(${text}, ${from}, ${to}) END`
  return `strpos(${whole}, ${literal(folded)}) > 0`
}

export interface Replacement {
  /** as it must still be stored */
  before: NewPlant
  after: NewPlant
}

/** Returns the id of each plant that was still as it should be, as `deleteStatement` does. */
export function updateStatement(replacements: Replacement[]): string {
  const rows = replacements.map(({ before, after }) => rowOf(before.id, before.name, before.tag, after.name, after.tag))
  return `UPDATE ${plants} AS plant SET name = new_name, tag = new_tag, idempotency_key = NULL
    FROM (VALUES ${rows.join()}) AS old (${columns}, new_name, new_tag) WHERE ${isOld} RETURNING plant.id`
}

export function deleteStatement(deleted: NewPlant[]): string {
  const rows = deleted.map(({ id, name, tag }) => rowOf(id, name, tag))
  return `DELETE FROM ${plants} AS plant USING (VALUES ${rows.join()}) AS old (${columns})
    WHERE ${isOld} RETURNING plant.id`
}

const isOld = 'plant.id = old.id AND plant.name = old.name AND plant.tag IS NOT DISTINCT FROM old.tag'

const hasRights = rights.map((right) => `has_table_privilege('${plants}', '${privilege(right)}')`)

export const rightsStatement = `SELECT ${hasRights.join()}`

/** @param rows of `rightsStatement` */
export function toRights([row = []]: Row[]): Right[] {
  return rights.filter((_, index) => row[index] === 't')
}

function privilege(right: Right): string {
  return { create: 'INSERT', read: 'SELECT', update: 'UPDATE', delete: 'DELETE' }[right]
}

/** The condition that these plants are stored like this, and those that were deleted are not. */
export function areStored(stored: readonly KeyedPlant[], deleted: readonly NewPlant[]): string {
  const ids = stored.map(({ plant: { id } }) => id)
  const isThere = new Set(ids)
  const gone = deleted.map(({ id }) => id).filter((id) => !isThere.has(id))
  const isGone = `NOT EXISTS (SELECT FROM ${plants} WHERE id = ANY (${idsOf(gone)}))`
  if (stored.length === 0) return isGone
  const rows = stored.map(({ plant: { id, name, tag }, key }) => rowOf(id, name, tag, key))
  const found = `SELECT ${columns}, idempotency_key FROM ${plants} WHERE id = ANY (${idsOf(ids)})`
  return `${isGone} AND NOT EXISTS (VALUES ${rows.join()} EXCEPT ${found})`
}

/** Without a state, the checkpoint is removed. */
export function checkpointStatement(id: string, state: string | undefined): string {
  if (state === undefined) return `DELETE FROM ${imports} WHERE id = ${literal(id)}`
  return `INSERT INTO ${imports} (id, state) VALUES ${rowOf(id, state)}
    ON CONFLICT (id) DO UPDATE SET state = excluded.state`
}

export function toPlant([id, name, tag]: Row): NewPlant {
  if (typeof name !== 'string') throw new TypeError('A plant has no name')
  return newPlant(toBigInt(id), name, tag)
}

export function toBigInt(cell: string | null | undefined): bigint {
  if (typeof cell !== 'string') throw new TypeError('A number is missing')
  return BigInt(cell)
}
