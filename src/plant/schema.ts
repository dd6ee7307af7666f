import * as z from 'zod/mini'
import { type NewPlant, plantFields } from './fields.js'
import { type Accepted, acceptNewPlant, checkField, isObject, largestId, otherFieldsOf, problemsOf, smallestId } from './plant.js'

const int64 = (error: ErrorMap) => z.bigint({ error }).check(z.minimum(smallestId, { error }), z.maximum(largestId, { error }))

const text = (error: ErrorMap) =>
  z.string({ error }).check(
    z.refine((value) => value.isWellFormed(), { error, abort: true }),
    z.refine((value) => !value.includes('\0'), { error }),
  )

type ErrorMap = (issue: { input?: unknown }) => string | undefined

/** The specification's NewPlant, with the contract's rules for ids and texts. */
const newPlant = z.object(
  Object.fromEntries(
    plantFields.map(({ name, type, isRequired }) => {
      const error: ErrorMap = ({ input }) => checkField(name, input)
      const schema = type === 'int64' ? int64(error) : text(error)
      return [name, isRequired ? schema : z.optional(schema)]
    }),
  ),
)

/** The result of a check: the plant, or a problem per invalid field; and the names of the unknown fields. */
export type Checked = Accepted | { problems: string[]; otherFields: string[] }

/**
 * Checks a value against the schema.
 *
 * @param value the result of `parseJson`, or an object made from options; untrusted
 */
export function checkNewPlant(value: unknown): Checked {
  const accepted = acceptNewPlant(value)
  if (accepted) return accepted
  if (!isObject(value)) return { problems: problemsOf(value), otherFields: [] }
  const { error } = newPlant.safeParse(value, { jitless: true })
  return { problems: error?.issues.map((issue) => issue.message) ?? [], otherFields: otherFieldsOf(value) }
}

/** The NewPlant that the schema alone accepts, for the property test of `acceptNewPlant`. */
export function parseWithSchema(value: unknown): NewPlant | undefined {
  const { data } = newPlant.safeParse(value, { jitless: true })
  return data as NewPlant | undefined // the schema and the type are derived from the same table
}
