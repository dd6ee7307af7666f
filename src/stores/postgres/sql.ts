/**
 * The statements of a store, with values as parameters. All names are schema-qualified, including operators, so that no
 * search_path can make them refer to objects of other users
 * (https://www.postgresql.org/docs/current/ddl-schemas.html#DDL-SCHEMAS-PATTERNS).
 */
import { randomBytes } from 'node:crypto'
import type { QueryConfig } from 'pg'
import { fieldNames, type NewPlant, type PlantPatch, plantColumns, textNames } from '../../plant/fields.js'
import { plantFrom } from '../../plant/plant.js'
import { type SoughtText, soughtTexts } from '../common/search.js'
import { type Checkpoint, type ListQuery, type Right, rights } from '../common/store.js'

export type Row = (string | null)[]

/** `plants` is how many it asks for by their ids or keys, however long they are. */
export interface Query extends QueryConfig {
  plants?: number
}

export const schemaName = 'plant_store'

export const plants = `${schemaName}.plants`
export const tokens = `${schemaName}.tokens`
export const imports = `${schemaName}.imports`
export const versions = `${schemaName}.schema_version`

/**
 * Statements without parameters, in one transaction with a search_path of only built-in functions and operators, whose
 * commit returns when it is on disk.
 */
export function pinned(text: string): QueryConfig {
  return { text: `${pin}; ${text}` }
}

export const pin = 'SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL synchronous_commit = on'

export const begin: QueryConfig = { text: `BEGIN; ${pin}` }

const textColumns = textNames.join(', ')

export const eq = 'OPERATOR(pg_catalog.=)'
const text = 'pg_catalog.text'
const textTypes = textNames.map(() => text)

/** Parameters for `unnest`. */
function arrays(...types: string[]): string {
  return types.map((type, index) => `$${index + 1}::${type}[]`).join()
}

/** Fails with a division by zero (SQLSTATE 22012) if fsync is off, which can change during a connection. */
export const fsyncs = `1 OPERATOR(pg_catalog./) CASE WHEN pg_catalog.current_setting('fsync') ${eq} 'off' THEN 0 ELSE 1 END`

/** A last column to return, with which the commit of a statement returns when it is on disk. */
export const durable = `(SELECT pg_catalog.set_config('synchronous_commit', 'on', true) WHERE ${fsyncs} ${eq} 1)`

export const commitStatement: QueryConfig = { text: `SELECT ${fsyncs}; COMMIT` }

export interface Entry {
  plant: NewPlant
  key: string | undefined
  /** is stored with the plant, so that a commit whose response was lost can be recognized */
  attempt: bigint
}

/**
 * Creates the plants whose id and key are free, and returns their ids.
 *
 * @param entries in ascending order of id, as all writers send them, which prevents deadlocks
 */
export function insertStatement(entries: Entry[]): QueryConfig {
  const parameters = arrays('bigint', 'bigint', ...textTypes, text)
  return {
    text: `INSERT INTO ${plants} (id, attempt, ${textColumns}, idempotency_key)
      SELECT id, attempt, ${textColumns}, key
      FROM unnest(${parameters}) AS new (id, attempt, ${textColumns}, key)
      ON CONFLICT DO NOTHING RETURNING id, ${durable}`,
    values: [
      entries.map(({ plant }) => plant.id),
      entries.map(({ attempt }) => attempt),
      ...textNames.map((name) => entries.map(({ plant }) => plant[name])),
      entries.map(({ key }) => key),
    ],
  }
}

export function newAttempt(): bigint {
  return randomBytes(8).readBigInt64BE()
}

/** Returns the columns of each plant, its attempt and its key. */
export function findStatement(entries: Entry[]): Query {
  return {
    text: `SELECT ${plantColumns}, attempt, idempotency_key FROM ${plants}
      WHERE idempotency_key ${eq} ANY ($1::${text}[]) OR id ${eq} ANY ($2::bigint[])`,
    values: [entries.flatMap(({ key }) => key ?? []), entries.map(({ plant }) => plant.id)],
    plants: 2 * entries.length,
  }
}

