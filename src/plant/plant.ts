import { shorten } from '../platform/escape.js'
import { NumberText } from './json.js'

/** What the service stores: the specification's NewPlant. `id` is an int64, exact. */
export interface NewPlant {
  id: bigint
  name: string
  tag?: string
}

/** What the service answers: the specification's Plant, which has no `id`. */
export interface Plant {
  name: string
  tag?: string
}

/** What an id must be, in the words of every door. */
export const idRule = 'an integer from -9223372036854775808 to 9223372036854775807'

export type Field = 'id' | 'name' | 'tag'

/** A value that is a NewPlant: the plant, and the names of its fields that no NewPlant has. */
export interface Accepted {
  plant: NewPlant
  otherFields: string[]
}

/**
 * Reads a value that is a NewPlant as the specification and the contract's rules for ids and strings have it.
 *
 * @param value what `parseJson` gave, or an object made from flags; nothing about it is trusted
 * @returns undefined for any other value; `checkNewPlant` says what is wrong with it
 */
export function acceptNewPlant(value: unknown): Accepted | undefined {
  return isObject(value) && isNewPlant(value) ? { plant: newPlantOf(value), otherFields: otherFieldsOf(value) } : undefined
}

/** The names of the fields that no NewPlant has. */
export function otherFieldsOf(value: object): string[] {
  return Object.keys(value).filter((key) => key !== 'id' && key !== 'name' && key !== 'tag')
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isNewPlant(value: object): value is NewPlant {
  const { id, name, tag } = value as Record<Field, unknown>
  return idFailure(id) === undefined && textFailure(name) === undefined && (tag === undefined || textFailure(tag) === undefined)
}

function newPlantOf({ id, name, tag }: { id: bigint; name: string; tag?: string | undefined }): NewPlant {
  return tag === undefined ? { id, name } : { id, name, tag }
}

/** Says what is wrong with the value of one field, in the words that every door uses, or nothing. */
export function checkField(field: Field, value: unknown): string | undefined {
  const failure = field === 'id' ? idFailure(value) : textFailure(value)
  return failure === undefined ? undefined : `${field} must be ${failure}`
}

/** What is wrong with a value that is no NewPlant, as `checkNewPlant` has it, without the 5 KB that zod takes for one: an import can have millions. */
export function problemsOf(value: unknown): string[] {
  if (!isObject(value)) return [`it must be an object, but ${describe(value)}`]
  const { id, name, tag } = value as Record<Field, unknown>
  const problems = [checkField('id', id), checkField('name', name), tag === undefined ? undefined : checkField('tag', tag)]
  return problems.filter((problem) => problem !== undefined)
}

/** The specification's Plant for a NewPlant: `name` and, when it has one, `tag`, in that order. */
export function plantOf({ name, tag }: Plant): Plant {
  return tag === undefined ? { name } : { name, tag }
}

/** Whether two plants are the same: in all fields, id included. */
export function equalPlants(one: NewPlant, other: NewPlant): boolean {
  return one.id === other.id && equalFields(one, other)
}

/** Whether two plants are the same in all fields but the id. */
export function equalFields(one: Plant, other: Plant): boolean {
  return one.name === other.name && one.tag === other.tag
}

/** Whether a text can be an Idempotency-Key: 1 to 255 visible ASCII characters. */
export function isIdempotencyKey(text: string): boolean {
  return /^[\x21-\x7e]{1,255}$/.test(text)
}

function idFailure(value: unknown): string | undefined {
  if (typeof value === 'bigint' && BigInt.asIntN(64, value) === value) return undefined
  return `${idRule}, but ${describe(value)}`
}

function textFailure(value: unknown): string | undefined {
  if (typeof value !== 'string') return `a string, but ${describe(value)}`
  if (!value.isWellFormed()) return 'well-formed Unicode, but holds half of a surrogate pair'
  return value.includes('\0') ? 'text without U+0000, but holds it' : undefined
}

/** What a value is, for the message that refuses it. */
export function describe(value: unknown): string {
  if (value === undefined) return 'is missing'
  if (value instanceof NumberText) return `was ${shorten(value.text)}`
  if (Array.isArray(value)) return 'was an array'
  if (typeof value === 'string') return `was ${JSON.stringify(shorten(value))}`
  if (typeof value === 'number') return 'was a number'
  return typeof value === 'object' && value !== null ? 'was an object' : `was ${String(value)}`
}
