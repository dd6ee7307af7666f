import * as z from 'zod/mini'
import { type Accepted, acceptNewPlant, checkField, type Field, isObject, otherFieldsOf, problemsOf } from './plant.js'

/**
 * A value held against the NewPlant schema: the plant, or a phrase for each field that is wrong; and
 * the names of its fields that no NewPlant has.
 */
export type Checked = Accepted | { problems: string[]; otherFields: string[] }

/**
 * Holds a value against the specification's NewPlant and the contract's rules for ids and strings. The schema says what is wrong with
 * one that is none; for one that is right, as most are, it would take the service's longest step, and 1 ms of a start.
 *
 * @param value what `parseJson` gave, or an object made from flags; nothing about it is trusted
 */
export function checkNewPlant(value: unknown): Checked {
  const accepted = acceptNewPlant(value)
  if (accepted) return accepted
  if (!isObject(value)) return { problems: problemsOf(value), otherFields: [] }
  const { error } = schema.safeParse(value, { jitless: true })
  return { problems: error?.issues.map((issue) => issue.message) ?? [], otherFields: otherFieldsOf(value) }
}

const schema = z.object({
  id: fieldSchema<bigint>('id'),
  name: fieldSchema<string>('name'),
  tag: z.optional(fieldSchema<string>('tag')),
})

function fieldSchema<T>(field: Field) {
  return z.custom<T>((value) => checkField(field, value) === undefined, {
    error: (issue) => checkField(field, issue.input) ?? '',
  })
}
