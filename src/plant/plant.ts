import type * as z from 'zod/mini'
import { fieldNames, isText } from './fields.js'
import { isInt64, isObject, parseInt64 } from './json.js'
import type { errorSchema, PlantForm, plantSchema, schemas } from './schema.js'

/** The specification's Plant, the response of a service. It has no `id`. */
export type Plant = z.infer<typeof plantSchema>

/** The specification's NewPlant, the request to a service. Its `id` is an int64. */
export type NewPlant = z.infer<typeof schemas.newPlant>

/** What a store keeps, and a service lists. */
export type StoredPlant = NewPlant

/** The specification's Error. Its `error` is an int32. */
export type ErrorBody = z.infer<typeof errorSchema>

/** A record of an import, as a merge patch (RFC 7396): a missing text stays, null removes it. */
export type PlantPatch = z.infer<typeof schemas.patch>

/**
 * From an option, an argument or a line: decimal digits, which an article code such as 1E3 is not.
 */
export function idFromText(text: string): bigint | undefined {
  return /^-?\d+$/.test(text) ? parseInt64(text) : undefined
}

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

/** Undefined if both lack a name. */
export function applyPatch({ id, ...patch }: PlantPatch, stored?: Plant): StoredPlant | undefined {
  const { name = stored?.name, tag = stored?.tag } = patch
  return name == null ? undefined : plantFrom(id, name, tag)
}

export function plantFrom(id: bigint, name: string, tag: string | null | undefined): StoredPlant {
  return tag == null ? { id, name } : { id, name, tag }
}

export function listOtherFields(value: object): string[] {
  return Object.keys(value).filter((key) => !fieldNames.some((name) => name === key))
}

export function invalidPlant(problems: readonly string[]): string {
  return `Invalid plant: ${problems.join('; ')}`
}

export function omitId({ name, tag }: Plant): Plant {
  return tag === undefined ? { name } : { name, tag }
}

export function toRowValues(plant: StoredPlant): (bigint | string | null)[] {
  return [plant.id, plant.name, plant.tag ?? null]
}

/** `toLocaleString` would load 10 MB of ICU. */
export function groupDigits(number: number | bigint): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ',')
}

export function plantCount(count: number | bigint): string {
  return `${groupDigits(count)} ${Number(count) === 1 ? 'plant' : 'plants'}`
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
