import { randomBytes } from 'node:crypto'
import { type NewPlant, plantColumns, textFields } from '../../plant/fields.js'
import { plantFrom } from '../../plant/plant.js'
import { type Checkpoint, type ListQuery, type Right, rights } from '../store.js'
import type { Rows } from './connection.js'

/** The schema of the tables of a store. */
export const schemaName = 'plant_store'

export const plants = `${schemaName}.plants`
export const tokens = `${schemaName}.tokens`
export const imports = `${schemaName}.imports`
export const versions = `${schemaName}.schema_version`

const textNames = textFields.map(({ name }) => name)
const textColumns = textNames.join(', ')

/** SQL for the bytes of a plant's texts. */
export const sizeOfTexts = textNames.map((name) => `coalesce(octet_length(${name}), 0)`).join(' + ')

/** A plant on its way into the table, with the key that it has been given. */
export interface Entry {
  plant: NewPlant
  key: string | undefined
}

/**
 * Creates those of the plants whose id and key are free, and gives their ids. Of several with the same id the first wins. Nothing
 * is created where a commit would be answered before it is on disk, unless that is allowed: it may have been changed a moment ago.
 *
 * @param entries in the order of their ids, in which all who write take them, so that none waits for another in a circle
 * @param attempt marks the rows, so that a commit whose answer was lost can be found again
 */
export function insertStatement(entries: Entry[], attempt: bigint, allowAsyncCommit: boolean): string {
  const columns = [
    idsLiteral(entries.map(({ plant }) => plant.id)),
    ...textNames.map((name) => textsLiteral(entries.map(({ plant }) => plant[name]))),
    textsLiteral(entries.map(({ key }) => key)),
  ]
  return `INSERT INTO ${plants} (id, attempt, ${textColumns}, idempotency_key)
    SELECT id, ${attempt}, ${textColumns}, key FROM unnest(${columns}) AS new (id, ${textColumns}, key)
    ${allowAsyncCommit ? '' : `WHERE ${isDurable}`}
    ON CONFLICT DO NOTHING RETURNING id`
}

/** A mark for the rows of a statement. */
export function newAttempt(): bigint {
  return randomBytes(8).readBigInt64BE()
}

/** What stands in the way of plants: rows of which = "key", with the key and its plant, and of "id", with the id and whose it is. */
export function findStatement(entries: Entry[]): string {
  const keys = entries.flatMap(({ key }) => key ?? [])
  const ids = entries.map(({ plant }) => plant.id)
  return `SELECT 'key', id, attempt, idempotency_key, ${textColumns} FROM ${plants} WHERE idempotency_key = ANY (${textsLiteral(keys)})
    UNION ALL SELECT 'id', id, attempt, idempotency_key, ${noTexts} FROM ${plants} WHERE id = ANY (${idsLiteral(ids)})`
}

/**
 * Writes something and takes it away again, where commits wait for other servers: its commit comes behind all that was seen before, here and
 * there. Whether they do is asked each time, because it changes with each standby that comes or goes.
 */
export function barrierStatement(): string {
  const mark = literal(randomBytes(8).toString('hex'))
  return `INSERT INTO ${imports} SELECT ${mark}, '' WHERE pg_catalog.current_setting('synchronous_standby_names') <> '';
    DELETE FROM ${imports} WHERE id = ${mark}`
}

const noTexts = textNames.map(() => 'NULL').join(', ')

/** Begins to copy rows of the columns id, attempt, and the texts. */
export const copyStatement = `COPY ${plants} (id, attempt, ${textColumns}) FROM STDIN (FORMAT binary)`

/** Whether a commit is on disk when it is answered: both can be changed while a connection lasts. */
const isDurable = "pg_catalog.current_setting('synchronous_commit') <> 'off' AND pg_catalog.current_setting('fsync') <> 'off'"

/** Fails, with a division by zero, where the commit behind it would be answered before it is on disk. */
export function durabilityCheck(allowAsyncCommit: boolean): string {
  return allowAsyncCommit ? 'SELECT 1' : `SELECT 1 / (${isDurable})::int`
}

/** Keeps where an import is. */
export function keepStatement({ id, state }: Checkpoint): string {
  return `INSERT INTO ${imports} VALUES (${literal(id)}, ${literal(state)}) ON CONFLICT (id) DO UPDATE SET state = excluded.state`
}

/** @returns SQL with the columns of a plant */
export function getStatement(id: bigint): string {
  return `SELECT ${plantColumns} FROM ${plants} WHERE id = ${id}`
}

/**
 * Which plants are there of these ids, and under which mark they were written.
 *
 * @returns SQL with the columns of a plant, and attempt; the texts are left out where they do not count
 */
export function getManyStatement(ids: bigint[], withTexts = true): string {
  return `SELECT id, ${withTexts ? textColumns : noTexts}, attempt FROM ${plants} WHERE id = ANY (${idsLiteral(ids)})`
}

