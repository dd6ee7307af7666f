import * as z from 'zod/mini'
import { shorten } from '../platform/escape.js'
import { NumberText } from './exact-json.js'
import { type FieldName, plantFields } from './fields.js'
import { type Form, idRuleFor, largestId, smallestId } from './plant.js'

const int64 = (name: FieldName) => {
  const error = ({ input }: { input?: unknown }) => `${name} must be ${idRuleFor(input)}, but ${describe(input)}`
  return z.bigint({ error }).check(z.minimum(smallestId, { error }), z.maximum(largestId, { error }))
}

const text = (name: FieldName) => {
  const wellFormed = `${name} must be well-formed Unicode, but contains a lone surrogate`
  return z.string({ error: ({ input }) => `${name} must be a string, but ${describe(input)}` }).check(
    z.refine((value) => value.isWellFormed(), { error: wellFormed, abort: true }),
    z.refine((value) => !value.includes('\0'), `${name} must be text without U+0000, but contains it`),
  )
}

const objectOf = (form: Form) => {
  const fields = plantFields.map(({ name, type, isRequired }) => {
    const schema = type === 'int64' ? int64(name) : text(name)
    if (isRequired) return [name, form === 'patch' && type === 'text' ? z.exactOptional(schema) : schema]
    return [name, form === 'newPlant' ? z.optional(schema) : z.nullish(schema)]
  })
  return z.object(Object.fromEntries(fields), { error: ({ input }) => `it must be an object, but ${describe(input)}` })
}

/** The specification's NewPlant, with the contract's rules for ids and texts, and what an import reads instead. */
export const schemas = { newPlant: objectOf('newPlant'), record: objectOf('record'), patch: objectOf('patch') }

const fieldSchemas = new Map(plantFields.map(({ name, type }) => [name, type === 'int64' ? int64(name) : text(name)]))

/** A problem for each invalid field. */
export function problemsOf(value: unknown, form: Form = 'newPlant'): string[] {
  return schemas[form].safeParse(value, { jitless: true }).error?.issues.map(({ message }) => message) ?? []
}

export function problemOf(name: FieldName, value: unknown): string | undefined {
  return fieldSchemas.get(name)?.safeParse(value, { jitless: true }).error?.issues[0]?.message
}

function describe(value: unknown): string {
  if (value === undefined) return 'is missing'
  if (value instanceof NumberText) return `was ${shorten(value.text)}`
  if (Array.isArray(value)) return 'was an array'
  if (typeof value === 'string') return `was ${JSON.stringify(shorten(value))}`
  if (typeof value === 'number') return 'was a number'
  return typeof value === 'object' && value !== null ? 'was an object' : `was ${String(value)}`
}