/**
 * Writes and deletes a row if commits wait for standbys: this commit follows everything that was read before, also on
 * the standbys. Checks that each time, because it changes whenever a standby connects or disconnects.
 */
export const barrier = `INSERT INTO ${imports} SELECT 'barrier ' || pg_backend_pid(), ''
    WHERE current_setting('synchronous_standby_names') <> '';
  DELETE FROM ${imports} WHERE id = 'barrier ' || pg_backend_pid()`

export const copyStatement = `COPY ${plants} (id, attempt, ${textColumns}) FROM STDIN (FORMAT csv)`

/** Returns the columns of each plant, and the id of the write that stored it. */
export function getStatement(ids: bigint[]): Query {
  return {
    text: `SELECT ${plantColumns}, attempt FROM ${plants} WHERE id ${eq} ANY ($1::bigint[])`,
    values: [ids],
    plants: ids.length,
  }
}

/** Limits a page by rows and by bytes of text, but to at least one row. */
export function pageStatement(query: ListQuery, rows: number): QueryConfig {
  const values: unknown[] = []
  const bind = binder(values)
  const size = textNames.map((name) => `coalesce(pg_catalog.octet_length(${name}), 0)`).join(' OPERATOR(pg_catalog.+) ')
  const page = `SELECT ${plantColumns}, ${size} AS size FROM ${plants} ${where(query, bind)} ORDER BY id LIMIT ${bind(rows, 'bigint')}`
  const sums = `SELECT *, pg_catalog.sum(size) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS bytes FROM (${page}) AS page`
  const fits = `bytes OPERATOR(pg_catalog.<=) ${bind(pageBytes, 'bigint')} OR bytes ${eq} size`
  return { text: `SELECT ${plantColumns} FROM (${sums}) AS sums WHERE ${fits} ORDER BY id`, values }
}

const pageBytes = 1_000_000

export function binder(values: unknown[]): Bind {
  return (value, type) => `$${values.push(value)}::${type}`
}

/** Returns the SQL of a value. */
export type Bind = (value: bigint | number | string, type: string) => string

export function where({ after, tag, search }: ListQuery, bind: Bind): string {
  const conditions: string[] = []
  if (after !== undefined) conditions.push(`id OPERATOR(pg_catalog.>) ${bind(after, 'bigint')}`)
  if (tag === false) conditions.push('tag IS NULL')
  else if (tag !== undefined) conditions.push(`tag ${eq} ${bind(tag, text)}`)
  if (search !== undefined) {
    const contained = soughtTexts(search).flatMap((sought) => textNames.map((name) => contains(name, sought, bind)))
    conditions.push(`(${contained.join(' OR ')})`)
  }
  return conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
}

/** With the collation "C", `lower` changes only A to Z. The other variants are translated. */
function contains(column: string, { folded, variants }: SoughtText, bind: Bind): string {
  const pairs = variants.flatMap(([first = '', ...others]) => others.map((other) => [other, first] as const))
  const translated = new Map(pairs.filter(([other]) => !/[A-Z]/.test(other)))
  let whole = `pg_catalog.lower(${column} COLLATE pg_catalog."C")`
  if (translated.size > 0) {
    const [from, to] = [[...translated.keys()].join(''), [...translated.values()].join('')]
    const isAscii = `pg_catalog.octet_length(${column}) ${eq} pg_catalog.char_length(${column})`
    const other = `pg_catalog.translate(${whole}, ${bind(from, text)}, ${bind(to, text)})`
    whole = `CASE WHEN ${isAscii} THEN ${whole} ELSE ${other} END`
  }
  return `pg_catalog.strpos(${whole}, ${bind(folded, text)}) OPERATOR(pg_catalog.>) 0`
}