/** One page of a list, in the order of ids, that ends behind so many bytes. */
export function pageStatement(query: ListQuery, rows: number, bytes: number): string {
  const size = `sum(${sizeOfTexts}) OVER (ORDER BY id)`
  const page = `SELECT ${plantColumns}, ${size} AS bytes FROM ${plants} ${where(query)} ORDER BY id LIMIT ${rows}`
  return `SELECT ${plantColumns} FROM (SELECT *, lag(bytes, 1, 0::numeric) OVER (ORDER BY id) AS before FROM (${page}) AS page) AS sized
    WHERE before < ${bytes} ORDER BY id`
}

/** Gives a plant other texts, and takes its idempotency key away; with `only`, if it is still this one. */
export function replaceStatement(plant: NewPlant, only: NewPlant | undefined): string {
  const texts = textNames.map((name) => `${name} = ${orNull(plant[name])}`).join(', ')
  return `UPDATE ${plants} SET ${texts}, idempotency_key = NULL WHERE id = ${plant.id}${unchanged(only)} RETURNING ${plantColumns}`
}

/** Gives plants other texts, and takes their idempotency keys away. */
export function updateStatement(changed: NewPlant[]): string {
  const columns = [idsLiteral(changed.map(({ id }) => id)), ...textNames.map((name) => textsLiteral(changed.map((plant) => plant[name])))]
  return `UPDATE ${plants} AS old SET ${textNames.map((name) => `${name} = new.${name}`).join(', ')}, idempotency_key = NULL
    FROM unnest(${columns}) AS new (id, ${textColumns}) WHERE old.id = new.id`
}

export function deleteStatement(id: bigint, only: NewPlant | undefined): string {
  return `DELETE FROM ${plants} WHERE id = ${id}${unchanged(only)} RETURNING ${plantColumns}`
}

function unchanged(only: NewPlant | undefined): string {
  return only ? textNames.map((name) => ` AND ${name} IS NOT DISTINCT FROM ${orNull(only[name])}`).join('') : ''
}

export function where({ after, tag, search }: ListQuery): string {
  const conditions: string[] = []
  if (after !== undefined) conditions.push(`id > ${after}`)
  if (tag !== undefined) conditions.push(`tag = ${literal(tag)}`)
  if (search !== undefined) conditions.push(`(${textNames.map((name) => holds(name, search)).join(' OR ')})`)
  return conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
}

/** With the collation "C", only the letters A to Z have another case. */
function holds(column: string, text: string): string {
  const [whole, part] = [column, literal(text)].map((each) => `pg_catalog.lower(${each} COLLATE pg_catalog."C")`)
  return `pg_catalog.strpos(${whole}, ${part}) > 0`
}

/** What the one who asks, or another role, may do with plants: a column for each of `rights`. */
export function rightsStatement(role?: string): string {
  const who = role === undefined ? '' : `${literal(role)}, `
  return `SELECT ${rights.map((right) => `pg_catalog.has_table_privilege(${who}'${plants}', '${privilegeFor[right]}')::text`).join()}`
}

/** The rights in the row of a `rightsStatement`. */
export function toRights(row: Rows[number] = []): Right[] {
  return rights.filter((_, index) => row[index] === 'true')
}

/** What PostgreSQL calls a right. */
export const privilegeFor: Record<Right, string> = { create: 'INSERT', read: 'SELECT', update: 'UPDATE', delete: 'DELETE' }

export function orNull(text: string | undefined): string {
  return text === undefined ? 'NULL' : literal(text)
}

/** A text as a literal of SQL that reads the same whatever the server takes a backslash for. */
export function literal(text: string): string {
  if (text.includes('\0')) throw new Error('U+0000 would end the statement')
  return `E'${text.replace(/['\\]/g, '$&$&')}'`
}

/** A name of a role or a database, as SQL quotes it. */
export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Bytes as a literal of the type bytea. */
export function bytesLiteral(bytes: Uint8Array): string {
  return `${literal(`\\x${Buffer.from(bytes).toString('hex')}`)}::bytea`
}

/** Texts, some of which are not there, as a literal of the type text[]. */
export function textsLiteral(texts: (string | undefined)[]): string {
  return `${literal(`{${texts.map(element).join()}}`)}::text[]`
}

/** Ids as a literal of the type bigint[]. */
export function idsLiteral(ids: bigint[]): string {
  return `'{${ids.join()}}'::bigint[]`
}

/** In quotes, because a bare one may read NULL, be empty or lose its spaces. */
function element(text: string | undefined): string {
  return text === undefined ? 'NULL' : `"${text.replace(/["\\]/g, '\\$&')}"`
}

/** The plant of a row whose columns begin with those of a plant. */
export function toPlant([id, ...texts]: Rows[number]): NewPlant {
  return plantFrom(BigInt(id ?? 0), (_, index) => texts[index])
}
