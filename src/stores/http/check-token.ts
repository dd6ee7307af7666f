import { PlantsError } from '../../platform/errors.js'
import type { Access, CredentialCheck } from '../common/access.js'
import type { RemoteAddress } from '../common/address.js'
import type { OpenOptions } from '../common/store.js'
import { classify } from './classify.js'
import { HttpClient } from './http-client.js'
import { expectedPlant, requestTo } from './plant-request.js'

/** Sends an empty object, which by the specification a service that accepts the token must reject. Never retries. */
export async function verifyToken(
  address: RemoteAddress,
  access: Access,
  options: OpenOptions,
): Promise<CredentialCheck> {
  const { timeout, clock } = options
  const client = await HttpClient.open(address, access, options)
  try {
    const request = requestTo(access, { method: 'POST', path: '/plants', expected: expectedPlant, body: {} })
    const response = await client.send(request, timeout, clock.signal)
    if ('cause' in response) clock.signal.throwIfAborted()
    const result = classify(client, request, response)
    if (result.outcome === 'done') {
      const message = `${address.name} answered 200 to an empty object`
      return { state: 'unknown', error: new PlantsError('unusable', message, { status: 200 }) }
    }
    const hasOtherRights =
      // RFC 6750, 3.1
      'headers' in response && /\binsufficient_scope\b/.test(response.headers['www-authenticate'] ?? '')
    if (result.error.error === 422 || hasOtherRights) return { state: 'accepted' }
    return { state: result.error.type === 'unauthorized' ? 'rejected' : 'unknown', error: result.error }
  } finally {
    client.close()
  }
}
