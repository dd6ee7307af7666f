import { isInt64, isObject, parseInt64 } from './json.js'

export const fieldNames = ['id', 'name', 'tag'] as const
export type FieldName = (typeof fieldNames)[number]
export type TextName = 'name' | 'tag'

/** The specification's Plant, the response of a service. It has no `id`. */
export interface Plant {
  name: string
  tag?: string
}

/** The specification's NewPlant, the request to a service. */
export interface NewPlant extends Plant {
  /** An int64. */
  id: bigint
}

/** What a store keeps, and a service lists. */
export type StoredPlant = NewPlant

/** A record of an import, as a merge patch (RFC 7396): a missing text stays, null removes it. */
export interface PlantPatch {
  id: bigint
  name?: string | null
  tag?: string | null
}

export const smallestId = -(2n ** 63n)
export const largestId = 2n ** 63n - 1n

export const idRule = `an integer from ${smallestId} to ${largestId}`
export const textRule = 'a string of Unicode text without U+0000'

/**
 * From an option, an argument or a line: decimal digits, which an article code such as 1E3 is not.
 */
export function idFromText(text: string): bigint | undefined {
  return /^-?\d+$/.test(text) ? parseInt64(text) : undefined
}

/** A record of an import may have null as its tag. A patch is a record that may lack its name. */
export type PlantForm = 'newPlant' | 'record' | 'patch'

/**
 * Accepts what the schemas in schema.ts accept, without zod, which would be the longest step
 * of a POST. V8 keeps objects small that are literals with all their fields. Undefined for an
 * invalid value: `problemsOf` has the reasons.
 */
export function parsePlant(value: unknown): NewPlant | undefined
export function parsePlant(value: unknown, form: 'record' | 'patch'): PlantPatch | undefined
export function parsePlant(value: unknown, form: PlantForm = 'newPlant'): PlantPatch | undefined {
  if (!isObject(value)) return undefined
  const { id, name, tag } = value
  if (!isInt64(id)) return undefined
  const isTag = isText(tag) || (tag === null && form !== 'newPlant')
  if (form === 'patch' && !Object.hasOwn(value, 'name')) {
    if (tag === undefined) return { id }
    return isTag ? { id, tag } : undefined
  }
  if (!isText(name)) return undefined
  if (tag === undefined) return { id, name }
  return isTag ? { id, name, tag } : undefined
}

export function isText(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0')
}

/** Undefined if both lack a name. */
export function patchedPlant(
  { id, ...patch }: PlantPatch,
  stored?: Plant,
): StoredPlant | undefined {
  const { name = stored?.name, tag = stored?.tag } = patch
  return name == null ? undefined : plantFrom(id, name, tag)
}

export function plantFrom(id: bigint, name: string, tag: string | null | undefined): StoredPlant {
  return tag == null ? { id, name } : { id, name, tag }
}

export function otherFieldsOf(value: object): string[] {
  return Object.keys(value).filter((key) => !fieldNames.some((name) => name === key))
}

export function invalidPlant(problems: readonly string[]): string {
  return `Invalid plant: ${problems.join('; ')}`
}

export function plantOf({ name, tag }: Plant): Plant {
  return tag === undefined ? { name } : { name, tag }
}

export function valuesOf(plant: StoredPlant): (bigint | string | null)[] {
  return [plant.id, plant.name, plant.tag ?? null]
}

/** `toLocaleString` would load 10 MB of ICU. */
export function grouped(number: number | bigint): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ',')
}

export function plantCount(count: number | bigint): string {
  return `${grouped(count)} ${Number(count) === 1 ? 'plant' : 'plants'}`
}

/** In UTF-16 code units. */
export function textLength({ name, tag = '' }: Plant): number {
  return name.length + tag.length
}

export function equalFields(one: Plant, other: Plant): boolean {
  return one.name === other.name && one.tag === other.tag
}

export function isIdempotencyKey(text: string): boolean {
  return /^[\x21-\x7e]{1,255}$/.test(text)
}
