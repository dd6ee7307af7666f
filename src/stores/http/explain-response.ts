import { parseStoredPlant } from './plant-request.js'
import { type ResponseShape, responseSchemas } from './response-schemas.js'

/** More of them would not help, and a response may have thousands. */
const maxProblems = 3

/**
 * Why a body does not have the shape, such as "name must be a string, but is missing". Undefined
 * for one that has it.
 */
export function explainResponse(shape: ResponseShape, body: unknown): string | undefined {
  const { error } = responseSchemas[shape].safeParse(cutAfterProblem(body), { jitless: true })
  const problems = error?.issues.slice(0, maxProblems).map(({ path: [index], message }) => {
    return typeof index === 'number' ? `plant ${index + 1}: ${message}` : message
  })
  return problems?.join('; ')
}

/** A list up to its first item that is no plant: each further one would be an issue of zod. */
function cutAfterProblem(body: unknown): unknown {
  if (!Array.isArray(body)) return body
  const index = body.findIndex((item) => parseStoredPlant(item) === undefined)
  return index === -1 ? body : body.slice(0, index + 1)
}