export interface Change {
  id: bigint
  /** undefined to delete it */
  plant?: NewPlant
  /** the plant must still equal it */
  only: NewPlant | undefined
}

export function replaceStatement(changes: Change[]): Query {
  const set = textNames.map((name) => `${name} = change.${name}`).join()
  return changeStatement(`UPDATE ${plants} AS plant SET ${set}, idempotency_key = NULL FROM`, changes)
}

export function deleteStatement(changes: Change[]): Query {
  return changeStatement(`DELETE FROM ${plants} AS plant USING`, changes)
}

/** Returns the columns of each changed plant. */
function changeStatement(action: string, changes: Change[]): Query {
  const columns = ['id', 'is_any', ...textNames, ...textNames.map((name) => `only_${name}`)]
  const parameters = arrays('bigint', 'boolean', ...textTypes, ...textTypes)
  // IS NOT DISTINCT FROM has an operator that cannot be schema-qualified
  const isUnchanged = textNames.map(
    (name) => `(plant.${name} ${eq} only_${name} OR (plant.${name} IS NULL AND only_${name} IS NULL))`,
  )
  return {
    text: `${action} unnest(${parameters}) AS change (${columns.join()})
      WHERE plant.id ${eq} change.id AND (is_any OR (${isUnchanged.join(' AND ')}))
      RETURNING ${fieldNames.map((name) => `plant.${name}`).join()}, ${durable}`,
    values: [
      changes.map(({ id }) => id),
      changes.map(({ only }) => only === undefined),
      ...textNames.map((name) => changes.map(({ plant }) => plant?.[name])),
      ...textNames.map((name) => changes.map(({ only }) => only?.[name])),
    ],
    plants: changes.length,
  }
}

/** Texts that a record lacks stay, also if they have just been changed. */
export function updateStatement(changed: PlantPatch[]): QueryConfig {
  const isGiven = textNames.map((name) => `has_${name}`)
  const set = textNames.map(
    (name, index) => `${name} = CASE WHEN new.${isGiven[index]} THEN new.${name} ELSE old.${name} END`,
  )
  const parameters = arrays('bigint', ...textTypes, ...isGiven.map(() => 'boolean'))
  return {
    text: `UPDATE ${plants} AS old SET ${set.join(', ')}, idempotency_key = NULL
      FROM unnest(${parameters}) AS new (id, ${textColumns}, ${isGiven.join()}) WHERE old.id ${eq} new.id`,
    values: [
      changed.map(({ id }) => id),
      ...textNames.map((name) => changed.map((patch) => patch[name])),
      ...textNames.map((name) => changed.map((patch) => patch[name] !== undefined)),
    ],
  }
}

/** @param role the current one by default */
export function rightsStatement(role?: string): QueryConfig {
  const who = role === undefined ? '' : '$1, '
  const columns = rights.map((right) => `pg_catalog.has_table_privilege(${who}'${plants}', '${privilegeFor[right]}')`)
  return { text: `SELECT ${columns.join()}`, values: role === undefined ? [] : [role] }
}

/** @param rows of `rightsStatement` */
export function toRights([row = []]: Row[]): Right[] {
  return rights.filter((_, index) => row[index] === 't')
}

export const privilegeFor: Record<Right, string> = {
  create: 'INSERT',
  read: 'SELECT',
  update: 'UPDATE',
  delete: 'DELETE',
}

export function keepCheckpointStatement({ id, state }: Checkpoint): QueryConfig {
  const onConflict = 'ON CONFLICT (id) DO UPDATE SET state = excluded.state'
  return { text: `INSERT INTO ${imports} (id, state) VALUES ($1, $2) ${onConflict}`, values: [id, state] }
}

export function toPlant([id, ...texts]: Row): NewPlant {
  return plantFrom(BigInt(id ?? 0), (_, index) => texts[index])
}
