import * as z from 'zod/mini'
import { parseJson } from '../../plant/json.js'
import type { HttpRequest } from './http-client.js'

/** Ignores a part with an unexpected shape, so that it does not make the other parts invalid. */
function ignoreInvalid<Schema extends z.ZodMiniType>(schema: Schema) {
  return z.catch(z.optional(schema), undefined)
}

const parameter = z.object({ name: z.string(), in: z.string() })
const reference = z.object({ $ref: z.string() })
const parameters = z.array(ignoreInvalid(z.union([reference, parameter])))
const operation = z.object({ parameters: ignoreInvalid(parameters) })
const pathItem = z.object({ post: ignoreInvalid(operation) })
const components = z.object({
  parameters: ignoreInvalid(z.record(z.string(), ignoreInvalid(parameter))),
})

/** The parts of an OpenAPI description that say whether creates have idempotency keys. */
const descriptionSchema = z.object({
  paths: z.object({ '/plants': ignoreInvalid(pathItem) }),
  components: ignoreInvalid(components),
})

/**
 * Asks a service for its OpenAPI description. The result says whether creates have idempotency
 * keys.
 */
export const descriptionRequest: HttpRequest<boolean> = {
  method: 'GET',
  path: '/openapi.json',
  expectedValue: {
    noun: 'OpenAPI description',
    read({ body }) {
      const result = parseJson(body.toString())
      const document = 'value' in result ? result.value : undefined
      const { data } = descriptionSchema.safeParse(document, { jitless: true })
      return data && listsIdempotencyKeys(data)
    },
  },
}

function listsIdempotencyKeys(description: z.infer<typeof descriptionSchema>): boolean {
  const postParameters = description.paths['/plants']?.post?.parameters ?? []
  const sharedParameters = description.components?.parameters ?? {}
  return postParameters.some((item) => {
    const isReference = item !== undefined && '$ref' in item
    const target = isReference ? sharedParameters[toParameterName(item.$ref)] : item
    return target?.in === 'header' && target.name.toLowerCase() === 'idempotency-key'
  })
}

function toParameterName(reference: string): string {
  return reference.replace('#/components/parameters/', '')
}
