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

/** Asks whether a service lists idempotency keys. */
export const requestToDescribe: HttpRequest<boolean> = {
  method: 'GET',
  path: '/openapi.json',
  expected: {
    noun: 'OpenAPI description',
    read({ body }) {
      const parsed = parseJson(body.toString())
      const document = 'value' in parsed ? parsed.value : undefined
      const { data } = descriptionSchema.safeParse(document, { jitless: true })
      return data && listsKeys(data)
    },
  },
}

function listsKeys(description: z.infer<typeof descriptionSchema>): boolean {
  const listed = description.paths['/plants']?.post?.parameters ?? []
  const shared = description.components?.parameters ?? {}
  return listed.some((item) => {
    const isReference = item !== undefined && '$ref' in item
    const target = isReference ? shared[toParameterName(item.$ref)] : item
    return target?.in === 'header' && target.name.toLowerCase() === 'idempotency-key'
  })
}

function toParameterName(reference: string): string {
  return reference.replace('#/components/parameters/', '')
}
