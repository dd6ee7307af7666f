/**
 * The statements of a store, their values as parameters. Whatever they call has its full name, operators too, so that no search_path can lead
 * to something that somebody else has made (https://www.postgresql.org/docs/current/ddl-schemas.html#DDL-SCHEMAS-PATTERNS).
 */
import { randomBytes } from 'node:crypto'
import type { QueryConfig } from 'pg'
import { type NewPlant, plantColumns, textFields } from '../../plant/fields.js'
import { plantFrom } from '../../plant/plant.js'
import { type Checkpoint, type CountQuery, type ListQuery, type Right, rights } from '../store.js'

/** The text of each column of a row. */
export type Row = (string | null)[]

/** The schema of the tables of a store. */
export const schemaName = 'plant_store'

export const plants = `${schemaName}.plants`
export const tokens = `${schemaName}.tokens`
export const imports = `${schemaName}.imports`
export const versions = `${schemaName}.schema_version`

/**
 * Statements without parameters, in one transaction that PostgreSQL's own functions and operators alone are found in: the rows of the last
 * one count.
 */
export function pinned(text: string): QueryConfig {
  return { text: `${pin}; ${text}` }
}

const pin = 'SET LOCAL search_path = pg_catalog, pg_temp'

/** Begins a transaction as `pinned` does. */
export function begin(mode = ''): QueryConfig {
  return { text: `BEGIN ${mode}; ${pin}` }
}

const textNames = textFields.map(({ name }) => name)
const textColumns = textNames.join(', ')
const noTexts = textNames.map(() => 'NULL').join(', ')

const eq = 'OPERATOR(pg_catalog.=)'
const text = 'pg_catalog.text'

/** Whether a commit is on disk when it is answered; it can change while a connection lasts. */
const isDurable = ['synchronous_commit', 'fsync']
  .map((name) => `pg_catalog.current_setting('${name}') OPERATOR(pg_catalog.<>) 'off'`)
  .join(' AND ')

/** Fails with a division by zero where the commit after it would be answered before it is on disk. */
export const durabilityCheck = `SELECT 1 OPERATOR(pg_catalog./) CASE WHEN ${isDurable} THEN 1 ELSE 0 END`

/** A plant on its way into the table, with the key that it was given. */
export interface Entry {
  plant: NewPlant
  key: string | undefined
}

/**
 * Creates those of the plants whose id and key are free, and gives their ids. Of several with the same id the first wins. Nothing
 * is created where a commit would be answered before it is on disk, unless that is allowed.
 *
 * @param entries in the order of their ids, in which all writers take them, so that none waits for another in a circle
 * @param writeId marks the rows, so that a commit whose answer was lost can be recognised
 */
export function insertStatement(entries: Entry[], writeId: bigint, allowAsyncCommit: boolean): QueryConfig {
  const columns = textNames.map((_, index) => `$${index + 3}::${text}[]`).join()
  return {
    text: `INSERT INTO ${plants} (id, attempt, ${textColumns}, idempotency_key)
      SELECT id, $1::bigint, ${textColumns}, key
      FROM unnest($2::bigint[], ${columns}, $${textNames.length + 3}::${text}[]) AS new (id, ${textColumns}, key)
      ${allowAsyncCommit ? '' : `WHERE ${isDurable}`} ON CONFLICT DO NOTHING RETURNING id`,
    values: [
      writeId,
      entries.map(({ plant }) => plant.id),
      ...textNames.map((name) => entries.map(({ plant }) => plant[name])),
      entries.map(({ key }) => key),
    ],
  }
}

/** A mark for the rows of a statement. */
export function newWriteId(): bigint {
  return randomBytes(8).readBigInt64BE()
}

/** What stands in the way of plants: rows of which = "key", with the key and its plant, and of "id", with the id and whose it is. */
export function findStatement(entries: Entry[]): QueryConfig {
  return {
    text: `SELECT 'key', id, attempt, idempotency_key, ${textColumns} FROM ${plants} WHERE idempotency_key ${eq} ANY ($1::${text}[])
      UNION ALL SELECT 'id', id, attempt, idempotency_key, ${noTexts} FROM ${plants} WHERE id ${eq} ANY ($2::bigint[])`,
    values: [entries.flatMap(({ key }) => key ?? []), entries.map(({ plant }) => plant.id)],
  }
}

/**
 * Writes a row and removes it, where commits wait for standbys: its commit comes after all that was read before, here and there. Whether
 * they do is asked each time, because it changes with each standby that comes or goes.
 */
export const barrier = `INSERT INTO ${imports} SELECT 'barrier ' || pg_backend_pid(), ''
    WHERE current_setting('synchronous_standby_names') <> '';
  DELETE FROM ${imports} WHERE id = 'barrier ' || pg_backend_pid()`

/** Copies rows of the columns id, attempt, and the texts. */
export const copyStatement = `COPY ${plants} (id, attempt, ${textColumns}) FROM STDIN (FORMAT binary)`

export const greatestIdStatement: QueryConfig = { text: `SELECT pg_catalog.max(id) FROM ${plants}` }

export function getStatement(id: bigint): QueryConfig {
  return { text: `SELECT ${plantColumns} FROM ${plants} WHERE id ${eq} $1`, values: [id] }
}

/**
 * Which plants of these ids exist, and under which mark they were written.
 *
 * @returns the columns of a plant, and attempt; the texts are left out where they do not count
 */
export function getManyStatement(ids: bigint[], withTexts = true): QueryConfig {
  const columns = withTexts ? textColumns : noTexts
  return { text: `SELECT id, ${columns}, attempt FROM ${plants} WHERE id ${eq} ANY ($1::bigint[])`, values: [ids] }
}

