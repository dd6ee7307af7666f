import * as z from 'zod/mini'
import { largestId } from '../../plant/fields.js'
import { buildSentence, errorSchema, schemas } from '../../plant/schema.js'

const error = buildSentence('it', 'be an object')

function buildStringSchema(field: string) {
  return z.string({ error: buildSentence(`the ${field}`, 'be a string') })
}

const countError = buildSentence('the count', `be an integer from 0 to ${largestId}`)
const count = z
  .bigint({ error: countError })
  .check(z.gte(0n, { error: countError }), z.lte(largestId, { error: countError }))

/**
 * The responses that a client accepts. A Plant may have a name and a tag that a direct store
 * rejects. A tag of null means that the plant has no tag.
 */
export const responseSchemas = {
  plant: z.object(
    { name: buildStringSchema('name'), tag: z.nullish(buildStringSchema('tag')) },
    { error },
  ),
  storedPlant: schemas.record,
  plants: z.array(schemas.record, { error: buildSentence('it', 'be an array') }),
  count: z.object({ count }, { error }),
  error: errorSchema,
}

export type ResponseShape = keyof typeof responseSchemas
