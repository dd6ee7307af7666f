/**
 * Names and values in statements. PostgreSQL takes several statements in one message only without parameters, and what
 * a statement depends on must be in its own message (see `Connection.ask`), so values are literals.
 */
import { plantFrom, type StoredPlant } from '../../plant/plant.js'

export type Row = (string | null)[]

export const schemaName = 'plant_store'

export const plants = `${schemaName}.plants`
export const tokens = `${schemaName}.tokens`
export const imports = `${schemaName}.imports`
export const versions = `${schemaName}.schema_version`

export const columns = 'id, name, tag'

/** The type of an id is explicit, since PostgreSQL takes a large one for a numeric. */
export function literal(value: bigint | number | string | null | undefined): string {
  if (value === null || value === undefined) return 'NULL'
  if (typeof value !== 'string') return `'${value}'::bigint`
  if (value.includes('\0')) throw new RangeError('U+0000 would end the message') // no plant has it
  return `E'${value.replace(/['\\]/g, '$&$&')}'`
}

/** A row of VALUES. */
export function rowOf(...values: Parameters<typeof literal>[0][]): string {
  return `(${values.map(literal).join()})`
}

export function idsOf(ids: readonly bigint[]): string {
  return `'{${ids.join()}}'::bigint[]`
}

/** @param row that begins with `columns` */
export function toPlant([id, name, tag]: Row): StoredPlant {
  if (typeof name !== 'string') throw new TypeError('A plant has no name')
  return plantFrom(toBigInt(id), name, tag)
}

export function toBigInt(cell: string | null | undefined): bigint {
  if (typeof cell !== 'string') throw new TypeError('A number is missing')
  return BigInt(cell)
}
