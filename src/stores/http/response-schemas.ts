import * as z from 'zod/mini'
import { largestId } from '../../plant/fields.js'
import { buildSentence, errorSchema, schemas } from '../../plant/schema.js'

const error = buildSentence('it', 'be an object')

function buildString(field: string) {
  return z.string({ error: buildSentence(`the ${field}`, 'be a string') })
}

const countError = buildSentence('the count', `be an integer from 0 to ${largestId}`)
const count = z
  .bigint({ error: countError })
  .check(z.gte(0n, { error: countError }), z.lte(largestId, { error: countError }))

/**
 * What a client accepts of a service. A Plant may have texts that no store here keeps, and null
 * stands for no tag.
 */
export const responseSchemas = {
  plant: z.object({ name: buildString('name'), tag: z.nullish(buildString('tag')) }, { error }),
  storedPlant: schemas.record,
  plants: z.array(schemas.record, { error: buildSentence('it', 'be an array') }),
  count: z.object({ count }, { error }),
  error: errorSchema,
}

export type ResponseShape = keyof typeof responseSchemas
