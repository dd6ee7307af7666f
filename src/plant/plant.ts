import { shorten } from '../platform/escape.js'
import { grouped } from '../platform/values.js'
import { type FieldName, type NewPlant, type Plant, plantFields, type TextField, textFields } from './fields.js'
import { NumberText, parseInt64 } from './json.js'

export type { FieldName, NewPlant, Plant } from './fields.js'

/** What an id must be. */
export const idRule = 'an integer from -9223372036854775808 to 9223372036854775807'

/** The rule for ids that a value violates, for messages: "an integer without leading zeros". Names the range only for an id outside it. */
export function idRuleFor(value: unknown): string {
  if (typeof value === 'string' && parseInt64(value) !== undefined) return 'an integer, not a string'
  const text = value instanceof NumberText ? value.text : value
  if ((typeof text !== 'string' && typeof text !== 'bigint') || text === '') return 'an integer'
  return idRules.find(([pattern]) => pattern.test(String(text)))?.[1] ?? 'an integer, in digits only'
}

/** the limits of int64 */
export const smallestId = -(2n ** 63n)
export const largestId = 2n ** 63n - 1n

const idRules: readonly [RegExp, string][] = [
  [/^(?=.*\s)[\s\d.eE+-]+$/s, 'an integer without spaces'],
  [/^[+-]?0\d/, 'an integer without leading zeros'],
  [/^-?\d+(?:(?:\.\d+)?[eE]\+?\d+)?$/, idRule],
  [/^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/, 'an integer'],
]

/** The plant, or a problem per invalid field; and the names of the unknown fields of the input. */
export type Checked =
  | { plant: NewPlant; problems?: undefined; otherFields: string[] }
  | { plant?: undefined; problems: string[]; otherFields: string[] }

/**
 * Checks whether a value is a NewPlant.
 *
 * @param value the result of `parseJson`, or an object made from options; untrusted
 */
export function checkNewPlant(value: unknown): Checked {
  if (!isObject(value)) return { problems: [`it must be an object, but ${describe(value)}`], otherFields: [] }
  const problems: string[] = []
  for (const { name, isRequired } of plantFields) {
    const problem = isRequired || value[name] !== undefined ? checkField(name, value[name]) : undefined
    if (problem !== undefined) problems.push(problem)
  }
  const otherFields = Object.keys(value).filter((key) => !fieldNames.has(key))
  if (problems.length > 0) return { problems, otherFields }
  const fields = value as Partial<NewPlant> & { id: bigint } // without a problem, each has its type
  return { plant: plantFrom(fields.id, ({ name }) => fields[name]), otherFields }
}

const fieldNames: ReadonlySet<string> = new Set(plantFields.map(({ name }) => name))

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Why a value is invalid for a field, for messages; undefined for a valid value. */
export function checkField(name: FieldName, value: unknown): string | undefined {
  const failure = name === 'id' ? idFailure(value) : textFailure(value)
  return failure === undefined ? undefined : `${name} must be ${failure}`
}

function idFailure(value: unknown): string | undefined {
  if (typeof value === 'bigint' && BigInt.asIntN(64, value) === value) return undefined
  return `${idRuleFor(value)}, but ${describe(value)}`
}

function textFailure(value: unknown): string | undefined {
  if (typeof value !== 'string') return `a string, but ${describe(value)}`
  if (!value.isWellFormed()) return 'well-formed Unicode, but contains a lone surrogate'
  return value.includes('\0') ? 'text without U+0000, but contains it' : undefined
}

/** The specification's Plant of a NewPlant: its fields in order, without the id. */
export function plantOf(plant: Plant): Plant {
  const copy: Plant = { name: plant.name }
  for (const { name } of textFields) {
    const text = plant[name]
    if (text !== undefined) copy[name] = text
  }
  return copy
}

/** Builds a plant from its id and its texts; `textOf` returns null or undefined for a text that the plant does not have. */
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

/** A count of plants in words: `1 plant`, `1,000 plants`. */
export function plantCount(count: number | bigint): string {
  return `${grouped(count)} ${Number(count) === 1 ? 'plant' : 'plants'}`
}

/** The length of all texts of a plant, in UTF-16 code units. */
export function textLength(plant: Plant): number {
  return textFields.reduce((sum, { name }) => sum + (plant[name]?.length ?? 0), 0)
}

export function equalPlants(one: NewPlant, other: NewPlant): boolean {
  return one.id === other.id && equalFields(one, other)
}

/** Whether two plants are equal in all fields except the id. */
export function equalFields(one: Plant, other: Plant): boolean {
  return textFields.every(({ name }) => one[name] === other[name])
}

/** Whether a text is a valid Idempotency-Key: 1 to 255 visible ASCII characters. */
export function isIdempotencyKey(text: string): boolean {
  return /^[\x21-\x7e]{1,255}$/.test(text)
}

/** Describes an invalid value in an error message: `was 1.5`, `is missing`. */
function describe(value: unknown): string {
  if (value === undefined) return 'is missing'
  if (value instanceof NumberText) return `was ${shorten(value.text)}`
  if (Array.isArray(value)) return 'was an array'
  if (typeof value === 'string') return `was ${JSON.stringify(shorten(value))}`
  if (typeof value === 'number') return 'was a number'
  return typeof value === 'object' && value !== null ? 'was an object' : `was ${String(value)}`
}