/** A page of a list, in the order of ids: so many rows at most, and so many bytes of texts, but at least one row. */
export function pageStatement(query: ListQuery, rows: number, bytes: number): QueryConfig {
  const values: unknown[] = []
  const bind = (value: unknown, type: string) => `$${values.push(value)}::${type}`
  const size = textNames.map((name) => `coalesce(pg_catalog.octet_length(${name}), 0)`).join(' OPERATOR(pg_catalog.+) ')
  const page = `SELECT ${plantColumns}, ${size} AS size FROM ${plants} ${where(query, bind)} ORDER BY id LIMIT ${bind(rows, 'bigint')}`
  const sums = `SELECT *, pg_catalog.sum(size) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS bytes FROM (${page}) AS page`
  const fits = `bytes OPERATOR(pg_catalog.<=) ${bind(bytes, 'bigint')} OR bytes ${eq} size`
  return { text: `SELECT ${plantColumns} FROM (${sums}) AS sums WHERE ${fits} ORDER BY id`, values }
}

export function countStatement(query: CountQuery): QueryConfig {
  const values: unknown[] = []
  return { text: `SELECT pg_catalog.count(*) FROM ${plants} ${where(query, (value, type) => `$${values.push(value)}::${type}`)}`, values }
}

/** The condition of a query. `bind` gives the SQL for a value of it. */
export function where({ after, tag, search }: ListQuery, bind: (value: bigint | string, type: string) => string): string {
  const conditions: string[] = []
  if (after !== undefined) conditions.push(`id OPERATOR(pg_catalog.>) ${bind(after, 'bigint')}`)
  if (tag !== undefined) conditions.push(`tag ${eq} ${bind(tag, text)}`)
  if (search !== undefined) conditions.push(`(${textNames.map((name) => contains(name, bind(search, text))).join(' OR ')})`)
  return conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
}

/** With the collation "C", only the letters A to Z have another case. */
function contains(column: string, part: string): string {
  const [whole, sought] = [column, part].map((each) => `pg_catalog.lower(${each} COLLATE pg_catalog."C")`)
  return `pg_catalog.strpos(${whole}, ${sought}) OPERATOR(pg_catalog.>) 0`
}

/** Gives a plant other texts and removes its idempotency key; with `only`, if it is still equal to this one. */
export function replaceStatement(plant: NewPlant, only: NewPlant | undefined): QueryConfig {
  const values: unknown[] = [plant.id]
  const texts = textNames.map((name) => `${name} = $${values.push(plant[name] ?? null)}`).join(', ')
  const set = `SET ${texts}, idempotency_key = NULL`
  return { text: `UPDATE ${plants} ${set} WHERE id ${eq} $1${unchanged(only, values)} RETURNING ${plantColumns}`, values }
}

/** Gives plants other texts and removes their idempotency keys. */
export function updateStatement(changed: NewPlant[]): QueryConfig {
  const columns = textNames.map((_, index) => `$${index + 2}::${text}[]`).join()
  return {
    text: `UPDATE ${plants} AS old SET ${textNames.map((name) => `${name} = new.${name}`).join(', ')}, idempotency_key = NULL
      FROM unnest($1::bigint[], ${columns}) AS new (id, ${textColumns}) WHERE old.id ${eq} new.id`,
    values: [changed.map(({ id }) => id), ...textNames.map((name) => changed.map((plant) => plant[name]))],
  }
}

/** Removes a plant; with `only`, if it is still equal to this one. */
export function deleteStatement(id: bigint, only: NewPlant | undefined): QueryConfig {
  const values: unknown[] = [id]
  return { text: `DELETE FROM ${plants} WHERE id ${eq} $1${unchanged(only, values)} RETURNING ${plantColumns}`, values }
}

/** A condition as IS NOT DISTINCT FROM has it, whose operator has no full name; its parameters go to `values`. */
function unchanged(only: NewPlant | undefined, values: unknown[]): string {
  const equals = (column: string, value: string) => ` AND (${column} ${eq} ${value} OR (${column} IS NULL AND ${value} IS NULL))`
  return only ? textNames.map((name) => equals(name, `$${values.push(only[name] ?? null)}::${text}`)).join('') : ''
}

/** What the one who asks, or another role, may do with plants: a column for each of `rights`. */
export function rightsStatement(role?: string): QueryConfig {
  const who = role === undefined ? '' : '$1, '
  const columns = rights.map((right) => `pg_catalog.has_table_privilege(${who}'${plants}', '${privilegeFor[right]}')`)
  return { text: `SELECT ${columns.join()}`, values: role === undefined ? [] : [role] }
}

/** The rights in the row of a `rightsStatement`. */
export function toRights(row: Row = []): Right[] {
  return rights.filter((_, index) => row[index] === 't')
}

/** What PostgreSQL calls a right. */
export const privilegeFor: Record<Right, string> = { create: 'INSERT', read: 'SELECT', update: 'UPDATE', delete: 'DELETE' }

export function findCheckpointStatement(id: string): QueryConfig {
  return { text: `SELECT state FROM ${imports} WHERE id ${eq} $1`, values: [id] }
}

export function keepCheckpointStatement({ id, state }: Checkpoint): QueryConfig {
  const onConflict = 'ON CONFLICT (id) DO UPDATE SET state = excluded.state'
  return { text: `INSERT INTO ${imports} (id, state) VALUES ($1, $2) ${onConflict}`, values: [id, state] }
}

export function removeCheckpointStatement(id: string): QueryConfig {
  return { text: `DELETE FROM ${imports} WHERE id ${eq} $1`, values: [id] }
}

/** The plant of a row whose columns begin with those of a plant. */
export function toPlant([id, ...texts]: Row): NewPlant {
  return plantFrom(BigInt(id ?? 0), (_, index) => texts[index])
}
