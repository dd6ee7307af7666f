import { parseStoredPlant } from './plant-request.js'
import { type ResponseShape, responseSchemas } from './response-schemas.js'

/** More problems would not help, and a response may have thousands. */
const maxProblems = 3

/**
 * Explains why a body does not have the shape, such as "the name is missing".
 *
 * @returns undefined for a body that has the shape
 */
export function explainResponse(shape: ResponseShape, body: unknown): string | undefined {
  const { error } = responseSchemas[shape].safeParse(cutAfterProblem(body), { jitless: true })
  const problems = error?.issues.slice(0, maxProblems).map(({ path: [index], message }) => {
    return typeof index === 'number' ? `plant ${index + 1}: ${message}` : message
  })
  return problems?.join('; ')
}

/** Cuts a list after its first item that is no plant: zod would create an issue for each. */
function cutAfterProblem(body: unknown): unknown {
  if (!Array.isArray(body)) return body
  const index = body.findIndex((item) => parseStoredPlant(item) === undefined)
  return index === -1 ? body : body.slice(0, index + 1)
}
