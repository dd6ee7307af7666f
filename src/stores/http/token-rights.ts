import type { HttpAddress } from '../address.js'
import type { OpenContext } from '../store-kind.js'
import { type Right, rights } from '../tokens.js'
import { HttpClient, type HttpRequest } from './http-client.js'
import { expectedPlant, parseError } from './plant-request.js'

/**
 * For each right, a request that changes nothing even if the token has the right: an empty object
 * is no plant, and no plant has the id `x`. If the token lacks the right, a service rejects the
 * request before it looks at the body and the id.
 */
const probes: Readonly<Record<Right, Omit<HttpRequest, 'expectedValue'>>> = {
  create: { method: 'POST', path: '/plants', body: '{}' },
  read: { method: 'GET', path: '/plants?limit=1' },
  update: { method: 'PATCH', path: '/plants/x', body: '{}' },
  delete: { method: 'DELETE', path: '/plants/x' },
}

/**
 * Asks a service which rights an accepted token has.
 *
 * @returns the rights that are certain: other services may not have all operations
 */
export async function findTokenRights(
  address: HttpAddress,
  { timeoutMs, runtime, findAccess }: OpenContext,
): Promise<readonly Right[]> {
  const access = await findAccess(address)
  const client = new HttpClient(address, { access, timeoutMs, runtime })
  const signal = runtime.getStopSignal()
  const grantedRights: Right[] = []
  try {
    for (const right of rights) {
      const probe = { ...probes[right], expectedValue: expectedPlant }
      const response = await client.send(probe, timeoutMs, [signal])
      signal.throwIfAborted()
      if ('cause' in response) return grantedRights
      const { error = 401 } = parseError(response) ?? {}
      const isInvalid = [400, 422].includes(response.status) && ![401, 403].includes(error)
      const isRead = right === 'read' && response.status === 200
      if (isInvalid || isRead) grantedRights.push(right)
    }
    return grantedRights
  } finally {
    await client.close()
  }
}
