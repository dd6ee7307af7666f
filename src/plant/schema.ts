import * as z from 'zod/mini'
import { plantFields } from './fields.js'
import { type Accepted, acceptNewPlant, checkField, describe, isObject, largestId, otherFieldsOf, smallestId } from './plant.js'

type ErrorMap = (issue: { input?: unknown }) => string | undefined

const int64 = (error: ErrorMap) => z.bigint({ error }).check(z.minimum(smallestId, { error }), z.maximum(largestId, { error }))

const text = (error: ErrorMap) =>
  z.string({ error }).check(
    z.refine((value) => value.isWellFormed(), { error, abort: true }),
    z.refine((value) => !value.includes('\0'), { error }),
  )

/** The specification's NewPlant, with the contract's rules for ids and texts. */
export const newPlantSchema = z.object(
  Object.fromEntries(
    plantFields.map(({ name, type, isRequired }) => {
      const error: ErrorMap = ({ input }) => checkField(name, input)
      const schema = type === 'int64' ? int64(error) : text(error)
      return [name, isRequired ? schema : z.optional(schema)]
    }),
  ),
  { error: ({ input }) => `it must be an object, but ${describe(input)}` },
)

/** The plant, or a problem per invalid field; and the names of the unknown fields of the input. */
export type Checked = (Accepted & { problems?: undefined }) | { plant?: undefined; problems: string[]; otherFields: string[] }

/** Checks a value as `acceptNewPlant` does, and returns the problems of an invalid one. */
export function checkNewPlant(value: unknown): Checked {
  const accepted = acceptNewPlant(value)
  if (accepted) return accepted
  const { error } = newPlantSchema.safeParse(value, { jitless: true })
  return { problems: error?.issues.map(({ message }) => message) ?? [], otherFields: isObject(value) ? otherFieldsOf(value) : [] }
}
