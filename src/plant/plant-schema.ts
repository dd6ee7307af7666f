import * as z from 'zod/mini'
import { shorten } from '../platform/escape.js'
import { NumberText } from './exact-json.js'
import { type FieldName, idRuleFor, largestId, smallestId } from './plant.js'

const int64 = (name: FieldName) => {
  const error = ({ input }: { input?: unknown }) =>
    `${name} must be ${idRuleFor(input)}, but ${describe(input)}`
  return z
    .bigint({ error })
    .check(z.minimum(smallestId, { error }), z.maximum(largestId, { error }))
}

const text = (name: FieldName) => {
  const wellFormed = `${name} must be well-formed Unicode, but contains a lone surrogate`
  return z
    .string({ error: ({ input }) => `${name} must be a string, but ${describe(input)}` })
    .check(
      z.refine((value) => value.isWellFormed(), { error: wellFormed, abort: true }),
      z.refine(
        (value) => !value.includes('\0'),
        `${name} must be text without U+0000, but contains it`,
      ),
    )
}

const [id, name, tag] = [int64('id'), text('name'), text('tag')]
const error = ({ input }: { input?: unknown }) => `it must be an object, but ${describe(input)}`

/** The specification's NewPlant, with the contract's rules for ids and texts, and what an import reads instead. */
export const schemas = {
  newPlant: z.object({ id, name, tag: z.optional(tag) }, { error }),
  record: z.object({ id, name, tag: z.nullish(tag) }, { error }),
  patch: z.object({ id, name: z.exactOptional(name), tag: z.nullish(tag) }, { error }),
}

/** A problem for each invalid field. */
export function problemsOf(value: unknown, form: keyof typeof schemas = 'newPlant'): string[] {
  return (
    schemas[form].safeParse(value, { jitless: true }).error?.issues.map(({ message }) => message) ??
    []
  )
}

export function problemOf(field: FieldName, value: unknown): string | undefined {
  const schema = { id, name, tag }[field]
  return schema.safeParse(value, { jitless: true }).error?.issues[0]?.message
}

function describe(value: unknown): string {
  if (value === undefined) return 'is missing'
  if (value instanceof NumberText) return `was ${shorten(value.text)}`
  if (Array.isArray(value)) return 'was an array'
  if (typeof value === 'string') return `was ${JSON.stringify(shorten(value))}`
  if (typeof value === 'number') return 'was a number'
  return typeof value === 'object' && value !== null ? 'was an object' : `was ${String(value)}`
}
