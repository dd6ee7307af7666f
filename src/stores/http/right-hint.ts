import { defaultRights, type Right, rights } from '../tokens.js'
import type { HttpRequest, HttpResponse } from './http-client.js'

const rightsByMethod: Readonly<Record<HttpRequest['method'], Right>> = {
  POST: 'create',
  GET: 'read',
  PATCH: 'update',
  DELETE: 'delete',
}

/**
 * Chooses the hint for a request that lacks a right. The challenge of RFC 6750, 3.1 names the scope
 * that a token needs. `plants serve` leaves the scope out if no token would do, because the service
 * does not offer the operation. Other services may send no challenge at all.
 */
export function chooseRightHint({ method }: HttpRequest, { headers }: HttpResponse): string {
  const challenge = headers['www-authenticate'] ?? ''
  if (!/\binsufficient_scope\b/.test(challenge))
    return 'Ask the operator of the service to allow this'
  const right = rightsByMethod[method]
  if (/\bscope=/.test(challenge))
    // The rights of the token are not known. With a token that has only the missing right, the next
    // operation could lack another one.
    return `Ask the operator for a token with the right ${right} and the rights of this one: plants tokens create --allow RIGHTS. For PLANTS_SERVE_TOKEN: plants serve --allow RIGHTS`
  const offeredRights = rights.filter((name) => name === right || defaultRights.includes(name))
  return `Ask the operator to offer this: plants serve --allow ${offeredRights}`
}
