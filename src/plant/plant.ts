import { isObject, NumberText, parseInt64 } from './exact-json.js'

export const fieldNames = ['id', 'name', 'tag'] as const
export type FieldName = (typeof fieldNames)[number]
export type TextName = 'name' | 'tag'

/** The specification's Plant, the response of a service. It has no `id`. */
export interface Plant {
  name: string
  tag?: string
}

/** The specification's NewPlant, the request to a service. `id` is an int64. */
export interface NewPlant extends Plant {
  id: bigint
}

/** What a store keeps of a NewPlant, and a service lists. `id` is an int64. */
export interface StoredPlant extends Plant {
  id: bigint
}

/** A record of an import, as a merge patch (RFC 7396): a missing text stays as it is stored, null removes it. */
export interface PlantPatch {
  id: bigint
  name?: string | null
  tag?: string | null
}

export const idRule = 'an integer from -9223372036854775808 to 9223372036854775807'

/** Names the range only for an id outside it. */
export function idRuleFor(value: unknown): string {
  if (typeof value === 'string') {
    if (idFromText(value) !== undefined) return 'an integer, not a string'
    if (/^[+-]?\d+(?:[.,]\d+)?e[+-]?\d+$/i.test(value)) return 'an integer without an exponent'
    if (parseInt64(value) !== undefined) return inDigits
  }
  const text = value instanceof NumberText ? value.text : value
  if ((typeof text !== 'string' && typeof text !== 'bigint') || text === '') return 'an integer'
  return idRules.find(([pattern]) => pattern.test(String(text)))?.[1] ?? inDigits
}

const inDigits = 'an integer, in digits only'

/** The id in an option, an argument or a line: decimal digits, which an article code such as 1E3 is not. */
export function idFromText(text: string): bigint | undefined {
  return /^-?\d+$/.test(text) ? parseInt64(text) : undefined
}

export const smallestId = -(2n ** 63n)
export const largestId = 2n ** 63n - 1n

const idRules: readonly [RegExp, string][] = [
  [/^(?=.*\s)[\s\d.eE+-]+$/s, 'an integer without spaces'],
  [/^[+-]?0\d+$/, 'an integer without leading zeros'],
  [/^-?\d+(?:(?:\.\d+)?[eE]\+?\d+)?$/, idRule],
  [/^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/, 'an integer'],
]

/*
 * These accept the same values as the schemas in plant-schema.ts, without zod, which would be the longest step of a POST.
 * A property test compares the two. They return undefined for an invalid value, of which `problemsOf` has the reasons.
 * V8 keeps literals with all their fields in one piece.
 */

export function parsePlant(value: unknown): NewPlant | undefined {
  if (!isObject(value)) return undefined
  const { id, name, tag } = value
  if (!isId(id) || !isText(name)) return undefined
  if (tag === undefined) return { id, name }
  return isText(tag) ? { id, name, tag } : undefined
}

/** A record of an import: a NewPlant whose tag may be null. */
export function parseRecord(value: unknown): PlantPatch | undefined {
  if (!isObject(value)) return undefined
  const { id, name, tag } = value
  if (!isId(id) || !isText(name)) return undefined
  if (tag === undefined) return { id, name }
  return isText(tag) || tag === null ? { id, name, tag } : undefined
}

/** A record that may also lack its name. */
export function parsePatch(value: unknown): PlantPatch | undefined {
  if (!isObject(value)) return undefined
  if (Object.hasOwn(value, 'name')) return parseRecord(value)
  const { id, tag } = value
  if (!isId(id)) return undefined
  if (tag === undefined) return { id }
  return isText(tag) || tag === null ? { id, tag } : undefined
}

function isId(value: unknown): value is bigint {
  return typeof value === 'bigint' && BigInt.asIntN(64, value) === value
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.isWellFormed() && !value.includes('\0')
}

/** Returns undefined if the name is missing in both. */
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

/** In order, without the id. */
export function plantOf({ name, tag }: Plant): Plant {
  return tag === undefined ? { name } : { name, tag }
}

export function valuesOf(plant: StoredPlant): (bigint | string | null)[] {
  return [plant.id, plant.name, plant.tag ?? null]
}

/** `toLocaleString` would load ICU, which takes 10 MB. */
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

export function equalPlants(one: StoredPlant, other: StoredPlant): boolean {
  return one.id === other.id && equalFields(one, other)
}

export function equalFields(one: Plant, other: Plant): boolean {
  return one.name === other.name && one.tag === other.tag
}

export function isIdempotencyKey(text: string): boolean {
  return /^[\x21-\x7e]{1,255}$/.test(text)
}
