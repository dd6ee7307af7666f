import { grouped } from '../platform/values.js'
import { isObject, NumberText, parseInt64 } from './exact-json.js'
import {
  fieldNames,
  idRule,
  type NewPlant,
  type Plant,
  type PlantPatch,
  type TextField,
  textFields,
  textNames,
} from './fields.js'

export type { FieldName, NewPlant, Plant, PlantPatch } from './fields.js'

/** Names the range only for an id outside it. */
export function idRuleFor(value: unknown): string {
  if (typeof value === 'string' && parseInt64(value) !== undefined) return 'an integer, not a string'
  const text = value instanceof NumberText ? value.text : value
  if ((typeof text !== 'string' && typeof text !== 'bigint') || text === '') return 'an integer'
  return idRules.find(([pattern]) => pattern.test(String(text)))?.[1] ?? 'an integer, in digits only'
}

export const smallestId = -(2n ** 63n)
export const largestId = 2n ** 63n - 1n

const idRules: readonly [RegExp, string][] = [
  [/^(?=.*\s)[\s\d.eE+-]+$/s, 'an integer without spaces'],
  [/^[+-]?0\d+$/, 'an integer without leading zeros'],
  [/^-?\d+(?:(?:\.\d+)?[eE]\+?\d+)?$/, idRule],
  [/^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/, 'an integer'],
]

/**
 * What an object is read as: a NewPlant; a `record` of an import, whose optional texts may be null; or a `patch`, a
 * record that may also lack required texts.
 */
export type Form = 'newPlant' | 'record' | 'patch'

/**
 * Accepts the same values as the schemas in plant-schema.ts, without zod, which would be the longest step of a POST. A
 * property test compares the two.
 *
 * @param value untrusted
 * @returns undefined for an invalid value; `problemsOf` returns the reasons
 */
export function acceptNewPlant(value: unknown, form?: 'newPlant'): NewPlant | undefined
export function acceptNewPlant(value: unknown, form: Form): PlantPatch | undefined
export function acceptNewPlant(value: unknown, form: Form = 'newPlant'): PlantPatch | undefined {
  if (!isObject(value)) return undefined
  const { id } = value
  if (typeof id !== 'bigint' || BigInt.asIntN(64, id) !== id) return undefined
  const patch: PlantPatch = { id }
  for (const { name, isRequired } of textFields) {
    const text = value[name]
    const isText = typeof text === 'string' && text.isWellFormed() && !text.includes('\0')
    const isNull = text === null && !isRequired && form !== 'newPlant'
    const isLeftOut = isRequired ? form === 'patch' && !Object.hasOwn(value, name) : text === undefined
    if (isText || isNull) patch[name] = text
    else if (!isLeftOut) return undefined
  }
  return patch
}

/** Returns undefined if a required text is missing in both. */
export function patchedPlant(patch: PlantPatch, stored?: Plant): NewPlant | undefined {
  const textOf = ({ name }: TextField) => (patch[name] === undefined ? stored?.[name] : patch[name])
  const isComplete = textFields.every((field) => !field.isRequired || textOf(field) != null)
  return isComplete ? plantFrom(patch.id, textOf) : undefined
}

export function otherFieldsOf(value: object): string[] {
  return Object.keys(value).filter((key) => !fieldNames.some((name) => name === key))
}

export function invalidPlant(problems: readonly string[]): string {
  return `Invalid plant: ${problems.join('; ')}`
}

/** In order, without the id. */
export function plantOf(plant: Plant): Plant {
  const copy: Plant = { name: plant.name }
  for (const name of textNames) {
    const text = plant[name]
    if (text !== undefined) copy[name] = text
  }
  return copy
}

export function plantFrom(
  id: bigint,
  textOf: (field: TextField, index: number) => string | null | undefined,
): NewPlant {
  const plant: NewPlant = { id, name: '' }
  for (const [index, field] of textFields.entries()) {
    const text = textOf(field, index)
    if (text != null) plant[field.name] = text
  }
  return plant
}

export function valuesOf(plant: NewPlant): (bigint | string | null)[] {
  return fieldNames.map((name) => plant[name] ?? null)
}

export function plantCount(count: number | bigint): string {
  return `${grouped(count)} ${Number(count) === 1 ? 'plant' : 'plants'}`
}

/** in UTF-16 code units */
export function textLength(plant: Plant): number {
  return textNames.reduce((sum, name) => sum + (plant[name]?.length ?? 0), 0)
}

export function equalPlants(one: NewPlant, other: NewPlant): boolean {
  return one.id === other.id && equalFields(one, other)
}

export function equalFields(one: Plant, other: Plant): boolean {
  return textNames.every((name) => one[name] === other[name])
}

export function isIdempotencyKey(text: string): boolean {
  return /^[\x21-\x7e]{1,255}$/.test(text)
}
