import { PlantsError } from '../../platform/errors.js'
import type { Access, CredentialCheck } from '../common/access.js'
import type { RemoteAddress } from '../common/address.js'
import type { OpenOptions } from '../common/store.js'
import { classify, expectedPlant } from './classify.js'
import { HttpClient } from './client.js'
import { requestTo } from './request.js'

/** Sends an empty object, which by the specification a service that accepts the token must reject. Never retries. */
export async function checkToken(address: RemoteAddress, access: Access, options: OpenOptions): Promise<CredentialCheck> {
  const { timeout, clock } = options
  const client = await HttpClient.open(address, access, options)
  try {
    const request = requestTo(access, { method: 'POST', path: '/plants', expected: expectedPlant, body: {}, sends: 'the token' })
    const response = await client.send(request, timeout, clock.signal)
    if ('cause' in response) clock.signal.throwIfAborted()
    const result = classify(client, request, response)
    if (result.outcome === 'done')
      return { state: 'unknown', error: new PlantsError('unusable', `${address.name} answered 200 to an empty object`, { status: 200 }) }
    const hasOtherRights = 'headers' in response && /\binsufficient_scope\b/.test(response.headers['www-authenticate'] ?? '') // RFC 6750, 3.1
    if (result.error.error === 422 || hasOtherRights) return { state: 'accepted' }
    return { state: result.outcome === 'unauthorized' ? 'refused' : 'unknown', error: result.error }
  } finally {
    client.close()
  }
}
