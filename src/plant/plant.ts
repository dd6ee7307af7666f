import { shorten } from '../platform/escape.js'
import { type FieldName, type NewPlant, type Plant, plantFields, type TextField, textFields } from './fields.js'
import { NumberText } from './json.js'

export type { FieldName, NewPlant, Plant } from './fields.js'

/** What an id must be, in the words of every message. */
export const idRule = 'an integer from -9223372036854775808 to 9223372036854775807'

/** A value that is a NewPlant: the plant, and the names of its fields that no NewPlant has. */
type Accepted = { plant: NewPlant; otherFields: string[] }

/** A value held against the rules of a NewPlant: the plant, or a phrase for each field that is wrong; and its fields that no NewPlant has. */
export type Checked = Accepted | { problems: string[]; otherFields: string[] }

/** Checks a value that `parseJson` gave, or an object made from options; nothing about it is trusted. */
export function checkNewPlant(value: unknown): Checked {
  if (!isObject(value)) return { problems: [`it must be an object, but ${describe(value)}`], otherFields: [] }
  const given: Partial<Record<FieldName, unknown>> = value
  const otherFields = Object.keys(value).filter((key) => !fieldNames.has(key))
  const problems: string[] = []
  for (const { name, isRequired } of plantFields) {
    const problem = isRequired || given[name] !== undefined ? checkField(name, given[name]) : undefined
    if (problem !== undefined) problems.push(problem)
  }
  if (problems.length > 0) return { problems, otherFields }
  const valid = given as NewPlant // which it is without a problem
  return { plant: plantFrom(valid.id, ({ name }) => valid[name]), otherFields }
}

/** As `checkNewPlant`; undefined for a value that is no NewPlant. */
export function acceptNewPlant(value: unknown): Accepted | undefined {
  const checked = checkNewPlant(value)
  return 'plant' in checked ? checked : undefined
}

const fieldNames: ReadonlySet<string> = new Set(plantFields.map(({ name }) => name))

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Why a field cannot have a value, in the words of every message; undefined when it can. */
export function checkField(name: FieldName, value: unknown): string | undefined {
  if (name === 'id') {
    const isInt64 = typeof value === 'bigint' && BigInt.asIntN(64, value) === value
    return isInt64 ? undefined : `id must be ${idRule}, but ${describe(value)}`
  }
  if (typeof value !== 'string') return `${name} must be a string, but ${describe(value)}`
  if (!value.isWellFormed()) return `${name} must be well-formed Unicode, but holds half of a surrogate pair`
  return value.includes('\0') ? `${name} must be text without U+0000, but holds it` : undefined
}

/** The specification's Plant for a NewPlant: all fields but the id, those that it has, in their order. */
export function plantOf(plant: Plant): Plant {
  const copy: Plant = { name: plant.name }
  for (const { name } of textFields) {
    const text = plant[name]
    if (text !== undefined) copy[name] = text
  }
  return copy
}

/** The plant of an id and its texts, null or undefined for each that it does not have. */
export function plantFrom(id: bigint, textOf: (field: TextField, index: number) => string | null | undefined): NewPlant {
  const plant: NewPlant = { id, name: '' }
  for (const [index, field] of textFields.entries()) {
    const text = textOf(field, index)
    if (text != null) plant[field.name] = text
  }
  return plant
}

export function valuesOf(plant: NewPlant): (bigint | string | null)[] {
  return plantFields.map(({ name }) => plant[name] ?? null)
}

/** The length of all texts of a plant, in UTF-16 code units. */
export function textLength(plant: Plant): number {
  return textFields.reduce((sum, { name }) => sum + (plant[name]?.length ?? 0), 0)
}

export function equalPlants(one: NewPlant, other: NewPlant): boolean {
  return one.id === other.id && equalFields(one, other)
}

/** Whether two plants are the same in all fields but the id. */
export function equalFields(one: Plant, other: Plant): boolean {
  return textFields.every(({ name }) => one[name] === other[name])
}

/** Whether a text can be an Idempotency-Key: 1 to 255 visible ASCII characters. */
export function isIdempotencyKey(text: string): boolean {
  return /^[\x21-\x7e]{1,255}$/.test(text)
}

/** What a value is, for the message that rejects it. */
function describe(value: unknown): string {
  if (value === undefined) return 'is missing'
  if (value instanceof NumberText) return `was ${shorten(value.text)}`
  if (Array.isArray(value)) return 'was an array'
  if (typeof value === 'string') return `was ${JSON.stringify(shorten(value))}`
  if (typeof value === 'number') return 'was a number'
  return typeof value === 'object' && value !== null ? 'was an object' : `was ${String(value)}`
}
