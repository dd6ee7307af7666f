import * as z from 'zod/mini'
import { type NewPlant, plantFields } from './fields.js'
import { type Accepted, acceptNewPlant, describe, idRuleFor, isObject, otherFieldsOf, problemsOf } from './plant.js'

const int64 = (field: string) => {
  const error = ({ input }: { input?: unknown }) => `${field} must be ${idRuleFor(input)}, but ${describe(input)}`
  return z.bigint({ error }).check(z.minimum(-(2n ** 63n), { error }), z.maximum(2n ** 63n - 1n, { error }))
}

const text = (field: string) =>
  z.string({ error: ({ input }) => `${field} must be a string, but ${describe(input)}` }).check(
    z.refine((value) => value.isWellFormed(), {
      error: `${field} must be well-formed Unicode, but holds half of a surrogate pair`,
      abort: true,
    }),
    z.refine((value) => !value.includes('\0'), { error: `${field} must be text without U+0000, but holds it` }),
  )

/** The specification's NewPlant, with the contract's rules for ids and texts, and their messages. */
const newPlant = z.object(
  Object.fromEntries(
    plantFields.map(({ name, type, isRequired }) => {
      const schema = type === 'int64' ? int64(name) : text(name)
      return [name, isRequired ? schema : z.optional(schema)]
    }),
  ),
)

/** A value held against the NewPlant schema: the plant, or a phrase for each field that is wrong; and its fields that no NewPlant has. */
export type Checked = Accepted | { problems: string[]; otherFields: string[] }

/** Checks a value that `parseJson` gave, or an object made from options, against the schema; nothing about it is trusted. */
export function checkNewPlant(value: unknown): Checked {
  const accepted = acceptNewPlant(value)
  if (accepted) return accepted
  if (!isObject(value)) return { problems: problemsOf(value), otherFields: [] }
  const { error } = newPlant.safeParse(value, { jitless: true })
  return { problems: error?.issues.map((issue) => issue.message) ?? [], otherFields: otherFieldsOf(value) }
}

/** The plant that the schema alone makes of a value, or undefined: what `acceptNewPlant` is held to. */
export function parseWithSchema(value: unknown): NewPlant | undefined {
  const { data } = newPlant.safeParse(value, { jitless: true })
  return data as NewPlant | undefined // the schema is made of the table that the type is made of
}
