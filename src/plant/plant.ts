import type * as z from 'zod/mini'
import { fieldNames, isStorableString } from './fields.js'
import { isInt64, isObject, parseInt64, toWireJson } from './json.js'
import type { errorSchema, PlantForm, plantSchema, schemas } from './schema.js'

/** The specification's Plant, with which a service answers a create. It has no `id`. */
export type Plant = z.infer<typeof plantSchema>

/** The specification's NewPlant, which a client sends. Its `id` is an int64. */
export type NewPlant = z.infer<typeof schemas.newPlant>

/** The fields that a store keeps and a service lists. */
export type StoredPlant = NewPlant

/** The specification's Error. Its `error` is an int32. */
export type ErrorBody = z.infer<typeof errorSchema>

/** A merge patch (RFC 7396): a missing field stays as it is, and null removes it. */
export type PlantPatch = z.infer<typeof schemas.patch>

/**
 * Parses the id of an option, an argument or a line of stdin. It has decimal digits only, because
 * `1E3` there is an article code and not 1000.
 */
export function parseDecimalId(text: string): bigint | undefined {
  return /^-?\d+$/.test(text) ? parseInt64(text) : undefined
}

/**
 * Accepts exactly what the schema of the same form in schema.ts accepts, as a property test proves.
 * zod would take longer than all other steps of a POST before the commit. Each result is a literal
 * with all its fields, because V8 keeps such objects small.
 *
 * @returns undefined for an invalid value, whose reasons `findProblems` gives
 */
export function parsePlant(value: unknown): NewPlant | undefined
export function parsePlant(value: unknown, form: 'patch'): PlantPatch | undefined
export function parsePlant(value: unknown, form: PlantForm = 'newPlant'): PlantPatch | undefined {
  if (!isObject(value)) return undefined
  const { id, name, tag } = value
  if (!isInt64(id)) return undefined
  const isTag = isStorableString(tag) || (tag === null && form === 'patch')
  if (form === 'patch' && !Object.hasOwn(value, 'name')) {
    if (tag === undefined) return { id }
    return isTag ? { id, tag } : undefined
  }
  if (!isStorableString(name)) return undefined
  if (tag === undefined) return { id, name }
  return isTag ? { id, name, tag } : undefined
}

/**
 * Returns the plant with the changes of a patch, or undefined if neither the patch nor the stored
 * plant has a name.
 */
export function applyPatch(
  { id, ...patch }: PlantPatch,
  storedPlant?: Plant,
): StoredPlant | undefined {
  const { name = storedPlant?.name, tag = storedPlant?.tag } = patch
  return name == null ? undefined : buildPlant(id, name, tag)
}

export function buildPlant(id: bigint, name: string, tag: string | null | undefined): StoredPlant {
  return tag == null ? { id, name } : { id, name, tag }
}

export function listUnknownFields(value: object): string[] {
  return Object.keys(value).filter((key) => !fieldNames.some((name) => name === key))
}

export const invalidPlantLabel = 'Invalid plant: '

export function describeInvalidPlant(problems: readonly string[]): string {
  return invalidPlantLabel + problems.join('; ')
}

export function omitId({ name, tag }: Plant): Plant {
  return tag === undefined ? { name } : { name, tag }
}

/** Writes 1234567 as `1,234,567`. `toLocaleString` would load 10 MB of ICU data. */
export function groupDigits(number: number | bigint): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ',')
}

export function formatPlantCount(count: number | bigint): string {
  return `${groupDigits(count)} ${Number(count) === 1 ? 'plant' : 'plants'}`
}

/** Returns the sum of the lengths of the name and the tag, in UTF-16 code units. */
export function measureFieldLength({ name, tag = '' }: Plant): number {
  return name.length + tag.length
}

/** The JSON of a plant has at most so many bytes, so that whatever is stored can be imported. */
const maxPlantBytes = 1_048_576

export function isPlantTooLarge(plant: StoredPlant): boolean {
  // JSON writes a UTF-16 code unit in at most six bytes, such as `\u0001`.
  if (6 * measureFieldLength(plant) + 64 <= maxPlantBytes) return false
  return Buffer.byteLength(toWireJson(plant)) > maxPlantBytes
}

export function haveEqualNameAndTag(plant: Plant, storedPlant: Plant): boolean {
  return plant.name === storedPlant.name && plant.tag === storedPlant.tag
}

/** Returns true for a string of 1 to 255 visible ASCII characters. */
export function isIdempotencyKey(text: string): boolean {
  return /^[\x21-\x7e]{1,255}$/.test(text)
}
